#!/usr/bin/env python3
"""Compares the figures on the pages of docs/performance with those that figures.sh measured.

    bash bench/figures.sh BUILD OUT GROUP…           measures
    bash bench/figures.sh --check OUT…               compares: python3 bench/figures/check.py OUT…
    bash bench/figures.sh --check OUT… --write       and writes the run's figures into the pages' tables
    python3 bench/figures/check.py                   looks whether each figure of the list has its place on a page

The list is in library.py, experiments.py and python_package.py; query.py says how to read it. Of each figure: the page's, the
run's, and the run's over the page's. Those that moved by more than 5 % come first, and of these the ratios, which move less from
machine to machine. Times and rates are judged only where the page's were measured on the run's card. What rounding on a page may
hide is no move. The exit code is 1 where a figure moved or a report that is there lacks it, and 2 where the list and the pages
have come apart. A report that is not there was not run, which is said, and is no fault.
"""

import argparse
import os
import re
import sys

from pages import NUMBER, decimals_of, median, read_pages, unlisted_tables
from runs import Run

ALLOWED = 0.05
PAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "docs", "performance")


class Compared:
    """A figure beside a run's; `run` is none where it has no such figure."""

    def __init__(self, figure, run):
        self.figure, query = figure, figure.query
        self.value = run.middle(figure)
        allowed = query.get("allowed", ALLOWED)
        low, high = figure.value - figure.half, figure.value + figure.half
        low, high = low - allowed * abs(low), high + allowed * abs(high)
        self.is_judged = figure.is_ratio or run.is_on(query["card"], query["file"])
        self.has_moved = self.value is not None and self.is_judged and not low <= self.value <= high

    @property
    def ratio(self):
        return self.value / self.figure.value if self.figure.value else 1.0

    def line(self):
        decimals = self.figure.decimals
        return f"  {self.figure.name():<110} {self.figure.value:12,.{decimals}f} {self.value:12,.{decimals}f} {self.ratio:9.3f}"


def compare(figures, run):
    """Leaves out what is for another card."""
    return [Compared(figure, run) for figure in figures
            if "only" not in figure.query or run.is_on(figure.query["only"], figure.query["file"], otherwise=False)]


def show(compared, run):
    """Prints what came out, and returns the exit code."""
    measured = [one for one in compared if one.value is not None]
    moved = sorted((one for one in measured if one.has_moved), key=lambda one: -abs(one.ratio - 1))
    lacking = [one for one in compared if one.value is None and run.found(one.figure.query["file"])]
    not_run = {}
    for one in compared:
        if one.value is None and one not in lacking:
            not_run[one.figure.query["file"]] = not_run.get(one.figure.query["file"], 0) + 1
    print("measured on " + ("; ".join(run.machines) or "a machine that the run doesn't name"))
    print(f"{len(measured)} of {len(compared)} figures were measured, and {len(moved)} moved by more than {100 * ALLOWED:.0f} %, "
          f"{sum(one.figure.is_ratio for one in moved)} of them ratios; {len(lacking)} lack in reports that are there")
    for title, lines in (("moved: ratios", [one for one in moved if one.figure.is_ratio]),
                         ("moved: times and rates", [one for one in moved if not one.figure.is_ratio]),
                         ("as on the page", [one for one in measured if one.is_judged and not one.has_moved]),
                         ("not judged: the page's were measured on another card", [one for one in measured if not one.is_judged])):
        if lines:
            print(f"\n{title:112} {'page':>12} {'run':>12} {'run/page':>9}", *(one.line() for one in lines), sep="\n")
    if lacking:
        print("\nlacking in reports that are there", *(f"  {one.figure.name()} ({one.figure.query['file']})" for one in lacking), sep="\n")
    if not_run:
        print("\nnot run: " + ", ".join(f"{file} ({count} figures)" for file, count in sorted(not_run.items())))
    return 1 if moved or lacking else 0


def written(text, figure, found):
    """A cell's text with a run's values in the place of its own; brackets become the least and the most of them."""
    which, everything = figure.query.get("number", 0), [value for values in found for value in values]
    middles, pieces = [median(values) for values in found], text.split(";")
    if "piece" in figure.query or len(pieces) == 1:
        at, middles = [figure.query.get("piece", 0)], [median(middles)]
    else:  # of each file
        pieces = [pieces[min(number, len(pieces) - 1)] for number in range(len(middles))]
        at = range(len(pieces))
    for piece, value in zip(at, middles):
        matches = list(NUMBER.finditer(pieces[piece]))
        if which < len(matches):
            match = matches[which]
            pieces[piece] = f"{pieces[piece][:match.start()]}{value:,.{decimals_of(match[0])}f}{pieces[piece][match.end():]}"
    text = ";".join(pieces)
    if which > 0 or not re.search(r" \[[^\]]*\]", text):
        return text
    least, most = (f"{value:,.{figure.decimals}f}" for value in (min(everything), max(everything)))
    return re.sub(r" \[[^\]]*\]", f" [{least}, {most}]" if len(everything) > 1 else "", text)


def write(compared, pages, run):
    """Sentences, and what tables say of commits and machines, are left to who writes the page."""
    count = 0
    for one in compared:
        if one.figure.place is not None and one.value is not None:
            line, column = one.figure.place
            page = one.figure.page
            page.put(line, column, written(page.cells(line)[column], one.figure, run.of(one.figure)))
            count += 1
    for page in pages.values():
        page.save()
    print(f"\n{count} figures are in the tables now; sentences, commits and machines are as they were")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="*", help="the folders that figures.sh wrote to")
    parser.add_argument("--pages", default=PAGES, help="the folder of the pages")
    parser.add_argument("--write", action="store_true", help="put the run's figures into the tables")
    arguments = parser.parse_args()
    from entries import ENTRIES, LEFT_OUT

    figures, pages, missing = read_pages(arguments.pages, ENTRIES)
    missing += unlisted_tables(arguments.pages, ENTRIES, LEFT_OUT)
    print(*missing, sep="\n", end="\n" if missing else "", file=sys.stderr)
    if missing:
        sys.exit(2)
    if not arguments.out:
        print(f"{len(figures)} figures of the list stand on {len(pages)} pages")
        return
    for folder in arguments.out:
        if not os.path.isdir(folder):
            parser.error(f"argument out: there is no folder {folder}")
    run = Run(*arguments.out)
    compared = compare(figures, run)
    code = show(compared, run)
    if arguments.write:
        write(compared, pages, run)
    sys.exit(code)


if __name__ == "__main__":
    main()
