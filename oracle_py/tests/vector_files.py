# SPDX-License-Identifier: Apache-2.0
"""Runs make_vectors.py, as a user does."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "make_vectors.py"
FOLDER = SCRIPT.parents[1] / "property_tests" / "vectors"


def make_vectors(*arguments):
    """-> (exit status, what it printed)."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stdout + done.stderr
