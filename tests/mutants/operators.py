"""Finds places in include/sluice where an operator, a constant, a condition or an assignment can be changed. README.md says which."""
import fnmatch
import re

from cpp_tokens import LOWEST, STATEMENTS, find_scopes, is_binary, match_brackets, operands, tokens_of, without_other_code

NOT_HOST = re.compile(r"detail/cuda/|\.cuh$|(?<!report/detail)/checked/|cupti|nccl|mpi|nvtx|cuda\.hpp$|stress\.hpp$")
BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
KINDS = ("compare", "arithmetic", "index", "logic", "condition", "assignment", "constant", "exchange", "minmax")


class Change:
    """text[begin:end] of `file` is `part`, and becomes `other`."""

    def __init__(self, file, kind, begin, end, text, other):
        self.file, self.kind, self.begin, self.end, self.other = file, kind, begin, end, other
        self.part = text[begin:end]
        self.line = text.count("\n", 0, begin) + 1
        self.last_line = text.count("\n", 0, end) + 1
        start, stop = text.rfind("\n", 0, begin) + 1, text.find("\n", end)
        self.anchor = " ".join(f"{text[start:begin]}«{self.part}»{text[end:stop]}".split())
        self.at_compile_time = False
        self.children = []

    def where(self):
        return f"{self.file}:{self.line}: [{self.kind}] {self.anchor}  ->  {' '.join(self.other.split()) or 'nothing'}"


def picks_one(left, right, behind):
    """Whether what follows a comparison takes the larger or the smaller of its two sides, or their distance: the same where they are equal."""
    a, b, behind = (" ".join(part.split()) for part in (left, right, behind))
    picked = (f"? {a} : {b}", f"? {b} : {a}", f"? {a} - {b} : {b} - {a}", f"? {b} - {a} : {a} - {b}", f"? {a} - {b} : 0",
              f") {a} = {b};", f") {b} = {a};")
    return any(behind.startswith(one) and not re.match(r"\s*[.\w(\[*/%-]", behind[len(one):] if one[-1] != ";" else "") for one in picked)


class Finder:
    """The changes of one header. A method looks at token `i` for one kind of them."""

    def __init__(self, file, text):
        self.file, self.text, self.found = file, text, []
        self.tokens = tokens_of(without_other_code(text))

    def add(self, kind, first, last, other):
        change = Change(self.file, kind, self.tokens[first].begin, self.tokens[last].end, self.text, re.sub(r"//[^\n]*", " ", other))
        change.at_compile_time = self.tokens[first].constant
        self.found.append(change)

    def said(self, first, last):
        return self.text[self.tokens[first].begin:self.tokens[last].end]

    def operator(self, i):
        sign = self.tokens[i].text
        first, last = operands(self.tokens, i)
        whole = self.said(first, last)
        if first == i or last == i or len(whole) > 400 or '"' in whole or "to_string" in whole:
            return
        left, right = self.said(first, i - 1), self.said(i + 1, last)
        if sign in BOUNDARY and sign[0] in "<>" and picks_one(left, right, self.text[self.tokens[last].end:][:300]):
            return
        if sign in BOUNDARY:
            self.add("compare", first, last, f"{left} {BOUNDARY[sign]} {right}")
        elif sign in ("&&", "||"):
            self.add("logic", first, last, f"{left} {'||' if sign == '&&' else '&&'} {right}")
        elif right == "1":
            self.add("arithmetic", first, last, left)
        else:
            self.add("arithmetic", first, last, f"{left} {'-' if sign == '+' else '+'} {right}")

    def index(self, i):
        close = self.tokens[i].match
        if self.tokens[i + 1].kind != "number" and "[" != self.tokens[i + 1].text:
            self.add("index", i + 1, close - 1, f"{self.said(i + 1, close - 1)} + 1")

    def branch(self, i):
        begin, end = i + 2, self.tokens[i + 1].match - 1
        inside = [self.tokens[j].text for j in range(begin, end + 1)]
        if ";" not in inside and "=" not in inside and begin <= end:
            self.add("condition", begin, end, f"!({self.said(begin, end)})")

    def choice(self, i):
        first, _ = operands(self.tokens, i)
        if first < i and len(self.said(first, i - 1)) < 300:
            self.add("condition", first, i - 1, f"!({self.said(first, i - 1)})")

    def number(self, i):
        text = self.tokens[i].text
        if self.tokens[i - 1].text in "+-" and text == "1" and is_binary(self.tokens, i - 1):
            return
        real = re.search(r"\.|[eE][-+]?\d|[pP]", text) and not text.lower().startswith("0x") or "p" in text
        zero = re.fullmatch(r"0[.0]*[fFuUlLzZ]*", text)
        self.add("constant", i, i, f"{text} + 1" if zero or not real else f"{text} * 10")

    def function(self, i):
        tokens, name = self.tokens, self.tokens[i].text
        after = tokens[i + 1].match + 1 if tokens[i + 1].angle else i + 1
        if tokens[after].text != "(":
            return
        close = tokens[after].match
        if name == "exchange":
            comma = after + 1
            while tokens[comma].text != ",":
                comma = tokens[comma].match + 1 if tokens[comma].match > comma else comma + 1
            target = self.said(after + 1, comma - 1)
            self.add("exchange", i - 2, close, f"std::decay_t<decltype({target})>(std::move({target}))")
        else:
            self.add("minmax", i - 2, close, f"std::{'max' if name == 'min' else 'min'}{self.said(i + 1, close)}")

    def statement(self, i):
        tokens, end = self.tokens, i
        while end < len(tokens) and tokens[end].text not in ("=", "+=", "-=", "|=", "&=", "*=", ";", "{", "}", ")"):
            end = max(tokens[end].match, end) + 1
        stop = end
        while stop < len(tokens) and tokens[stop].text not in (";", ")", "}"):
            stop = max(tokens[stop].match, stop) + 1
        target = self.said(i, end - 1) if end > i else ""
        plain = re.fullmatch(r"\*?(?:\w|\.|->|::|\[[^\]]*\]|\(\))+", target) is not None
        if stop == len(tokens) or tokens[stop].text != ";":
            return
        if end < stop and tokens[end].spaced and plain:
            self.add("assignment", i, stop, "")
        elif end == stop and (re.fullmatch(r"(?:\+\+|--)[\w.>-]+|[\w.>-]+(?:\.|->)(?:reset|clear)\(\)", target)):
            self.add("assignment", i, stop, "")

    def look(self):
        tokens = self.tokens
        match_brackets(tokens)
        begins = find_scopes(tokens)
        for i, token in enumerate(tokens):
            if token.skipped:
                continue
            if is_binary(tokens, i) and token.text in (*BOUNDARY, "&&", "||", "+", "-"):
                self.operator(i)
            elif token.text == "[" and token.match > i + 1 and (tokens[i - 1].kind == "word" or tokens[i - 1].text in ")]"):
                self.index(i)
            elif token.text in ("if", "while") and tokens[i + 1].text == "(":
                self.branch(i)
            elif token.text == "?" and token.spaced:
                self.choice(i)
            elif token.kind == "number":
                self.number(i)
            elif token.text in ("exchange", "min", "max") and self.said(i - 2, i - 1) == "std::" and not tokens[i - 2].skipped:
                self.function(i)
            if i in begins and (token.kind == "word" and token.text not in STATEMENTS or token.text in ("++", "--", "*")):
                self.statement(i)


