#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one suite of the project's regressions and keeps a record of it (contract section 8).

  tools/run_gradient_guard_regressions.py [--suite reference]    needs a C++20 compiler and nothing else
  tools/run_gradient_guard_regressions.py --suite host --dry-run

Exit 0 passed; 1 failed, timed out or interrupted; 2 blocked, with the reason; 64 a usage error, nothing written.
"""
import sys

sys.dont_write_bytecode = True  # A dry run leaves nothing behind, and a run nothing outside of its log folder.

from regressions.run import main  # noqa: E402

if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # A path need not be text.
    sys.exit(main(sys.argv[1:]))
