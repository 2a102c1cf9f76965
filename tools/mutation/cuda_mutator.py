# SPDX-License-Identifier: Apache-2.0
"""Mutants of the kernels' CUDA source, one change of one line (or of two neighbours) each.

It reads the project's own style, which clang-format keeps: a binary operator has a space on both sides, a pointer's star
and a template's brackets have none. Names of one type that could be mistaken for each other stand in ALIKE. Left out are
changes that are none by the language: the operands of a commutative operation exchanged.
"""
import re

from .engine import Mutant, unified_diff

OPERATORS = {
    "arithmetic": {"+": "-*", "-": "+", "*": "/+", "/": "*", "+=": ["-=", "="], "/=": ["-="]},
    "comparison": {"<": ["<=", "!=", ">", ">="], "<=": ["<"], ">": [">=", "<", "=="], ">=": [">", "<", "=="],
                   "==": ["!=", ">=", "<="]},
    "bitwise": {"|": "&^+", "&": "|^", "<<": [">>"]},
}
ROUNDED = re.compile(r"__f(add|mul|div|sqrt)_rn\b")
SIBLING = {"add": "sub", "mul": "add", "div": "mul"}  # another operation of two operands
ALIKE = [
    ["parameter", "first_moment", "second_moment", "max_second_moment"],
    ["parameters", "first_moment", "second_moment", "max_second_moment"],
    ["new_parameters", "new_first_moment", "new_second_moment", "new_max_second_moment"],
    ["reciprocal_scale", "clip", "direction"],
    ["beta1", "one_minus_beta1", "beta2", "one_minus_beta2"],
    ["inverse_bias1", "inverse_bias2", "epsilon", "learning_rate", "decay"],
    ["larger", "smaller"], ["a", "b"], ["scale", "sumsq"], ["scales", "sums"], ["lane", "other", "offset"],
    ["q", "q2"], ["g", "x", "raw"], ["old", "fresh"], ["kGood", "kBad"], ["blockIdx", "threadIdx"],
    ["gridDim", "blockDim"], ["triples", "summary"], ["F16", "BF16"], ["value", "raw"], ["true", "false"],
    ["kFirst", "kAmsgrad", "kClipped"], ["kThreadsPerBlock", "kTripleWords"], ["magnitude_bits", "value"],
]
NARROWER = {"unsigned int": ["unsigned short", "unsigned char"], "unsigned short": ["unsigned char", "short"],
            "float": ["double"], "unsigned long long": ["unsigned int"]}
NUMBER = re.compile(r"(?<![\w.])(0[xX][0-9a-fA-F]+U?|\d+\.\d+F|\d+U?)(?![\w.])")
STATEMENT = re.compile(r"^\s+(?!\s|//|return\b|using\b|\})[^#]*;\s*(//.*)?$")
CALL = re.compile(r"\b(merge|__fdiv_rn|amsgrad_maximum|load_triple|element_triple)\(")
INLINE_ASM = {"max.NaN.f32": ["max.f32", "min.NaN.f32"], '"f"(a), "f"(b)': ['"f"(a), "f"(a)', '"f"(b), "f"(b)'],
              "cvt.f32.f16": ["cvt.f32.bf16"]}


def code_of(line):
    """The line up to its comment."""
    return line.split("//")[0].rstrip()


def number_changes(token):
    if token.endswith("F") and not token.lower().startswith("0x"):
        return {"0.0F": ["-0.0F", "1.0F", "0x1p-149F"], "1.0F": ["0.0F", "2.0F", "0x1.000002p0F"]}.get(token, [])
    suffix = "U" if token.endswith("U") else ""
    value = int(token.rstrip("U"), 0)
    others = dict.fromkeys([value + 1, value - 1, 0, 2 * value])
    show = hex if token.lower().startswith("0x") else str
    return [show(v) + suffix for v in others if v not in (value, -1)]


def operator_edits(code):
    for name, table in OPERATORS.items():
        for old, new in table.items():
            for match in re.finditer(rf"(?<= ){re.escape(old)}(?= )", code):
                for replacement in new:
                    yield name, old, match.start(), match.end(), replacement


def number_edits(code):
    for match in NUMBER.finditer(code):
        for replacement in number_changes(match[0]):
            yield "constant", match[0], match.start(), match.end(), replacement


