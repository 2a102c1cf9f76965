#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-format or clang-tidy over the project's own C++.

  tools/lint.py clang-format [--fix]
  tools/lint.py clang-tidy [--build FOLDER]    FOLDER has compile_commands.json (the presets write it)

Exit 0 clean, 1 findings, 2 blocked (no such tool, or another release of clang-format than the style was made for).
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

from check_includes import ROOT, sources
from test_results import NEEDS


def clang_format(fix):
    # Programs under tests are compiled and checked in with their lines: moving one makes expectations wrong.
    files = [str(f.relative_to(ROOT)) for f in sources(ROOT) if not (f.suffix == ".cu" and ROOT / "tests" in f.parents)]
    mode = ["-i"] if fix else ["--dry-run", "--Werror"]
    done = subprocess.run(["clang-format", *mode, *files], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        bad = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "-Wclang-format" in line})
        print("\n".join(bad) or done.stderr)
        print(f"{len(bad)} of {len(files)} files: tools/lint.py clang-format --fix")
    return 1 if done.returncode != 0 else 0


def clang_tidy(build):
    database = build / "compile_commands.json"
    if not database.is_file():
        sys.exit(f"no {database}: configure with a preset first")
    units = sorted({c["file"] for c in json.loads(database.read_text()) if c["file"].startswith(f"{ROOT}/")
                    and not c["file"].startswith((f"{build}/", f"{ROOT}/.venv/"))})

    # The database names g++'s options.
    command = ["clang-tidy", "--quiet", "--extra-arg=-Wno-unknown-warning-option", "-p", str(build)]

    def one(unit):
        return subprocess.run([*command, unit], cwd=ROOT, capture_output=True, text=True)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for unit, done in zip(units, pool.map(one, units)):
            if done.returncode != 0:
                failed += 1
                print(f"{unit}\n{done.stdout or done.stderr}")
    print(f"{len(units)} files, {failed} with findings")
    return 1 if failed or not units else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=("clang-format", "clang-tidy"))
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    reason = NEEDS[options.tool]()
    if reason is not None:
        print(f"blocked: {reason}")
        return 2
    return clang_format(options.fix) if options.tool == "clang-format" else clang_tidy(options.build.resolve())


if __name__ == "__main__":
    sys.exit(main())
