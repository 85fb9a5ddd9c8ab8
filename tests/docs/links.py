#!/usr/bin/env python3
"""Checks that each link of the documents to a file, and to a heading in it, leads somewhere: links.py ROOT"""

import argparse
import re
import sys
from pathlib import Path

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("root", type=Path, help="of the repository")
root = parser.parse_args().root.resolve()


def text_of(page: Path) -> str:
    """Without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?)\s*$", text_of(page), flags=re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", re.sub(LINK, lambda link: link[0].split("](")[0].lstrip("!["), heading).lower())
        anchor = words.replace(" ", "-")
        number = 0
        while (anchor if number == 0 else f"{anchor}-{number}") in found:
            number += 1
        found.add(anchor if number == 0 else f"{anchor}-{number}")
    return found


def main() -> int:
    pages = [
        page
        for page in sorted(root.rglob("*.md"))
        if not any(part == "build" or part.startswith(".") for part in page.relative_to(root).parts)
    ]
    broken, links = 0, 0
    for page in pages:
        for target in LINK.findall(text_of(page)):
            if re.match(r"[a-z]+:", target):
                continue
            links += 1
            name, _, anchor = target.partition("#")
            file = page if not name else page.parent / name
            if not file.exists():
                print(f"{page.relative_to(root)}: '{target}' leads to no file")
                broken += 1
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                print(f"{page.relative_to(root)}: '{target}' leads to no heading")
                broken += 1
    print(f"{links} links in {len(pages)} pages, {broken} broken")
    return 1 if broken or not links else 0


sys.exit(main())
