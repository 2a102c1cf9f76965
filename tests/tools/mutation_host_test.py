# SPDX-License-Identifier: Apache-2.0
"""tools/mutation/host*: a small source gives exactly the mutants that its lines have, and the project's own sources scan."""
import pathlib
import re
import sys
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
from mutation import host_battery, host_mutator, host_operators  # noqa: E402
from mutation.host import INTERFACES, HostTarget  # noqa: E402
from mutation.host_source import Source  # noqa: E402

ENUMS = {"Kind": ["kA", "kB", "kC"]}


def mutants(text, operator=None):
    """(operator, the changed lines, stripped) of all mutants of a text."""
    found = host_mutator.mutants_of("kernels/host/a.cpp", textwrap.dedent(text), ENUMS)
    return [(m.operator, "\n".join(line.strip() for line in m.mutated.splitlines())) for m in found
            if operator in (None, m.operator)]


def lines(text, operator):
    return [line for _, line in mutants(text, operator)]


def body(*statements):
    return "void f() {\n" + "".join(f"    {s}\n" for s in statements) + "}\n"


class WhatIsMutated(unittest.TestCase):
    def test_all_mutants_of_one_line(self):
        self.assertEqual(mutants("int f(int a) { return a < 2 ? g(a) : 7; }\n"), [
            ("return-default", "int f(int a) { return {}; }"),
            ("comparison", "int f(int a) { return a <= 2 ? g(a) : 7; }"),
            ("comparison", "int f(int a) { return a >= 2 ? g(a) : 7; }"),
            ("constant", "int f(int a) { return a < 1 ? g(a) : 7; }"),
            ("constant", "int f(int a) { return a < 3 ? g(a) : 7; }"),
            ("ternary", "int f(int a) { return a < 2 ? 7 : g(a); }"),
            ("constant", "int f(int a) { return a < 2 ? g(a) : 6; }"),
            ("constant", "int f(int a) { return a < 2 ? g(a) : 8; }")])

    def test_declarations_comments_strings_and_directives_have_none(self):
        self.assertEqual(mutants("""
            #include <a/b.h>
            #define LESS 1 < 2
            // return 1 + 2;
            /* x == 1 */
            enum class Kind { kA = 1 };
            namespace n {
            template <class T = int>
            T f(const T& a, int count = 3);
            class C {
              public:
                C() = default;
                virtual int g() const = 0;
            };
            }
            """), [])

    def test_texts_for_people_have_none_but_words_have(self):
        self.assertEqual(mutants(body('note("want " + text(a) + " bytes, got " + b);'), "arithmetic"), [])
        self.assertEqual(lines(body('use("beta1", "two words", "");'), "name"),
                         ['use("other", "two words", "");', 'use("beta1", "two words", "other");'])

    def test_initialisers_of_members_are_executed(self):
        self.assertEqual(lines("struct S {\n    bool on = false;\n    float f = 1.0F;\n};\n", "constant"),
                         ["bool on = true;", "float f = 0.0F;", "float f = 2.0F;"])

    def test_types_of_members_stay(self):
        self.assertEqual(mutants("struct S {\n    double sum = x;\n};\n", "type"), [])
        self.assertEqual(lines(body("const double sum = static_cast<double>(x);"), "type"),
                         ["const float sum = static_cast<double>(x);", "const double sum = static_cast<float>(x);"])


