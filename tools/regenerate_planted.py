#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the planted faults of the kernels ahead of time: property_tests/planted/patches applied to kernels/device.

  tools/regenerate_planted.py           compile with nvcc and rewrite property_tests/planted/ptx
  tools/regenerate_planted.py --check   compile with nvcc and fail if the checked-in files differ (exit 1)
  tools/regenerate_planted.py --stale   no compiler needed: fail if a hash differs from the provenance (exit 1)

property_tests/planted/faults.json says which modules a fault changes and with which flags it is compiled. Exit 2 when
nvcc or patch is missing or nvcc is another release than the one on record (blocked, with the reason).
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import regenerate_ptx
from regenerate_ptx import ROOT, differing, hashes_of, sha256, source_hashes, told, write_atomically

PLANTED = ROOT / "property_tests/planted"
PATCHES = PLANTED / "patches"
PTX_DIR = PLANTED / "ptx"
PROVENANCE = PTX_DIR / "provenance.json"
# Source lines are kept where findings name them (races and bounds of the scan) and left out of the long update.
FLAGS = {"statistics": regenerate_ptx.FLAGS + ["-fmad=true"],
         "update": [f for f in regenerate_ptx.FLAGS if f != "-lineinfo"] + ["-fmad=true"]}


def device_faults():
    """Rows of the table that are compiled: what of them matters to the compiler."""
    table = json.loads((PLANTED / "faults.json").read_text())["faults"]
    return [{key: fault[key] for key in ("name", "modules", "flags")} for fault in table if fault["modules"]]


def compile_fault(nvcc, fault):
    """PTX by file name of one fault."""
    texts = {}
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        shutil.copytree(ROOT / "kernels/device", tree / "kernels/device")
        (tree / "reference/contract").mkdir(parents=True)
        shutil.copy(ROOT / "reference/contract/constants.h", tree / "reference/contract")
        patch = PATCHES / f"{fault['name']}.patch"
        if patch.is_file():
            done = subprocess.run(["patch", "-p1", "--no-backup-if-mismatch", "-F0", "-i", str(patch)], cwd=tree,
                                  capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{patch.relative_to(ROOT)} does not fit kernels/device any more:\n{done.stdout}{done.stderr}")
        for module in fault["modules"]:
            flags = [*FLAGS[module], *fault["flags"]]
            texts[f"{fault['name']}/{module}.ptx"] = regenerate_ptx.compile_module(nvcc, module, flags, tree)
    return texts


def patch_hashes():
    return {f.name: sha256(f) for f in sorted(PATCHES.glob("*.patch"))}


def wanted_files():
    return {f"{fault['name']}/{module}.ptx" for fault in device_faults() for module in fault["modules"]}


def stale():
    record = json.loads(PROVENANCE.read_text())
    problems = [f"{name}: the planted faults were compiled from another version of it"
                for what, now in (("sources", source_hashes()), ("patches", patch_hashes()))
                for name in differing(record[what], now)]
    if record["faults"] != device_faults():
        problems.append("property_tests/planted/faults.json: the planted faults were compiled from another table")
    problems += [f"property_tests/planted/ptx/{name}: differs from the recorded compilation"
                 for name in differing(record["ptx"], hashes_of(PTX_DIR, wanted_files() | set(record["ptx"])))]
    return told(problems, "regenerate_planted.py")


def main():
    options = regenerate_ptx.read_options(__doc__)
    if options.stale:
        return stale()
    nvcc, blocked, release = regenerate_ptx.find_compiler()
    if shutil.which("patch") is None:
        nvcc, blocked = None, "no patch program on PATH"
    if nvcc is None or (options.check and blocked):
        print(f"blocked: {blocked}")
        return 2
    texts = {}
    for fault in device_faults():
        texts.update(compile_fault(nvcc, fault))
    if options.check:
        same = regenerate_ptx.same_texts(PTX_DIR, texts, "is not what nvcc makes of the patched kernels")
        return 1 if not same or stale() else 0
    shutil.rmtree(PTX_DIR, ignore_errors=True)
    for name, text in texts.items():
        (PTX_DIR / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(PTX_DIR / name, text)
    provenance = {
        "compiler": f"nvcc, {release}",
        "flags": FLAGS,
        "sources": source_hashes(),
        "patches": patch_hashes(),
        "faults": device_faults(),
        "ptx": hashes_of(PTX_DIR, sorted(texts)),
    }
    write_atomically(PROVENANCE, json.dumps(provenance, indent=2) + "\n")
    print(f"wrote {len(texts)} PTX files and their provenance")
    return 0


if __name__ == "__main__":
    sys.exit(main())
