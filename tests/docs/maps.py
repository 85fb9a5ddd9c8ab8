#!/usr/bin/env python3
"""Checks the maps of the examples: that each file, folder and kernel in a table's first column is there, and that examples/nn/FILES.md
names each header that is no detail, and that no README there has more than 60 lines. maps.py ROOT"""

import argparse
import re
import sys
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("root", type=Path, help="of the repository")
root = parser.parse_args().root.resolve()


def names_of(cell: str) -> list[str]:
    """The files between backticks, `x_{a,b}.cuh` as two."""
    found = []
    for name in re.findall(r"`([\w./{},-]+)`", cell):
        braces = re.search(r"\{([^}]*)\}", name)
        found += [name.replace(braces[0], part) for part in braces[1].split(",")] if braces else [name]
    return found


def rows_of(page: Path):
    """Folder of the heading, and first cell, of the rows of each table of files or folders."""
    folder, is_map = "", False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            folders = re.findall(r"[\w/]+/", line)
            folder = folders[0] if len(folders) == 1 else ""
        if not line.startswith("|"):
            is_map = False
        elif re.match(r"\| (file|folder|kernel) \|", line):
            is_map = True
        elif is_map and not line.startswith("| ---"):
            yield folder, line.split("|")[1]


def is_in(folder: Path, name: str) -> bool:
    """Whether a name that is no file's is one of a source below the folder."""
    return name.isidentifier() and any(re.search(rf"\b{name}\b", file.read_text(encoding="utf-8"))
                                       for file in folder.rglob("*") if file.suffix in (".cu", ".cuh", ".hpp", ".cpp"))


def main() -> int:
    faults, count = [], 0
    for page in sorted((root / "examples").rglob("*.md")):
        for folder, cell in rows_of(page):
            for name in names_of(cell):
                count += 1
                if not ((page.parent / folder / name).exists() or is_in(page.parent, name)):
                    faults.append(f"{page.relative_to(root)}: there is no {folder}{name}")
    for page in sorted((root / "examples").glob("*/README.md")):
        if (lines := len(page.read_text(encoding="utf-8").splitlines())) > 60:
            faults.append(f"{page.relative_to(root)} has {lines} lines, expected at most 60")
    nn = root / "examples/nn"
    named = (nn / "FILES.md").read_text(encoding="utf-8")
    for header in sorted([*nn.rglob("*.hpp"), *nn.rglob("*.cuh")]):
        if "detail" not in header.parts and f"{header.name}`" not in named:
            faults.append(f"examples/nn/FILES.md lacks {header.relative_to(nn)}")
    print(*faults, f"{count} names, {len(faults)} faults", sep="\n")
    return 1 if faults or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