def name_edits(code):
    """Each name by the next one of its row and by the one before it."""
    for row in ALIKE:
        for name in row:
            for match in re.finditer(rf"\b{name}\b(?!\()", code):
                at = row.index(name)
                for replacement in dict.fromkeys([row[(at + 1) % len(row)], row[at - 1]]):
                    yield "wrong-variable", name, match.start(), match.end(), replacement


def rounding_edits(code):
    for match in ROUNDED.finditer(code):
        operation = match[1]
        for mode in ("rz", "ru", "rd"):
            yield "rounding", match[0], match.start(), match.end(), f"__f{operation}_{mode}"
        if operation in SIBLING:
            yield "intrinsic", match[0], match.start(), match.end(), f"__f{SIBLING[operation]}_rn"
        end = closing(code, match.end())
        arguments = split_arguments(code[match.end() + 1:end])
        if operation in ("add", "mul", "div") and len(arguments) == 2:
            sign = {"add": "+", "mul": "*", "div": "/"}[operation]
            yield "intrinsic", match[0], match.start(), end + 1, f"({arguments[0]} {sign} {arguments[1]})"
        if operation == "sqrt":
            yield "intrinsic", match[0], match.start(), match.end(), "sqrtf"
        if operation == "div":
            yield "intrinsic", match[0], match.start(), match.end(), "__fdividef"
            yield ("intrinsic", match[0], match.start(), end + 1,
                   f"__fmul_rn({arguments[0]}, __frcp_rn({arguments[1]}))")


def closing(code, opened):
    """Index of the bracket that closes the one at `opened`."""
    depth = 0
    for index in range(opened, len(code)):
        depth += {"(": 1, ")": -1}.get(code[index], 0)
        if depth == 0:
            return index
    return len(code)


def split_arguments(text):
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def order_edits(code):
    for match in CALL.finditer(code):
        end = closing(code, match.end() - 1)
        arguments = split_arguments(code[match.end():end])
        if len(arguments) == 2 and "ScaledPair a" not in arguments and "Triple a" not in arguments:
            yield "swapped-operands", match[0] + "...)", match.end(), end, f"{arguments[1]}, {arguments[0]}"
    match = re.search(r"(?<= )([\w.\[\]]+) ([-/]|>=|<) ([\w.]+)", code)
    if match and "for (" not in code:
        yield "swapped-operands", match[0], match.start(), match.end(), f"{match[3]} {match[2]} {match[1]}"


def condition_edits(code):
    match = re.search(r"\bif (constexpr )?\(", code)
    if match:
        end = closing(code, match.end() - 1)
        condition = code[match.end():end]
        for replacement in ("true", "false", f"!({condition})"):
            yield "condition", condition, match.end(), end, replacement
    match = re.search(r"(?:= |\{|, |return )([\w. =]+) \? ([^:]+) : ([^,;}]+)", code)
    if match:
        for replacement in (match[2], match[3], f"{match[1]} ? {match[3]} : {match[2]}"):
            yield "choice", match[0], match.start(1), match.end(3), replacement


def type_edits(code):
    for kind, others in NARROWER.items():
        for match in re.finditer(rf"\b{kind}\b(?!\*| [\w]+\()", code):
            for replacement in others:
                yield "type", kind, match.start(), match.end(), replacement


def asm_edits(code):
    for old, others in INLINE_ASM.items():
        if old in code:
            for replacement in others:
                yield "inline-assembly", old, code.index(old), code.index(old) + len(old), replacement


EDITS = (operator_edits, number_edits, name_edits, rounding_edits, order_edits, condition_edits, type_edits, asm_edits)


def line_changes(code, macro):
    """(operator, description, changed line) of one line. Lines of the macros' use are changed in their flags only."""
    for edits in ((name_edits,) if macro else EDITS):
        for operator, old, start, end, replacement in edits(code):
            yield operator, f"{old} becomes {replacement}", code[:start] + replacement + code[end:]


