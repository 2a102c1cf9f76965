# SPDX-License-Identifier: Apache-2.0
"""tools/run_gradient_guard_regressions.py: its command line, its plans, and what blocks a suite."""
import json
import pathlib
import shutil
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from regressions_checkout import ROOT, RunnerTest, plan, snapshot  # noqa: E402

sys.path.insert(0, str(ROOT / "tools"))
from regressions import options, suites  # noqa: E402

# Facts that the test program must notice, and one that it must pass.
PLANTED = """
#include <stdexcept>
#include "tests/reference_alone/facts.h"
namespace gradguard::reference_alone {
void wrong() { GRADGUARD_CHECK(1 == 2); }
void right() { GRADGUARD_CHECK(1 == 1); }
void throws() { throw std::runtime_error("planted"); }
void empty() {}
constexpr Fact kFacts[] = {{"one is two", wrong}, {"one is one", right}, {"it throws", throws}, {"nothing is checked", empty}};
std::span<const Fact> vocabulary_facts() { return kFacts; }
std::span<const Fact> option_facts() { return {}; }
std::span<const Fact> coefficient_facts() { return {}; }
std::span<const Fact> norm_facts() { return {}; }
std::span<const Fact> decision_facts() { return {}; }
std::span<const Fact> summary_facts() { return {}; }
std::span<const Fact> arithmetic_facts() { return {}; }
}  // namespace gradguard::reference_alone
"""
MOST_ELEMENTS = 1073741823  # (2^32 - 1) / 4


class CommandLine(unittest.TestCase):
    def test_defaults_are_the_contracts(self):
        self.assertEqual(options.parse([]), options.Options(
            suite="reference", compiler="both", timeout=600.0, log_dir=None, dry_run=False, offline=False,
            elements=65536, tensors=4, dtype="bf16", amsgrad=False, iterations=5, samples=5, warmup=2))

    def test_edges_are_accepted(self):
        for name, values in {"timeout": ("0.001", "1e300"), "elements": ("1", str(MOST_ELEMENTS)), "tensors": ("1", "1024"),
                             "samples": ("3", "1000000"), "iterations": ("1",), "warmup": ("1",),
                             "dtype": ("f32", "f16", "bf16"), "compiler": ("nvrtc", "ptx", "both"),
                             "suite": ("oracle", "reference", "host", "build", "cuda", "vgpu", "bench")}.items():
            for value in values:
                with self.subTest(f"--{name} {value}"):
                    self.assertEqual(str(getattr(options.parse([f"--{name}", value]), name)), str(type(getattr(
                        options.Options(), name))(value)))

    def test_what_lies_outside_is_refused(self):
        for name, values in {"timeout": ("0", "-1", "nan", "inf", "-inf", "", "soon", "1e999"),
                             "elements": ("0", "-1", str(MOST_ELEMENTS + 1), "1.5", "1e3", "", "x", "1_000", "\u0663"),
                             "tensors": ("0", "-1", "1025", "9" * 30), "samples": ("2", "0", "-3", "3.0"),
                             "iterations": ("0", "-1"), "warmup": ("0", "-1"), "dtype": ("f64", "BF16", ""),
                             "compiler": ("nvcc", ""), "suite": ("all", "", "Reference"), "log-dir": ("",),
                             "dry": ("",), "unknown": ("1",)}.items():
            for value in values:
                with self.subTest(f"--{name} {value}"), self.assertRaises(options.UsageError):
                    options.parse([f"--{name}", value])

    def test_stray_and_missing_arguments_are_refused(self):
        for arguments in (["reference"], ["--suite"], ["--timeout"], ["--samp", "5"], ["--amsgrad=yes"]):
            with self.subTest(arguments), self.assertRaises(options.UsageError):
                options.parse(arguments)


