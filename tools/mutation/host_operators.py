# SPDX-License-Identifier: Apache-2.0
"""The mutation operators for host code. Each takes a Source and yields Edits; none knows the file's name."""
import dataclasses
import re

COMPARISONS = {"<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",)}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "&": "|", "|": "&", ">>": "<<", "<<": ">>",
              "+=": "-=", "*=": "/=", ">>=": "<<=", "++": "--", "--": "++"}
LIMITS = {"max": "min", "min": "max", "infinity": "max", "lowest": "max"}
NARROWER = {"double": "float", "float": "double", "uint64_t": "uint32_t", "int64_t": "int32_t"}
NUMBER = re.compile(r"(?P<digits>0[xX][0-9a-fA-F]+|\d+)(?P<suffix>[uUlLzZ]*)$")
WORD = re.compile(r'"[A-Za-z0-9]*_?[A-Za-z0-9_]*"$')
NAMED = re.compile(r"k[A-Z]\w*$")
CHECKS = re.compile(r"(validate|check|require)")


@dataclasses.dataclass(frozen=True)
class Edit:
    operator: str
    description: str
    start: int      # text[start:end] is replaced; the line of `start` is the mutant's line
    end: int
    replacement: str


def edit_tokens(source, operator, description, first, end, replacement):
    return Edit(operator, description, *source.span(first, end), replacement)


def edit_token(source, operator, index, replacement):
    old = source.tokens[index].text
    return edit_tokens(source, operator, f"{old} becomes {replacement}", index, index + 1, replacement)


def swapped(source, operator, first, second):
    """The edit that exchanges two ranges of tokens, the first before the second."""
    (a, b), (c, d) = source.span(*first), source.span(*second)
    text = source.text
    shown = " and ".join(" ".join(text[s:e].split()) for s, e in ((a, b), (c, d)))
    return Edit(operator, f"{shown} change places", a, d, text[c:d] + text[b:c] + text[a:b])


def is_binary(source, i):
    return source.executed[i] and source.is_spaced(i)


def arguments(source, opened):
    """Ranges of the comma-separated arguments inside the bracket at `opened`."""
    found, first, i = [], opened + 1, opened + 1
    while i < source.partner[opened]:
        if source.is_at(i, ","):
            found.append((first, i))
            first = i + 1
        i = source.forward(i)
    return found + [(first, i)] if i > first else found


def is_message(source, index):
    """Part of a text for people: an expression at the same depth holds a string."""
    for step in (-1, 1):
        i = index
        while 0 <= i < len(source.tokens) and not source.is_at(i, ",", ";", "?", "=", "return"):
            if step < 0:
                i = source.backward(i)
            else:
                i = source.forward(i)
            token = source.tokens[i]
            if token.kind == "str":
                return True
            if token.text in ("([{" if step < 0 else ")]}"):
                break
    return False


def comparison(source):
    for i, token in enumerate(source.tokens):
        if token.text in COMPARISONS and is_binary(source, i):
            for other in COMPARISONS[token.text]:
                yield edit_token(source, "comparison", i, other)


def logical(source):
    for i, token in enumerate(source.tokens):
        if token.text in {"&&", "||"} and is_binary(source, i):
            yield edit_token(source, "logical", i, "||" if token.text == "&&" else "&&")
            yield from operand_removed(source, i)
        elif token.text == "!" and source.executed[i]:
            yield edit_tokens(source, "logical", "! removed", i, i + 1, "")


def operand_removed(source, i):
    """The operand after the operator goes; the first of a chain of operands too."""
    stops = {"||", "?", ":", ",", ";", ")", "]", "}", "(", "[", "{", "=", "return"}
    if source.is_at(i, "&&"):
        stops.add("&&")  # which binds tighter than ||
    end = i + 1
    while source.tokens[end].text not in stops or source.tokens[end].text in "([{":
        end = source.forward(end)
    yield edit_tokens(source, "operand-removed", source.content(i, end) + " removed", i, end, "")
    first = i
    while source.tokens[first - 1].text not in stops or source.tokens[first - 1].text in ")]}":
        first = source.backward(first)
    if source.tokens[first - 1].text != source.tokens[i].text:
        yield edit_tokens(source, "operand-removed", source.content(first, i + 1) + " removed", first, i + 1, "")


