# SPDX-License-Identifier: Apache-2.0
"""C++ source as the host mutator needs it: tokens, matching brackets, which tokens are executed, and statements.

No compiler: it reads the project's own style (clang-format's: a binary operator has a space on both sides, a template's
angle bracket none) and gives up on nothing silently: what it does not recognise is left unmutated.
"""
import bisect
import dataclasses
import re

TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)
  | (?P<str>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<chr>'(?:\\.|[^'\\\n])+')
  | (?P<num>(?:0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)?|\d+\.?\d*(?:[eE][+-]?\d+)?)[a-zA-Z]*)
  | (?P<id>[A-Za-z_]\w*)
  | (?P<op><<=|>>=|<=>|\.\.\.|->|\+\+|--|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|%=|&=|\|=|\^=|<<|>>|::|.)
""", re.VERBOSE | re.DOTALL | re.MULTILINE)
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")": "(", "]": "[", "}": "{"}
TYPE_SCOPES = {"namespace", "class", "struct", "enum", "union"}
DECLARES = {"const", "constexpr", "auto", "static", "using", "struct", "enum", "typedef", "template"}


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str  # str, chr, num, id or op
    text: str
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class Statement:
    """Tokens [first, end). `condition`: the tokens between the parentheses of an if, for, while or switch."""
    kind: str  # if, for, while, switch, try, block, return, throw, jump, declaration or expression
    first: int
    end: int
    condition: tuple = ()
    in_case: bool = False
    only_body: bool = False  # the whole body of an if without else: removing it is the if with `false`


class Source:
    def __init__(self, text):
        self.text = text
        self.tokens = [Token(m.lastgroup, m.group(), m.start(), m.end())
                       for m in TOKEN.finditer(text) if m.lastgroup != "skip"]
        self.starts = [m.start() for m in re.finditer(r"^", text, re.MULTILINE)]
        self.partner = self._match()
        self.blocks = {}  # index of a `{` that opens executed statements -> its list of statements
        self.executed = [False] * len(self.tokens)
        self._scan()

    def line_of(self, position):
        """1 for the first line."""
        return bisect.bisect_right(self.starts, position)

    def line_text(self, line):
        return self.text.splitlines()[line - 1]

    def is_at(self, index, *texts):
        return 0 <= index < len(self.tokens) and self.tokens[index].text in texts

    def is_spaced(self, index):
        """White space on both sides: a binary operator, in this style."""
        token = self.tokens[index]
        return self.text[token.start - 1:token.start].isspace() and self.text[token.end:token.end + 1].isspace()

    def span(self, first, end):
        """Where tokens [first, end) lie in the text."""
        return self.tokens[first].start, self.tokens[end - 1].end

    def content(self, first, end):
        start, stop = self.span(first, end)
        return self.text[start:stop]

    def forward(self, index):
        """The next token at this depth, over a bracketed group."""
        return self.partner.get(index, index) + 1 if self.tokens[index].text in OPEN else index + 1

    def backward(self, index):
        """The token before at this depth, over a bracketed group: `index` is the first token after it."""
        return self.partner.get(index - 1, index - 1) if self.tokens[index - 1].text in CLOSE else index - 1

    def statements(self):
        return [statement for block in self.blocks.values() for statement in block]

    def _match(self):
        partner, stack = {}, []
        for i, token in enumerate(self.tokens):
            if token.kind == "op" and token.text in OPEN:
                stack.append(i)
            elif token.kind == "op" and token.text in CLOSE:
                opened = stack.pop()
                if OPEN[self.tokens[opened].text] != token.text:
                    raise ValueError(f"line {self.line_of(token.start)}: {token.text!r} closes nothing")
                partner[opened], partner[i] = i, opened
        if stack:
            raise ValueError(f"line {self.line_of(self.tokens[stack[-1]].start)}: a bracket stays open")
        return partner

    def _first(self, index):
        while index > 0 and not self.is_at(index - 1, ";", "{", "}"):
            index = self.backward(index)
        return index

    def _head(self, index):
        """First token of the declaration that the `{` at `index` belongs to: template parameters and labels skipped."""
        first = self._first(index)
        while self.is_at(first, "public", "private", "protected", "template"):
            if self.tokens[first].text == "template":
                first += 2
                while first < index and not self.is_at(first - 1, ">"):
                    first += 1
            else:
                first += 2
        return first

    def _scan(self):
        self._scan_scope(0, len(self.tokens))
        for i in sorted(i for i, t in enumerate(self.tokens) if t.text == "{" and self.executed[i]):
            if self._opens_block(i):
                self.blocks[i] = self._statements(i + 1, self.partner[i])

    def _scan_scope(self, first, end):
        """Marks what is executed in a scope of declarations: bodies of functions, initialisers of members."""
        i = first
        while i < end:
            if self.is_at(i, "{"):
                head = self._head(i)
                if self.tokens[head].text not in TYPE_SCOPES:
                    self._execute(i, self.partner[i] + 1)
                elif self.tokens[head].text != "enum":
                    self._scan_scope(i + 1, self.partner[i])
            elif self.is_at(i, "=") and self._initialises_member(i):
                stop = i
                while not self.is_at(stop, ";"):
                    stop = self.forward(stop)
                self._execute(i, stop)
                i = stop
            i = self.forward(i)

    def _execute(self, first, end):
        self.executed[first:end] = [True] * (end - first)

    def _initialises_member(self, index):
        first = self._first(index)
        return not (self.is_at(first, "using", "inline", "static", "friend", "template") or
                    any(self.is_at(i, "(", "operator") for i in range(first, index)))

    def _opens_block(self, index):
        """Statements follow, not the values of an initialiser."""
        before = self.tokens[index - 1]
        return before.text in {")", "]", "else", "do", "try", ";", "{", "}", ":", "const", "mutable", "noexcept"}

    def _statements(self, first, end):
        found, i = [], first
        while i < end:
            before = len(found)
            i = self._statement(i, found)
            if len(found) == before and i >= end:
                break
        return found

    def _statement(self, i, found, **more):
        """Appends the statement at token `i`, and those that it controls without braces; the index after it."""
        word = self.tokens[i].text
        if word in {"case", "default"}:
            while not self.is_at(i, ":"):
                i += 1
            return self._statement(i + 1, found, in_case=True)
        if word == "{":
            found.append(Statement("block", i, self.partner[i] + 1, **more))
            return self.partner[i] + 1
        if word in {"if", "for", "while", "switch"}:
            return self._controlled(i, found, word, more)
        if word in {"try", "catch", "do", "else"}:
            end = self.forward(i + 1) if self.is_at(i + 1, "(", "{") else i + 1
            while self.is_at(end, "{"):
                end = self.forward(end)
            found.append(Statement("try", i, end, **more))
            return end
        end = i
        while not self.is_at(end, ";"):
            end = self.forward(end)
        kind = {"return": "return", "throw": "throw", "break": "jump", "continue": "jump"}.get(word)
        kind = kind or ("declaration" if self._declares(i) else "expression")
        found.append(Statement(kind, i, end + 1, **more))
        return end + 1

    def _controlled(self, i, found, word, more):
        head = i + 2 if self.is_at(i + 1, "constexpr") else i + 1
        place = len(found)
        found.append(None)
        end = self._body(self.partner[head] + 1, found, word == "if")
        while word == "if" and self.is_at(end, "else"):
            end = self._body(end + 1, found, False)
        found[place] = Statement(word, i, end, condition=(head + 1, self.partner[head]), **more)
        return end

    def _body(self, i, found, alone):
        if self.is_at(i, "{"):
            inner = self.partner[i]
            return inner + 1
        probe = []
        end = self._statement(i, probe)
        alone = alone and not self.is_at(end, "else")
        found.extend(dataclasses.replace(s, only_body=alone or s.only_body, in_case=True) for s in probe)
        return end

    def _declares(self, i):
        if self.tokens[i].text in DECLARES or self.is_at(i, "["):
            return True
        if self.tokens[i].kind != "id":
            return False
        i += 1
        while self.is_at(i, "::"):
            i += 2
        if self.is_at(i, "<") and not self.is_spaced(i):
            depth = 0
            while True:
                depth += {"<": 1, ">": -1, ">>": -2}.get(self.tokens[i].text, 0)
                i += 1
                if depth == 0:
                    break
        while self.is_at(i, "&", "*") and not self.is_spaced(i):
            i += 1
        return self.tokens[i].kind == "id"