class Operators(unittest.TestCase):
    def test_angle_brackets_of_templates_are_no_comparisons(self):
        self.assertEqual(lines(body("const std::vector<std::vector<int>> v = a<b>(c) > d;"), "comparison"),
                         ["const std::vector<std::vector<int>> v = a<b>(c) <= d;",
                          "const std::vector<std::vector<int>> v = a<b>(c) >= d;"])

    def test_pointers_and_references_are_no_arithmetic(self):
        self.assertEqual(lines(body("const T* p = &a * b;", "T& q = *p & c;", "x = -1 - y--;"), "arithmetic"),
                         ["const T* p = &a / b;", "T& q = *p | c;", "x = 1 - y--;", "x = -1 + y--;", "x = -1 - y++;"])

    def test_each_operand_of_a_chain_goes_once(self):
        self.assertEqual([" ".join(line.split()) for line in lines(body("return a && f(b, c) && !d || e;"),
                                                                  "operand-removed")],
                         ["return f(b, c) && !d || e;", "return e;", "return a && !d || e;",
                          "return a && f(b, c) || e;", "return a && f(b, c) && !d ;"])

    def test_conditions(self):
        self.assertEqual(lines(body("if (const int a = f(); a && b) g();"), "condition"),
                         ["if (const int a = f(); !(a && b)) g();", "if (const int a = f(); false) g();",
                          "if (const int a = f(); true) g();"])
        self.assertEqual(lines(body("if (const char* a = f()) g();"), "condition"), [])
        self.assertEqual(lines(body("if (a == b) g();"), "condition"), ["if (false) g();", "if (true) g();"])

    def test_statements_are_removed_but_not_the_only_one_of_an_if(self):
        self.assertEqual(lines(body("if (a) f();", "x.y[3] = 1;", "int n = 2;", "for (;;) g();", "if (b) {", "throw E(1);",
                                    "} else h();", "k::m(n);"), "removed-statement"),
                         [";", "for (;;) ;", ";", "} else ;", ";"])

    def test_statements_inside_lambdas_and_blocks_are_found(self):
        self.assertEqual(len(lines(body("const auto u = [&](int a) {", "v.push_back(a);", "return a;", "};", "try {",
                                        "w();", "} catch (const E& e) {", "throw;", "}", "switch (a) {", "case 1:",
                                        "x();", "break;", "}"), "removed-statement")), 5)

    def test_arguments_change_places_with_their_neighbours(self):
        self.assertEqual(lines(body("f(a, g(b), b);", 'h(a, "text");', "T t = {x, y};", "T u = {.x = 1, .y = 2};"),
                               "swapped-arguments"), ["f(g(b), a, b);", "f(a, b, g(b));", "T t = {y, x};"])
        self.assertEqual(lines(body("const auto u = [&](int a, int b) { return f(a, a); };"), "swapped-arguments"), [])

    def test_statements_change_places_where_order_may_matter(self):
        self.assertEqual(lines(body("f(a);", "f(b);", "x = a;", "y = b;", "z = y;"), "swapped-statements"),
                         ["f(b);\nf(a);", "z = y;\ny = b;"])

    def test_a_check_moves_behind_a_decision(self):
        self.assertEqual(lines(body("validate(a);", "if (b) return;", "f(c);", "if (d) return;"), "moved-check"),
                         ["if (b) return;\nvalidate(a);"])

    def test_numbers(self):
        self.assertEqual(host_operators.other_numbers("0xFFFFFFFF"), ["4294967296", "4294967294"])
        self.assertEqual(host_operators.other_numbers("0"), ["1"])
        self.assertEqual(host_operators.other_numbers("1U"), ["2U", "0U"])
        self.assertEqual(host_operators.other_numbers("0.0"), ["1.0"])
        self.assertEqual(host_operators.other_numbers("1.0F"), ["0.0F", "2.0F"])

    def test_named_constants_where_they_are_used(self):
        self.assertEqual(lines(body("constexpr auto kMax = n;", "f(kMax, Kind::kA);", "std::min({kMax});"), "constant"),
                         ["f((kMax + 1), Kind::kA);", "f((kMax - 1), Kind::kA);", "std::min({(kMax + 1)});",
                          "std::min({(kMax - 1)});"])
        self.assertEqual(lines(body("x = std::numeric_limits<T>::max();"), "constant"),
                         ["x = std::numeric_limits<T>::min();"])

    def test_the_next_enumerator_but_not_in_a_label(self):
        self.assertEqual(lines(body("f(Kind::kC, Other::kA);", "switch (k) {", "case Kind::kA:", "break;", "}"),
                               "enumerator"), ["f(Kind::kA, Other::kA);"])

    def test_minimum_maximum_and_loops(self):
        self.assertEqual(lines(body("return std::min(a, b);"), "min-max"), ["return std::max(a, b);"])
        self.assertEqual(lines(body("for (int i = 0; i < n; ++i) f(i);"), "loop-bound"),
                         ["for (int i = 0; i + 1 < n; ++i) f(i);"])