def condition(source):
    """An if that is turned round, always or never taken."""
    for statement in source.statements():
        if statement.kind != "if":
            continue
        first, end = statement.condition
        for i in range(first, end):
            if source.is_at(i, ";"):
                first = i + 1
        tokens = source.tokens[first:end]
        if any(t.text == "=" for t in tokens):
            continue  # it declares
        old = " ".join(source.content(first, end).split())
        changes = [("true", "becomes true"), ("false", "becomes false")]
        if not any(t.text in {"==", "!=", "!"} for t in tokens) or any(t.text in {"&&", "||"} for t in tokens):
            changes.append((f"!({source.content(first, end)})", "is negated"))  # else an operator's mutant says the same
        for replacement, shown in changes:
            yield edit_tokens(source, "condition", f"the condition {old} {shown}", first, end, replacement)


def ternary(source):
    """The two results of a conditional expression change places."""
    for i, token in enumerate(source.tokens):
        if token.text != "?" or not is_binary(source, i):
            continue
        middle, depth = i + 1, 1
        while True:
            depth += {"?": 1, ":": -1}.get(source.tokens[middle].text, 0)
            if depth == 0:
                break
            middle = source.forward(middle)
        end = middle + 1
        while source.tokens[end].text not in {",", ";", ")", "]", "}"}:
            end = source.forward(end)
        yield swapped(source, "ternary", (i + 1, middle), (middle + 1, end))


def arithmetic(source):
    for i, token in enumerate(source.tokens):
        if not source.executed[i] or token.text not in ARITHMETIC:
            continue
        if token.text in {"++", "--"}:
            yield edit_token(source, "arithmetic", i, ARITHMETIC[token.text])
        elif source.is_spaced(i) and not is_message(source, i):
            yield edit_token(source, "arithmetic", i, ARITHMETIC[token.text])
        elif token.text == "-" and source.tokens[i + 1].kind == "num":
            yield edit_tokens(source, "arithmetic", "- removed", i, i + 1, "")


def constant(source):
    for i, token in enumerate(source.tokens):
        if not source.executed[i]:
            continue
        if token.kind == "num":
            for other in other_numbers(token.text):
                yield edit_token(source, "constant", i, other)
        elif token.text in {"true", "false"}:
            yield edit_token(source, "constant", i, "false" if token.text == "true" else "true")
        elif NAMED.match(token.text) and not source.is_at(i - 1, "::", "auto", ".") and source.tokens[i - 1].kind != "id":
            for other in (f"({token.text} + 1)", f"({token.text} - 1)"):
                yield edit_token(source, "constant", i, other)
        elif token.text in LIMITS and source.is_at(i - 2, ">") and source.is_at(i + 1, "("):
            yield edit_token(source, "constant", i, LIMITS[token.text])


def other_numbers(text):
    matched = NUMBER.match(text)
    if not matched:
        value, suffix = text.rstrip("fF"), text[len(text.rstrip("fF")):]
        return [f"1.0{suffix}"] if float(value) == 0 else [f"0.0{suffix}", f"2.0{suffix}"]
    value, suffix = int(matched["digits"], 0), matched["suffix"]
    return [f"{value + 1}{suffix}"] + ([f"{value - 1}{suffix}"] if value > 0 else [])


def limits_exchanged(source):
    for i, token in enumerate(source.tokens):
        if token.text in {"min", "max"} and source.executed[i] and source.is_at(i - 1, "::") and source.is_at(i - 2, "std"):
            yield edit_token(source, "min-max", i, "max" if token.text == "min" else "min")


def statement_removed(source):
    for statement in source.statements():
        if statement.kind in {"expression", "throw", "jump"} and not statement.only_body:
            text = " ".join(source.content(statement.first, statement.end).split())
            yield edit_tokens(source, "removed-statement", f"{text} removed", statement.first, statement.end, ";")


