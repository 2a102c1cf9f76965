# SPDX-License-Identifier: Apache-2.0
"""tools/nightly.py: the record of the nightly run is merged stage by stage, and says what it was run on."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import nightly  # noqa: E402

DIGEST = r"^[0-9a-f]{64}$"


class Checkout(unittest.TestCase):
    """A repository of a few files."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        for name, text in {".gitignore": "/build/\n", "harness/a.cpp": "a", "tests/fuzz/b.cpp": "b", "python/c.py": "c",
                           "tests/nightly/last.json": "{}", "harness/README.md": "r", "build/d.cpp": "d"}.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        patch = mock.patch.object(nightly, "ROOT", self.root)
        patch.start()
        self.addCleanup(patch.stop)

    def test_sources_are_files_of_the_stage_that_are_not_ignored_nor_records(self):
        self.assertEqual(nightly.source_files(nightly.SOURCES["fuzz"]), ["harness/a.cpp", "tests/fuzz/b.cpp"])
        self.assertEqual(nightly.source_files(nightly.SOURCES["python"]), ["harness/a.cpp", "python/c.py"])

    def test_the_hash_changes_with_a_byte_and_with_a_name(self):
        first = nightly.sources_sha256(nightly.SOURCES["fuzz"])
        self.assertRegex(first, DIGEST)
        (self.root / "harness/a.cpp").write_text("A")
        second = nightly.sources_sha256(nightly.SOURCES["fuzz"])
        (self.root / "harness/a.cpp").rename(self.root / "harness/e.cpp")
        self.assertEqual(len({first, second, nightly.sources_sha256(nightly.SOURCES["fuzz"])}), 3)

    def test_a_file_of_another_stage_changes_nothing(self):
        first = nightly.sources_sha256(nightly.SOURCES["fuzz"])
        (self.root / "python/c.py").write_text("C")
        self.assertEqual(nightly.sources_sha256(nightly.SOURCES["fuzz"]), first)

    def test_a_stage_takes_the_place_of_its_last_result_and_no_other(self):
        record = self.root / "tests/nightly/last.json"
        nightly.merge(record, "tsan", nightly.stage_record("tsan", 1, []))
        nightly.merge(record, "fuzz", nightly.stage_record("fuzz", 2, ["x"], targets={}))
        nightly.merge(record, "tsan", nightly.stage_record("tsan", 3, [], "half of it"))
        stages = nightly.read(record)["stages"]
        self.assertEqual([(name, stages[name]["seconds"]) for name in stages], [("tsan", 3), ("fuzz", 2)])
        self.assertEqual((stages["fuzz"]["ok"], stages["fuzz"]["complete"]), (False, True))
        self.assertEqual((stages["tsan"]["ok"], stages["tsan"]["complete"]), (True, False))

    def test_an_unknown_stage_is_refused(self):
        with self.assertRaisesRegex(ValueError, "no stage is called dusk"):
            nightly.merge(self.root / "tests/nightly/last.json", "dusk", {})

    def test_status_is_good_only_when_every_stage_ran_whole_without_problems_on_these_sources(self):
        record = self.root / "tests/nightly/last.json"
        (self.root / "results.json").write_text('{"device": {"mutants": 3, "survivors": [1]}, "host": {"mutants": 2}}')
        with mock.patch.object(nightly, "MUTATION", self.root / "results.json"):
            self.assertFalse(nightly.status(record), "nothing ran")
            for stage in nightly.SOURCES:
                nightly.merge(record, stage, nightly.stage_record(stage, 1, []))
            nightly.merge(record, "mutation", nightly.mutation_stage())
            self.assertTrue(nightly.status(record))
            self.assertEqual(nightly.read(record)["stages"]["mutation"]["device"], {"mutants": 3, "survivors": 1})
            for stage in (nightly.stage_record("fuzz", 1, ["a finding"]), nightly.stage_record("fuzz", 1, [], "a part")):
                nightly.merge(record, "fuzz", stage)
                self.assertFalse(nightly.status(record))
            nightly.merge(record, "fuzz", nightly.stage_record("fuzz", 1, []))
            (self.root / "harness/a.cpp").write_text("changed")
            self.assertFalse(nightly.status(record))


class Record(unittest.TestCase):
    def test_the_checked_in_record_says_of_each_stage_when_how_long_and_on_what(self):
        data = json.loads(nightly.RECORD.read_text())
        self.assertEqual(data["schema"], 2)
        self.assertTrue(set(data["stages"]) <= set(nightly.SOURCES))
        for name, stage in data["stages"].items():
            with self.subTest(name):
                self.assertEqual(stage["complete"], stage["left_out"] is None)
                self.assertEqual(stage["ok"], not stage["problems"])
                if name == "mutation":
                    self.assertRegex(stage["record_sha256"], DIGEST)
                    continue
                self.assertRegex(stage["finished_utc"], r"^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d\+00:00)?$")
                # Parts that were run by hand before there were hashes are never complete.
                if stage["complete"] or stage["sources_sha256"] is not None:
                    self.assertRegex(stage["sources_sha256"], DIGEST)
                    self.assertGreater(stage["seconds"], 0)


if __name__ == "__main__":
    unittest.main()