def statement_changes(lines, index):
    """(operator, description, number of lines replaced, new lines) of a statement: removed, exchanged, returned before."""
    line = lines[index]
    code = code_of(line)
    if not STATEMENT.match(line) or code.lstrip().startswith("unsigned") and "=" not in code:
        return
    if not re.match(r"\s+(const )?[\w:]+[*]* \w+( = |;)", code) or "=" not in code:
        barrier = "barrier" if "__syncthreads" in code else "statement"
        yield f"removed-{barrier}", f"{code.strip()} removed", 1, []
    following = lines[index + 1] if index + 1 < len(lines) else ""
    if STATEMENT.match(following):
        yield "swapped-lines", f"{code.strip()} after the next line", 2, [following, line]
    elif re.match(r"\s+\}\s*$", following) and "__syncthreads" not in code:
        yield "moved-statement", f"{code.strip()} after the block", 2, [following, line]
    if "__syncthreads" in code and index > 0 and re.match(r"\s+\}\s*$", lines[index - 1]):
        yield "moved-barrier", "the barrier into the block", -1, [line, lines[index - 1]]


def return_changes(lines, index, function):
    """An early return before a statement, of what a function of its type could return there."""
    value = {"reduce_block": "own", "merge": "a", "scan": "", "store_triple": "", "update": "", "adamw": "old",
             "gradient_statistics_merge": ""}.get(function)
    if value is None or not STATEMENT.match(lines[index]) or re.search(r"__shared__|^\s{4}[\w:]+[ *]+\w+;", lines[index]):
        return
    indent = re.match(r"\s*", lines[index])[0]
    text = f"return {value};".replace(" ;", ";")
    yield "early-return", f"{text} before {lines[index].strip()}", 1, [f"{indent}{text}\n", lines[index]]


def function_of(lines):
    """For each line, the name of the function that it stands in the body of, or None."""
    names, name, depth = [], None, 0
    for line in lines:
        code = code_of(line)
        head = re.search(r"(\w+)\((?:const )?[\w:]+[*&]? \w+.*\{$", code)
        if head and re.match(r"(__device__|extern)", code):
            name, depth = head[1], 0
            names.append(None)
        else:
            names.append(name)
        if name:
            depth += code.count("{") - code.count("}")
            if depth <= 0:
                name = None
    return names


def changes_of_line(lines, index, function):
    line = lines[index]
    code = code_of(line)
    macro = re.match(r"\s+GRADGUARD_ADAMW\(dtype|GRADGUARD_ADAMW_OF_DTYPE\(\w", code)
    tail = line[len(code):]
    for operator, description, changed in line_changes(code, macro):
        yield operator, description, 1, [changed + tail]
    if function:
        yield from statement_changes(lines, index)
        yield from return_changes(lines, index, function)


def is_mutated(code, function):
    """Executed code, the constants and the lists of entries. Pragmas say how fast, not what."""
    if code.startswith("#"):
        return False
    return bool(function or re.match(r"inline constexpr unsigned|__device__ inline float widen\(\w+ \w+\) \{ return",
                                     code) or re.match(r"__device__ inline Triple merge", code) or
                re.match(r"\s+GRADGUARD_ADAMW\(dtype|GRADGUARD_ADAMW_OF_DTYPE\(\w", code))


def field_changes(lines, index):
    """Neighbouring fields of a struct of the same type exchanged."""
    field = re.compile(r"^    (unsigned long long|unsigned int|float) \w+;")
    if index + 1 < len(lines) and field.match(lines[index]) and field.match(lines[index + 1]):
        if field.match(lines[index])[1] == field.match(lines[index + 1])[1]:
            yield "swapped-lines", f"{code_of(lines[index]).strip()} after the next line", 2, [lines[index + 1],
                                                                                               lines[index]]


def mutants_of(file, text):
    """All mutants of one file, in the order of its lines; no text twice."""
    lines = text.splitlines(keepends=True)
    functions = function_of(lines)
    seen, found, counts = {text}, [], {}
    for index, line in enumerate(lines):
        changes = []
        if is_mutated(code_of(line), functions[index]):
            changes = list(changes_of_line(lines, index, functions[index]))
        changes += field_changes(lines, index)
        for operator, description, replaced, new in changes:
            first = index if replaced > 0 else index + replaced
            last = index + max(replaced, 1)
            mutated = "".join([*lines[:first], *new, *lines[last:]])
            if mutated in seen:
                continue
            seen.add(mutated)
            place = f"{file.rsplit('/', 1)[1]}:{first + 1}/{operator}"
            counts[place] = counts.get(place, 0) + 1
            found.append(Mutant(f"cuda/{place}/{counts[place]}", "cuda", file, first + 1, operator, description,
                                unified_diff(file, text, mutated), "".join(lines[first:last]), "".join(new), mutated))
    return found