class UsageErrors(RunnerTest):
    def test_exit_64_and_nothing_is_written(self):
        (self.top / "file").write_text("")
        (self.top / "used").mkdir()
        (self.top / "used/results.json").symlink_to("nowhere")
        before = snapshot(self.top)
        for arguments in (["--suite", "no-such-suite"], ["--suite", "cuda", "--elements", "0"],
                          ["--suite", "bench", "--samples", "2", "--dry-run"], ["--log-dir", self.top / "file"],
                          ["--log-dir", self.top / "used"], ["--log-dir", self.top / "used", "--dry-run"],
                          ["--log-dir", self.top / "file/below"], ["--timeout", "nan", "--log-dir", self.logs]):
            with self.subTest(arguments):
                done = self.run_script(*arguments)
                self.assertEqual((done.returncode, done.stdout), (64, ""), done.stderr)
                self.assertIn("run_gradient_guard_regressions.py: ", done.stderr)
                self.assertNotIn("Traceback", done.stderr)
                self.assertEqual(snapshot(self.top), before)

    def test_help_is_no_error(self):
        done = self.run_script("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name in ("--suite", "--compiler", "--dry-run", "--offline", "--timeout", "--log-dir", "--elements", "--amsgrad"):
            self.assertIn(name, done.stdout)


class DryRun(RunnerTest):
    def plans(self, *arguments):
        done = self.run_script("--dry-run", "--log-dir", self.logs, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        printed = json.loads(done.stdout)
        self.assertEqual((list(printed), printed["status"]), (["status", "suite", "plans"], "planned_only"))
        for planned in printed["plans"]:
            self.assertEqual(list(planned), ["command", "compiler"])
            self.assertTrue(planned["command"] and all(isinstance(word, str) for word in planned["command"]))
        self.assertTrue(printed["plans"])
        return printed

    def test_it_prints_a_plan_of_each_suite_and_does_nothing_else(self):
        before = snapshot(self.top)
        for suite in options.SUITES:
            with self.subTest(suite):
                self.assertEqual(self.plans("--suite", suite)["suite"], suite)
                self.assertEqual(snapshot(self.top), before)

    def test_the_default_is_the_reference_suite_and_a_new_folder(self):
        done = self.run_script("--dry-run")
        self.assertEqual(json.loads(done.stdout)["suite"], "reference")
        self.assertIn(f"{self.checkout}/build/regressions/reference-", done.stdout)
        self.assertFalse((self.checkout / "build").exists())

    def test_the_compiler_option_picks_the_compilers_of_the_kernels(self):
        for suite in ("cuda", "vgpu", "bench"):
            for compiler, wanted in (("ptx", {"ptx"}), ("nvrtc", {"nvrtc"}), ("both", {"ptx", "nvrtc"})):
                with self.subTest(suite=suite, compiler=compiler):
                    plans = self.plans("--suite", suite, "--compiler", compiler)["plans"]
                    self.assertEqual({planned["compiler"] for planned in plans}, wanted)
        self.assertEqual({planned["compiler"] for planned in self.plans("--suite", "host")["plans"]}, {None})

    def test_the_benchmarks_options_reach_its_command(self):
        plans = self.plans("--suite", "bench", "--elements", "7", "--tensors", "3", "--dtype", "f16", "--amsgrad",
                           "--iterations", "9", "--samples", "4", "--warmup", "6")["plans"]
        measured = [planned for planned in plans if "bench" in planned["command"]]
        self.assertEqual([planned["compiler"] for planned in measured], ["ptx", "nvrtc"])
        for planned in measured:
            words = " ".join(planned["command"])
            self.assertIn("bench step --device cuda ", words)
            self.assertIn(f"--report {self.logs}/bench-{planned['compiler']}.json", words)
            self.assertIn("--elements 7 --tensors 3 --dtype f16 --amsgrad --iterations 9 --samples 4 --warmup 6", words)
            self.assertIn(f"--compiler {planned['compiler']} ", words)

    def test_the_oracle_suite_names_no_program_and_no_test_that_runs_one(self):
        (self.checkout / "oracle_py/tests").mkdir(parents=True)
        for name in ("test_golden.py", "test_step_files.py", "test_torch_formula.py"):
            (self.checkout / "oracle_py/tests" / name).write_text("")
        numpy, torch = (planned["command"] for planned in self.plans("--suite", "oracle")["plans"])
        self.assertEqual([word for word in numpy if word.endswith(".py")], [f"{self.checkout}/oracle_py/tests/test_golden.py"])
        self.assertEqual([word for word in torch if word.endswith(".py")],
                         [f"{self.checkout}/oracle_py/tests/test_torch_formula.py"])
        self.assertEqual(numpy[numpy.index("--gradguard-binary") + 1], f"{self.logs}/no-program")


class Blocked(RunnerTest):
    def expect_blocked(self, reason, *arguments, **more):
        done = self.run_script("--log-dir", self.logs, *arguments, **more)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        record = self.record()
        self.assertEqual((record["status"], self.statuses()[-1]), ("blocked", "blocked"))
        self.assertRegex(record["reason"], reason)
        self.assertIs(record["performance_measured"], False)
        return record

    def bin_with(self, **scripts):
        """PATH of one folder with these programs alone."""
        folder = self.top / "bin"
        folder.mkdir(exist_ok=True)
        for name, text in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o755)
        return {"PATH": str(folder), "CXX": None}

    def test_without_a_compiler(self):
        self.expect_blocked(r"no C\+\+ compiler", **self.bin_with())

    def test_the_named_compiler_is_not_replaced_by_another(self):
        self.expect_blocked("no-such-compiler", CXX="no-such-compiler -O1")

    def test_a_compiler_that_knows_no_cpp20(self):
        self.expect_blocked(r"no C\+\+20 compiler", **self.bin_with(**{"c++": "echo 'unrecognized -std=c++20' >&2; exit 1"}))

    def test_host_without_cmake(self):
        for suite in ("host", "build", "vgpu"):
            with self.subTest(suite):
                self.logs = self.top / suite
                self.expect_blocked("no program cmake", "--suite", suite, **self.bin_with(**{"c++": "exit 0"}))

    def test_host_without_a_build_program(self):
        self.expect_blocked("neither ninja nor make", "--suite", "host", **self.bin_with(cmake="exit 0"))

    def test_host_without_googletest(self):
        # Stands in for this project: what matters is what CMake says.
        for text, name in (("include(FindPackageHandleStandardArgs)\nfind_package_handle_standard_args(GTest DEFAULT_MSG X)", "GTest"),
                           ("find_package(no-such-library CONFIG REQUIRED)", "no-such-library")):
            with self.subTest(name):
                self.logs = self.top / name
                (self.checkout / "CMakeLists.txt").write_text(
                    f"cmake_minimum_required(VERSION 3.22)\nproject(p NONE)\nset(GTest_FIND_REQUIRED ON)\n{text}\n")
                self.expect_blocked(f"CMake finds no {name}", "--suite", "host")

    def test_a_broken_cmake_file_is_failed_and_not_blocked(self):
        (self.checkout / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.22)\nproject(p NONE)\nnonsense()\n")
        done = self.run_script("--suite", "host", "--log-dir", self.logs)
        self.expect(done, 1, "failed", "failed")

    def test_each_build_option_is_built_by_itself_and_none_is_refused(self):
        commands = [" ".join(plan.command) for plan in suites.build(None, self.logs)]
        configured = [command for command in commands if "tests/tools/consumer" in command]
        for option in ("FUSED_ADAMW", "FUSED_ADAMW_DEVICE", "FUSED_ADAMW_CUDA", "GRADIENT_GUARD",
                       "GRADIENT_GUARD_DEVICE", "GRADIENT_GUARD_CUDA"):
            self.assertEqual(sum(f"-DGRADGUARD_{option}=ON" in command for command in configured), 1, option)
        self.assertNotIn("FATAL_ERROR", (ROOT / "cmake/GradguardOptions.cmake").read_text())

    def test_oracle_without_numpy(self):
        self.expect_blocked("no Python with NumPy, pytest and Hypothesis", "--suite", "oracle", python=["-S"])

    def test_oracle_without_pytorch(self):
        (self.checkout / "oracle_py/tests").mkdir(parents=True)
        (self.checkout / "oracle_py/tests/test_torch_x.py").write_text("")
        # An environment that has the names of the packages; pytest stands in for itself.
        site = self.checkout / ".venv/lib/python3.11/site-packages"
        for package in ("numpy", "pytest", "hypothesis"):
            (site / package).mkdir(parents=True)
            (site / package / "__init__.py").write_text("")
        (self.checkout / ".venv/bin").mkdir()
        python = self.checkout / ".venv/bin/python"
        python.write_text("#!/bin/sh\nwhile [ \"$1\" != --junitxml ]; do shift; done\n"
                          "echo '<testsuite><testcase name=\"a\"/></testsuite>' > \"$2\"\n")
        python.chmod(0o755)
        record = self.expect_blocked(f"no PyTorch in {python}", "--suite", "oracle", python=["-S"])
        self.assertEqual([result["status"] for result in record["results"]], ["passed", "blocked"])
        self.assertIn("none of the C++ code", record["environment"]["device"])

    def test_the_virtual_gpu_is_no_hardware(self):
        self.assertEqual(suites.device_of("vgpu"), "virtual GPU, not hardware")

    def test_the_virtual_gpu_is_blocked_at_once_where_a_compiler_is_missing(self):
        with unittest.mock.patch.object(suites.test_results, "missing_nvrtc", return_value="no NVRTC"):
            plans = suites.vgpu(options.Options(suite="vgpu", compiler="nvrtc"), self.logs)
            both = suites.vgpu(options.Options(suite="vgpu", compiler="both"), self.logs)
        self.assertEqual({planned.missing for planned in plans[1:]}, {None})
        self.assertEqual(plans[0].missing, "no NVRTC")
        self.assertEqual({planned.missing for planned in both if planned.compiler == "ptx"}, {None})

    def test_cuda_and_bench_say_why(self):
        for suite in ("cuda", "bench"):
            with self.subTest(suite):
                self.logs = self.top / suite
                record = self.expect_blocked("no NVIDIA driver|finds no device", "--suite", suite,
                                             CUDA_VISIBLE_DEVICES="")  # also where there is a GPU
                self.assertRegex(record["environment"]["device"], "^none: ")


    def test_a_compiler_or_a_device_that_the_program_misses_blocks_the_benchmark(self):
        says = "echo first; echo 'gradguard: UnsupportedDevice: no NVRTC: tried a, b' >&2; exit 4"
        done = self.run_plans(plan("bench", "sh", "-c", says, blocked_by=suites.MISSING_FOR_BENCH),
                              arguments=["--suite", "bench"])
        self.expect(done, 2, "blocked", "blocked")
        self.assertEqual(self.record()["reason"], "no NVRTC: tried a, b")
        self.assertIs(self.record()["performance_measured"], False)

    def test_a_benchmark_whose_paths_disagree_is_failed(self):
        says = "echo 'gradguard: bench step: after the warm-up: the paths differ' >&2; exit 1"
        done = self.run_plans(plan("bench", "sh", "-c", says, blocked_by=suites.MISSING_FOR_BENCH),
                              arguments=["--suite", "bench"])
        self.expect(done, 1, "failed", "failed")
        self.assertIs(self.record()["performance_measured"], False)


class Reference(RunnerTest):
    def test_the_default_suite_passes_with_a_compiler_and_two_folders_of_the_checkout(self):
        for folder in ("reference/contract", "reference/fp64", "tests/reference_alone"):
            shutil.copytree(ROOT / folder, self.checkout / folder)
        sources = snapshot(self.checkout)
        done = self.run_script("--log-dir", self.logs, PYTHONPATH=None)
        self.expect(done, 0, "passed", "passed", "passed", "passed")
        self.assertRegex((self.logs / "03-check.log").read_text(), r"reference: \d+ facts, \d+ checks, 0 failed")
        self.assertEqual(snapshot(self.checkout), sources)

    def test_a_fact_that_does_not_hold_fails_the_suite(self):
        for file in ("contract/error.h", "fp64/violation.h"):
            (self.checkout / "reference" / file).parent.mkdir(parents=True)
            shutil.copy(ROOT / "reference" / file, self.checkout / "reference" / file)
        (self.checkout / "tests/reference_alone").mkdir(parents=True)
        for file in ("facts.h", "reference_main.cpp"):
            shutil.copy(ROOT / "tests/reference_alone" / file, self.checkout / "tests/reference_alone" / file)
        (self.checkout / "tests/reference_alone/planted.cpp").write_text(PLANTED)
        done = self.run_script("--log-dir", self.logs)
        self.expect(done, 1, "failed", "passed", "passed", "failed")
        log = (self.logs / "03-check.log").read_text()
        self.assertEqual([line for line in log.splitlines() if line.startswith("FAILED")],
                         ["FAILED: one is two", "FAILED: it throws", "FAILED: nothing is checked"])
        self.assertIn("planted.cpp:5: not so: 1 == 2", log)
        self.assertIn("reference: 4 facts, 2 checks, 3 failed", log)


if __name__ == "__main__":
    unittest.main()