def changes_of(file, text):
    """All changes of one header, in the order of the text, without those that another one implies."""
    finder = Finder(file, text)
    if finder.tokens:
        finder.look()
    kept, around = [], []
    for change in sorted(finder.found, key=lambda change: (change.begin, -change.end)):
        while around and around[-1].end <= change.begin:
            around.pop()
        same = kept and (kept[-1].begin, kept[-1].end) == (change.begin, change.end)
        if around and change.end > around[-1].end or same and change.other.startswith(kept[-1].part.replace(" == ", " != ")):
            continue
        around.append(change)
        kept.append(change)
    return kept


def all_changes(include):
    found = []
    for path in sorted(include.rglob("*.[hi]*")):
        name = str(path.relative_to(include))
        if not NOT_HOST.search(name):
            found += changes_of(name, path.read_text())
    return found


def mutated(text, numbered):
    """The text with each of the (number, change), in the text's order, behind its switch. Its lines stay where they are."""
    def render(begin, end, inner):
        out, at = [], begin
        while inner:
            number, change = inner.pop(0)
            nested = []
            while inner and inner[0][1].begin < change.end:
                nested.append(inner.pop(0))
            out.append(text[at:change.begin])
            part = render(change.begin, change.end, nested)
            keep = f"::sluice_mutants::keep({number})"
            other = " ".join(change.other.split())
            if change.kind == "assignment":
                out.append(f"{{ if ({keep}) {{ {part} }} }}")
            elif change.kind == "condition":
                out.append(f"({keep} ? static_cast<bool>({part}) : {other})")
            else:
                out.append(f"({keep} ? ({part}) : ({other}))")
            at = change.end
        return "".join(out) + text[at:end]

    return render(0, len(text), list(numbered))


class Reason:
    """A change that no test can notice, or need not: its header, kind and text, or a pattern of them, and why."""

    def __init__(self, source, glob, kind, text, why):
        self.source, self.glob, self.kind, self.why, self.used = source, glob, kind, why, 0
        self.pattern = re.compile(text[1:-1]) if text.startswith("/") and text.endswith("/") else None
        self.text = text

    def holds(self, change):
        if not fnmatch.fnmatch(change.file, self.glob) or self.kind not in ("any", change.kind):
            return False
        return self.pattern.search(change.anchor) is not None if self.pattern else self.text == change.anchor


def read_reasons(path, problems):
    reasons, glob, text = [], "", None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("== "):
            glob = line[3:].strip()
        elif line[0].isspace() and text:
            word, _, why = line.strip().partition(" ")
            kind, _, anchor = text.partition(" ")
            if word != "why" or kind not in (*KINDS, "any"):
                problems.append(f"{path.name}:{number}: expected a kind and a text, then 'why' and the reason")
            reasons.append(Reason(f"{path.name}:{number}", glob, kind, anchor, why))
            text = None
        else:
            text = line.strip()
    return reasons
