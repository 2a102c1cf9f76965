# SPDX-License-Identifier: Apache-2.0
"""What is on this machine: compilers, Pythons, versions, and the hash of the sources. Everything here only reads."""
import dataclasses
import hashlib
import importlib.machinery
import importlib.metadata
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys

from regressions import ROOT

# What a command line or a test run may not inherit: it could leave tests out.
DROPPED = ("GTEST_", "CTEST_", "PYTEST_")
# Nothing of the project downloads. Under --offline a command that tried would fail at once.
OFFLINE = {"PIP_NO_INDEX": "1", **{name: "http://127.0.0.1:9" for name in (
    "http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY")},
    "no_proxy": "", "NO_PROXY": ""}


def variables(temporary, offline):
    """The environment of every command: temporary files in the log folder, no bytecode beside the sources."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    kept.update({"TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"})
    return {**kept, **OFFLINE} if offline else kept


def cxx():
    """(command of the C++ compiler, why there is none): $CXX, else the first of c++, g++ and clang++ on PATH."""
    try:
        wanted = shlex.split(os.environ.get("CXX", ""))
    except ValueError as error:
        return ("c++",), f"$CXX: {error}"
    if wanted:
        return tuple(wanted), None if shutil.which(wanted[0]) else f"no C++ compiler: no program {wanted[0]} ($CXX)"
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return (name,), None
    return ("c++",), "no C++ compiler: none of c++, g++, clang++ on PATH, and no $CXX"


@dataclasses.dataclass(frozen=True)
class Interpreter:
    """A Python and where it looks for modules."""

    program: str
    path: tuple

    def has(self, *modules):
        """Whether it finds all of them. No code of theirs runs."""
        return all(importlib.machinery.PathFinder.find_spec(module, list(self.path)) for module in modules)

    def version(self, package):
        """Of an installed package, or None."""
        found = [d.version for d in importlib.metadata.distributions(name=package, path=list(self.path))]
        return found[0] if found else None


def interpreters():
    """The Python that runs this, then the checkout's .venv where there is one."""
    found = [Interpreter(sys.executable, tuple(entry for entry in sys.path if entry))]
    program = ROOT / ".venv/bin/python"
    if os.access(program, os.X_OK):
        sites = list(ROOT.glob(".venv/lib*/python3*/site-packages"))
        # Where set-up found a PyTorch that was there already (tools/setup.sh).
        added = [line for site in sites if (pth := site / "gradguard_torch.pth").is_file()
                 for line in pth.read_text().splitlines()]
        found.append(Interpreter(str(program), (*map(str, sites), *added)))
    return found


def oracle_python():
    """The first Python with NumPy, pytest, Hypothesis and PyTorch; else the first without PyTorch; else None."""
    for wanted in (("numpy", "pytest", "hypothesis", "torch"), ("numpy", "pytest", "hypothesis")):
        for interpreter in interpreters():
            if interpreter.has(*wanted):
                return interpreter
    return None


def first_line(*command):
    """Of what `command` prints, or None when it cannot be run."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=20, start_new_session=True)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.strip().splitlines()
    return lines[0] if done.returncode == 0 and lines else None


def nvcc_version():
    program = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    try:
        text = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    releases = [line.strip() for line in text.splitlines() if "release" in line]
    return releases[0] if releases else None


def describe(options, device):
    """The environment of results.json; what is not there is None. `device` says what the kernels run on."""
    compiler, missing = cxx()
    python = oracle_python()
    return {
        "device": device,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpu_count": len(os.sched_getaffinity(0)),
        "compiler": None if missing else first_line(*compiler, "--version"),
        "cxxflags": os.environ.get("CXXFLAGS"),
        "cmake": first_line("cmake", "--version"),
        "nvcc": nvcc_version(),
        "numpy": python.version("numpy") if python else None,
        "torch": python.version("torch") if python else None,
        "git_commit": first_line("git", "-C", str(ROOT), "rev-parse", "HEAD") if (ROOT / ".git").exists() else None,
        "offline": options.offline,
        "timeout_seconds": options.timeout,
    }


def tracked(root):
    """Paths of the sources below `root`, relative, as bytes: what git tracks; without git all files but hidden ones,
    build folders and bytecode."""
    if (root / ".git").exists():
        try:
            done = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            done = None
        if done and done.returncode == 0 and done.stdout:
            return [name for name in done.stdout.split(b"\0") if name]
    names, top = [], os.fsencode(root)
    for folder, folders, files in os.walk(top):
        hidden = [f for f in folders if f.startswith(b".") and f != b".ci" or f == b"__pycache__"]
        built = [f for f in folders if folder == top and f.startswith(b"build")]
        folders[:] = [f for f in folders if f not in hidden + built]
        names += [os.path.relpath(os.path.join(folder, f), top) for f in files if not f.endswith(b".pyc")]
    return names


def source_sha256(root):
    """SHA-256 over the sources as they lie there now: for each path in the order of its bytes, the path, a zero byte and
    the SHA-256 of the content (of a link: of where it points). A tracked file that is gone counts as absent."""
    total = hashlib.sha256()
    for name in sorted(tracked(root)):
        path = pathlib.Path(os.fsdecode(name))
        try:
            file = root / path
            content = os.fsencode(os.readlink(file)) if file.is_symlink() else file.read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            continue
        total.update(name + b"\0" + hashlib.sha256(content).digest())
    return total.hexdigest()