def return_default(source):
    for statement in source.statements():
        first, end = statement.first + 1, statement.end - 1
        if statement.kind != "return" or first == end or source.tokens[first].kind == "str":
            continue
        if source.content(first, end) not in {"{}", "nullptr", "false"}:
            text = " ".join(source.content(first, end).split())
            yield edit_tokens(source, "return-default", f"{text} becomes a default value", first, end, "{}")


def type_narrowed(source):
    for i, token in enumerate(source.tokens):
        other = NARROWER.get(token.text)
        if not other or not source.executed[i]:
            continue  # a member of another type would be another layout, for the tests too
        if source.is_at(i - 1, "<") and source.is_at(i + 1, ">") and source.is_at(i + 2, "::"):
            continue  # std::numeric_limits
        yield edit_token(source, "type", i, other)


def enumerator(source, enums):
    """Another value of the same enumeration. `enums`: its enumerators by its name."""
    for i, token in enumerate(source.tokens):
        values = enums.get(token.text)
        if not values or not source.executed[i] or not source.is_at(i + 1, "::") or source.is_at(i - 1, "case"):
            continue
        old = source.tokens[i + 2].text
        if old in values and len(values) > 1:
            yield edit_token(source, "enumerator", i + 2, values[(values.index(old) + 1) % len(values)])


def name(source):
    """A one-word string (an operand, an option, a kernel) becomes another word."""
    for i, token in enumerate(source.tokens):
        if token.kind == "str" and source.executed[i] and WORD.match(token.text) and not source.is_at(i - 1, "+"):
            yield edit_token(source, "name", i, '"other"')


def arguments_swapped(source):
    """Neighbours in a call or in an initialiser. Whether they have one type is for the compiler to say."""
    for i, token in enumerate(source.tokens):
        if not source.executed[i] or token.text not in {"(", "{"} or i in source.blocks:
            continue
        before = source.tokens[i - 1].text
        if token.text == "(" and (before in {"if", "for", "while", "switch", "catch", "]"}):
            continue
        parts = arguments(source, i)
        for first, second in zip(parts, parts[1:]):
            simple = all(source.tokens[a].text not in {".", "[", "{"} and
                         all(t.kind != "str" for t in source.tokens[a:b]) for a, b in (first, second))
            if simple and source.content(*first) != source.content(*second):
                yield swapped(source, "swapped-arguments", first, second)


def statements_swapped(source):
    """Two neighbours that are calls, or of which one assigns what the other names."""
    for block in source.blocks.values():
        tops = [s for s in block if not s.in_case]
        for a, b in zip(tops, tops[1:]):
            if a.end != b.first or a.kind != "expression":
                continue
            if b.kind == "expression" and may_depend(source, a, b):
                yield swapped(source, "swapped-statements", (a.first, a.end), (b.first, b.end))
            elif b.kind in {"if", "for"} and is_check(source, a):
                yield swapped(source, "moved-check", (a.first, a.end), (b.first, b.end))


def is_check(source, statement):
    return any(CHECKS.match(t.text) for t in source.tokens[statement.first:statement.end])


def may_depend(source, a, b):
    def assigned(s):
        for i in range(s.first, s.end):
            if source.is_at(i, "=", "+=", "-=", "*=", "/=", ">>="):
                return source.content(s.first, i)
        return None

    targets = assigned(a), assigned(b)
    if targets == (None, None):
        return source.content(a.first, a.end) != source.content(b.first, b.end)
    return any(target and target in source.content(other.first, other.end)
               for target, other in zip(targets, (b, a)))


def loop_bound(source):
    """`i < n` of a for loop becomes `i + 1 < n`: the last round is missing."""
    for statement in source.statements():
        if statement.kind != "for":
            continue
        for i in range(*statement.condition):
            if source.is_at(i, "<") and source.is_spaced(i):
                yield edit_tokens(source, "loop-bound", "the last round is left out", i, i + 1, "+ 1 <")


PLAIN = (comparison, logical, condition, ternary, arithmetic, constant, limits_exchanged, statement_removed,
         return_default, type_narrowed, name, arguments_swapped, statements_swapped, loop_bound)
