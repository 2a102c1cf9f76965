#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels and those of the benchmark ahead of time to PTX, and keeps kernels/ptx and bench/device with
their provenance.

  tools/regenerate_ptx.py           compile with nvcc and rewrite the PTX
  tools/regenerate_ptx.py --check   compile with nvcc and fail if the checked-in files differ (exit 1)
  tools/regenerate_ptx.py --stale   no compiler needed: fail if a source or PTX hash differs from the provenance (exit 1)

Exit 2 when nvcc is missing or is another release than the one on record (blocked, with the reason).
"""
import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROVENANCE = ROOT / "kernels/ptx/provenance.json"
MODULES = ("statistics", "update")
BUILDS = {"fmad": "-fmad=true", "nofmad": "-fmad=false"}
FLAGS = ["-ptx", "-arch=compute_80", "-std=c++20", "-lineinfo", "-I."]


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Record:
    """Checked-in PTX of one folder of sources."""

    sources: str  # Folder of MODULE.cu.
    ptx: str  # Folder of MODULE.BUILD.ptx and provenance.json.
    modules: tuple
    read: tuple  # Patterns from the root: everything that the device compiler reads.

    def provenance(self):
        return ROOT / self.ptx / "provenance.json"

    def source_hashes(self):
        """SHA-256 of everything the device compiler reads, by path from the project's root."""
        return {str(f.relative_to(ROOT)): sha256(f) for pattern in self.read for f in sorted(ROOT.glob(pattern))}

    def texts(self, nvcc):
        """{file name: PTX}"""
        return {f"{module}.{build}.ptx": compile_module(nvcc, module, [*FLAGS, flag], sources=self.sources)
                for module in self.modules for build, flag in BUILDS.items()}

    def stale(self):
        """What differs from the provenance, a line each."""
        record = json.loads(self.provenance().read_text())
        return ([f"{name}: the PTX was compiled from another version of this source"
                 for name in differing(record["sources"], self.source_hashes())] +
                [f"{self.ptx}/{name}: differs from the recorded compilation"
                 for name in differing(record["ptx"], hashes_of(ROOT / self.ptx, record["ptx"]))])

    def write(self, texts, release):
        for name, text in texts.items():
            write_atomically(ROOT / self.ptx / name, text)
        provenance = {
            "compiler": f"nvcc, {release}",
            "flags": FLAGS,
            "builds": BUILDS,
            "sources": self.source_hashes(),
            "ptx": hashes_of(ROOT / self.ptx, sorted(texts)),
        }
        write_atomically(self.provenance(), json.dumps(provenance, indent=2) + "\n")


KERNELS = Record("kernels/device", "kernels/ptx", MODULES, ("kernels/device/*", "reference/contract/constants.h"))
BENCH = Record("bench/device", "bench/device", ("copy", "unscale_clip"),
               ("bench/device/*.cu", "bench/device/params.h", "kernels/device/load.cuh", "reference/contract/constants.h"))
RECORDS = (KERNELS, BENCH)


def source_hashes():
    return KERNELS.source_hashes()


def compile_module(nvcc, module, flags, tree=ROOT, sources="kernels/device"):
    """The PTX of one module of the kernels in `tree`, which is laid out as the project is."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.ptx"
        command = [nvcc, *flags, f"{sources}/{module}.cu", "-o", str(out)]
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
        return relative_text(out.read_text(), tree)


def relative_text(text, tree):
    """PTX with source paths relative to the tree's root, so that the result does not depend on where that lies."""
    text = text.replace(f'"{tree}/./', '"').replace(f'"{tree}/', '"')
    return re.sub(r"[ \t]+$", "", text, flags=re.M).rstrip("\n") + "\n"


def write_atomically(path, text):
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    os.replace(part, path)


def differing(recorded, now):
    """Names whose hashes differ, or that only one side has."""
    return [name for name in sorted(set(recorded) | set(now)) if recorded.get(name) != now.get(name)]


def hashes_of(folder, names):
    """SHA-256 by name of the files that are there."""
    return {name: sha256(folder / name) for name in names if (folder / name).is_file()}


def told(problems, script):
    """Prints them, and what to do; the exit status."""
    for problem in problems:
        print(problem)
    if problems:
        print(f"run tools/{script} and commit the result")
    return 1 if problems else 0


def stale():
    return told([line for record in RECORDS for line in record.stale()], "regenerate_ptx.py")


def find_compiler():
    """(nvcc, why it cannot reproduce the record or None, its release)."""
    usual = "/usr/local/cuda/bin/nvcc"
    nvcc = shutil.which("nvcc") or (usual if os.path.exists(usual) else None)
    if nvcc is None:
        return None, "no nvcc on PATH", None
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
    release = re.search(r"release .*", version).group(0)
    recorded = json.loads(PROVENANCE.read_text())["compiler"] if PROVENANCE.is_file() else None
    if recorded != f"nvcc, {release}":
        return nvcc, f"nvcc {release} here, the record is of {recorded}", release
    return nvcc, None, release


def read_options(doc):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--check", action="store_true")
    group.add_argument("--stale", action="store_true")
    return parser.parse_args()


def same_texts(folder, texts, complaint):
    """Whether the files hold these texts; says which do not."""
    different = [n for n, t in texts.items() if not (folder / n).is_file() or (folder / n).read_text() != t]
    for name in different:
        print(f"{(folder / name).relative_to(ROOT)} {complaint}")
    return not different


def main():
    options = read_options(__doc__)
    if options.stale:
        return stale()
    nvcc, blocked, release = find_compiler()
    if nvcc is None or (options.check and blocked):
        print(f"blocked: {blocked}")
        return 2
    texts = {record: record.texts(nvcc) for record in RECORDS}
    if options.check:
        same = [same_texts(ROOT / record.ptx, texts[record], f"is not what nvcc makes of {record.sources}")
                for record in RECORDS]
        return 1 if not all(same) or stale() else 0
    for record in RECORDS:
        record.write(texts[record], release)
    print(f"wrote {sum(map(len, texts.values()))} PTX files and their provenance")
    return 0


if __name__ == "__main__":
    sys.exit(main())
