# SPDX-License-Identifier: Apache-2.0
"""tools/mutation: the engine on a small target of its own, whose "compiler" is `sed` and whose battery is two scripts."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from mutation import record  # noqa: E402
from mutation.engine import Identical, Invalid, Mutant, MutationError, Verdict, file_digest, sha256, unified_diff  # noqa: E402
from mutation.execute import execute  # noqa: E402
from mutation.runner import Run  # noqa: E402

# Words of a source: what its mutant compiles to and what becomes of that.
SOURCES = {"a.txt": "killed late\nkept alive\nbroken\n", "b.txt": "killed early\nsame\ntwin\nother twin\n"}


class FakeTarget:
    """Each line of a source is a mutant: that line in capitals."""
    name = "host"

    def __init__(self, root, passes=True):
        self.root, self.passes, self.parts = root, passes, {"early": "1", "late": "1"}

    def set_up(self, folder, jobs):
        (folder / "log").touch()
        self.log = folder / "log"

    def sources(self):
        return sorted(SOURCES)

    def battery(self):
        return dict(self.parts)

    def mutants(self):
        result = []
        for name in sorted(SOURCES):
            whole = (self.root / name).read_text()
            for number, line in enumerate(whole.splitlines(), 1):
                text = whole.replace(line, line.upper())
                result.append(Mutant(f"{name}:{number}", "host", name, number, "capitals", line,
                                     unified_diff(name, whole, text), line, line.upper(), text))
        return result

    def concerns(self, mutant):
        return [mutant.file]

    def prepare(self, folder):
        assert not list(folder.iterdir())

    def check_unmutated(self, folder):
        if not self.passes:
            raise MutationError("the battery fails on the unmutated sources")

    def build(self, mutant, folder):
        if "BROKEN" in mutant.text:
            raise Invalid("does not compile")
        if "SAME" in mutant.text:
            raise Identical
        (folder / "built").write_text(mutant.mutated)
        return sha256("twin" if "TWIN" in mutant.mutated else mutant.mutated)

    def run(self, mutant, folder):
        with self.log.open("a") as log:
            log.write(mutant.id + "\n")
        word = (folder / "built").read_text()
        done = execute(["sh", "-c", f"case '{word}' in *SLEEP*) sleep 60;; *KILLED*) exit 1;; esac"], 5)
        if done.status == 0:
            return Verdict("survived")
        return Verdict("killed", by="Suite.Test", part="early" if "EARLY" in word else "late")


class Engine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        self.state = pathlib.Path(folder.name) / "state"
        self.root.mkdir()
        for name, text in SOURCES.items():
            (self.root / name).write_text(text)
        self.parts = {"early": "1", "late": "1"}

    def finish(self, chosen=None, fresh=False, passes=True, jobs=2):
        target = FakeTarget(self.root, passes)
        target.parts = self.parts
        run = Run(self.root, target, self.state, jobs, say=lambda text: None)
        stdout, sys.stdout = sys.stdout, open(os.devnull, "w")
        try:
            run.finish(chosen, fresh)
        finally:
            sys.stdout.close()
            sys.stdout = stdout
            run.close()
        return run

    def ran(self):
        log = self.state / "host/shared/log"
        lines = sorted(log.read_text().split())
        log.write_text("")
        return lines

    def statuses(self, run):
        return {name: verdict.status for name, verdict in run.verdicts.items()}

    def test_each_mutant_gets_its_verdict(self):
        run = self.finish(jobs=1)
        self.assertEqual(self.statuses(run), {"a.txt:1": "killed", "a.txt:2": "survived", "a.txt:3": "invalid",
                                              "b.txt:1": "killed", "b.txt:2": "identical", "b.txt:3": "survived",
                                              "b.txt:4": "identical"})
        self.assertEqual(record.counts_of(run.verdicts.values()),
                         {"mutants": 4, "killed": 2, "equivalent": 0, "survivors": 2})

    def test_many_workers_give_what_one_gives(self):
        one = record.counts_of(self.finish(jobs=1).verdicts.values())
        self.assertEqual(record.counts_of(self.finish(fresh=True, jobs=4).verdicts.values()), one)

    def test_a_second_run_runs_nothing(self):
        first = self.finish()
        self.ran()
        second = self.finish()
        self.assertEqual(self.ran(), [])
        self.assertEqual(self.statuses(second), self.statuses(first))

    def test_a_fresh_run_runs_all(self):
        self.finish(jobs=1)
        first = self.ran()
        self.finish(fresh=True, jobs=1)
        self.assertEqual(self.ran(), first)

    def test_an_edited_file_reruns_only_what_it_concerns(self):
        self.finish(jobs=1)
        self.ran()
        (self.root / "b.txt").write_text(SOURCES["b.txt"].replace("early", "early!"))
        self.finish(jobs=1)
        self.assertEqual(self.ran(), ["b.txt:1", "b.txt:3"])

    def test_an_edited_part_of_the_battery_reruns_what_it_killed_and_what_survived(self):
        self.finish(jobs=1)
        self.ran()
        self.parts["late"] = "2"
        self.finish(jobs=1)
        self.assertEqual(self.ran(), ["a.txt:1", "a.txt:2", "b.txt:3"])

    def test_a_new_part_of_the_battery_reruns_only_what_survived(self):
        self.finish(jobs=1)
        self.ran()
        self.parts["new"] = "1"
        self.finish(jobs=1)
        self.assertEqual(self.ran(), ["a.txt:2", "b.txt:3"])

    def test_a_chosen_mutant_runs_alone(self):
        run = self.finish({"a.txt:1"})
        self.assertEqual(self.ran(), ["a.txt:1"])
        self.assertEqual(self.statuses(run), {"a.txt:1": "killed"})

    def test_a_battery_that_fails_on_the_unmutated_sources_is_an_error(self):
        with self.assertRaisesRegex(MutationError, "fails on the unmutated sources"):
            self.finish(passes=False)
        self.assertEqual(self.ran(), [])

    def test_a_second_run_at_the_same_time_is_refused(self):
        target = FakeTarget(self.root)
        first = Run(self.root, target, self.state, 1, say=lambda text: None)
        self.addCleanup(first.close)
        with self.assertRaisesRegex(MutationError, "another run uses"):
            Run(self.root, target, self.state, 1, say=lambda text: None)

    def test_an_edit_during_the_run_is_noticed(self):
        run = self.finish()
        self.assertEqual(run.changed(), [])
        (self.root / "a.txt").write_text("other\n")
        run.target.parts["late"] = "2"
        self.assertEqual(run.changed(), ["a.txt", "late"])

    def test_workers_leave_nothing(self):
        self.finish()
        self.assertFalse((self.state / "host/workers").exists())
        self.assertEqual(list((self.state / "host/results").glob("*.part")), [])


class Interrupted(unittest.TestCase):
    """A run in a process of its own, ended while a mutant sleeps."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in SOURCES.items():
            (self.folder / name).write_text(text)
        (self.folder / "a.txt").write_text("killed late\nsleep\n")
        script = self.folder / "run.py"
        script.write_text(textwrap.dedent(f"""\
            import pathlib, sys
            sys.path.insert(0, {str(ROOT / 'tests/tools')!r})
            from mutation_engine_test import FakeTarget, Run
            folder = pathlib.Path({str(self.folder)!r})
            run = Run(folder, FakeTarget(folder), folder / "state", 1)
            run.finish()
            print("interrupted" if run.interrupted else "complete", run.rerun)
        """))
        self.child = subprocess.Popen([sys.executable, "-B", str(script)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.child.stdout.close)

    def wait_for_sleeper(self):
        log = self.folder / "state/host/shared/log"
        while not log.is_file() or "a.txt:2" not in log.read_text():
            self.assertIsNone(self.child.poll())
            time.sleep(0.02)
        while not (sleepers := self.sleepers()):
            time.sleep(0.02)
        return sleepers

    def sleepers(self):
        """Processes of the run that sleep."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            except OSError:
                continue
            if command.startswith(b"sh\0-c\0case 'SLEEP'"):
                found.append(int(entry.name))
        return found

    def expect_gone(self, processes):
        for process in processes:
            while os.path.exists(f"/proc/{process}") and "Z" not in pathlib.Path(f"/proc/{process}/stat").read_text():
                time.sleep(0.02)

    def test_an_interrupt_keeps_what_was_done_and_ends_the_children(self):
        sleepers = self.wait_for_sleeper()
        self.child.send_signal(signal.SIGINT)
        self.assertIn("interrupted 1", self.child.communicate()[0])
        self.expect_gone(sleepers)
        self.assertFalse((self.folder / "state/host/workers").exists())
        self.assertEqual(len(list((self.folder / "state/host/results").glob("*.json"))), 1)

    def test_a_killed_run_ends_its_children_and_the_next_one_goes_on(self):
        sleepers = self.wait_for_sleeper()
        self.child.kill()
        self.child.wait()
        self.expect_gone(sleepers)
        (self.folder / "a.txt").write_text("killed late\n")
        run = Run(self.folder, FakeTarget(self.folder), self.folder / "state", 1, say=lambda text: None)
        self.addCleanup(run.close)
        run.finish({"b.txt:1"})
        self.assertEqual(run.verdicts["b.txt:1"].status, "killed")
        self.assertFalse((self.folder / "state/host/workers").exists())


class Children(unittest.TestCase):
    def test_a_child_that_computes_on_and_on_is_ended(self):
        done = execute([sys.executable, "-c", "while True: pass"], 1)
        self.assertTrue(done.late)

    def test_a_child_that_sleeps_on_and_on_is_ended(self):
        done = execute(["sleep", "60"], 1, wall_seconds=0.1)
        self.assertTrue(done.late)

    def test_what_a_child_leaves_behind_is_ended(self):
        done = execute(["sh", "-c", "sleep 60 & echo $!"], 5)
        self.assertEqual(done.status, 0)
        left = pathlib.Path(f"/proc/{int(done.output)}/stat")
        while left.exists() and " Z " not in left.read_text():
            time.sleep(0.02)

    def test_both_ends_of_the_output_are_kept(self):
        done = execute(["sh", "-c", "echo begin; yes 1234567 | head -n 10000; echo end; exit 3"], 5)
        self.assertEqual(done.status, 3)
        self.assertTrue(done.output.startswith("begin\n") and done.output.endswith("end\n"))
        self.assertLess(len(done.output), 10000)


if __name__ == "__main__":
    unittest.main()
