"""Reads the lists of places, and finds lines that should be in them. README.md says how they are written."""
import fnmatch
import re

# What orders or guards work, as it looks in the headers.
CALLS = re.compile(
    r"(?:\.|->|::|\b)(?:"
    r"sync|synchronize\w*|wait|wait_for|wait_for_external|wait_on|join_waits|wait_quietly|await\w*|drain|join\w*|record|record_anew|mark|mark_in_use|"
    r"release|release_to\w*|signal|signal_on|wait_semaphore|signal_semaphore|reach|raise|notify_one|notify_all|"
    r"throw_if_failed|throw_if_left_behind|throw_known_fault|throw_unreported|check_launches|check|check_driver|"
    r"clear_failures?|forget_faults|fail|invalidate|refuse|require_\w+|before_replay|after_replay|make_room|"
    r"enter|leave|to_origin|to_streams|release_read|release_batch|catch_up|start_at"
    r")\(")
OBJECTS = re.compile(
    r"\bstd::(?:lock_guard|unique_lock|scoped_lock)\b(?!<[\w:]+>&)|\bDeviceGuard<\w+(?:::\w+)?> \w+\(|\b(?:Source)?Guard \w+\(|"
    r"memory_order_(?:acquire|release|acq_rel|seq_cst)|\b__sync\w+\(|\b__threadfence\w*\(|cudaDeviceSynchronize")
# What makes one access to memory come after another one, so that the race checker must notice where it is gone. Below
# backend/ the checker looks at the calls themselves.
ORDERS = re.compile(
    r"(?:\.|->|\b)(?:wait|wait_for\w*|wait_quietly|await\w*|record|sync|join|join_waits|drain|release\w*|signal|mark|"
    r"mark_in_use|to_origin|to_streams)\((?!lock\b)")
# A function of such a name that is declared or defined there.
DECLARATION = re.compile(
    r"^\s*(?:\[\[\w+\]\] )?(?:(?:static|virtual|inline|constexpr|explicit|friend|const|typename|__device__)\s+)*"
    r"(?!return\b|throw\b|else\b|delete\b|new\b)[A-Za-z_][\w:<>,.&* ]*?[\w>&*]\s+(?:[A-Za-z_][\w]*(?:<[^()]*>)?::)*~?\w+\([^;]*$|"
    r"^\s*(?:(?:static|virtual|inline|constexpr|friend)\s+)*(?!return\b|throw\b|else\b)(?:[A-Za-z_][\w:<>]*[&*]?\s+)+"
    r"(?:\w+(?:<[^()]*>)?::)*\w+\((?:[^()]|\([^()]*\))*\)(?: const)?(?: noexcept)?(?: override)?(?: = 0)?(?:;| \{)")


class Place:
    """One place: text[begin:end] of `file` is what goes, or becomes `replaced`."""

    def __init__(self, source, file, anchor):
        self.source = source
        self.file = file
        self.anchor = anchor
        self.replaced = None
        self.why = ""
        self.klass = "host"
        self.no_memory = ""
        self.tests = []
        self.begin = self.end = 0
        self.part = ""

    def orders_memory(self):
        return (self.klass == "host" and not self.no_memory and not self.file.startswith("backend/")
                and ORDERS.search(self.part) is not None)

    def where(self):
        return f"{self.file}: {' '.join(self.anchor.split())}"


class Rule:
    """Lines of some files that are no place, or one for a GPU alone, and why."""

    def __init__(self, source, kind, glob, pattern, why):
        self.source = source
        self.kind = kind
        self.glob = glob
        self.pattern = re.compile(pattern)
        self.why = why
        self.used = 0


def squeezed(text):
    """The text with each run of blanks as one, and where each of its characters was."""
    out, where = [], []
    blank = True
    for index, character in enumerate(text):
        if character.isspace():
            if not blank:
                out.append(" ")
                where.append(index)
            blank = True
        else:
            out.append(character)
            where.append(index)
            blank = False
    where.append(len(text))
    return "".join(out), where


def locate(place, text):
    """Finds the place in `text`. Returns what is wrong, or ''."""
    before, open_, rest = place.anchor.partition("«")
    part, close, after = rest.partition("»")
    if not open_ or not close or not part.strip():
        return "the place needs «…» around what is removed"
    before, part, after = " ".join(before.split()), " ".join(part.split()), " ".join(after.split())
    whole = " ".join(piece for piece in (before, part, after) if piece)
    glued = [re.escape(piece) for piece in (before, part, after)]
    flat, where = squeezed(text)
    pattern = (glued[0] + r" ?" if before else "") + "(" + glued[1] + ")" + (r" ?" + glued[2] if after else "")
    found = list(re.finditer(pattern, flat))
    if len(found) != 1:
        return f"the text occurs {len(found)} times, and must occur once: {whole}"
    place.begin = where[found[0].start(1)]
    place.end = where[found[0].end(1) - 1] + 1
    place.part = text[place.begin:place.end]
    if place.replaced is None and not place.part.endswith((";", "}")) and \
            not place.part.startswith("std::memory_order_"):
        return f"what is removed is no statement, and nothing is said to stand in its place: {whole}"
    return ""


