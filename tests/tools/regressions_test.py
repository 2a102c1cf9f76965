# SPDX-License-Identifier: Apache-2.0
"""tools/run_gradient_guard_regressions.py: what a run does and records, whatever its commands do."""
import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from regressions_checkout import ROOT, SIGNALS, RunnerTest, is_running, plan, shell  # noqa: E402

sys.path.insert(0, str(ROOT / "tools"))
from regressions import environment, results  # noqa: E402

PASSES = plan("passes", "true")
SLEEPS = shell("sleeps", "sleep 60 & echo $! > {folder}/pid; mv {folder}/pid {folder}/started; wait")
JUNIT = '<testsuite><testcase name="A.b" time="0"/>{}</testsuite>'
SKIPPED = '<testcase name="Cuda.c" time="0"><skipped type="pytest.skip" message="no device"/></testcase>'


class Statuses(RunnerTest):
    def test_passed(self):
        done = self.run_plans(PASSES, shell("speaks", "echo hello; echo trouble >&2"))
        self.expect(done, 0, "passed", "passed", "passed")
        record = self.record()
        self.assertEqual(list(record), ["schema", "suite", "started_utc", "finished_utc", "status", "reason", "plans",
                                        "results", "source_sha256", "environment", "performance_measured"])
        self.assertEqual(record["plans"], [{"command": ["true"], "compiler": None},
                                           {"command": ["sh", "-c", "echo hello; echo trouble >&2"], "compiler": None}])
        for result, planned in zip(record["results"], record["plans"]):
            self.assertEqual(list(result), ["command", "compiler", "log", "status", "returncode", "elapsed_seconds"])
            self.assertEqual(result["command"], planned["command"])
            self.assertEqual(result["returncode"], 0)
            self.assertGreaterEqual(result["elapsed_seconds"], 0)
        self.assertEqual((record["schema"], record["suite"], record["reason"]), (1, "reference", None))
        for moment in ("started_utc", "finished_utc"):
            self.assertRegex(record[moment], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertRegex(record["source_sha256"], "^[0-9a-f]{64}$")
        self.assertIs(record["performance_measured"], False)
        log = (self.logs / record["results"][1]["log"]).read_text()
        self.assertEqual(log.splitlines()[1:], ["hello", "trouble"])

    def test_failed_stops_the_run(self):
        done = self.run_plans(PASSES, shell("fails", "echo the cause; exit 3"), shell("later", "touch {folder}/later"))
        self.expect(done, 1, "failed", "passed", "failed")
        self.assertEqual(self.record()["results"][1]["returncode"], 3)
        self.assertEqual(self.record()["reason"], "fails: exit status 3")
        self.assertFalse((self.logs / "later").exists())
        self.assertIn("the cause", done.stderr)

    def test_ended_by_a_signal_of_its_own_is_failed(self):
        self.expect(self.run_plans(shell("dies", "kill -SEGV $$")), 1, "failed", "failed")
        self.assertEqual(self.record()["results"][0]["returncode"], -11)

    def test_failed_where_the_caller_ignores_the_end_of_its_children(self):
        done = self.run_plans(plan("fails", "false"), before="""
            import signal
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)""")
        self.expect(done, 1, "failed", "failed")

    def test_timeout_ends_the_whole_process_group(self):
        done = self.run_plans(SLEEPS, PASSES, arguments=["--timeout", "1.5"])
        self.expect(done, 1, "failed", "timeout")
        self.assertEqual(self.record()["reason"], "sleeps: not done after 1.5 s")
        self.assertFalse(is_running((self.logs / "started").read_text().strip()))

    def test_timeout_of_a_command_that_will_not_end(self):
        done = self.run_plans(shell("stubborn", "trap '' TERM; echo $$ > {folder}/pid; while :; do sleep 0.1; done"),
                              arguments=["--timeout", "1"])
        self.expect(done, 1, "failed", "timeout")
        self.assertEqual(self.record()["results"][0]["returncode"], -9)
        self.assertFalse(is_running((self.logs / "pid").read_text().strip()))

    def test_blocked_by_a_program_that_is_not_there(self):
        self.expect(self.run_plans(PASSES, plan("absent", "no-such-program-here"), PASSES), 2, "blocked", "passed", "blocked")
        self.assertIn("no-such-program-here", self.record()["reason"])
        self.assertIsNone(self.record()["results"][1]["returncode"])

    def test_a_program_that_was_to_be_made_and_is_not_there_is_failed(self):
        self.expect(self.run_plans(plan("unmade", "{folder}/unmade")), 1, "failed", "failed")

    def test_blocked_by_what_the_plan_knows_to_be_missing(self):
        done = self.run_plans(plan("gpu", "touch", "{folder}/ran", missing="no GPU"))
        self.expect(done, 2, "blocked", "blocked")
        self.assertEqual(self.record()["reason"], "no GPU")
        self.assertFalse((self.logs / "ran").exists())
        self.assertIn("no GPU", done.stdout + (self.logs / "01-gpu.log").read_text())

    def test_blocked_by_what_a_failed_command_says(self):
        blocked_by = ((r"no (\w+)", "wants {0}"),)
        self.expect(self.run_plans(shell("asks", "echo no luck; exit 1", blocked_by=blocked_by)), 2, "blocked", "blocked")
        self.assertEqual(self.record()["reason"], "wants luck")

    def test_what_a_passed_command_says_does_not_block(self):
        self.expect(self.run_plans(shell("asks", "echo no luck", blocked_by=(("no luck", "luck"),))), 0, "passed", "passed")

    def writes_tests(self, *cases):
        text = JUNIT.format("".join(cases)) if cases != ("none",) else "<testsuite/>"
        return shell("tests", f"cat > {{folder}}/t.xml <<'E'\n{text}\nE", junit=lambda: "folder / 't.xml'")

    def test_a_test_that_could_not_run_blocks(self):
        self.expect(self.run_plans(self.writes_tests(SKIPPED)), 2, "blocked", "blocked")
        self.assertEqual(self.record()["reason"], "tests: 1 of 2 tests could not run, first Cuda.c: no device")

    def test_tests_that_all_ran_pass(self):
        self.expect(self.run_plans(self.writes_tests("")), 0, "passed", "passed")

    def test_no_test_is_no_pass(self):
        self.expect(self.run_plans(self.writes_tests("none")), 1, "failed", "failed")

    def test_no_file_of_tests_is_no_pass(self):
        self.expect(self.run_plans(plan("tests", "true", junit=lambda: "folder / 't.xml'")), 1, "failed", "failed")

    def test_performance_is_measured_by_a_passed_bench_only(self):
        for suite, command, measured in (("bench", "true", True), ("bench", "false", False), ("host", "true", False)):
            with self.subTest(suite=suite, command=command):
                self.logs = self.top / f"{suite}-{command}"
                self.run_plans(plan("command", command), arguments=["--suite", suite])
                self.assertIs(self.record()["performance_measured"], measured)


class Interruption(RunnerTest):
    def test_a_signal_leaves_a_valid_file_and_no_process(self):
        for number in SIGNALS:
            with self.subTest(number.name):
                self.logs = self.top / number.name
                done = self.interrupt(number, PASSES, SLEEPS, shell("later", "touch {folder}/later"))
                self.expect(done, 1, "interrupted", "passed", "interrupted")
                self.assertEqual(self.record()["reason"], f"sleeps: {number.name}")
                self.assertIsNotNone(self.record()["finished_utc"])
                self.assertFalse((self.logs / "later").exists())
                self.assertFalse(is_running((self.logs / "started").read_text().strip()))

    def test_a_signal_before_the_first_command(self):
        done = self.run_plans(PASSES, before="""
            import os, signal
            environment.describe = lambda options, device: os.kill(os.getpid(), signal.SIGINT) or {}""")
        self.expect(done, 1, "interrupted")
        self.assertEqual(self.record()["reason"], "SIGINT before passes")

    def test_a_killed_runner_leaves_a_valid_file_that_says_running(self):
        done = self.run_plans(PASSES, shell("kills", "kill -KILL $PPID"))
        self.assertEqual(done.returncode, -9)
        self.assertEqual((self.record()["status"], self.statuses()), ("running", ["passed"]))

    def test_output_that_nobody_reads_does_not_end_the_run(self):
        read, write = os.pipe()
        os.close(read)
        code = subprocess.run([*self.driver([PASSES, PASSES]), "--log-dir", str(self.logs)], stdout=write).returncode
        os.close(write)
        self.assertEqual((code, self.statuses()), (0, ["passed", "passed"]))


class Files(RunnerTest):
    def test_the_file_is_replaced_after_each_command(self):
        keep = "ln {folder}/results.json {folder}/%s"
        self.expect(self.run_plans(shell("one", keep % "one"), shell("two", keep % "two")), 0, "passed", "passed", "passed")
        kept = [json.loads((self.logs / name).read_text()) for name in ("one", "two")]
        self.assertEqual([(k["status"], len(k["results"]), k["finished_utc"]) for k in kept],
                         [("running", 0, None), ("running", 1, None)])

    def test_a_used_folder_is_refused_and_left_alone(self):
        self.logs.mkdir()
        (self.logs / "results.json").write_text("{}")
        os.utime(self.logs / "results.json", (0, 0))
        before = sorted((f.name, f.stat().st_mtime_ns) for f in [self.logs, *self.logs.iterdir()])
        done = self.run_plans(shell("later", "touch {folder}/later"))
        self.assertEqual(done.returncode, 64)
        self.assertIn("fresh", done.stderr)
        self.assertEqual(sorted((f.name, f.stat().st_mtime_ns) for f in [self.logs, *self.logs.iterdir()]), before)

    def test_of_two_runs_in_one_folder_the_later_is_refused(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            results.write(folder, {"run": 1}, first=True)
            with self.assertRaises(results.AlreadyUsed):
                results.write(folder, {"run": 2}, first=True)
            self.assertEqual([(f.name, f.read_text()) for f in folder.iterdir()], [("results.json", '{\n  "run": 1\n}\n')])

    def test_a_folder_with_other_files_is_fresh(self):
        self.logs.mkdir()
        (self.logs / "notes.txt").write_text("mine")
        self.expect(self.run_plans(PASSES), 0, "passed", "passed")
        self.assertEqual((self.logs / "notes.txt").read_text(), "mine")

    def test_nothing_is_written_outside_the_log_folder(self):
        self.expect(self.run_plans(shell("makes", 'touch "$TMPDIR/x" && test "$TMPDIR" = {folder}/tmp')), 0, "passed", "passed")
        self.assertEqual(sorted(f.name for f in self.logs.iterdir()), ["01-makes.log", "results.json"])
        self.assertEqual(sorted(f.name for f in self.top.iterdir()), ["checkout", "logs"])
        self.assertEqual(list(self.checkout.rglob("__pycache__")), [])

    def test_a_process_left_behind_is_ended(self):
        self.expect(self.run_plans(shell("leaves", "sleep 60 & echo $! > {folder}/pid")), 0, "passed", "passed")
        self.assertFalse(is_running((self.logs / "pid").read_text().strip()))

    def test_no_test_filter_is_inherited(self):
        text = 'test -z "$GTEST_FILTER$CTEST_PARALLEL_LEVEL$PYTEST_ADDOPTS"'
        done = self.run_plans(shell("looks", text), GTEST_FILTER="A.*", CTEST_PARALLEL_LEVEL="0", PYTEST_ADDOPTS="-k x")
        self.expect(done, 0, "passed", "passed")

    def test_offline_cuts_off_what_would_download(self):
        look = shell("looks", 'test "$PIP_NO_INDEX" = 1 && test "$https_proxy" = http://127.0.0.1:9')
        self.expect(self.run_plans(look, arguments=["--offline"]), 0, "passed", "passed")


class FullDisk(RunnerTest):
    def expect_full(self, done):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"{self.logs}/results.json", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual([f.name for f in self.logs.glob(".results*")], [])

    def test_a_write_that_the_kernel_refuses_leaves_the_old_file(self):
        # The record grows by 20 KB with the command's result, past the greatest file that this process may write.
        done = self.run_plans(plan("long", "true", "x" * 20000), PASSES, before="""
            import resource
            resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))""")
        self.expect_full(done)
        self.assertEqual((self.record()["status"], self.record()["results"]), ("running", []))

    def test_no_space_left_leaves_the_old_file(self):
        done = self.run_plans(PASSES, before="""
            import errno, os
            from regressions import results
            real = os.fsync
            def full(handle):
                if results.NAME in os.readlink(f"/proc/self/fd/{handle}") and (os.path.lexists(f"{sys.argv[2]}/results.json")):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return real(handle)
            os.fsync = full""")
        self.expect_full(done)
        self.assertIn("No space left on device", done.stderr)
        self.assertEqual((self.record()["status"], self.record()["results"]), ("running", []))

    def test_a_disk_that_a_command_fills(self):
        """On a file system of 128 KB, in a mount namespace of its own, where the machine lets this user have one."""
        mounted = ["unshare", "-rm"]
        if not shutil.which("unshare") or subprocess.run([*mounted, "mount", "-t", "tmpfs", "x", "/mnt"],
                                                         capture_output=True).returncode != 0:
            return self.test_no_space_left_leaves_the_old_file()
        self.logs.mkdir()
        inside = f'mount -t tmpfs -o size=128k x {self.logs}; "$@"; code=$?; cat {self.logs}/results.json; exit $code'
        done = self.run_plans(shell("fills", "head -c 1000000 /dev/zero > {folder}/big"), PASSES,
                              wrapper=[*mounted, "sh", "-c", inside, "sh"])
        self.expect_full(done)
        self.assertIn("No space left on device", done.stderr)
        record = json.loads(done.stdout[done.stdout.index("{\n"):])
        self.assertEqual((record["status"], record["results"]), ("running", []))

    def test_a_folder_that_cannot_be_made_is_a_usage_error(self):
        (self.top / "file").write_text("")
        self.logs = self.top / "file/logs"
        self.assertEqual(self.run_plans(PASSES).returncode, 64)

    def test_no_space_for_the_folder_is_not_the_users_fault(self):
        done = self.run_plans(PASSES, before=f"""
            import pathlib
            def full(*arguments, **more):
                raise OSError({errno.ENOSPC}, "No space left on device", "logs")
            pathlib.Path.mkdir = full""")
        self.assertEqual(done.returncode, 1)
        self.assertFalse(self.logs.exists())


class Sources(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "a").mkdir()
        (self.root / "a/one.h").write_text("1")
        (self.root / "two.h").write_text("2")
        (self.root / "link").symlink_to("two.h")

    def test_the_hash_is_that_of_names_and_contents(self):
        first = environment.source_sha256(self.root)
        self.assertEqual(environment.source_sha256(self.root), first)
        (self.root / "two.h").write_text("3")
        changed = environment.source_sha256(self.root)
        (self.root / "two.h").rename(self.root / "three.h")
        self.assertEqual(len({first, changed, environment.source_sha256(self.root)}), 3)

    def test_git_and_a_walk_give_the_same(self):
        walked = environment.source_sha256(self.root)
        for arguments in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", "-C", str(self.root), *arguments], check=True)
        (self.root / "untracked").write_text("not a source")
        with mock.patch("os.walk", side_effect=AssertionError):
            self.assertEqual(environment.source_sha256(self.root), walked)

    def test_what_a_build_makes_does_not_count(self):
        before = environment.source_sha256(self.root)
        for name in ("build/x", "build-asan/x", ".venv/x", "a/__pycache__/x.pyc"):
            (self.root / name).parent.mkdir()
            (self.root / name).write_text("made")
        self.assertEqual(environment.source_sha256(self.root), before)


if __name__ == "__main__":
    unittest.main()
