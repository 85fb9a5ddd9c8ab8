"""What figures are made of: which stands where on a page of docs/performance, and where a run of figures.sh has it.

An entry is a table, by its page, the heading above it and its number below that heading, or a sentence. A row, a column and the
entry itself each give a part of a query; check.py puts the three together:

- `file`: the report below OUT, or several with a `*`, whose median counts. `.txt` is what a program printed.
- `value`: the name of the value in a record of the report, several names for one within another, or a function of the record; in
  a text, which number of the line. `below`: names that come before. `over`: by which other value it is divided, or what is
  different in that one's query. `scale`: a factor to the page's unit.
- `line`: how the text's line begins, and `at`: which of those lines. All other keys are conditions on the record: what the value
  of that name is, or a function that is true of it.
- `piece`: which of a cell's parts between semicolons, and `number`: which of its numbers; the first, and the median of all parts.
- `ratio`: that it is one, where that is not to be seen from `over` or from a name. `against`: the column whose times the others'
  are divided by, as ratios that the page doesn't show. `skip`: heads without a figure in that row.
- `allowed`: how far a figure may move, in place of 5 %, where runs on one machine differ by more.
- `card`: what the page measured on; times and rates are judged only where the run has the same. `only`: the cell is for that card.

A `*` in a head or a label stands for anything. A row or a column without a query is there so that those after it with the same
name are counted rightly.
"""

US, MB, GB, PERCENT = 1e-3, 1e-6, 1e-9, 100
TAIL = {"allowed": 0.5}  # a 99th percentile is the host's moments, too
ANY = {"allowed": 1e9}  # by chance
H200, H100 = "H200", "H100"


def table(page, heading, columns, rows, nth=0, labels=1, **common):
    def pairs(of):
        return list(of.items()) if isinstance(of, dict) else list(of)

    return {"page": page, "heading": heading, "nth": nth, "labels": labels, "columns": pairs(columns), "rows": pairs(rows),
            "common": {"card": H200, **common}}


def sentence(page, pattern, *queries, **common):
    """A figure for each group of the pattern."""
    return {"page": page, "pattern": pattern, "queries": [{"card": H200, **common, **query} for query in queries]}


def named(names, **common):
    """Rows whose record has that name."""
    return [(label, {"name": name, **common}) for label, name in (names.items() if isinstance(names, dict) else names)]


def of(value, *more, **query):
    """A query for a value, or for one within another."""
    return {"value": (value, *more) if more else value, **query}


def times(*names):
    """Columns whose heads are the values' names."""
    return [(name, of(name)) for name in names]
