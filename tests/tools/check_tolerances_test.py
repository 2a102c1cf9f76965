# SPDX-License-Identifier: Apache-2.0
"""tools/check_tolerances.py finds each kind of planted tolerance and passes what is computed."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_tolerances  # noqa: E402

CPP, PYTHON = "tests/host/a_test.cpp", "oracle_py/tests/test_a.py"


class CheckTolerances(unittest.TestCase):
    def found(self, text, path=CPP):
        return check_tolerances.check_text(path, text)

    def expect(self, text, path=CPP):
        self.assertTrue(self.found(text, path), text)

    def pass_(self, text, path=CPP):
        self.assertEqual(self.found(text, path), [], text)

    def test_near_comparisons_of_googletest(self):
        for text in ("EXPECT_NEAR(a, b, bound);", "ASSERT_NEAR(a, b, 1e-6);", "EXPECT_FLOAT_EQ(a, b);",
                     "ASSERT_DOUBLE_EQ(a, b);", "EXPECT_THAT(a, DoubleNear(1.0, 1e-3));", "Pointwise(FloatEq(), x)"):
            self.expect(text)

    def test_near_comparisons_of_python(self):
        for text in ("assert math.isclose(a, b)", "np.allclose(a, b)", "torch.testing.assert_close(a, b, rtol=0)",
                     "assert a == pytest.approx(b)", "np.testing.assert_almost_equal(a, b)",
                     "self.assertAlmostEqual(a, b)", "compare(a, b, atol = x)"):
            self.expect(text, PYTHON)

    def test_a_difference_against_a_number(self):
        for text in ("EXPECT_TRUE(std::fabs(a - b) < 1e-6);", "if (std::abs(got[i] - want[i]) <= 0x1p-20 * x) ok();",
                     "EXPECT_LE(std::fabs(a - b), 1e-6F);", "RC_ASSERT(fabs(f(a, b) - c) < .5);",
                     "EXPECT_LT(std::fabs(a -\n      b),\n   2.5);", "ASSERT_LE(std::abs(a - b), 4);"):
            self.expect(text)
        self.expect("assert abs(a - b) <= 1e-7 * n", PYTHON)
        self.expect("self.assertLess(abs(a - b), 2.0)", PYTHON)

    def test_a_number_named_a_tolerance(self):
        self.expect("constexpr double kTolerance = 1e-5;")
        self.expect("const double norm_tolerance{0.25};")
        self.expect("TOLERANCE_ = 1\ntolerance = 2**-20", PYTHON)

    def test_computed_bounds_and_exact_comparisons_pass(self):
        for text in ("EXPECT_LE(std::fabs(got - exact), norm_error_bound(bounds));", "EXPECT_EQ(a, b);",
                     "RC_ASSERT(abs(a - b) <= bound);", "if (std::fabs(a - b) > 1.0) differs();",
                     "EXPECT_LE(used, 1.0);", "if (std::fabs(x) <= 2 * kPi) return small;",
                     "EXPECT_TRUE(std::fabs(-1e-5F * x) < 0x1p-3F);", "EXPECT_EQ(std::fabs(a - b), 0.5);",
                     "const double bound = tolerance_of(x);", "EXPECT_TRUE(std::fabs(a - b) < b);"):
            self.pass_(text)
        self.pass_("assert abs(a - b) <= norm * bound(n) / 2\nassert a == b", PYTHON)

    def test_comments_and_texts_pass(self):
        self.pass_("// no EXPECT_NEAR here\n/* nor abs(a - b) < 1e-6 */ const char* t = \"isclose(a, b)\";")
        self.pass_("# not math.isclose(a, b)\nt = 'pytest.approx(1)'\n\"\"\"np.allclose(a, b)\"\"\"", PYTHON)

    def test_digit_separators_are_no_strings(self):
        self.expect("int n = 1'000'000; EXPECT_NEAR(a, b, 1); int m = 2'000;")

    def test_the_line_is_named(self):
        found = self.found("int a;\n\nEXPECT_NEAR(a, b, 1);\n")
        self.assertEqual(len(found), 1)
        self.assertIn("tests/host/a_test.cpp:3: ", found[0])

    def test_a_tree_with_a_planted_tolerance_fails_and_its_clean_twin_passes(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / CPP
            file.parent.mkdir(parents=True)
            file.write_text("EXPECT_EQ(a, b);\n")
            self.assertEqual(check_tolerances.check(pathlib.Path(folder)), ([], 1))
            file.write_text("EXPECT_NEAR(a, b, c);\n")
            self.assertEqual(len(check_tolerances.check(pathlib.Path(folder))[0]), 1)

    def test_an_empty_tree_is_not_a_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(len(check_tolerances.check(pathlib.Path(folder))[0]), 1)

    def test_this_tree_passes(self):
        self.assertEqual(check_tolerances.check(ROOT)[0], [])


if __name__ == "__main__":
    unittest.main()
