"""The tokens of a header, with what its brackets and braces are, as far as the formatter's blanks tell."""
import re

TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>R\"\((?:.*?)\)\"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+')|"
    r"(?P<number>(?:0[xX][\da-fA-F']+(?:\.[\da-fA-F]*)?(?:[pP][-+]?\d+)?|\d[\d']*(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)\w*)|(?P<word>[A-Za-z_]\w*)|"
    r"(?P<sign><=>|<<=|->\*|\.\.\.|::|->|\+\+|--|&&|\|\||<=|==|!=|<<|[-+*/%&|^]=|[^\s\w])", re.S)
# What only a GPU, a further library, or a checked program compiles. What a report makes of the checker's findings is the host's.
ELSEWHERE = re.compile(
    r"SLUICE_HAS_(?:CUDA|NCCL|CUPTI|NVTX|MPI|KERNELS|CHECKER)|__CUDA|CUDART|CUPTI_API|SLUICE_CHECKED|_WIN32|CUDA_API")
LOWEST = {"=": 1, "+=": 1, "-=": 1, "*=": 1, "/=": 1, "%=": 1, "|=": 1, "&=": 1, "^=": 1, "<<=": 1, ">>=": 1, "?": 2, ":": 2,
          "||": 3, "&&": 4, "|": 5, "^": 6, "&": 7, "==": 8, "!=": 8, "<": 9, ">": 9, "<=": 9, ">=": 9, "<=>": 10,
          "<<": 11, ">>": 11, "+": 12, "-": 12, "*": 13, "/": 13, "%": 13}
STATEMENTS = {"return", "throw", "case", "else", "do", "goto", "co_return", "delete", "new", "using", "if", "for", "while", "switch", "try", "catch",
              "struct", "class", "static", "const", "auto", "break", "continue", "typename", "template"}
UNEVALUATED = {"static_assert", "requires", "noexcept", "decltype", "sizeof", "alignas", "alignof", "typeid", "explicit"}


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
