# SPDX-License-Identifier: Apache-2.0
"""tools/setup.sh and tools/test.sh: what they say when they cannot go on. Stand-ins replace the system's commands."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = pathlib.Path("/etc/os-release").read_text().splitlines()
DEBIAN_12 = "ID=debian" in RELEASE and 'VERSION_ID="12"' in RELEASE


class SetUp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "checkout"
        self.bin = pathlib.Path(folder.name) / "bin"
        (self.root / "tools").mkdir(parents=True)
        (self.root / "oracle_py").mkdir()
        self.bin.mkdir()
        shutil.copy(ROOT / "tools/setup.sh", self.root / "tools")
        shutil.copy(ROOT / "oracle_py/requirements.txt", self.root / "oracle_py")
        for command in ("bash", "dirname", "mktemp", "rm", "tail", "sed", "cat", "sha256sum", "env"):
            (self.bin / command).symlink_to(shutil.which(command))
        self.stand_in("dpkg-query", '[ "${@: -1}" = ninja-build ] || echo -n installed')
        self.stand_in("id", "echo 0")

    def stand_in(self, command, text):
        file = self.bin / command
        file.write_text(f"#!/bin/bash\n{text}\n")
        file.chmod(0o755)

    def run_setup(self, *arguments, **environment):
        return subprocess.run(["bash", "tools/setup.sh", *arguments], cwd=self.root, capture_output=True, text=True,
                              env={"PATH": str(self.bin), "HOME": str(self.root), "LC_ALL": "C"} | environment)

    def expect_error(self, *parts):
        done = self.run_setup()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        last = done.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("setup: "), last)
        for part in parts if DEBIAN_12 else ["Debian 12 only"]:
            self.assertIn(part, last)
        self.assertFalse((self.root / ".venv").exists())

    def test_list_names_packages_and_installs_nothing(self):
        done = self.run_setup("--list")
        self.assertEqual(done.returncode, 0)
        self.assertIn("ninja-build", done.stdout.split())

    def test_unknown_argument(self):
        self.assertEqual(self.run_setup("--lsit").returncode, 2)

    def test_unknown_choice_of_pytorch(self):
        done = self.run_setup(GRADGUARD_TORCH="cpu")
        self.assertEqual((done.returncode, done.stderr), (1, "setup: GRADGUARD_TORCH is 'cpu'; want none, or nothing\n"))

    def test_neither_root_nor_sudo(self):
        self.stand_in("id", "echo 1000")
        self.expect_error("no sudo", "apt-get install ninja-build")

    def test_no_network(self):
        self.stand_in("apt-get", "echo 'E: Failed to fetch'; exit 100")
        self.expect_error("apt-get update failed", "network")

    def test_package_that_cannot_be_installed(self):
        self.stand_in("apt-get", 'case "$*" in *update*) ;; *) echo "E: Unable to locate package"; exit 100 ;; esac')
        self.expect_error("apt-get install failed")


class TestCommand(unittest.TestCase):
    def test_wrong_usage_runs_nothing(self):
        for arguments in (["--shard", "3/2"], ["--shard", "0/2"], ["--shard", "1"], ["--jobs", "x"], ["--fast"],
                          ["--nightly=dusk"], ["--nightly=fuzz,dusk"], ["--nightly="]):
            with self.subTest(arguments):
                done = subprocess.run(["bash", str(ROOT / "tools/test.sh"), *arguments], capture_output=True, text=True,
                                      env=dict(os.environ))
                self.assertEqual(done.returncode, 2)
                self.assertIn("test.sh: ", done.stderr)

    def test_help(self):
        for script in ("setup", "test", "demo"):
            with self.subTest(script):
                done = subprocess.run(["bash", str(ROOT / f"tools/{script}.sh"), "--help"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0)
                self.assertIn("usage: ", done.stdout)


if __name__ == "__main__":
    unittest.main()
