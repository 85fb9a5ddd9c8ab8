#!/usr/bin/env python3
"""Checks docs/design/promises*.md: each row's words stand in their page, and its tests are there; and that the files of
contracts.md are. promises.py ROOT"""

import argparse
import re
import sys
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("root", type=Path, help="of the repository")
root = parser.parse_args().root.resolve()
TABLES = sorted((root / "docs/design").glob("promises*.md"))


def plain(text: str) -> str:
    """Without links' targets, line breaks and what a list's or a table's lines begin with."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\s+", " ", text.replace("**", ""))


def source_of(test: str) -> Path:
    if test.startswith("pytorch/"):
        return root / "examples/pytorch/tests" / test.removeprefix("pytorch/")
    return root / test if (root / test).exists() else root / "tests" / test


def joined(file: Path) -> str:
    """A file's text, with string literals that follow each other as one."""
    return re.sub(r'"\s*"', "", file.read_text(encoding="utf-8"))


def fault_of_test(reference: str) -> str:
    match = re.fullmatch(r"`([^`]+)`(?: \((.+)\))?", reference.strip())
    if not match:
        return f"'{reference}' is no test; expected `FILE` (the name of a case, or a part of it)"
    test, case = match[1], match[2]
    if test.startswith("docs."):
        programs = "".join(page.read_text(encoding="utf-8") for page in (root / "docs").rglob("*.md"))
        return "" if re.search(rf"<!-- test: program {test[5:]}\b", programs) else f"there is no program {test}"
    file = source_of(test)
    if not file.is_file():
        return f"there is no file {test}"
    if case and case not in joined(file):
        return f"{test} has no case '{case}'"
    return ""


def rows_of(table: Path):
    """Number of the line, page, promise and tests of each row under a heading that is a link."""
    page = None
    for number, line in enumerate(table.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("## "):
            heading = re.fullmatch(r"## \[[^\]]*\]\(([^)]+)\)", line)
            page = (table.parent / heading[1]).resolve() if heading else None
        elif page and line.startswith("| ") and not line.startswith(("| ---", "| promise |")):
            yield (number, page, *(cell.strip() for cell in line.strip("| ").split(" | ")))


def faults_of_contracts() -> list[str]:
    """The files that contracts.md names."""
    text = (root / "docs/design/contracts.md").read_text(encoding="utf-8")
    files = set(re.findall(r"`([\w/]+\.(?:cpp|cu))`", text))
    return [f"contracts.md: there is no file {file}" for file in sorted(files) if not source_of(file).is_file()]


def main() -> int:
    rows, faults = 0, faults_of_contracts()
    for table in TABLES:
        for number, page, promise, tests in rows_of(table):
            rows += 1
            said = [fault_of_test(test) for test in re.split("; (?=`)", tests)]
            if plain(promise) not in plain(page.read_text(encoding="utf-8")):
                said.append(f"{page.name} does not say '{promise}'")
            faults += [f"{table.name}:{number}: {fault}" for fault in said if fault]
    print("\n".join([*faults, f"{rows} promises, {len(faults)} faults"]))
    return 1 if faults or not rows else 0


sys.exit(main())
