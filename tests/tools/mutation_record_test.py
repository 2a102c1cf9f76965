# SPDX-License-Identifier: Apache-2.0
"""property_tests/mutation: the last full runs on record, the argued survivors, and the rules that both are kept by."""
import dataclasses
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from mutation import record  # noqa: E402
from mutation.engine import Mutant, MutationError, Verdict, sha256  # noqa: E402

MUTANT = Mutant("host/a:1/x/1", "host", "kernels/host/a.cpp", 1, "x", "a becomes b", "-a\n+b\n", "  a\n", "  b\n", "b\n")
ENTRY = {"level": "host", "file": "kernels/host/a.cpp", "original": "a", "mutated": "b", "argument": "why", "check": ""}


class OnRecord(unittest.TestCase):
    """The files of this tree. Whether their sources have changed since is told by `tools/mutate report`, not here."""

    @classmethod
    def setUpClass(cls):
        cls.whole = json.loads((ROOT / record.RESULTS).read_text())

    def test_counts_have_their_form_and_add_up(self):
        self.assertEqual(list(self.whole), ["device", "host", "runs"])
        for name in ("device", "host"):
            counts = self.whole[name]
            self.assertEqual(list(counts), ["mutants", "killed", "equivalent", "survivors"])
            self.assertEqual(counts["mutants"], counts["killed"] + counts["equivalent"] + counts["survivors"])

    def test_counts_reach_what_is_wanted(self):
        for name in ("device", "host"):
            self.assertEqual(record.threshold_problem(name, self.whole[name]), "")

    def test_survivors_are_listed_with_their_diffs(self):
        for name in ("device", "host"):
            survivors = self.whole["runs"][name]["survivors"]
            self.assertEqual(len(survivors), self.whole[name]["survivors"])
            for survivor in survivors:
                self.assertEqual(set(survivor), {"id", "operator", "description", "diff"})
                self.assertIn("\n@@ ", survivor["diff"])

    def test_runs_say_what_they_were_made_of(self):
        for name in ("device", "host"):
            run = self.whole["runs"][name]
            self.assertRegex(run["date"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            self.assertTrue(run["sources"])
            for digest in [*run["sources"].values(), *run["battery"]["parts"].values(), run["battery"]["sha256"]]:
                self.assertRegex(digest, r"^[0-9a-f]{64}$")
            self.assertGreater(run["cpu_seconds"], 0)

    def test_no_mutant_took_more_than_forty_core_seconds_and_its_compilation(self):
        for name in ("device", "host"):
            self.assertLessEqual(self.whole["runs"][name]["longest_cpu_seconds"], 60)

    def test_equivalents_are_those_of_the_record(self):
        for name in ("device", "host"):
            entries = record.read_equivalents(ROOT, name)
            self.assertEqual(self.whole["runs"][name]["equivalents_sha256"], sha256(json.dumps(entries, sort_keys=True)),
                             f"{record.EQUIVALENT} changed since the last full run: run tools/mutate {name} --write")

    def test_each_change_is_argued_once(self):
        keys = [tuple(entry[field].strip() for field in ("level", "file", "original", "mutated"))
                for name in ("device", "host") for entry in record.read_equivalents(ROOT, name)]
        self.assertEqual(len(set(keys)), len(keys))

    def test_named_checks_exist(self):
        tests = "\n".join(f.read_text() for top in ("tests", "property_tests") for f in (ROOT / top).rglob("*_test.cpp"))
        for name in ("device", "host"):
            for entry in record.read_equivalents(ROOT, name):
                if entry["check"]:
                    suite, test = entry["check"].split(".")
                    self.assertRegex(tests, rf"TEST(_F|_P)?\({suite}, {test}\)")


class Rules(unittest.TestCase):
    def test_an_argued_survivor_is_equivalent(self):
        settled, problems = record.settle([MUTANT], {MUTANT.id: Verdict("survived")}, [ENTRY])
        self.assertEqual((settled[MUTANT.id].status, problems), ("equivalent", []))

    def test_another_change_of_the_line_is_not_argued(self):
        other = dataclasses.replace(MUTANT, mutated="  c\n")
        settled, problems = record.settle([other], {other.id: Verdict("survived")}, [ENTRY])
        self.assertEqual(settled[other.id].status, "survived")
        self.assertEqual(len(problems), 1)

    def test_an_argument_about_a_killed_mutant_is_a_problem(self):
        settled, problems = record.settle([MUTANT], {MUTANT.id: Verdict("killed", by="A.B")}, [ENTRY])
        self.assertEqual(settled[MUTANT.id].status, "killed")
        self.assertIn("A.B", problems[0] + problems[1])

    def test_an_argument_about_nothing_is_a_problem(self):
        self.assertEqual(len(record.settle([], {}, [ENTRY])[1]), 1)

    def test_identical_and_invalid_ones_do_not_count(self):
        verdicts = [Verdict("killed"), Verdict("identical"), Verdict("invalid"), Verdict("survived"), Verdict("equivalent")]
        self.assertEqual(record.counts_of(verdicts), {"mutants": 3, "killed": 1, "equivalent": 1, "survivors": 1})

    def test_thresholds(self):
        counts = {"mutants": 400, "killed": 380, "equivalent": 8, "survivors": 12}
        self.assertEqual(record.threshold_problem("device", counts), "")
        self.assertIn("97%", record.threshold_problem("device", {**counts, "equivalent": 7, "survivors": 13}))
        self.assertIn("400", record.threshold_problem("device", {**counts, "mutants": 399}))

    def test_an_entry_out_of_form_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / record.FOLDER).mkdir(parents=True)
            for entry in ({**ENTRY, "argument": " "}, {k: v for k, v in ENTRY.items() if k != "check"}):
                (root / record.EQUIVALENT).write_text(json.dumps({"equivalent": [entry]}))
                with self.assertRaises(MutationError):
                    record.read_equivalents(root, "host")

    def test_a_partial_run_is_not_written(self):
        class Target:
            name = "host"

        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(MutationError, "only a full run"):
                record.write_results(pathlib.Path(folder), Target(), [MUTANT], {})

    def test_a_changed_source_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / record.FOLDER).mkdir(parents=True)
            (root / "a.cpp").write_text("a\n")
            run = {"sources": {"a.cpp": sha256("a\n")}}
            (root / record.RESULTS).write_text(json.dumps({"runs": {"device": {"sources": {}}, "host": run}}))
            self.assertEqual(record.changed_sources(root), [])
            (root / "a.cpp").write_text("b\n")
            self.assertEqual(len(record.changed_sources(root)), 1)
            self.assertIn("a.cpp changed since the last full mutation run", record.changed_sources(root)[0])

    def test_a_missing_run_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(len(record.changed_sources(pathlib.Path(folder))), 2)


if __name__ == "__main__":
    unittest.main()
