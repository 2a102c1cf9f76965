# SPDX-License-Identifier: Apache-2.0
"""Puts the built package and the independent oracle on the import path: GRADGUARD_PYTHON_PATH, else build/python."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [os.environ.get("GRADGUARD_PYTHON_PATH") or str(ROOT / "build/python"), str(ROOT / "oracle_py")]
