"""Finds places in include/sluice where an operator, a constant, a condition or an assignment can be changed. README.md says which."""
import fnmatch
import re

TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>R\"\((?:.*?)\)\"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+')|"
    r"(?P<number>(?:0[xX][\da-fA-F']+(?:\.[\da-fA-F]*)?(?:[pP][-+]?\d+)?|\d[\d']*(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)\w*)|(?P<word>[A-Za-z_]\w*)|"
    r"(?P<sign><=>|<<=|->\*|\.\.\.|::|->|\+\+|--|&&|\|\||<=|==|!=|<<|[-+*/%&|^]=|[^\s\w])", re.S)
# What only a GPU, a further library, or a checked program compiles. What a report makes of the checker's findings is the host's.
ELSEWHERE = re.compile(
    r"SLUICE_HAS_(?:CUDA|NCCL|CUPTI|NVTX|MPI|KERNELS|CHECKER)|__CUDA|CUDART|CUPTI_API|SLUICE_CHECKED|_WIN32|CUDA_API")
NOT_HOST = re.compile(r"detail/cuda/|\.cuh$|(?<!report/detail)/checked/|cupti|nccl|mpi|nvtx|cuda\.hpp$|stress\.hpp$")
LOWEST = {"=": 1, "+=": 1, "-=": 1, "*=": 1, "/=": 1, "%=": 1, "|=": 1, "&=": 1, "^=": 1, "<<=": 1, ">>=": 1, "?": 2, ":": 2,
          "||": 3, "&&": 4, "|": 5, "^": 6, "&": 7, "==": 8, "!=": 8, "<": 9, ">": 9, "<=": 9, ">=": 9, "<=>": 10,
          "<<": 11, ">>": 11, "+": 12, "-": 12, "*": 13, "/": 13, "%": 13}
BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
STATEMENTS = {"return", "throw", "case", "else", "do", "goto", "co_return", "delete", "new", "using", "if", "for", "while", "switch", "try", "catch",
              "struct", "class", "static", "const", "auto", "break", "continue", "typename", "template"}
UNEVALUATED = {"static_assert", "requires", "noexcept", "decltype", "sizeof", "alignas", "alignof", "typeid", "explicit"}
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


class Token:
    def __init__(self, kind, text, begin, spaced):
        self.kind, self.text, self.begin, self.end, self.spaced = kind, text, begin, begin + len(text), spaced
        self.match = -1       # of a bracket: the other one
        self.scope = ""       # of a brace: namespace, class, function, block, list, none
        self.skipped = False  # part of something that is left alone
        self.angle = False    # a bracket of a template
        self.constant = False # in a constexpr function


def without_other_code(text):
    """Blanks out comments, directives, and what the Host backend does not compile."""
    out, conditions, continued = [], [], False
    text = re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"",
                  lambda of: of[0] if of[0][0] == '"' else re.sub(r"[^\n]", " ", of[0]), text, flags=re.S)
    for line in text.splitlines(keepends=True):
        directive = re.match(r"\s*#\s*(\w+)(.*)", line)
        if directive and not continued:
            word, rest = directive[1], directive[2]
            if word in ("if", "ifdef", "ifndef"):
                asked = ELSEWHERE.search(rest) is not None
                negated = word == "ifndef" or rest.strip().startswith("!")
                conditions.append((asked, not asked or negated))
            elif word in ("else", "elif") and conditions:
                asked, compiled = conditions[-1]
                conditions[-1] = (asked, not compiled if asked else True)
            elif word == "endif" and conditions:
                conditions.pop()
        skipped = directive is not None or continued or not all(compiled for _, compiled in conditions)
        continued = (directive is not None or continued) and line.rstrip().endswith("\\")
        out.append(re.sub(r"[^\n]", " ", line) if skipped else line)
    return "".join(out)


def tokens_of(text):
    tokens, end = [], 0
    for found in TOKEN.finditer(text):
        if found.lastgroup == "comment":
            continue
        tokens.append(Token(found.lastgroup, found[0], found.start(), found.start() > end))
        end = found.end()
    return tokens


