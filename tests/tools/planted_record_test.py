# SPDX-License-Identifier: Apache-2.0
"""tools/regenerate_planted.py --stale notices when the planted faults are not what their sources were compiled to."""
import json
import unittest

from record_checkout import RecordTest

PLANTED = "property_tests/planted"


class Stale(RecordTest):
    scripts = ("regenerate_ptx.py", "regenerate_planted.py")
    folders = ("kernels/device", "reference/contract", PLANTED)

    def test_clean_copy_passes(self):
        self.assertEqual(self.run_stale(), (0, ""))

    def test_edited_kernel(self):
        self.append("kernels/device/adamw_math.cuh")
        self.expect_stale("kernels/device/adamw_math.cuh")

    def test_edited_patch(self):
        self.append(f"{PLANTED}/patches/no-unscale.patch")
        self.expect_stale("no-unscale.patch")

    def test_new_patch(self):
        (self.root / PLANTED / "patches/new.patch").write_text("")
        self.expect_stale("new.patch")

    def test_edited_ptx(self):
        self.append(f"{PLANTED}/ptx/ftz/update.ptx")
        self.expect_stale("ptx/ftz/update.ptx")

    def test_missing_ptx(self):
        (self.root / PLANTED / "ptx/skip-last-level/statistics.ptx").unlink()
        self.expect_stale("ptx/skip-last-level/statistics.ptx")

    def test_edited_table(self):
        path = self.root / PLANTED / "faults.json"
        table = json.loads(path.read_text())
        fault = next(f for f in table["faults"] if f["name"] == "ftz")
        fault["flags"] = []
        path.write_text(json.dumps(table))
        self.expect_stale("faults.json")

    def test_words_of_the_table_are_free(self):
        path = self.root / PLANTED / "faults.json"
        table = json.loads(path.read_text())
        for fault in table["faults"]:
            fault["description"] += "."
        path.write_text(json.dumps(table))
        self.assertEqual(self.run_stale(), (0, ""))


if __name__ == "__main__":
    unittest.main()