def read_list(path, places, rules, problems):
    glob, tests, why, klass, no_memory = "", [], "", "host", ""
    place = None
    sets = {}

    def named(words):
        return [test for name in words.split() for test in sets.get(name, [name])]

    for number, line in enumerate(path.read_text().splitlines(), 1):
        source = f"{path.name}:{number}"
        if not line.strip() or line.startswith("#"):
            continue
        indented = line[0].isspace()
        word, _, rest = line.strip().partition(" ")
        if line.startswith("== "):
            glob, tests, why, klass, no_memory = rest.strip(), [], "", "host", ""
        elif "«" in line and not (indented and word == "with"):
            place = Place(source, glob, line.strip())
            place.tests, place.why, place.klass, place.no_memory = list(tests), why, klass, no_memory
            places.append(place)
        elif indented and word in ("with", "why", "class", "tests", "and", "no_memory"):
            if word == "tests":
                place.tests = named(rest)
            elif word == "and":
                place.tests = named(rest) + place.tests
            else:
                setattr(place, {"with": "replaced", "class": "klass"}.get(word, word), rest)
        elif word == "set":
            name, _, members = rest.partition(" ")
            sets["@" + name] = named(members)
        elif word == "tests":
            tests = named(rest)
        elif word == "why":
            why = rest
        elif word == "class":
            klass = rest
        elif word == "no_memory":
            no_memory = rest
        elif word in ("exempt", "gpu"):
            pattern, separator, reason = rest.rpartition(" : ")
            if not separator:
                problems.append(f"{source}: expected '{word} REGEX : reason'")
                continue
            rules.append(Rule(source, word, glob, pattern, reason))
        else:
            problems.append(f"{source}: not understood: {line}")


def read(include, tests):
    """All places and rules, and what is wrong with the lists."""
    places, rules, problems = [], [], []
    for path in sorted((tests / "mutants").glob("*.places")):
        read_list(path, places, rules, problems)
    texts = {}
    for place in places:
        if place.file not in texts:
            file = include / place.file
            texts[place.file] = file.read_text() if file.is_file() else ""
        wrong = locate(place, texts[place.file])
        if not place.why:
            wrong = wrong or "no reason is given"
        if place.klass not in ("host", "race", "gpu"):
            wrong = wrong or f"there is no class {place.klass}; expected host, race or gpu"
        if place.klass != "gpu":
            if not place.tests:
                wrong = wrong or "no tests are named"
            for test in place.tests:
                if not (tests / (test + ".cpp")).is_file():
                    wrong = wrong or f"there is no tests/{test}.cpp"
        if wrong:
            problems.append(f"{place.source}: {place.file}: {wrong}")
    ordered = sorted((place for place in places if place.part), key=lambda of: (of.file, of.begin))
    for one, next_ in zip(ordered, ordered[1:]):
        if one.file == next_.file and next_.begin < one.end:
            problems.append(f"{next_.source}: overlaps the place of {one.source}")
    return places, rules, problems


def code_of(line):
    """The line without a comment and without what strings say."""
    line = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
    return "" if line.lstrip().startswith(("//", "*", "/*", "#")) else line.split("//")[0]


def unlisted(include, places, rules):
    """Lines that look like a place, and are in no list."""
    found = []
    spans = {}
    for place in places:
        spans.setdefault(place.file, []).append((place.begin, place.end))
    for path in sorted(include.rglob("*")):
        if path.is_dir():
            continue
        name = str(path.relative_to(include))
        of_file = [rule for rule in rules if fnmatch.fnmatch(name, rule.glob)]
        at = 0
        for number, line in enumerate(path.read_text().splitlines(keepends=True), 1):
            begin, at = at, at + len(line)
            code = code_of(line.rstrip("\n"))
            if not OBJECTS.search(code) and (not CALLS.search(code) or DECLARATION.match(code)):
                continue
            if any(b < at and e > begin for b, e in spans.get(name, [])):
                continue
            matching = [rule for rule in of_file if rule.pattern.search(code)]
            for rule in matching:
                rule.used += 1
            if not matching:
                found.append(f"include/sluice/{name}:{number}: {code.strip()}")
    return found