def is_binary(tokens, i):
    """Whether token `i` is an operator between two operands: the formatter puts blanks on both sides."""
    token = tokens[i]
    return (token.text in LOWEST and not token.angle and token.spaced and i + 1 < len(tokens) and tokens[i + 1].spaced
            and token.text not in "?:")


def match_brackets(tokens):
    open_ = []
    for i, token in enumerate(tokens):
        if token.kind != "sign":
            continue
        if token.text in "([{":
            open_.append(i)
        elif token.text in ")]}" and open_:
            token.match = open_.pop()
            tokens[token.match].match = i
    for i, token in enumerate(tokens):  # those of templates have no blank before them
        if token.text != "<" or token.angle or (token.spaced and tokens[i - 1].text != "template"):
            continue
        depth, j = 0, i
        while j < len(tokens) and j - i < 200 and tokens[j].text != ";":
            if tokens[j].text in ("(", "[", "{") and tokens[j].match > j:
                j = tokens[j].match
            elif tokens[j].text == "<" and (not tokens[j].spaced or tokens[j - 1].text == "template"):
                depth += 1
            elif tokens[j].text == ">" and not tokens[j].spaced:
                depth -= 1
                if depth == 0:
                    break
            j += 1
        if depth == 0 and j < len(tokens) and tokens[j].text == ">":
            token.angle = tokens[j].angle = True
            token.match, tokens[j].match = j, i


def scope_of(tokens, i, head, outer):
    """What the brace at `i` opens; `head` is where its statement begins, `outer` the scope around it."""
    token, before = tokens[i], tokens[i - 1]
    words, j = [], head
    while j < i:  # without what is in brackets
        words.append(tokens[j].text)
        j = tokens[j].match if tokens[j].match > j else j + 1
        if j < i and tokens[j].text in ")]}>" and tokens[j].match < j:
            words.append(tokens[j].text)
            j += 1
    if before.text == ")" and tokens[before.match - 1].text == "requires" or "concept" in words:
        return "none"
    if not token.spaced and before.text not in ("{", "}", ";", "(") or before.text in ("=", "return", ",", "("):
        return "list"
    if "namespace" in words or "extern" in words:
        return "namespace"
    if "enum" in words:
        return "none"
    if outer in ("namespace", "class"):
        kinds = [j for j, word in enumerate(words) if word in ("class", "struct", "union")]
        behind = ")" not in words or "alignas" in words or kinds and kinds[-1] > len(words) - 1 - words[::-1].index(")")
        return "class" if kinds and behind else "function"  # "requires(…) class" as well
    if before.text in (")", "]", "else", "do", "try", ";", "{", "}", "mutable", "noexcept", ":") or "->" in words:
        return "block"
    return "class" if {"class", "struct", "union"} & set(words) else "list" if outer != "none" else "none"


