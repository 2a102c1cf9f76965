#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds README.md to the truth: outputs are what the commands print, the C++ is a file that a test compiles, paths exist.

  tests/tools/readme_test.py --write    put what the commands print now into README.md

A ```console block holds `$ command` lines and their output. Commands that start with build/gradguard are run (the
program is $GRADGUARD_BINARY, or build/gradguard); a line [...] stands for any number of lines.
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PROGRAM = pathlib.Path(os.environ.get("GRADGUARD_BINARY", ROOT / "build/gradguard"))
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.S | re.M)
GAP = "[...]"


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)


def split_console(block):
    """[(command, output lines)] of a console block."""
    parts = []
    for line in block.splitlines():
        if line.startswith("$ "):
            parts.append((line[2:], []))
        elif parts:
            parts[-1][1].append(line)
    return parts


def run(command):
    """Output lines of a README command that starts with build/gradguard."""
    words = command.replace("build/gradguard", f'"{PROGRAM}"', 1)
    done = subprocess.run(["bash", "-c", words], cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return (done.stdout + done.stderr).splitlines()


def strip(lines):
    """Without empty lines at the end, and without blanks at the ends of lines."""
    return "\n".join(line.rstrip() for line in lines).rstrip("\n").splitlines()


def matches(wanted, got):
    """Whether `got` is `wanted`, where a line [...] of `wanted` stands for any lines."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == GAP else re.escape(line) + "\n" for line in strip(wanted))
    return re.fullmatch(pattern, "".join(line + "\n" for line in strip(got))) is not None


class Readme(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.text = README.read_text()

    def test_outputs_are_what_the_program_prints(self):
        commands = [(c, o) for b in blocks(self.text, "console") for c, o in split_console(b) if c.startswith("build/gradguard")]
        self.assertTrue(commands, "README.md shows no command of the program")
        for command, output in commands:
            with self.subTest(command):
                got = run(command)
                if not matches(output, got):
                    self.assertEqual("\n".join(strip(got)), "\n".join(strip(output)), f"{command}: see --write")

    def test_cpp_is_the_example_that_a_test_compiles(self):
        code = blocks(self.text, "cpp")
        self.assertTrue(code)
        files = [f.read_text().split("\n", 1)[1] for f in (ROOT / "examples/trainer").glob("*.cpp")]
        for block in code:
            self.assertIn(block, files, "not the text of a file in examples/trainer")

    def test_paths_exist(self):
        paths = set(re.findall(r"`((?:reference|kernels|harness|property_tests|oracle_py|bench|tools|tests|examples|cmake)/[\w./-]*)`", self.text))
        paths |= set(re.findall(r"\]\(([\w./-]+)\)", self.text))
        self.assertTrue(paths)
        for path in sorted(paths - {"tests/nightly/last.json"}):  # Written by the nightly run.
            self.assertTrue((ROOT / path).exists(), path)

    def test_build_options_and_variables_exist(self):
        variables = (ROOT / "tools/setup.sh").read_text()
        known = (ROOT / "CMakeLists.txt").read_text() + (ROOT / "cmake/GradguardInstall.cmake").read_text()
        for name in set(re.findall(r"GRADGUARD_[A-Z_]+", self.text)) - {"GRADGUARD_BINARY"}:
            self.assertTrue(f"option({name} " in known or f"${{{name}:" in variables, name)

    def test_a_wrong_line_is_noticed(self):
        self.assertTrue(matches(["a", GAP, "d"], ["a", "b", "c", "d", ""]))
        self.assertFalse(matches(["a", GAP, "d"], ["a", "b", "c"]))
        self.assertFalse(matches(["a", "b"], ["a", "c"]))

    def test_a_gap_stays_when_outputs_are_renewed(self):
        self.assertEqual(renewed(["a", GAP, "d"], ["A", "b", "c", "D"]), ["A", GAP, "D"])


def renewed(old, new):
    """`new`, with as many lines before and after a gap as `old` had."""
    if GAP not in old:
        return new
    before = old.index(GAP)
    return new[:before] + [GAP] + new[len(new) - (len(old) - before - 1):]


def write():
    def renew(match):
        parts = []
        for command, output in split_console(match.group(1)):
            if command.startswith("build/gradguard"):
                output = renewed(strip(output), strip(run(command))) + ([""] if output and output[-1] == "" else [])
            parts += ["$ " + command, *(line.rstrip() for line in output)]
        return "```console\n" + "\n".join(parts) + "\n```"
    README.write_text(CONSOLE.sub(renew, README.read_text()))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        unittest.main()
