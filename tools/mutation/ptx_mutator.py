# SPDX-License-Identifier: Apache-2.0
"""Mutants of the compiled kernels (kernels/ptx), one change of one instruction each.

All of them would be about ten thousand, most of them the same change in one of the 24 variants of the update. So each
entry point gives a fixed number of its own (QUOTA), drawn by a generator whose seed is the entry's name. Changes that
are none by the language are left out: exchanged operands of a commutative operation, another number of the one barrier.
"""
import random
import re

from .engine import Mutant, unified_diff

# Of the scan's entries and of each entry of the update. The two builds of the scan are the same text (its operations
# are explicitly rounded), so that mutants of one are mutants of both.
QUOTA = {"gradient_statistics_f32": 90, "gradient_statistics_merge": 70, "gradient_statistics_f16": 24,
         "gradient_statistics_bf16": 24}
QUOTA_OF_UPDATE = 4

INSTRUCTION = re.compile(r"^\t(?:@(?P<not>!?)(?P<guard>%p\d+) )?(?P<opcode>[a-z][\w.]*)\s*(?P<operands>[^;]*);$")
ENTRY = re.compile(r"^\.visible \.entry (\w+)\(")
OPCODES = [  # regular expression of the whole opcode, replacements
    (r"add(\.rn)?\.f32", [r"sub\1.f32", r"mul\1.f32"]), (r"sub(\.rn)?\.f32", [r"add\1.f32"]),
    (r"mul(\.rn)?\.f32", [r"add\1.f32"]), (r"div\.rn\.f32", ["mul.rn.f32"]), (r"sqrt\.rn\.f32", ["mov.f32", "rcp.rn.f32"]),
    (r"max\.NaN\.f32", ["min.NaN.f32", "max.f32"]),
    (r"add\.s(32|64)", [r"sub.s\1"]), (r"mul\.lo\.s32", ["add.s32"]),
    (r"and\.b32", ["or.b32", "xor.b32"]), (r"or\.b32", ["and.b32", "xor.b32"]),
    (r"shl\.b(32|64)", [r"shr.u\1"]), (r"shr\.u32", ["shl.b32"]),
    (r"setp\.ge\.(u32|f32)", [r"setp.gt.\1", r"setp.lt.\1", r"setp.eq.\1"]),
    (r"setp\.gt\.u32", ["setp.ge.u32", "setp.le.u32"]), (r"setp\.lt\.u32", ["setp.le.u32", "setp.ge.u32", "setp.ne.s32"]),
    (r"setp\.eq\.f32", ["setp.ne.f32", "setp.le.f32"]), (r"setp\.neu\.f32", ["setp.equ.f32", "setp.ne.f32"]),
    (r"setp\.ne\.s32", ["setp.eq.s32", "setp.gt.u32"]),
    (r"cvt\.f32\.f16", ["cvt.ftz.f32.f16", "cvt.f32.bf16"]), (r"mov\.f32", ["neg.f32"]),
]
ROUNDING = re.compile(r"^(add|sub|mul|div|fma|sqrt)(\.rn)?\.f32$")
FLUSHES = re.compile(r"^(add|sub|mul|div|fma|sqrt|max|setp)\b.*\.f32$")
NOT_COMMUTATIVE = re.compile(r"^(sub|div|shl|shr|selp|setp\.(?!eq|ne))")
SPECIAL = {"%tid.x": ["%ctaid.x", "%ntid.x"], "%ctaid.x": ["%tid.x", "%nctaid.x"], "%nctaid.x": ["%ntid.x", "%ctaid.x"]}
FLOATS = {"0f00000000": ["0f80000000", "0f3F800000"], "0f3F800000": ["0f00000000", "0f40000000", "0f3F800001"]}


def split(operands):
    """The operands of an instruction; a vector in braces is one."""
    return [part.strip() for part in re.findall(r"(?:\{[^}]*\}|[^,{])+", operands)] if operands else []


class Entry:
    """The lines of one entry point; `before[i]`: registers by class that appear before line i."""

    def __init__(self, name, first, lines):
        self.name, self.first, self.lines = name, first, lines
        self.registers = {}
        for line in lines:
            if INSTRUCTION.match(line.rstrip("\n")):
                for register in re.findall(r"%(?:rd|rs|r|f|p)\d+", line):
                    self.registers.setdefault(re.match(r"%[a-z]+", register)[0], []).append(register)


def entries_of(text):
    lines, found = text.splitlines(keepends=True), []
    for index, line in enumerate(lines):
        name = ENTRY.match(line)
        if name:
            end = next(i for i in range(index, len(lines)) if lines[i].startswith("}"))
            found.append(Entry(name[1], index, lines[index:end]))
    return found


def render(guard, opcode, operands):
    return f"\t{guard}{opcode} \t{', '.join(operands)};\n" if operands else f"\t{guard}{opcode};\n"