def find_scopes(tokens):
    """Marks which tokens are in functions, and which of them are left alone. Returns where statements begin."""
    stack, head, begins = [("namespace", -1, False, False)], 0, set()
    heads = []
    for i, token in enumerate(tokens):
        outer, _, constant, skipped = stack[-1]
        token.skipped = skipped or outer in ("namespace", "class", "none")
        token.constant = constant
        if token.text == "{" and token.match > i:
            scope = scope_of(tokens, i, head, outer)
            if scope == "list" and outer in ("namespace", "class"):
                scope = "none"
            words = {tokens[j].text for j in range(head, i)}
            if scope == "function":
                constant, skipped = "constexpr" in words, "consteval" in words or "__device__" in words or "__global__" in words
            token.scope = tokens[token.match].scope = scope
            stack.append((scope, i, constant, skipped or scope == "none"))
            heads.append(head)
            if scope != "list":
                head = i + 1
                begins.add(i + 1)
        elif token.text == "}" and len(stack) > 1:
            scope = stack.pop()[0]
            head = heads.pop()
            if scope != "list":
                head = i + 1
                begins.add(i + 1)
        elif token.text in "([" and token.match > i:
            stack.append((stack[-1][0] if outer not in ("namespace", "class") else "none", i, constant, skipped))
            heads.append(head)
        elif token.text in ")]" and len(stack) > 1:
            stack.pop()
            head = heads.pop()
            if token.text == ")" and tokens[token.match - 1].text in ("if", "for", "while"):
                begins.add(i + 1)
        elif token.text == ";":
            head = i + 1
            begins.add(i + 1)
        elif token.text in ("else", "do") or token.text == ":" and tokens[head].text in ("case", "default"):
            head = i + 1 if token.text == ":" else head
            begins.add(i + 1)
    for i, token in enumerate(tokens):
        to = -1
        if token.angle and token.text == "<":
            to = token.match
        elif token.text in UNEVALUATED and tokens[i + 1].text == "(":
            to = tokens[i + 1].match
        elif token.text == "constexpr" and tokens[i - 1].text == "if":
            to = tokens[i + 1].match
        elif token.text in ("constexpr", "throw", "case", "using", "typedef") or token.text in ("delete", "new") and tokens[i + 1].text == "[":
            to = i
            while to < len(tokens) and tokens[to].text not in (";", ":") and not (tokens[to].text == "{" and tokens[to].scope == "function"):
                to = tokens[to].match if tokens[to].match > to and tokens[to].scope != "function" else to + 1
            if to < len(tokens) and tokens[to].text == "{":
                to = i
        elif token.text == "[" and (tokens[i - 1].kind != "word" and tokens[i - 1].text not in ")]" or tokens[i - 1].text in STATEMENTS):
            to = token.match  # a lambda's captures
        elif token.text == "[" and tokens[i - 1].kind == "word" and (
                tokens[i - 2].kind == "word" and tokens[i - 2].text not in STATEMENTS or tokens[i - 2].angle or
                tokens[i - 2].text in "*&" and not tokens[i - 2].spaced):
            to = token.match  # an array
        for j in range(i, to + 1):
            tokens[j].skipped = True
    return begins


def operands(tokens, i):
    """The first and the last token of the expression that the operator `i` makes of its two operands."""
    mine = LOWEST[tokens[i].text]
    first = i
    while first > 0:
        token = tokens[first - 1]
        if token.text in ("(", "[", "{", ";", ",", "?", ":") or token.text in STATEMENTS or token.scope in ("block", "function", "class"):
            break
        if is_binary(tokens, first - 1) and LOWEST[token.text] < mine:
            break
        if token.text == ")" and tokens[token.match - 1].text in ("if", "for", "while", "switch"):
            break
        first = token.match if 0 <= token.match < first else first - 1
    last = i
    while last + 1 < len(tokens):
        token = tokens[last + 1]
        if token.text in (")", "]", "}", ";", ",", "?", ":") or token.text == "{" and token.scope in ("block", "function") and tokens[last].text not in ")]":
            break
        if is_binary(tokens, last + 1) and LOWEST[token.text] <= mine:
            break
        last = token.match if token.match > last + 1 else last + 1
    return first, last


def picks_one(left, right, behind):
    """Whether what follows a comparison takes the larger or the smaller of its two sides, or their distance: the same where they are equal."""
    a, b, behind = (" ".join(part.split()) for part in (left, right, behind))
    picked = (f"? {a} : {b}", f"? {b} : {a}", f"? {a} - {b} : {b} - {a}", f"? {b} - {a} : {a} - {b}", f"? {a} - {b} : 0",
              f") {a} = {b};", f") {b} = {a};")
    return any(behind.startswith(one) and not re.match(r"\s*[.\w(\[*/%-]", behind[len(one):] if one[-1] != ";" else "") for one in picked)