class Ids(unittest.TestCase):
    def test_an_id_stays_when_other_lines_come_and_go(self):
        def of(text):
            return {m.id for m in host_mutator.mutants_of("kernels/host/a.cpp", text, ENUMS)}

        before = of(body("a = b + 1;", "c = d + 1;"))
        after = of(body("e(5);", "c = d + 1;"))
        self.assertEqual({i for i in before if "arithmetic" in i} & after, {i for i in after if "arithmetic" in i})

    def test_equal_lines_are_numbered(self):
        found = host_mutator.mutants_of("kernels/host/a.cpp", body("f(a);", "f(a);", "g(a);"), ENUMS)
        ids = [m.id for m in found if m.operator == "removed-statement"]
        self.assertEqual(len(set(ids)), 3)
        self.assertEqual([i.rsplit("/", 1)[1] for i in ids], ["1", "2", "1"])

    def test_equal_lines_are_told_apart_by_the_line_before(self):
        found = host_mutator.mutants_of("kernels/host/a.cpp", body("f(1);", "b = c;", "f(2);", "b = c;", "g();"), ENUMS)
        originals = [[line.strip() for line in m.original.splitlines()] for m in found
                     if m.operator == "removed-statement"]
        self.assertEqual(originals, [["f(1);"], ["f(1);", "b = c;"], ["f(2);"], ["f(2);", "b = c;"], ["g();"]])

    def test_an_unclosed_bracket_is_named_with_its_line(self):
        with self.assertRaisesRegex(ValueError, "line 2: a bracket stays open"):
            Source("int a;\nvoid f() {\n")


class TheProjectsOwnSources(unittest.TestCase):
    def setUp(self):
        self.target = HostTarget(ROOT)
        self.mutants = self.target.mutants()

    def test_there_are_enough_distinct_ones(self):
        self.assertGreater(len(self.mutants), 500)
        self.assertEqual(len({m.id for m in self.mutants}), len(self.mutants))
        self.assertEqual(len({(m.file, m.text) for m in self.mutants}), len(self.mutants))

    def test_every_operator_finds_something(self):
        wanted = {"comparison", "logical", "operand-removed", "condition", "ternary", "arithmetic", "constant", "min-max",
                  "removed-statement", "return-default", "type", "name", "swapped-arguments", "swapped-statements",
                  "moved-check", "loop-bound", "enumerator"}
        self.assertEqual({m.operator for m in self.mutants}, wanted)

    def test_every_statement_that_throws_is_mutated(self):
        for file in self.target.sources():
            source = Source(self.target.texts[file])
            thrown = [s for s in source.statements() if s.kind == "throw"]
            self.assertEqual(len(thrown), len(re.findall(r"\bthrow\b", self.target.texts[file])) -
                             len(re.findall(r"//.*\bthrow\b", self.target.texts[file])), file)

    def test_interfaces_are_left_out_and_nothing_else(self):
        self.assertEqual({f.rsplit("/", 1)[1] for f in set(self.target.texts) - set(self.target.sources())},
                         {name for name in INTERFACES if f"{host_battery.SOURCES}/{name}" in self.target.texts})

    def test_a_header_concerns_whoever_includes_it(self):
        files = host_battery.included(ROOT, "kernels/host/update.cpp", self.target.texts)
        self.assertIn("kernels/host/launch_plan.h", files)
        self.assertIn("reference/contract/constants.h", files)
        self.assertNotIn("kernels/host/summary.h", files)


if __name__ == "__main__":
    unittest.main()
