#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for numeric tolerances: a test compares exactly, or with a bound that is computed for its inputs.

  tools/check_tolerances.py [ROOT]    prints one line for each tolerance; exit 1 when there is one

Found are the near-comparisons of test libraries, a difference's magnitude held against a number, and a number given the
name of a tolerance. What is computed (an interval, an error bound, a derived count of roundings) passes.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("tests", "property_tests", "oracle_py", "harness", "bench", "examples", "python", "tools", "reference", "kernels")
SUFFIXES = {".h", ".cpp", ".inl", ".cuh", ".cu", ".py"}
# The rules' own names, and texts that plant what they look for.
EXEMPT = {"tools/check_tolerances.py", "tests/tools/check_tolerances_test.py"}

NAMES = {
    r"\b(?:EXPECT|ASSERT)_NEAR\b": "a near-comparison of GoogleTest",
    r"\b(?:EXPECT|ASSERT)_(?:FLOAT|DOUBLE)_EQ\b": "GoogleTest's 4 ulp",
    r"\b(?:Float|Double)(?:Eq|Near)\s*\(": "a near-comparison of GoogleMock",
    r"\bis_?close\s*\(|\ball_?close\s*\(": "a near-comparison",
    r"\bpytest\s*\.\s*approx\b|\bapprox\s*\(": "pytest's approx",
    r"\bassert_?[Aa]lmost_?\w*|\bassert_array_max_ulp\b": "a near-comparison",
    r"\b(?:rtol|atol|rel_tol|abs_tol)\s*=": "a tolerance given to a comparison",
    r"\bk?\w*[Tt]olerance\w*\s*(?:=|\{)\s*-?(?:[0-9.]|2\s*\*\*)": "a number that is named a tolerance",
}
NUMBER = re.compile(r"[-+]?(?:0x[0-9a-fA-F.]+p[-+]?\d+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)")
MAGNITUDE = re.compile(r"\b(?:std::)?f?abs\s*\(")
ASSERTION = re.compile(r"\b(?:EXPECT|ASSERT)_(?:LE|LT)\s*\($|\bassert(?:LessEqual|Less)\s*\($")


def without_comments(text, python):
    """The text with comments and string literals blanked; offsets and lines stay."""
    strings = r'"""(?:.|\n)*?"""|\'\'\'(?:.|\n)*?\'\'\'|' if python else r'R"(\w*)\((?:.|\n)*?\)\1"|'
    comments = r"#[^\n]*" if python else r"//[^\n]*|/\*(?:.|\n)*?\*/"
    quoted = r'"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\''
    return re.sub(strings + comments + "|" + quoted, lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def closing(text, start):
    """The place of the bracket that closes the one before `start`, or None."""
    depth = 1
    for at in range(start, len(text)):
        depth += text[at] in "([{"
        depth -= text[at] in ")]}"
        if depth == 0:
            return at
    return None


def is_difference(argument):
    """Whether an expression subtracts (a sign or an exponent does not)."""
    bare = NUMBER.sub("0", argument)
    return re.search(r"[\w)\]]\s*-\s*[\w(]", bare) is not None


def starts_with_number(text):
    match = NUMBER.match(text.lstrip())
    return match is not None and match.group().lstrip("+-").strip("0.") != ""


def magnitudes(text):
    """Places where the magnitude of a difference is held against a number."""
    for match in MAGNITUDE.finditer(text):
        end = closing(text, match.end())
        if end is None or not is_difference(text[match.end():end]):
            continue
        after = text[end + 1:]
        compared = re.match(r"\s*<=?(?!<)\s*", after)
        listed = re.match(r"\s*,\s*", after) if ASSERTION.search(text[:match.start()].rstrip()) else None
        for bound in (compared, listed):
            if bound and starts_with_number(after[bound.end():]):
                yield match.start()


def check_text(path, text):
    """Lines for the tolerances of one file."""
    bare = without_comments(text, path.endswith(".py"))
    found = [(match.start(), why) for pattern, why in NAMES.items() for match in re.finditer(pattern, bare)]
    found += [(at, "a difference held against a number") for at in magnitudes(bare)]
    lines = text.splitlines()
    problems = []
    for at, why in sorted(found):
        number = bare.count("\n", 0, at) + 1
        problems.append(f"{path}:{number}: {why}: {lines[number - 1].strip()}")
    return problems


def check(root):
    """(violations, number of files)."""
    problems, count = [], 0
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.suffix not in SUFFIXES or not file.is_file() or path in EXEMPT:
                continue
            count += 1
            problems += check_text(path, file.read_text(errors="replace"))
    if count == 0:
        problems.append(f"{root}: no source file found")
    return problems, count


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    problems, count = check(root.resolve())
    for line in problems:
        print(line)
    print(f"{count} files, {len(problems)} tolerance{'' if len(problems) == 1 else 's'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
