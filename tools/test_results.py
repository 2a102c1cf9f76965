#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges a test run by its JUnit files: nothing failed, something ran, and exactly the expected tests were blocked.

A test that cannot run on this machine is skipped with its reason; it counts as blocked, never as passed.
tools/expected_blocked.txt says which tests may be blocked for the want of what. Where the thing is missing all of them
must be blocked, where it is there none of them may be, and nothing else ever.
"""
import argparse
import ctypes
import datetime
import fnmatch
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_SHOWN = 30
EXPECTED = ROOT / "tools/expected_blocked.txt"


def missing_cuda():
    """Why no CUDA device can be used here; None when one can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1)"
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "the NVIDIA driver finds no device"
    return None


def find_compiler():
    """(nvcc or None, why it cannot reproduce kernels/ptx or None, its release)."""
    spec = importlib.util.spec_from_file_location("regenerate_ptx", ROOT / "tools/regenerate_ptx.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.find_compiler()


def missing_nvcc():
    nvcc, reason, _ = find_compiler()
    return reason if nvcc is None else None


def missing_recorded_nvcc():
    """Why the checked-in PTX cannot be compiled anew here; None when it can."""
    return find_compiler()[1]


def missing_nvrtc():
    for name in ("libnvrtc.so.13", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"):
        try:
            ctypes.CDLL(name)
            return None
        except OSError:
            pass
    return "no libnvrtc"


def missing_tool(command, release=""):
    """Why a clang tool cannot be used here; None when it can."""
    path = shutil.which(command)
    if path is None:
        return f"no {command}"
    version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    return None if f"version {release}" in version else f"{command} is not of release {release}"


def missing_in_python(code):
    """Why the Python of the tests (.venv, else this one) cannot run `code`, in one line; None when it can."""
    python = ROOT / ".venv/bin/python"
    done = subprocess.run([python if python.exists() else sys.executable, "-c", code], capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no reason given"])[-1]


def missing_torch():
    """Why PyTorch is not to be used here; None when it is."""
    if os.environ.get("GRADGUARD_TORCH") == "none":
        return "GRADGUARD_TORCH=none"
    return missing_in_python("import torch")


def missing_recorded_torch():
    """Why the vectors made by PyTorch cannot be made anew: they are those of one version; None when they can."""
    lines = (ROOT / "oracle_py/requirements-torch.txt").read_text().split()
    wanted = next(line.removeprefix("torch==") for line in lines if line.startswith("torch=="))
    code = f"import torch; v = torch.__version__.partition('+')[0]; assert v == '{wanted}', f'PyTorch {{v}}, not {wanted}'"
    return missing_torch() or missing_in_python(code)


def missing_cuda_device():
    """Why the library has no CUDA device here: this version may have none at all."""
    return missing_cuda() if (ROOT / "kernels/cuda").is_dir() else "this version has no CUDA device"


HAS_PYTHON_HEADERS = "import os, sysconfig; os.stat(sysconfig.get_paths()['include'] + '/Python.h')"

NEEDS = {
    "cuda": missing_cuda,
    "python-package": lambda: missing_in_python(f"import nanobind, numpy, ml_dtypes; {HAS_PYTHON_HEADERS}"),
    "torch": missing_torch,
    "recorded-torch": missing_recorded_torch,
    "cuda-device": missing_cuda_device,
    "nvcc": missing_nvcc,
    "recorded-nvcc": missing_recorded_nvcc,
    "nvrtc": missing_nvrtc,
    "clang-tidy": lambda: missing_tool("clang-tidy"),
    # Releases differ in what they make of the same style.
    "clang-format": lambda: missing_tool("clang-format", "14"),
}


def read_expected(path):
    """[(need, pattern)] from lines of `need pattern`."""
    expected = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#")[0].split(maxsplit=1)
        if not words:
            continue
        if len(words) != 2 or words[0] not in NEEDS:
            raise ValueError(f"{path.name}:{number}: want '{'|'.join(NEEDS)} PATTERN', got '{line.strip()}'")
        expected.append((words[0], words[1].strip()))
    return expected


# How pytest says that importing a file skipped all of its tests.
WHOLE_FILE = "collection skipped"


def skip_reason(case, skipped):
    """The line that a test gave for being skipped."""
    message = skipped.get("message", "")
    if message == WHOLE_FILE:
        return (skipped.text or "").rpartition("Skipped: ")[2].rstrip("')\"\n ") or "no reason given"
    if message and not message.startswith("SKIP_"):  # ctest says only by which rule it skipped.
        return message.splitlines()[0]
    lines = [line.strip() for line in (case.findtext("system-out") or "").splitlines()]
    told = [line for line in lines if line and not line.startswith(("[", "Running main", "Note:"))]
    told = [line for line in told if not line.endswith(": Skipped")]
    return told[0] if told else "no reason given"


def read_results(path):
    """[{run, name, outcome, reason, seconds}] of one JUnit file; outcome: passed, failed or blocked."""
    results = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name, group = case.get("name", ""), case.get("classname", "")
        if group and group != name:
            name = f"{group}::{name}"
        skipped = case.find("skipped")
        outcome, reason = "passed", ""
        if case.find("failure") is not None or case.find("error") is not None:
            outcome = "failed"
        elif skipped is not None and (skipped.get("type") or skipped.get("message", "").startswith("SKIP_")
                                      or skipped.get("message") == WHOLE_FILE):
            outcome, reason = "blocked", skip_reason(case, skipped)
        elif skipped is not None or case.get("status", "run") != "run":  # ctest: executable not found, disabled
            outcome = "failed"
        results.append({"run": path.stem, "name": name, "outcome": outcome, "reason": reason,
                        "seconds": float(case.get("time") or 0)})
    return results


def judge(results, expected, missing, complete):
    """The problems of a run, one line each. `missing`: need -> reason, or None where the thing is there."""
    problems = [f"failed: {r['run']} {r['name']}" for r in results if r["outcome"] == "failed"]
    if not any(r["outcome"] == "passed" for r in results):
        problems.append("no test ran")
    matched = set()
    for result in results:
        lines = [line for line in expected if fnmatch.fnmatchcase(result["name"], line[1])]
        matched.update(lines)
        wanted = [need for need, _ in lines if missing[need] is not None]
        if result["outcome"] == "blocked" and not wanted:
            why = " and ".join(need for need, _ in lines)
            problems.append(f"blocked although {why + ' is here' if why else 'nobody expects it'}: "
                            f"{result['run']} {result['name']} ({result['reason']})")
        if result["outcome"] == "passed" and wanted:
            problems.append(f"passed without {wanted[0]}, which it needs: {result['run']} {result['name']}")
    if complete:
        problems += [f"{EXPECTED.name}: no test is named {pattern} (needs {need})"
                     for need, pattern in expected if (need, pattern) not in matched]
    return problems


def record(path, results, problems, missing):
    """The run as data. Tests by name only where they are slow, blocked or failed."""
    def head(command):
        try:
            return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.partition("\n")[0]
        except OSError:
            return None
    runs = {}
    for result in results:
        run = runs.setdefault(result["run"], {"passed": 0, "failed": 0, "blocked": 0, "seconds": 0.0})
        run[result["outcome"]] += 1
        run["seconds"] = round(run["seconds"] + result["seconds"], 3)
    slowest = sorted(results, key=lambda r: -r["seconds"])[:20]
    data = {
        "schema": 1,
        "finished_utc": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": head(["git", "rev-parse", "HEAD"]),
        "uncommitted_changes": bool(head(["git", "status", "--porcelain", "--untracked-files=no"])),
        "compiler": head(["c++", "--version"]),
        "missing": {need: reason for need, reason in missing.items() if reason is not None},
        "runs": runs,
        "problems": problems,
        "blocked": [{k: r[k] for k in ("run", "name", "reason")} for r in results if r["outcome"] == "blocked"],
        "slowest": [{k: r[k] for k in ("run", "name", "seconds")} for r in slowest],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(data, indent=2) + "\n")
    os.replace(part, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="JUnit XML of ctest and pytest")
    parser.add_argument("--expected", type=pathlib.Path, default=EXPECTED)
    parser.add_argument("--shards", type=int, default=1, help="the run is one of so many parts")
    parser.add_argument("--complete", action="store_true", help="all tests there are ran, nightly ones included")
    parser.add_argument("--write", type=pathlib.Path, help="write the run to this file as JSON")
    options = parser.parse_args()

    expected = read_expected(options.expected)
    missing = {need: find() for need, find in NEEDS.items()}
    results = [result for path in options.files for result in read_results(path)]
    problems = judge(results, expected, missing, options.complete and options.shards == 1)
    if options.write:
        record(options.write, results, problems, missing)

    count = {outcome: sum(r["outcome"] == outcome for r in results) for outcome in ("passed", "failed", "blocked")}
    for result in results:
        if result["outcome"] == "blocked":
            print(f"blocked: {result['name']}: {result['reason']}")
    for problem in problems[:MOST_SHOWN]:
        print(f"PROBLEM {problem}")
    if len(problems) > MOST_SHOWN:
        print(f"PROBLEM and {len(problems) - MOST_SHOWN} more")
    absent = ", ".join(f"{need} ({reason})" for need, reason in missing.items() if reason is not None)
    print(f"missing here: {absent or 'nothing'}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['blocked']} blocked: "
          + ("as expected" if not problems else f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