def changes_of(file, text):
    """All changes of one header, in the order of the text."""
    tokens = tokens_of(without_other_code(text))
    if not tokens:
        return []
    match_brackets(tokens)
    begins = find_scopes(tokens)
    found = []

    def add(kind, first, last, other):
        begin, end = tokens[first].begin, tokens[last].end
        change = Change(file, kind, begin, end, text, re.sub(r"//[^\n]*", " ", other))
        change.at_compile_time = tokens[first].constant
        found.append(change)

    def said(first, last):
        return text[tokens[first].begin:tokens[last].end]

    for i, token in enumerate(tokens):
        if token.skipped:
            continue
        if is_binary(tokens, i) and token.text in (*BOUNDARY, "&&", "||", "+", "-"):
            first, last = operands(tokens, i)
            whole = said(first, last)
            if first == i or last == i or len(whole) > 400 or '"' in whole or "to_string" in whole:
                continue
            left, right = said(first, i - 1), said(i + 1, last)
            if token.text in BOUNDARY and token.text[0] in "<>" and picks_one(left, right, text[tokens[last].end:][:300]):
                continue
            if token.text in BOUNDARY:
                add("compare", first, last, f"{left} {BOUNDARY[token.text]} {right}")
            elif token.text in ("&&", "||"):
                add("logic", first, last, f"{left} {'||' if token.text == '&&' else '&&'} {right}")
            elif right == "1":
                add("arithmetic", first, last, left)
            else:
                add("arithmetic", first, last, f"{left} {'-' if token.text == '+' else '+'} {right}")
        elif token.text == "[" and token.match > i + 1 and (tokens[i - 1].kind == "word" or tokens[i - 1].text in ")]"):
            inside = said(i + 1, token.match - 1)
            if tokens[i + 1].kind != "number" and "[" != tokens[i + 1].text:
                add("index", i + 1, token.match - 1, f"{inside} + 1")
        elif token.text in ("if", "while") and tokens[i + 1].text == "(":
            begin, end = i + 2, tokens[i + 1].match - 1
            inside = [tokens[j].text for j in range(begin, end + 1)]
            if ";" not in inside and "=" not in inside and begin <= end:
                add("condition", begin, end, f"!({said(begin, end)})")
        elif token.text == "?" and token.spaced:
            first, _ = operands(tokens, i)
            if first < i and len(said(first, i - 1)) < 300:
                add("condition", first, i - 1, f"!({said(first, i - 1)})")
        elif token.kind == "number":
            if tokens[i - 1].text in "+-" and token.text == "1" and is_binary(tokens, i - 1):
                continue
            real = re.search(r"\.|[eE][-+]?\d|[pP]", token.text) and not token.text.lower().startswith("0x") or "p" in token.text
            zero = re.fullmatch(r"0[.0]*[fFuUlLzZ]*", token.text)
            add("constant", i, i, f"{token.text} + 1" if zero or not real else f"{token.text} * 10")
        elif token.text in ("exchange", "min", "max") and said(i - 2, i - 1) == "std::" and not tokens[i - 2].skipped:
            after = tokens[i + 1].match + 1 if tokens[i + 1].angle else i + 1
            if tokens[after].text != "(":
                continue
            close = tokens[after].match
            if token.text == "exchange":
                comma = after + 1
                while tokens[comma].text != ",":
                    comma = tokens[comma].match + 1 if tokens[comma].match > comma else comma + 1
                target = said(after + 1, comma - 1)
                add("exchange", i - 2, close, f"std::decay_t<decltype({target})>(std::move({target}))")
            else:
                add("minmax", i - 2, close, f"std::{'max' if token.text == 'min' else 'min'}{said(i + 1, close)}")
        if i in begins and (token.kind == "word" and token.text not in STATEMENTS or token.text in ("++", "--", "*")):
            end = i
            while end < len(tokens) and tokens[end].text not in ("=", "+=", "-=", "|=", "&=", "*=", ";", "{", "}", ")"):
                end = max(tokens[end].match, end) + 1
            stop = end
            while stop < len(tokens) and tokens[stop].text not in (";", ")", "}"):
                stop = max(tokens[stop].match, stop) + 1
            target = said(i, end - 1) if end > i else ""
            plain = re.fullmatch(r"\*?(?:\w|\.|->|::|\[[^\]]*\]|\(\))+", target) is not None
            if stop == len(tokens) or tokens[stop].text != ";":
                continue
            if end < stop and tokens[end].spaced and plain:
                add("assignment", i, stop, "")
            elif end == stop and (re.fullmatch(r"(?:\+\+|--)[\w.>-]+|[\w.>-]+(?:\.|->)(?:reset|clear)\(\)", target)):
                add("assignment", i, stop, "")
    found.sort(key=lambda change: (change.begin, -change.end))
    kept, around = [], []
    for change in found:
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
