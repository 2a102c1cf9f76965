# SPDX-License-Identifier: Apache-2.0
"""tools/regenerate_ptx.py --stale notices when the checked-in PTX is not what its sources were compiled to."""
import unittest

from record_checkout import RecordTest


class Stale(RecordTest):
    scripts = ("regenerate_ptx.py",)
    folders = ("kernels/device", "kernels/ptx", "reference/contract", "bench/device")

    def test_clean_copy_passes(self):
        self.assertEqual(self.run_stale(), (0, ""))

    def test_edited_source(self):
        for name in ("kernels/device/update.cu", "kernels/device/scaled_pair.cuh", "reference/contract/constants.h",
                     "bench/device/unscale_clip.cu", "bench/device/params.h"):
            with self.subTest(name):
                text = (self.root / name).read_text()
                self.append(name)
                self.expect_stale(name)
                (self.root / name).write_text(text)

    def test_new_source(self):
        (self.root / "kernels/device/new.cuh").write_text("")
        self.expect_stale("kernels/device/new.cuh")

    def test_a_source_of_both_records_is_named_by_both(self):
        self.append("kernels/device/load.cuh")
        _, output = self.run_stale()
        self.assertEqual(output.count("kernels/device/load.cuh: "), 2, output)

    def test_removed_source(self):
        (self.root / "kernels/device/load.cuh").unlink()
        self.expect_stale("kernels/device/load.cuh")

    def test_edited_ptx(self):
        for name in ("kernels/ptx/update.nofmad.ptx", "bench/device/copy.fmad.ptx"):
            with self.subTest(name):
                self.append(name)
                self.expect_stale(name)

    def test_missing_ptx(self):
        (self.root / "kernels/ptx/statistics.fmad.ptx").unlink()
        self.expect_stale("kernels/ptx/statistics.fmad.ptx")


if __name__ == "__main__":
    unittest.main()
