"""A run's side: the reports below the folders that figures.sh wrote to."""

import glob
import json
import os
import re
import sys

from pages import NUMBER, Derived, median, number_of

# All other keys of a query are conditions on a record.
RESERVED = {"file", "value", "below", "over", "scale", "line", "at", "piece", "number", "ratio", "against", "skip", "allowed", "card",
            "only", "head"}


def of_benchmark(record):
    """With its name without how it was run, and with what the name says of operation, size and counterpart."""
    name = re.sub(r"/(iterations|repeats|manual_time|real_time).*", "", record["name"])
    further = {}
    if found := re.search(r"([^/]+)/beside_(\w+)$", name):
        further = {"operation": found[1], "beside": found[2]}
    if found := re.search(r"/batch:(\d+)/", name):
        further["batch"] = int(found[1])
    return {**further, **record, "name": name}


def records_of(path):
    """What a report holds: the lines of a text, or the entries of its list and the report itself."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if path.endswith(".txt"):
        return [{"line": line} for line in text.split("\n")]
    report = json.loads(text)
    if isinstance(report, list):
        return report
    if "benchmarks" in report:
        return [of_benchmark(record) for record in report["benchmarks"] if record.get("run_type") != "aggregate"]
    return [*report.get("runs", report.get("rows", [])), report]


def meets(record, conditions):
    return all(name in record and (wanted(record[name]) if callable(wanted) else record[name] == wanted)
               for name, wanted in conditions.items())


def picked(record, query):
    """The values that a record has for a query."""
    value = query["value"]
    try:
        if callable(value):
            record = value(record)
        else:
            for name in (*query.get("below", ()), *(value if isinstance(value, tuple) else (value,))):
                record = record[name]
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError):
        return []
    return [float(one) for one in (record if isinstance(record, list) else [record]) if isinstance(one, (int, float))]


def numbers_of_line(records, query):
    """Of a text: the number of one line that begins so, and goes on with a number."""
    begin = re.compile(re.escape(query["line"]) + r"(?=\s+\d)")
    hits = [record["line"][found.end():] for record in records if (found := begin.match(record.get("line", "")))]
    numbers = [NUMBER.findall(hit) for hit in hits[query.get("at", 0):][:1]]
    return [number_of(found[query["value"]]) for found in numbers if query["value"] < len(found)]


def machines_of(folder):
    """The lines that figures.sh has written about it."""
    path = os.path.join(folder, "machine.txt")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


class Run:
    """The reports below one folder, or several."""

    def __init__(self, *folders):
        self.folders, self.files = folders, {}
        self.machines = sorted({line for folder in folders for line in machines_of(folder)})

    def is_on(self, card, name, otherwise=True):
        """Whether the files of that name were measured on that card alone; `otherwise` where no machine is named."""
        machines = [line for folder, _ in self.found(name) for line in machines_of(folder)]
        return all(card in line for line in machines) if machines else otherwise

    def found(self, name):
        """Folder and records of each file of that name."""
        if name not in self.files:
            self.files[name] = []
            for folder, path in ((folder, path) for folder in self.folders for path in sorted(glob.glob(os.path.join(folder, name)))):
                try:
                    self.files[name].append((folder, records_of(path)))
                except ValueError:
                    print(f"{path} is no report, as where a program ended early", file=sys.stderr)
        return self.files[name]

    def values(self, query):
        """Of each file with any."""
        conditions = {name: wanted for name, wanted in query.items() if name not in RESERVED}
        found = []
        for _, records in self.found(query["file"]):
            values = numbers_of_line(records, query) if "line" in query else [
                value for record in records if meets(record, conditions) for value in picked(record, query)]
            if values:
                found.append([value * query.get("scale", 1) for value in values])
        return found

    def of(self, figure):
        """A figure's values, file by file; none where the run lacks it."""
        if isinstance(figure, Derived):
            over, under = self.middle(figure.over), self.middle(figure.under)
            return [[over / under]] if over is not None and under else []
        query, over = figure.query, figure.query.get("over")
        found = self.values(query)
        if over is None or not found:
            return found
        under = self.values({**query, **(over if isinstance(over, dict) else {"value": over}), "scale": 1})
        return [[median(a) / median(b)] for a, b in zip(found, under) if median(b)]

    def middle(self, figure):
        found = self.of(figure)
        return median([median(values) for values in found]) if found else None
