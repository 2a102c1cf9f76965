#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges a test run by its JUnit files: nothing failed, something ran, and exactly the expected tests were blocked.

A test that cannot run on this machine is skipped with its reason; it counts as blocked, never as passed.
tools/expected_blocked.txt says which tests may be blocked for the want of what. Where the thing is missing all of them
must be blocked, where it is there none of them may be, and nothing else ever.
"""
import argparse
import ctypes
import fnmatch
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import nightly

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_SHOWN = 30
EXPECTED = ROOT / "tools/expected_blocked.txt"


def missing_cuda():
    """Why no CUDA device can be used here; None when one can."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1)"
    if hasattr(driver, "gradguard_vdriver_configure"):
        return "libcuda.so.1 is the virtual driver here, which is no hardware"
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


def nvrtc_files():
    """Where kernels/cuda/nvrtc_search.cpp looks for NVRTC, in any order."""
    variables = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "VIRTUAL_ENV")]
    roots = [pathlib.Path(v) for v in variables if v] + [ROOT / ".venv", pathlib.Path.home() / ".local", pathlib.Path("/usr")]
    roots += [pathlib.Path("/opt/cuda"), pathlib.Path("/usr/local"), *pathlib.Path("/usr/local").glob("cuda*")]
    packages = [p for root in roots for p in root.glob("lib*/python3*/*-packages")]
    packages += [p / line for p in packages for pth in p.glob("*.pth") for line in pth.read_text().splitlines()
                 if line and not line.startswith(("#", "import"))]
    folders = roots + [f for root in roots for part in ("lib64", "lib", "targets/*/lib") for f in root.glob(part)]
    folders += [f for p in packages for f in p.glob("nvidia/*/lib")]
    names = ("libnvrtc.so.13", "libnvrtc.so.12")
    return [*names, *(str(f / name) for f in folders for name in (*names, "libnvrtc.so") if (f / name).is_file())]


def missing_nvrtc():
    for name in nvrtc_files():
        try:
            library, major, minor = ctypes.CDLL(name), ctypes.c_int(0), ctypes.c_int(0)
            if library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0 and major.value in (12, 13):
                return None
        except (OSError, AttributeError):
            pass
    return "no NVRTC of version 12 or 13"


def missing_ptxas():
    usual = pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "bin/ptxas"
    here = shutil.which("ptxas") or usual.exists() or pathlib.Path("/usr/local/cuda/bin/ptxas").exists()
    return None if here else "no ptxas"


def compute_sanitizer():
    """Path of the program; None where there is none."""
    usual = pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "bin/compute-sanitizer"
    return shutil.which("compute-sanitizer") or (str(usual) if usual.exists() else None)


def missing_compute_sanitizer():
    return None if compute_sanitizer() else "no compute-sanitizer (it comes with the CUDA toolkit)"


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


HAS_PYTHON_HEADERS = "import os, sysconfig; os.stat(sysconfig.get_paths()['include'] + '/Python.h')"

NEEDS = {
    "cuda": missing_cuda,
    "python-package": lambda: missing_in_python(f"import nanobind, numpy, ml_dtypes; {HAS_PYTHON_HEADERS}"),
    "torch": missing_torch,
    "recorded-torch": missing_recorded_torch,
    "pycuda": lambda: missing_nvcc() or missing_in_python("import importlib.util as u; assert u.find_spec('pycuda'), 'no pycuda'"),
    "clang": lambda: missing_tool("clang"),
    "nvcc": missing_nvcc,
    "recorded-nvcc": missing_recorded_nvcc,
    "nvrtc": missing_nvrtc,
    "ptxas": missing_ptxas,
    "compute-sanitizer": missing_compute_sanitizer,
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


def stage_data(results, missing):
    """What the nightly record says of a stage's tests. By name only where they are slow or blocked."""
    runs = {}
    for result in results:
        run = runs.setdefault(result["run"], {"passed": 0, "failed": 0, "blocked": 0, "seconds": 0.0})
        run[result["outcome"]] += 1
        run["seconds"] = round(run["seconds"] + result["seconds"], 3)
    slowest = sorted(results, key=lambda r: -r["seconds"])[:20]
    return {
        "runs": runs,
        "missing": {need: reason for need, reason in missing.items() if reason is not None},
        "blocked": [{k: r[k] for k in ("run", "name", "reason")} for r in results if r["outcome"] == "blocked"],
        "slowest": [{k: r[k] for k in ("run", "name", "seconds")} for r in slowest],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="JUnit XML of ctest and pytest")
    parser.add_argument("--expected", type=pathlib.Path, default=EXPECTED)
    parser.add_argument("--shards", type=int, default=1, help="the run is one of so many parts")
    parser.add_argument("--complete", action="store_true", help="all tests there are ran, nightly ones included")
    parser.add_argument("--stage", choices=nightly.SOURCES, help="the run is this stage of the nightly run: record it")
    parser.add_argument("--seconds", type=float, help="how long the stage took [as the tests say]")
    parser.add_argument("--left-out", help="the stage was not complete: what was left out and why")
    parser.add_argument("--record", type=pathlib.Path, default=nightly.RECORD)
    options = parser.parse_args()

    expected = read_expected(options.expected)
    missing = {need: find() for need, find in NEEDS.items()}
    results = [result for path in options.files for result in read_results(path)]
    problems = judge(results, expected, missing, options.complete and options.shards == 1)
    if options.stage:
        seconds = options.seconds if options.seconds is not None else sum(r["seconds"] for r in results)
        nightly.merge(options.record, options.stage, nightly.stage_record(
            options.stage, seconds, problems, options.left_out, **stage_data(results, missing)))

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
