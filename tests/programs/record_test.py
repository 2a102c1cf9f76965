#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checked-in Triton PTX is what tests/programs/triton/make.py made, by hash; needs no Triton."""
import hashlib
import json
import pathlib
import unittest

HERE = pathlib.Path(__file__).resolve().parent / "triton"


def sha256(name):
    return hashlib.sha256((HERE / name).read_bytes()).hexdigest()


class Record(unittest.TestCase):
    def setUp(self):
        self.record = json.loads((HERE / "provenance.json").read_text())

    def test_ptx_is_not_older_than_its_script(self):
        self.assertEqual(self.record["make.py"], sha256("make.py"), "run tests/programs/triton/make.py")

    def test_ptx_is_as_it_was_made(self):
        names = {path.stem for path in HERE.glob("*.ptx")}
        self.assertEqual(set(self.record["kernels"]), names)
        for name, kernel in self.record["kernels"].items():
            self.assertEqual(kernel["ptx"], sha256(f"{name}.ptx"), name)


if __name__ == "__main__":
    unittest.main()
