# SPDX-License-Identifier: Apache-2.0
"""tools/mutation: the mutants of the kernels. No compiler is needed here."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from mutation import cuda_mutator, device, ptx_mutator  # noqa: E402

SOURCE = """\
__device__ inline float twice(float a, float b) {
    const float q = __fdiv_rn(a, b);
    if (q < 0.0F) return a;
    __syncthreads();
    return __fmul_rn(q, 2.0F);  // + 1
}
"""
PTX = """\
.visible .entry gradient_statistics_f32(
\t.param .align 8 .b8 p[24]
)
{
\t.reg .f32 \t%f<4>;
\tld.param.f32 \t%f1, [p+20];
\tmov.u32 \t%r1, %tid.x;
\tsetp.ge.f32 \t%p1, %f1, %f2;
\t@%p1 bra \t$L;
\tadd.rn.f32 \t%f3, %f1, %f2;
$L:
\tbar.sync \t0;
\tret;

}
"""


def described(mutants):
    return {(m.line, m.operator, m.mutated.strip()) for m in mutants}


class Cuda(unittest.TestCase):
    def setUp(self):
        self.mutants = cuda_mutator.mutants_of("kernels/device/twice.cuh", SOURCE)

    def test_each_kind_of_change_is_made(self):
        wanted = {
            (2, "rounding", "const float q = __fdiv_rz(a, b);"), (2, "swapped-operands", "const float q = __fdiv_rn(b, a);"),
            (2, "intrinsic", "const float q = (a / b);"), (2, "type", "const double q = __fdiv_rn(a, b);"),
            (3, "comparison", "if (q <= 0.0F) return a;"), (3, "condition", "if (true) return a;"),
            (3, "condition", "if (!(q < 0.0F)) return a;"), (3, "wrong-variable", "if (q < 0.0F) return b;"),
            (3, "constant", "if (q < -0.0F) return a;"), (3, "removed-statement", ""), (4, "removed-barrier", ""),
        }
        self.assertEqual(wanted - described(self.mutants), set())

    def test_comments_are_not_mutated(self):
        self.assertFalse([m for m in self.mutants if "- 1" in m.mutated])

    def test_a_mutant_says_what_it_changes(self):
        for mutant in self.mutants:
            lines = SOURCE.splitlines(keepends=True)
            count = len(mutant.original.splitlines())
            self.assertEqual("".join(lines[mutant.line - 1:mutant.line - 1 + count]), mutant.original)
            changed = [*lines[:mutant.line - 1], mutant.mutated, *lines[mutant.line - 1 + count:]]
            self.assertEqual("".join(changed), mutant.text, mutant.id)


class Kernels(unittest.TestCase):
    """The mutants of this tree."""

    @classmethod
    def setUpClass(cls):
        cls.target = device.DeviceTarget(ROOT)
        cls.mutants = cls.target.mutants()

    def test_ids_and_texts_are_unique_and_the_same_each_time(self):
        ids = [m.id for m in self.mutants]
        self.assertEqual(len(set(ids)), len(ids))
        self.assertEqual(len({(m.file, m.text) for m in self.mutants}), len(ids))
        self.assertEqual([m.id for m in self.target.mutants()], ids)

    def test_every_line_of_formula_tree_and_barriers_is_mutated(self):
        for name in ("adamw_math.cuh", "scaled_pair.cuh", "load.cuh", "statistics.cu", "update.cu"):
            lines = (ROOT / "kernels/device" / name).read_text().splitlines()
            mutated = set()
            for mutant in self.mutants:
                if mutant.file.endswith("/" + name):
                    mutated.update(range(mutant.line, mutant.line + len(mutant.original.splitlines())))
            for number, function in enumerate(cuda_mutator.function_of(lines)):
                code = cuda_mutator.code_of(lines[number])
                # A declaration that only names memory, and brackets, have nothing to change.
                if function and re.search(r"[-+*/=<>(]", code) and not re.match(r"\s*(\}|using|scan<)", code):
                    self.assertIn(number + 1, mutated, f"{name}:{number + 1}: {code}")

    def test_every_barrier_is_removed_in_both_forms(self):
        for level, word in (("cuda", "__syncthreads"), ("ptx", "bar.sync")):
            removed = [m for m in self.mutants if m.operator == "removed-barrier" and m.level == level]
            self.assertTrue(removed)
            self.assertTrue(all(word in m.original and m.mutated == "" for m in removed))
        self.assertEqual(len([m for m in self.mutants if m.id.startswith("cuda") and m.operator == "removed-barrier"]), 2)

    def test_every_entry_point_has_mutants(self):
        names = {m.description.split(":")[0] for m in self.mutants if m.level == "ptx"}
        entries = {e.name for text in self.target.original.values() for e in ptx_mutator.entries_of(text)}
        self.assertEqual(names, entries)

    def test_a_mutant_concerns_what_the_compiler_reads_of_its_modules(self):
        def included(name, found):
            found.add(name)
            for other in re.findall(r'#include "([^"]+)"', (ROOT / name).read_text()):
                if other not in found:
                    included(other, found)
            return found

        of_module = {m: included(f"kernels/device/{m}.cu", set()) for m in device.MODULES}
        for mutant in self.mutants:
            wanted = {mutant.file}
            if mutant.level == "cuda":
                wanted = set().union(*(files for files in of_module.values() if mutant.file in files))
            self.assertEqual(set(self.target.concerns(mutant)), wanted, mutant.id)

    def test_diffs_are_patches(self):
        for mutant in self.mutants[::11]:
            lines = (ROOT / mutant.file).read_text().splitlines(keepends=True)
            header, *hunk = mutant.diff.splitlines(keepends=True)[2:]
            first = int(re.match(r"@@ -(\d+)", header)[1]) - 1
            before = [line[1:] for line in hunk if line[0] in " -"]
            after = [line[1:] for line in hunk if line[0] in " +"]
            self.assertEqual(lines[first:first + len(before)], before, mutant.id)
            self.assertEqual("".join([*lines[:first], *after, *lines[first + len(before):]]), mutant.text, mutant.id)

    def test_the_battery_takes_forty_core_seconds_at_most(self):
        self.assertLessEqual(sum(part.seconds for part in device.BATTERY), 40)


class Ptx(unittest.TestCase):
    def test_each_kind_of_change_is_made(self):
        wanted = {
            (6, "address", "ld.param.f32 \t%f1, [p+24];"), (7, "operand", "mov.u32 \t%r1, %ctaid.x;"),
            (8, "opcode", "setp.gt.f32 \t%p1, %f1, %f2;"), (8, "ftz", "setp.ge.ftz.f32 \t%p1, %f1, %f2;"),
            (8, "operand", "setp.ge.f32 \t%p1, %f2, %f1;"), (9, "predicate", "@!%p1 bra \t$L;"),
            (9, "predicate", "bra \t$L;"), (10, "rounding", "add.rz.f32 \t%f3, %f1, %f2;"),
            (10, "removed-instruction", ""), (12, "removed-barrier", ""),
        }
        self.assertEqual(wanted - described(ptx_mutator.mutants_of("kernels/ptx/a.ptx", PTX)), set())

    def test_lines_that_name_sources_make_no_difference(self):
        with_lines = PTX.replace("\tret;", "\t.loc\t1 2 3\n\tret;") + '\t.file\t1 "a.cu"\n'
        self.assertEqual(device.strip_lines(with_lines), device.strip_lines(PTX))
        self.assertNotEqual(device.strip_lines(PTX.replace("bar.sync", "bar.arrive")), device.strip_lines(PTX))


if __name__ == "__main__":
    unittest.main()
