# SPDX-License-Identifier: Apache-2.0
"""A copy of what a record of compiled files depends on, and a script run on it with --stale."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class RecordTest(unittest.TestCase):
    scripts = ()  # The last one is run, the others are what it needs.
    folders = ()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in self.folders:
            shutil.copytree(ROOT / name, self.root / name)
        (self.root / "tools").mkdir()
        for name in self.scripts:
            shutil.copy(ROOT / "tools" / name, self.root / "tools")

    def run_stale(self):
        done = subprocess.run([sys.executable, "-B", f"tools/{self.scripts[-1]}", "--stale"], cwd=self.root,
                              capture_output=True, text=True)
        return done.returncode, done.stdout

    def append(self, name):
        with (self.root / name).open("a") as file:
            file.write("// edited\n")

    def expect_stale(self, name):
        status, output = self.run_stale()
        self.assertEqual(status, 1, output)
        self.assertIn(name, output)
