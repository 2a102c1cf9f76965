#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles programs.cu to the checked-in PTX, at the levels from -O0 (nvcc -G) to -O3. Needs nvcc 13."""
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
LEVELS = {"O0": ["-G"], "O1": ["-Xcicc", "-O1"], "O2": ["-Xcicc", "-O2"], "O3": []}


def main():
    nvcc = sys.argv[1] if len(sys.argv) > 1 else "nvcc"
    for level, flags in LEVELS.items():
        target = FOLDER / f"programs_{level}.ptx"
        subprocess.run([nvcc, "-ptx", "-arch=compute_80", *flags, "-o", str(target), "programs.cu"], check=True, cwd=FOLDER)
        text = target.read_text()
        # Debug information names folders of the machine that compiled; a program runs the same without it.
        text = re.sub(r"\n\s*\.section\s+\.debug_\w+\s*\{.*?\n\s*\}", "", text, flags=re.S)
        text = re.sub(r"^\s*\.(file|loc)\b.*\n", "", text, flags=re.M)
        target.write_text(text)


if __name__ == "__main__":
    main()
