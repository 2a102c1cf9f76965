#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels ahead of time to PTX and keeps kernels/ptx with its provenance.

  tools/regenerate_ptx.py           compile with nvcc and rewrite kernels/ptx
  tools/regenerate_ptx.py --check   compile with nvcc and fail if the checked-in files differ (exit 1)
  tools/regenerate_ptx.py --stale   no compiler needed: fail if a source or PTX hash differs from the provenance (exit 1)

Exit 2 when nvcc is missing or is another release than the one on record (blocked, with the reason).
"""
import argparse
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
PTX_DIR = ROOT / "kernels/ptx"
PROVENANCE = PTX_DIR / "provenance.json"
MODULES = ("statistics", "update")
BUILDS = {"fmad": "-fmad=true", "nofmad": "-fmad=false"}
FLAGS = ["-ptx", "-arch=compute_80", "-std=c++20", "-lineinfo", "-I."]


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def source_hashes():
    """SHA-256 of everything the device compiler reads, by path from the project's root."""
    files = sorted((ROOT / "kernels/device").glob("*")) + [ROOT / "reference/contract/constants.h"]
    return {str(f.relative_to(ROOT)): sha256(f) for f in files}


def compile_module(nvcc, module, flags, tree=ROOT):
    """The PTX of one module of the kernels in `tree`, which is laid out as the project is."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.ptx"
        command = [nvcc, *flags, f"kernels/device/{module}.cu", "-o", str(out)]
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
        text = out.read_text()
    # Source paths relative to the tree's root, so that the result does not depend on where it lies.
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
    record = json.loads(PROVENANCE.read_text())
    return told([f"{name}: the PTX was compiled from another version of this source"
                 for name in differing(record["sources"], source_hashes())] +
                [f"kernels/ptx/{name}: differs from the recorded compilation"
                 for name in differing(record["ptx"], hashes_of(PTX_DIR, record["ptx"]))], "regenerate_ptx.py")


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
    texts = {f"{m}.{b}.ptx": compile_module(nvcc, m, [*FLAGS, flag]) for m in MODULES for b, flag in BUILDS.items()}
    if options.check:
        same = same_texts(PTX_DIR, texts, "is not what nvcc makes of kernels/device")
        return 1 if not same or stale() else 0
    for name, text in texts.items():
        write_atomically(PTX_DIR / name, text)
    provenance = {
        "compiler": f"nvcc, {release}",
        "flags": FLAGS,
        "builds": BUILDS,
        "sources": source_hashes(),
        "ptx": hashes_of(PTX_DIR, sorted(texts)),
    }
    write_atomically(PROVENANCE, json.dumps(provenance, indent=2) + "\n")
    print(f"wrote {len(texts)} PTX files and their provenance")
    return 0


if __name__ == "__main__":
    sys.exit(main())
