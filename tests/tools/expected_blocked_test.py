# SPDX-License-Identifier: Apache-2.0
"""tools/test_results.py: what counts as passed, failed and blocked, and when a run as a whole is good."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import test_results  # noqa: E402

CTEST = """<?xml version="1.0"?>
<testsuite tests="7">
  <testcase name="Norm.IsFive" classname="Norm.IsFive" time="0.1" status="run"/>
  <testcase name="Norm.IsWrong" classname="Norm.IsWrong" time="0.1" status="fail"><failure message="no"/></testcase>
  <testcase name="Cuda.Runs" classname="Cuda.Runs" time="0.1" status="notrun">
    <skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>Running main() from gtest_main.cc
[ RUN      ] Cuda.Runs
a_test.cpp:7: Skipped
no NVIDIA driver
[  SKIPPED ] Cuda.Runs (0 ms)</system-out>
  </testcase>
  <testcase name="x_NOT_BUILT" classname="x_NOT_BUILT" time="0" status="notrun"/>
  <testcase name="moved" classname="moved" time="0" status="notrun"><skipped message="Unable to find executable"/>
    <system-out>Unable to find executable: /x</system-out></testcase>
  <testcase name="off" classname="off" time="0" status="disabled"><system-out>Disabled</system-out></testcase>
  <testcase name="tools.ptx" classname="tools.ptx" time="0" status="notrun">
    <skipped message="SKIP_RETURN_CODE=2"/><system-out>blocked: no nvcc on PATH</system-out></testcase>
</testsuite>
"""
PYTEST = """<testsuites><testsuite>
  <testcase classname="oracle_py.tests.test_a" name="test_b" time="0.2"/>
  <testcase classname="oracle_py.tests.test_a" name="test_c" time="0.2">
    <skipped type="pytest.skip" message="no torch">x.py:3: no torch</skipped></testcase>
  <testcase classname="" name="python.tests.test_d" time="0">
    <skipped message="collection skipped">('/x/test_d.py', 8, 'Skipped: blocked: not built')</skipped></testcase>
</testsuite></testsuites>
"""
HERE, ABSENT = {"cuda": None}, {"cuda": "no driver"}
EXPECTED = [("cuda", "Cuda.*")]


def result(name, outcome):
    return {"run": "ctest", "name": name, "outcome": outcome, "reason": "", "seconds": 0.0}


class ReadResults(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "run.xml"
            path.write_text(text)
            return {r["name"]: (r["outcome"], r["reason"]) for r in test_results.read_results(path)}

    def test_ctest(self):
        self.assertEqual(self.read(CTEST), {
            "Norm.IsFive": ("passed", ""),
            "Norm.IsWrong": ("failed", ""),
            "Cuda.Runs": ("blocked", "no NVIDIA driver"),
            "x_NOT_BUILT": ("failed", ""),
            "moved": ("failed", ""),
            "off": ("failed", ""),
            "tools.ptx": ("blocked", "blocked: no nvcc on PATH"),
        })

    def test_pytest(self):
        self.assertEqual(self.read(PYTEST), {
            "oracle_py.tests.test_a::test_b": ("passed", ""),
            "oracle_py.tests.test_a::test_c": ("blocked", "no torch"),
            "python.tests.test_d": ("blocked", "blocked: not built"),
        })


class Judge(unittest.TestCase):
    def problems(self, results, missing, complete=False):
        return test_results.judge(results, EXPECTED, missing, complete)

    def test_expected_block_is_good(self):
        self.assertEqual(self.problems([result("A.b", "passed"), result("Cuda.x", "blocked")], ABSENT), [])

    def test_everything_runs_where_everything_is(self):
        self.assertEqual(self.problems([result("A.b", "passed"), result("Cuda.x", "passed")], HERE), [])

    def test_blocked_where_the_need_is_there(self):
        self.assertIn("cuda is here", self.problems([result("A.b", "passed"), result("Cuda.x", "blocked")], HERE)[0])

    def test_blocked_unexpectedly(self):
        self.assertIn("nobody expects it", self.problems([result("A.b", "passed"), result("A.c", "blocked")], ABSENT)[0])

    def test_passed_without_what_it_needs(self):
        self.assertIn("passed without cuda", self.problems([result("Cuda.x", "passed")], ABSENT)[0])

    def test_failed(self):
        self.assertIn("failed", self.problems([result("A.b", "passed"), result("A.c", "failed")], HERE)[0])

    def test_no_test(self):
        self.assertEqual(self.problems([], HERE), ["no test ran"])

    def test_all_blocked_is_no_test(self):
        self.assertEqual(self.problems([result("Cuda.x", "blocked")], ABSENT), ["no test ran"])

    def test_stale_line_of_the_expectations(self):
        self.assertIn("no test is named Cuda.*", self.problems([result("A.b", "passed")], ABSENT, complete=True)[0])

    def test_unknown_need(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "expected.txt"
            path.write_text("# comment\ncuda A.*\nluck B.*\n")
            with self.assertRaisesRegex(ValueError, "expected.txt:3"):
                test_results.read_expected(path)

    def test_the_checked_in_file_reads(self):
        self.assertTrue(test_results.read_expected(test_results.EXPECTED))


if __name__ == "__main__":
    unittest.main()
