#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/fuzz_compilers.py: a seed means one kernel, and no difference, finding or refusal passes for agreement."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import fuzz_compilers  # noqa: E402


class Generate(unittest.TestCase):
    def test_a_seed_means_one_kernel(self):
        first, again, other = (fuzz_compilers.Generator(seed).kernel("k", True) for seed in (7, 7, 8))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_without_shuffles_there_are_none(self):
        for seed in range(20):
            self.assertNotIn("_sync(", fuzz_compilers.Generator(seed).kernel("k", False))


class Compare(unittest.TestCase):
    FILES = [pathlib.Path("/x/a.ptx"), pathlib.Path("/x/b.ptx")]

    def problems(self, *lines):
        return fuzz_compilers.compare(lines, ["k"], self.FILES)

    def test_agreement(self):
        self.assertEqual(self.problems("/x/a.ptx k ok 1 2", "/x/b.ptx k ok 1 2"), ([], 2))

    def test_the_first_difference_is_named(self):
        problems, _ = self.problems("/x/a.ptx k ok 1 2 3", "/x/b.ptx k ok 1 4 5")
        self.assertEqual(problems, ["k: word 1 is 4 by b.ptx and 2 by a.ptx"])

    def test_a_finding_is_a_problem(self):
        self.assertEqual(self.problems("/x/a.ptx k ok 1", "/x/b.ptx k finding a race"),
                         (["b.ptx: k: finding: a race"], 1))

    def test_a_refused_module_is_a_problem(self):
        self.assertEqual(self.problems("/x/a.ptx k ok 1", "/x/b.ptx * refused b.ptx:3: no"),
                         (["b.ptx: *: refused: b.ptx:3: no"], 1))


if __name__ == "__main__":
    unittest.main()
