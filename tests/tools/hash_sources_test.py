# SPDX-License-Identifier: Apache-2.0
"""bench/hash_sources.cmake: the hash of the sources that a report carries is what sha256sum makes of them."""
import hashlib
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench/hash_sources.cmake"


class HashSources(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "sub").mkdir()
        (self.root / "a.h").write_bytes(b"one;two\n")  # A semicolon parts CMake's lists.
        (self.root / "sub/b.cu").write_bytes(b"\xff\x00")
        (self.root / "list").write_text("a.h\nsub/b.cu\n")

    def generated(self):
        subprocess.run([shutil.which("cmake"), f"-DROOT={self.root}", f"-DLIST={self.root}/list",
                        f"-DOUT={self.root}/out.cpp", "-P", SCRIPT], check=True, capture_output=True)
        return (self.root / "out.cpp").read_text()

    def expected(self):
        lines = "".join(f"{hashlib.sha256((self.root / name).read_bytes()).hexdigest()}  {name}\n"
                        for name in ("a.h", "sub/b.cu"))
        return hashlib.sha256(lines.encode()).hexdigest()

    def test_it_is_the_hash_of_the_lines_of_sha256sum(self):
        self.assertIn(f'{{"{self.expected()}", 2}}', self.generated())

    def test_a_changed_byte_changes_it(self):
        before = self.generated()
        (self.root / "sub/b.cu").write_bytes(b"\xff\x01")
        self.assertNotEqual(self.generated(), before)
        self.assertIn(self.expected(), self.generated())


if __name__ == "__main__":
    unittest.main()
