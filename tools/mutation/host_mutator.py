# SPDX-License-Identifier: Apache-2.0
"""Mutants of one host source file: what host_operators.py finds, with ids that other lines do not change."""
import hashlib
import re

from . import host_operators
from .engine import Mutant, unified_diff
from .host_source import Source

ENUM = re.compile(r"enum class (\w+)[^{]*\{([^}]*)\}")


def enumerations(text):
    """Enumerators by enumeration, of a header's text."""
    return {name: [v.strip() for v in values.split(",") if v.strip()] for name, values in ENUM.findall(text)}


def edits_of(source, enums):
    found = [edit for operator in host_operators.PLAIN for edit in operator(source)]
    found += host_operators.enumerator(source, enums)
    return sorted(found, key=lambda edit: (edit.start, edit.operator, edit.end, edit.replacement))


def first_of_unique(lines, first, last):
    """`first`, or the line before from which on lines up to `last` (all from 1) stand in the file only once: an argument
    about one loop must not be one about its twin."""
    def count(start):
        part = [line.strip() for line in lines[start - 1:last]]
        return sum([line.strip() for line in lines[i:i + len(part)]] == part for i in range(len(lines) - len(part) + 1))

    start = first
    while start > 1 and count(start) > 1:
        start -= 1
    return start


def mutants_of(file, text, enums):
    """All mutants of the file, in the order of its lines, no text twice. An id is the file, the digest of the line, the
    operator and a number among those of equal line and operator: it stays while the line does."""
    source = Source(text)
    numbers, seen, mutants = {}, {text}, []
    for edit in edits_of(source, enums):
        mutated = text[:edit.start] + edit.replacement + text[edit.end:]
        if mutated in seen:
            continue
        seen.add(mutated)
        line = source.line_of(edit.start)
        digest = hashlib.sha256(source.line_text(line).strip().encode()).hexdigest()[:8]
        stem = f"host/{file.rsplit('/', 1)[-1]}:{digest}/{edit.operator}"
        numbers[stem] = numbers.get(stem, 0) + 1
        last = source.line_of(edit.end)
        first = first_of_unique(text.splitlines(), line, last)
        after = line + edit.replacement.count("\n")
        mutants.append(Mutant(
            id=f"{stem}/{numbers[stem]}", level="host", file=file, line=line, operator=edit.operator,
            description=edit.description, diff=unified_diff(file, text, mutated),
            original="\n".join(text.splitlines()[first - 1:last]),
            mutated="\n".join(mutated.splitlines()[first - 1:after]), text=mutated))
    return mutants
