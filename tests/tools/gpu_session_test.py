# SPDX-License-Identifier: Apache-2.0
"""tools/gpu_session.sh: its command line, its end where there is no GPU, its stages and record, its package."""
import argparse
import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from gpu_session import judge, pack, record, stages  # noqa: E402
from gpu_session.stages import Command, Stage  # noqa: E402


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        self.out = self.top / "out"

    def script(self, *arguments, **variables):
        return subprocess.run([ROOT / "tools/gpu_session.sh", *map(str, arguments)], capture_output=True, text=True,
                              cwd=self.top, env={**os.environ, **variables})

    def read(self):
        return json.loads((self.out / "session.json").read_text())


class WithoutAGpu(WithFolder):
    def test_it_runs_to_its_end_and_every_stage_says_why_it_is_blocked(self):
        done = self.script("--out", self.out, "--build", self.top, CUDA_VISIBLE_DEVICES="")  # also where there is one
        self.assertEqual(done.returncode, 2, done.stderr)
        session = self.read()
        self.assertEqual((session["status"], session["hardware"]), ("blocked", False))
        self.assertEqual([stage["name"] for stage in session["stages"]], list(stages.NAMES))
        for stage in session["stages"]:
            self.assertEqual(stage["status"], "blocked", stage)
            self.assertRegex(stage["reason"], "no NVIDIA driver|finds no device|virtual driver")
        self.assertTrue(session["device"].startswith("none: "))
        text = (self.out / "session.txt").read_text()
        for name in stages.NAMES:
            self.assertIn(f"blocked  {name}", text)

    def test_what_is_not_built_is_named(self):
        (self.top / "harness/vdriver").mkdir(parents=True)
        (self.top / "harness/vdriver/libgradguard_vdriver.so").write_text("")
        done = self.script("--device", "vdriver", "--out", self.out, "--build", self.top, "--stages", "bits,check")
        self.assertEqual(done.returncode, 2, done.stderr)
        reasons = [stage["reason"] for stage in self.read()["stages"]]
        self.assertEqual(reasons, [f"not built: {self.top}/property_tests/hardware/hardware_tests",
                                   f"not built: {self.top}/gradguard"])


class CommandLine(WithFolder):
    def test_bad_usage_is_refused_and_writes_nothing(self):
        (self.top / "used").mkdir()
        for arguments in (["--stages", "suite"], ["--seconds", "0"], ["--seconds", "nan"], ["--device", "vgpu"],
                          ["--out", self.top / "used"], ["--nonsense"], ["stray"]):
            with self.subTest(arguments):
                done = self.script(*arguments)
                self.assertEqual((done.returncode, done.stdout), (64, ""))
                self.assertIn("gpu_session.sh: ", done.stderr)
                self.assertEqual(sorted(p.name for p in self.top.iterdir()), ["used"])

    def test_all_stages_together_end_within_six_minutes(self):
        for device in ("cuda", "vdriver"):
            options = argparse.Namespace(device=device, build=self.top, out=self.out, python="python3",
                                         stages=list(stages.NAMES))
            planned = stages.stages_of(options)
            self.assertEqual([stage.name for stage in planned], list(stages.NAMES))
            self.assertLess(sum(stage.seconds for stage in planned), 360)


def shell(name, text, judged=judge.text):
    return Command(name, ("sh", "-c", text), judged)


class Session(WithFolder):
    def run_stages(self, *planned, seconds=60.0):
        """Runs them as a session on the virtual driver; its status."""
        options = argparse.Namespace(device="vdriver", build=self.top, out=self.out, seconds=seconds,
                                     python=sys.executable)
        with contextlib.redirect_stdout(io.StringIO()):
            return record.run(options, planned)

    def test_a_stage_is_as_its_worst_command_and_the_session_as_its_worst_stage(self):
        blocked = shell("two", "exit 2", lambda code, log: ("blocked", "no such thing", None))
        self.assertEqual(self.run_stages(
            Stage("a", "", 9, (shell("one", "true"), blocked)),
            Stage("b", "", 9, (blocked, shell("one", "echo wrong; exit 3"), shell("last", "true"))),
            Stage("c", "", 9, (shell("one", "echo right"),))), "failed")
        session = self.read()
        self.assertEqual([(s["status"], s["reason"]) for s in session["stages"]],
                         [("blocked", "no such thing"), ("failed", "exit status 3: wrong"), ("passed", None)])
        self.assertEqual(len(session["stages"][1]["commands"]), 3)
        self.assertEqual((session["status"], session["reason"]), ("failed", "exit status 3: wrong"))

    def test_a_command_that_runs_too_long_is_ended_with_its_children_and_fails(self):
        mark = self.top / "mark"
        started = time.monotonic()
        status = self.run_stages(Stage("a", "", 0.3, (shell("slow", f"(sleep 60; touch {mark}) & echo $! >pid; wait"),
                                                      shell("after", "true"))))
        self.assertLess(time.monotonic() - started, 30)
        self.assertEqual(status, "failed")
        commands = self.read()["stages"][0]["commands"]
        self.assertIn("it ran past its ", commands[0]["reason"])
        self.assertEqual(commands[1]["reason"], "after: no time was left")
        child = pathlib.Path(f"/proc/{(self.out / 'pid').read_text().strip()}/stat")
        with contextlib.suppress(FileNotFoundError):
            self.assertIn(child.read_text().rsplit(")", 1)[1].split()[0], ("Z", "X"))

    def test_the_sessions_time_ends_a_stage_that_has_time_left(self):
        self.assertEqual(self.run_stages(Stage("a", "", 50, (shell("slow", "sleep 50"),)), seconds=0.3), "failed")

    def test_the_record_is_whole_while_a_stage_runs(self):
        seen = Stage("b", "", 9, (shell("look", "cat session.json"),))
        self.assertEqual(self.run_stages(Stage("a", "", 9, (shell("one", "true"),)), seen), "passed")
        log = json.loads((self.out / "logs/b-look.log").read_text())
        self.assertEqual((log["status"], [stage["name"] for stage in log["stages"]]), ("running", ["a"]))

    def test_a_long_reason_is_whole_in_the_record_and_short_for_people(self):
        self.assertEqual(self.run_stages(Stage("a", "", 9, (), missing="why " * 200)), "blocked")
        self.assertEqual(self.read()["stages"][0]["reason"], "why " * 200)
        self.assertLess(max(map(len, (self.out / "session.txt").read_text().splitlines())), 250)

    def test_a_program_that_is_not_there_blocks(self):
        self.assertEqual(self.run_stages(Stage("a", "", 9, (Command("x", (str(self.top / "none"),), judge.text),))),
                         "blocked")

    def test_targets_are_of_the_largest_fp32_step_on_hardware_only(self):
        def row(elements, hardware):
            return {"elements": elements, "dtype": "f32", "device": "d", "hardware_time": hardware, "bytes_per_element": 32,
                    "step_seconds": {"guarded": elements * 32 / 3e12, "staged": 1.0}, "copy_bytes_per_second": 4e12}

        def of(rows, torch):
            return {"stages": [{"name": "bench", "commands": [{"data": r} for r in rows]},
                               {"name": "torch", "commands": [{"data": {"rows": torch}}]}]}
        torch = [{"elements": 1000, "dtype": "f32", "scaler": scaler, "step_seconds": {"median": seconds}}
                 for scaler, seconds in ((True, 9.0), (False, 1000 * 32 / 6e12))]
        found = record.targets(of([row(10, True), row(1000, True)], torch))
        self.assertEqual([(round(t["got"], 6), t["met"]) for t in found], [(0.75, False), (0.5, False)])
        self.assertEqual(record.targets(of([row(1000, False)], torch)), [])


