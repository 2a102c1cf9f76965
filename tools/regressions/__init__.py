# SPDX-License-Identifier: Apache-2.0
"""The regression runner of contract section 8, in parts; tools/run_gradient_guard_regressions.py starts it."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
