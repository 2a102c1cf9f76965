#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the Python suites with the oldest and the newest NumPy and PyTorch that they promise to work with.

  tools/python_matrix.py [--binary PROGRAM] [--python NAME=PROGRAM]... [--only NAME]... [--write FILE]

Makes an environment for each line of MATRIX in build/matrix (gigabytes, for PyTorch; they are kept), or takes the
Python that --python names for it as it is. Writes the result as JSON (tools/test.sh --nightly=python records it). Exit 0: all suites
passed; 1: one failed, or an environment has other versions than its line says; 2: one could not be made.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import test_results

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITE = ROOT / "oracle_py/tests"
PYTHON = "/usr/bin/python3"
COMMON = ("pytest", "hypothesis", "matplotlib")


def pins():
    """{package: pinned version} of the requirements files; their last line for a package counts."""
    found = {}
    for name in ("requirements.txt", "requirements-torch.txt"):
        found |= dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "oracle_py" / name).read_text(), re.MULTILINE))
    return found


PINS = pins()
MATRIX = {
    "oldest": {"numpy": "1.26.4", "torch": "2.4.1"},
    "newest": {"numpy": PINS["numpy"], "torch": PINS["torch"]},
}


class Blocked(Exception):
    """An environment that cannot be made here."""


def environment(name):
    """The Python of build/matrix/NAME, made if it is not there or not finished."""
    folder = ROOT / "build/matrix" / name
    wanted = [f"{p}=={PINS[p]}" for p in COMMON] + [f"{p}=={v}" for p, v in MATRIX[name].items()]
    stamp, python = folder / "wanted.txt", folder / "bin/python"
    if stamp.is_file() and stamp.read_text() == " ".join(wanted):
        return python
    for command in ([PYTHON, "-m", "venv", "--clear", str(folder)],
                    [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *wanted]):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise Blocked(f"{name}: {' '.join(command)}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    stamp.write_text(" ".join(wanted))
    return python


def versions(python):
    code = ("import json, platform, numpy, torch; print(json.dumps({'python': platform.python_version(), "
            "'numpy': numpy.__version__, 'torch': torch.__version__}))")
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True)
    if done.returncode != 0:
        raise Blocked(f"{python}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return json.loads(done.stdout)


def run(name, python, binary):
    """One line of the record."""
    found = versions(python)
    junit = ROOT / "build/matrix" / f"{name}.xml"
    junit.parent.mkdir(parents=True, exist_ok=True)
    junit.unlink(missing_ok=True)
    command = [str(python), "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", str(junit), str(SUITE)]
    started = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True,
                          env=os.environ | {"GRADGUARD_BINARY": str(binary)})
    results = test_results.read_results(junit) if junit.is_file() else []
    count = {outcome: sum(r["outcome"] == outcome for r in results) for outcome in ("passed", "failed", "blocked")}
    other = [f"{p} is {found[p]}, not {v}" for p, v in MATRIX[name].items() if found[p].partition("+")[0] != v]
    return {
        "name": name, "versions": found, **count, "seconds": round(time.monotonic() - started, 1),
        "blocked_tests": [{"name": r["name"], "reason": r["reason"]} for r in results if r["outcome"] == "blocked"],
        "problems": other + [f"failed: {r['name']}" for r in results if r["outcome"] == "failed"]
        + ([] if done.returncode == 0 and count["passed"] else [f"pytest ended with status {done.returncode}"]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/gradguard", help="the gradguard program")
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PROGRAM", help="use this environment")
    parser.add_argument("--only", action="append", choices=MATRIX, help="of the matrix; all")
    parser.add_argument("--write", type=pathlib.Path, default=ROOT / "build/matrix/result.json")
    options = parser.parse_args()
    given = dict(text.partition("=")[::2] for text in options.python)
    if unknown := set(given) - set(MATRIX):
        parser.error(f"--python: no environment is called {sorted(unknown)[0]}; want one of {', '.join(MATRIX)}")

    record = {"schema": 1, "environments": []}
    for name in options.only or MATRIX:
        try:
            record["environments"].append(run(name, given.get(name) or environment(name), options.binary.resolve()))
        except Blocked as reason:
            print(f"blocked: {reason}")
            return 2
        line = record["environments"][-1]
        told = ", ".join(f"{package} {version}" for package, version in line["versions"].items())
        print(f"{name} ({told}): {line['passed']} passed, {line['failed']} failed, {line['blocked']} blocked")
        for problem in line["problems"]:
            print(f"PROBLEM {problem}")
    record["finished_utc"] = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    part = options.write.with_name(options.write.name + ".part")
    part.write_text(json.dumps(record, indent=2) + "\n")
    os.replace(part, options.write)
    return 1 if any(line["problems"] for line in record["environments"]) else 0


if __name__ == "__main__":
    sys.exit(main())
