# SPDX-License-Identifier: Apache-2.0
"""What starts programs nobody here wrote on the virtual GPU, and says what they need."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import util
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Run:
    """Exit status of `gradguard run`, what the program printed as JSON (its last line), standard error, the report."""

    status: int
    result: object
    stderr: str
    report: dict

    def kernels(self):
        return {kernel["kernel"]: kernel for kernel in self.report["kernels"]}


def library_folders():
    """Where NVRTC is: wheels of this Python, then a toolkit."""
    spec = util.find_spec("nvidia")
    folders = []
    for place in spec.submodule_search_locations if spec else ():
        folders += sorted(str(library.parent) for library in Path(place).glob("*/lib/libnvrtc.so.*"))
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if home and (Path(home) / "lib64").is_dir():
            folders.append(str(Path(home) / "lib64"))
    return list(dict.fromkeys(folders))


def needs(package):
    """For pytestmark: blocked without the package. Triton comes with PyTorch, and is left out with it."""
    left_out = package == "triton" and os.environ.get("GRADGUARD_TORCH") == "none"
    reason = "GRADGUARD_TORCH=none" if left_out else f"no {package} in the tests' Python"
    return pytest.mark.skipif(left_out or util.find_spec(package) is None, reason=reason)


needs_nvrtc = pytest.mark.skipif(not any(list(Path(folder).glob("libnvrtc.so*")) for folder in library_folders()),
                                 reason="no libnvrtc")


class Runner:
    """runner(script, *arguments, seed=0, flags=(), environment={}) -> Run of a script in programs/."""

    def __init__(self, folder):
        self.binary = os.environ.get("GRADGUARD_BINARY") or str(ROOT / "build/gradguard")
        self.folder, self.runs = folder, 0

    def __call__(self, script, *arguments, seed=0, flags=(), environment=None):
        self.runs += 1
        report = self.folder / f"report_{self.runs}.json"
        line = [self.binary, "run", "--virtual-gpu", "--seed", str(seed), "--report", str(report), *flags, "--"]
        line += [sys.executable, str(HERE / "programs" / script), *map(str, arguments)]
        # CACHEDB: tinygrad's cache of compiled kernels.
        variables = {**os.environ, "CACHEDB": str(self.folder / "cache.db"), **(environment or {})}
        variables["LD_LIBRARY_PATH"] = ":".join(library_folders())
        done = subprocess.run(line, capture_output=True, text=True, env=variables, cwd=self.folder)
        assert done.stdout.strip(), f"nothing on standard output; exit {done.returncode}: {done.stderr}"
        last = done.stdout.strip().splitlines()[-1]
        return Run(done.returncode, json.loads(last), done.stderr, json.loads(report.read_text()))
