# SPDX-License-Identifier: Apache-2.0
"""tools/regenerate_ptx.py --stale notices when the checked-in PTX is not what its sources were compiled to."""
import unittest

from record_checkout import RecordTest


class Stale(RecordTest):
    scripts = ("regenerate_ptx.py",)
    folders = ("kernels/device", "kernels/ptx", "reference/contract")

    def test_clean_copy_passes(self):
        self.assertEqual(self.run_stale(), (0, ""))

    def test_edited_source(self):
        for name in ("kernels/device/update.cu", "kernels/device/scaled_pair.cuh", "reference/contract/constants.h"):
            with self.subTest(name):
                text = (self.root / name).read_text()
                self.append(name)
                self.expect_stale(name)
                (self.root / name).write_text(text)

    def test_new_source(self):
        (self.root / "kernels/device/new.cuh").write_text("")
        self.expect_stale("kernels/device/new.cuh")

    def test_removed_source(self):
        (self.root / "kernels/device/load.cuh").unlink()
        self.expect_stale("kernels/device/load.cuh")

    def test_edited_ptx(self):
        self.append("kernels/ptx/update.nofmad.ptx")
        self.expect_stale("kernels/ptx/update.nofmad.ptx")

    def test_missing_ptx(self):
        (self.root / "kernels/ptx/statistics.fmad.ptx").unlink()
        self.expect_stale("kernels/ptx/statistics.fmad.ptx")


if __name__ == "__main__":
    unittest.main()
