# SPDX-License-Identifier: Apache-2.0
"""One file with all that the session needs on another machine: a build's programs with the libraries that such a
machine may lack, kernels, cases, vectors, scripts."""
import os
import pathlib
import re
import subprocess
import tarfile

from gpu_session import ROOT

TOP = "gradguard-session"
PROGRAMS = ("gradguard", "property_tests/hardware/hardware_tests", "tests/vectors/vectors_test",
            "tests/conformance/device_conformance_test",
            "harness/vdriver/libgradguard_vdriver.so")
# The machine's own: they belong to its loader and its driver.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread)[.-]")
SOURCES = ("LICENSE", "tools/gpu_session.sh", "tools/gpu_session", "tools/test_results.py", "tools/nightly.py",
           "kernels/ptx", "kernels/device", "reference/contract", "property_tests/corpus", "property_tests/vectors")
LEFT_OUT = ("__pycache__",)


class Incomplete(Exception):
    """Something that has to be packed is not there."""


def libraries_of(program):
    """{name: path} of the shared libraries that the program needs and that are not the machine's own."""
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Incomplete(f"ldd {program}: {done.stderr.strip() or done.stdout.strip()}")
    found = {}
    for line in done.stdout.splitlines():
        match = re.match(r"\s*(\S+) => (\S+)", line)
        if not match or SYSTEM.match(match.group(1)):
            continue
        if match.group(2) == "not":
            raise Incomplete(f"{program} needs {match.group(1)}, which is not found")
        found[match.group(1)] = pathlib.Path(match.group(2)).resolve()
    return found


def contents(build):
    """{path in the package: file}."""
    files, libraries = {}, {}
    for name in PROGRAMS:
        if not (build / name).is_file():
            raise Incomplete(f"not built: {build / name} (cmake --build {build} --target "
                             "gradguard hardware_tests vectors_test device_conformance_test)")
        files[f"build/{name}"] = build / name
        libraries.update(libraries_of(build / name))
    files.update({f"build/lib/{name}": path for name, path in libraries.items()})
    for name in SOURCES:
        path = ROOT / name
        if not path.exists():
            raise Incomplete(f"not in this tree: {path}")
        below = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        files.update({str(p.relative_to(ROOT)): p for p in below if not set(p.parts) & set(LEFT_OUT)})
    return files


def pack(build, target):
    """Writes the package, whole or not at all; says what is in it."""
    files = contents(build)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with tarfile.open(beside, "w") as tar:
            for name, path in sorted(files.items()):
                tar.add(path, f"{TOP}/{name}", recursive=False)
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
    return (f"{target}: {len(files)} files, {target.stat().st_size / 2**20:.1f} MiB\n"
            f"on the machine: tar xf {target.name} && {TOP}/tools/gpu_session.sh")
