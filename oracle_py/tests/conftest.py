# SPDX-License-Identifier: Apache-2.0
"""The program under test: --gradguard-binary, else the environment's GRADGUARD_BINARY, else build/gradguard."""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, configuration, settings
from replay import ReplayTool

# The same examples in every run, and nothing written beside the sources.
settings.register_profile(
    "gradguard",
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("gradguard")
configuration.set_hypothesis_home_dir(str(Path(tempfile.gettempdir()) / "gradguard-hypothesis"))

ROOT = Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption("--gradguard-binary", default=None, help="the gradguard program (default: build/gradguard)")


@dataclass(frozen=True)
class Run:
    """returncode, standard error, standard output parsed as JSON, and the path that --out named."""

    returncode: int
    stderr: str
    json: dict
    out: Path


class Gradguard:
    """Runs `gradguard COMMAND ... --json` on the virtual GPU, each run with an --out of its own."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.runs = binary, folder, 0

    def __call__(self, paths, flags=(), command="step", device="vgpu"):
        self.runs += 1
        out = self.folder / f"out_{self.runs}.safetensors"
        line = [str(self.binary), command, *map(str, paths), "--json", "--device", device, *map(str, flags)]
        if command == "step":
            line += ["--out", str(out)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=120)
        try:
            parsed = json.loads(done.stdout)
        except json.JSONDecodeError:
            pytest.fail(f"standard output of {' '.join(line)} is not one JSON object: {done.stdout!r} {done.stderr!r}")
        return Run(done.returncode, done.stderr, parsed, out)


def program(config):
    """Where the program is; skips the test where there is none and none was named."""
    chosen = config.getoption("--gradguard-binary") or os.environ.get("GRADGUARD_BINARY")
    binary = Path(chosen) if chosen else ROOT / "build" / "gradguard"
    if not binary.is_file():
        if chosen:
            pytest.fail(f"{binary}: no such program")
        pytest.skip(f"blocked: {binary} is not built (name one with GRADGUARD_BINARY)")
    return binary.resolve()


@pytest.fixture
def gradguard(request, tmp_path):
    return Gradguard(program(request.config), tmp_path)


@pytest.fixture(scope="session")
def replay(request, tmp_path_factory):
    """The tool that runs many groups in one process; it lies beside the program."""
    binary = program(request.config).with_name("gradguard_replay_groups")
    if not binary.is_file():
        pytest.skip(f"blocked: {binary} is not built")
    tool = ReplayTool(binary, tmp_path_factory.mktemp("replay"))
    yield tool
    tool.close()
