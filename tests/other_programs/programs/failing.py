# SPDX-License-Identifier: Apache-2.0
"""Runs another program of this folder, and prints how it failed as JSON. failing.py SCRIPT ARGUMENTS..."""

import json
import runpy
import sys
from pathlib import Path

sys.argv = sys.argv[1:]
try:
    runpy.run_path(str(Path(__file__).parent / sys.argv[0]), run_name="__main__")
    print(json.dumps(None))
except Exception as error:
    print(json.dumps(str(error)))
