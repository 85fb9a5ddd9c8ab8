"""The pages' side: where each figure of the list stands, and what is there."""

import glob
import os
import re

NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")


class Missing(Exception):
    """What the list names is not on a page."""


def median(values):
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def number_of(text):
    return float(text.replace(",", ""))


def decimals_of(text):
    return len(text.partition(".")[2])


def plain(text):
    return text.replace("*", "").replace("`", "")


class Page:
    """A page's lines, and its tables by the heading above them."""

    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path)
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().split("\n")
        self.tables = {}  # (heading, number of the table below it): the line of its head, and those of its rows
        heading, count, at, is_code = "", 0, 0, False
        while at < len(self.lines):
            line = self.lines[at].strip()
            is_code ^= line.startswith("```")
            if line.startswith("#") and not is_code:
                heading, count = plain(line.lstrip("#").strip()), 0
            end = at + 1
            if line.startswith("|") and not is_code:
                while end < len(self.lines) and self.lines[end].strip().startswith("|"):
                    end += 1
                self.tables[heading, count] = (at, range(at + 2, end))
                count += 1
            at = end

    def cells(self, line):
        return [cell.strip() for cell in self.lines[line].strip()[1:].rstrip("|").split("|")]

    def text(self):
        return plain(" ".join(" ".join(self.lines).split()))

    def put(self, line, column, text):
        """Another text into a cell."""
        cells = self.lines[line].strip()[1:].rstrip("|").split("|")
        cells[column] = f" {text} "
        indent = self.lines[line][: len(self.lines[line]) - len(self.lines[line].lstrip())]
        self.lines[line] = f"{indent}|{'|'.join(cells)}|"

    def save(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.lines))


class Figure:
    """A figure of the list: where it stands, what is there, and its query. `place` is its line and column; none in a sentence."""

    def __init__(self, page, where, query, text, place=None):
        self.page, self.where, self.query, self.place = page, where, query, place
        pieces = text.split(";")
        if "piece" in query:
            pieces = pieces[query["piece"]:][:1]
        found = [NUMBER.findall(piece) for piece in pieces]
        which = query.get("number", 0)
        texts = [numbers[which] for numbers in found if which < len(numbers)]
        if not texts:
            raise Missing(f"{self.name()}: '{text}' has no such figure")
        self.value = median([number_of(text) for text in texts])
        self.decimals = max(map(decimals_of, texts))
        self.half = 0.5 * 10**-self.decimals  # a unit of the last digit

    @property
    def is_ratio(self):
        value = self.query["value"]
        return self.query.get("ratio", "over" in self.query or value == "ratio" or (isinstance(value, str) and " / " in value))

    def name(self):
        return f"{self.page.name}, {self.where}"


class Derived:
    """The ratio of two figures of a row, of which the page shows the times alone."""

    is_ratio, place, decimals = True, None, 3

    def __init__(self, over, under):
        self.over, self.under, self.query = over, under, over.query
        self.where = f"{over.where} / {under.query['head'] or 'the first'}"
        self.value = over.value / under.value
        self.half = self.value * (over.half / over.value + under.half / under.value)

    def name(self):
        return f"{self.over.page.name}, {self.where}"


def place_of(texts, name, number):
    """Where a name, in which `*` stands for anything, occurs for the (number + 1)th time; none where it does not."""
    like = re.compile(".*".join(map(re.escape, name.split("*"))))
    places = [at for at, text in enumerate(texts) if like.fullmatch(text)]
    return places[number] if number < len(places) else None


def numbered(pairs):
    """Each with how often its name has occurred before."""
    before = {}
    for name, query in pairs:
        before[name] = before.get(name, -1) + 1
        yield name, before[name], query


def figures_of_table(page, entry):
    heading, labels = entry["heading"], entry["labels"]
    if (heading, entry["nth"]) not in page.tables:
        raise Missing(f"{page.name}: there is no table {entry['nth'] + 1} below '{heading}'")
    head_line, row_lines = page.tables[heading, entry["nth"]]
    heads = [plain(cell) for cell in page.cells(head_line)]
    names = [plain(" | ".join(page.cells(line)[:labels])) for line in row_lines]

    def place(texts, name, number, what):
        found = place_of(texts, name, number)
        if found is None:
            raise Missing(f"{page.name}, {heading}: there is no {what} '{name}'{f', number {number + 1}' if number else ''}")
        return found

    figures, base = [], entry["common"].get("against")
    for label, row_number, of_row in numbered(entry["rows"]):
        line = row_lines[place(names, label, row_number, "row")]
        cells, times = page.cells(line), {}
        for head, column_number, of_column in numbered(entry["columns"]):
            column = place(heads, head, column_number, "column")
            if of_row is None or of_column is None or head in of_row.get("skip", ()):
                continue
            query = {**entry["common"], **of_row, **of_column, "head": head}
            again = [f" ({number + 1})" if number else "" for number in (row_number, column_number)]
            where = f"{heading}: {label}{again[0]}, {head}{again[1]}"
            figure = Figure(page, where, query, cells[column] if column < len(cells) else "", (line, column))
            figures.append(figure)
            if not figure.is_ratio:
                times.setdefault(head, figure)
        figures += [Derived(figure, times[base]) for head, figure in times.items() if base in times and head != base]
    return figures


def figures_of_sentence(page, entry):
    found = re.search(entry["pattern"], page.text())
    if not found:
        raise Missing(f"{page.name}: no sentence is like '{entry['pattern']}'")
    return [Figure(page, f"\"{found[0][:60]}…\", figure {number + 1}", {**query, "head": ""}, found[number + 1])
            for number, query in enumerate(entry["queries"])]


def read_pages(folder, entries):
    """All figures of the list, the pages, and sentences about what is not there."""
    pages, figures, missing = {}, [], []
    for entry in entries:
        path = os.path.join(folder, entry["page"])
        try:
            if entry["page"] not in pages:
                if not os.path.exists(path):
                    raise Missing(f"there is no page {entry['page']}")
                pages[entry["page"]] = Page(path)
            figures += (figures_of_table if "rows" in entry else figures_of_sentence)(pages[entry["page"]], entry)
        except Missing as error:
            missing.append(str(error))
    return figures, pages, missing


def unlisted_tables(folder, entries, left_out):
    """Sentences about tables that neither the list nor what it leaves out names, and about those left out that are not there."""
    there = {(page.name, *table) for page in map(Page, sorted(glob.glob(os.path.join(folder, "*.md")))) for table in page.tables}
    listed = {(entry["page"], entry["heading"], entry["nth"]) for entry in entries if "rows" in entry}
    whole = {page for page, heading, _ in left_out if heading == "*"}
    left = {table for table in left_out if table[1] != "*"}
    return ([f"{page}: table {nth + 1} below '{heading}' is neither in the list nor left out"
             for page, heading, nth in sorted(there - listed - left) if page not in whole] +
            [f"{page}: what is left out, table {nth + 1} below '{heading}', is not there" for page, heading, nth in sorted(left - there)])