class Judges(WithFolder):
    def test_a_test_that_did_not_run_blocks_and_one_that_failed_fails(self):
        path = self.top / "tests.json"

        def case(name, **more):
            return {"name": name, "classname": "Suite", "result": "COMPLETED", **more}

        def verdict(code, log, *cases):
            path.write_text(json.dumps({"testsuites": [{"testsuite": list(cases)}]}))
            return judge.gtest(path)(code, log)[:2]
        self.assertEqual(verdict(0, "", case("a")), ("passed", None))
        skipped = case("b", result="SKIPPED")
        self.assertEqual(verdict(0, "blocked: no driver\n", case("a"), skipped),
                         ("blocked", "1 of 2 tests could not run: no driver"))
        self.assertEqual(verdict(1, "", case("a", failures=[{}]), skipped), ("failed", "1 of 2 tests failed: Suite.a"))
        self.assertEqual(verdict(-6, "abort", case("a")), ("failed", "ended by signal 6: abort"))
        self.assertEqual(verdict(0, ""), ("failed", "no test ran"))
        path.unlink()
        self.assertEqual(judge.gtest(path)(0, "")[0], "failed")

    def test_a_missing_device_or_compiler_blocks_the_program(self):
        self.assertEqual(judge.check(4, "gradguard: UnsupportedDevice: no NVRTC\n")[:2], ("blocked", "no NVRTC"))
        self.assertEqual(judge.check(1, "it failed\n")[:2], ("failed", "exit status 1: it failed"))
        self.assertEqual(judge.check(0, '"cases": 7, "corpus_cases": 2')[2], {"cases": 7, "corpus_cases": 2})

    def test_a_report_that_is_missing_fails(self):
        self.assertEqual(judge.bench(self.top / "none")(0, "")[0], "failed")
        self.assertEqual(judge.torch(self.top / "none")(0, "")[0], "failed")
        self.assertEqual(judge.torch(self.top / "none")(2, "no PyTorch")[:2], ("blocked", "no PyTorch"))


class Package(WithFolder):
    def build(self):
        for name in pack.PROGRAMS:
            (self.top / "b" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(sys.executable, self.top / "b" / name)
        return self.top / "b"

    def test_it_has_programs_libraries_cases_and_scripts_and_the_script_in_it_runs(self):
        target = self.top / "session.tar"
        pack.pack(self.build(), target)
        with tarfile.open(target) as tar:
            names = set(tar.getnames())
            for name in ("tools/gpu_session.sh", "build/gradguard", "build/property_tests/hardware/hardware_tests",
                         "kernels/ptx/update.fmad.ptx", "property_tests/vectors/exact_f32.safetensors",
                         "property_tests/corpus/ftz.json", "tools/gpu_session/torch_steps.py"):
                self.assertIn(f"{pack.TOP}/{name}", names)
            self.assertFalse([name for name in names if "__pycache__" in name or "libc.so" in name])
            tar.extractall(self.top / "there")
        done = subprocess.run([self.top / "there" / pack.TOP / "tools/gpu_session.sh", "--out", self.out],
                              capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(self.read()["status"], "blocked")

    def test_a_build_that_lacks_a_program_leaves_no_package(self):
        build = self.build()
        (build / "tests/vectors/vectors_test").unlink()
        with self.assertRaisesRegex(pack.Incomplete, "not built: .*/vectors_test"):
            pack.pack(build, self.top / "session.tar")
        self.assertEqual([p.name for p in self.top.iterdir()], ["b"])


if __name__ == "__main__":
    unittest.main()