def opcode_changes(opcode):
    for pattern, replacements in OPCODES:
        match = re.fullmatch(pattern, opcode)
        for replacement in replacements if match else ():
            yield "opcode", match.expand(replacement)
    match = ROUNDING.match(opcode)
    for mode in ("rz", "rm", "rp") if match else ():
        yield "rounding", f"{match[1]}.{mode}.f32"
    if FLUSHES.match(opcode):
        yield "ftz", opcode[:-len(".f32")] + ".ftz.f32"


def immediate_changes(operand):
    if operand in FLOATS:
        return FLOATS[operand]
    if re.fullmatch(r"-?\d+", operand):
        return [str(int(operand) + 1)] + ([str(int(operand) - 1)] if int(operand) > 0 else [])
    return []


def address_changes(operand):
    """Four bytes further and, where there is an offset, four bytes less; a pair or an address of a parameter: eight."""
    match = re.fullmatch(r"\[([%\w]+?)(?:\+(\d+))?\]", operand)
    if not match:
        return []
    offset = int(match[2] or 0)
    return [f"[{match[1]}+{offset + 4}]"] + ([f"[{match[1]}+{offset - 4}]"] if offset else [])


def operand_changes(entry, line, opcode, operands, dice):
    """(operator, changed operands)."""
    first = 1 if not opcode.startswith(("st.", "bra", "bar")) else 0
    for index, operand in enumerate(operands):
        changed = lambda new: [*operands[:index], new, *operands[index + 1:]]  # noqa: E731
        if opcode.startswith("ld.param") and index == 1:
            step = 8 if opcode.endswith("u64") or ".v2." in opcode else 4
            match = re.fullmatch(r"\[(\w+?)(?:\+(\d+))?\]", operand)
            yield "address", changed(f"[{match[1]}+{int(match[2] or 0) + step}]")
            if match[2]:
                yield "address", changed(f"[{match[1]}+{int(match[2]) - step}]")
        elif operand.startswith("["):
            for new in address_changes(operand):
                yield "address", changed(new)
        elif not opcode.startswith("bar"):
            for new in immediate_changes(operand):
                yield "immediate", changed(new)
        for new in SPECIAL.get(operand, ()):
            yield "operand", changed(new)
        register = re.search(r"%(rd|rs|r|f|p)\d+", operand)
        if index >= first and register:
            others = sorted({r for r in entry.registers["%" + register[1]] if r != register[0]})
            if others:
                yield "operand", changed(operand.replace(register[0], dice.choice(others)))
        pair = re.fullmatch(r"\{(%\w+), (%\w+)\}", operand)
        if pair:
            yield "operand", changed(f"{{{pair[2]}, {pair[1]}}}")
    if NOT_COMMUTATIVE.match(opcode):
        yield "operand", [operands[0], operands[2], operands[1], *operands[3:]]
    if opcode.startswith("fma"):
        yield "operand", [operands[0], operands[3], operands[2], operands[1]]


def changes_of(entry, line, dice):
    """(operator, description, changed lines) of one instruction."""
    match = INSTRUCTION.match(line.rstrip("\n"))
    if not match or match["opcode"] in ("ret",):
        return
    opcode, operands = match["opcode"], split(match["operands"])
    guard = f"@{match['not']}{match['guard']} " if match["guard"] else ""
    shown = " ".join(line.split())
    kind = "removed-barrier" if opcode.startswith("bar") else "removed-instruction"
    yield kind, f"{shown} removed", []
    if guard:
        other = "" if match["not"] else "!"
        yield "predicate", f"{shown} negated", [render(f"@{other}{match['guard']} ", opcode, operands)]
        yield "predicate", f"{shown} always", [render("", opcode, operands)]
    for operator, new in opcode_changes(opcode):
        yield operator, f"{opcode} becomes {new}", [render(guard, new, operands)]
    for operator, new in operand_changes(entry, line, opcode, operands, dice):
        if new != operands:
            changed = render(guard, opcode, new)
            yield operator, f"{shown} becomes {' '.join(changed.split())}", [changed]


def mutants_of(file, text):
    """The drawn mutants of one file, in the order of its lines; no text twice."""
    lines = text.splitlines(keepends=True)
    found, counts, seen = [], {}, {text}
    for entry in entries_of(text):
        dice = random.Random(f"{file} {entry.name}")
        all_changes = [(entry.first + i, *change) for i, line in enumerate(entry.lines)
                       for change in changes_of(entry, line, dice)]
        quota = QUOTA.get(entry.name, QUOTA_OF_UPDATE)
        chosen = sorted(dice.sample(range(len(all_changes)), min(quota, len(all_changes))))
        for index, operator, description, new in (all_changes[i] for i in chosen):
            mutated = "".join([*lines[:index], *new, *lines[index + 1:]])
            if mutated in seen:
                continue
            seen.add(mutated)
            place = f"{file.rsplit('/', 1)[1]}:{index + 1}/{operator}"
            counts[place] = counts.get(place, 0) + 1
            found.append(Mutant(f"ptx/{place}/{counts[place]}", "ptx", file, index + 1, operator,
                                f"{entry.name}: {description}", unified_diff(file, text, mutated), lines[index],
                                "".join(new), mutated))
    return found
