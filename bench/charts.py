"""What the scripts that draw charts share. Needs matplotlib."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def read(path):
    """A report; a file that cannot be read, or is no JSON, ends the program with one sentence."""
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"{path}: {error}")
    if not isinstance(report, dict):
        sys.exit(f"{path}: expected a report, found JSON of another kind")
    return report


def save(figure, path, name):
    """Text stays text, and nothing in the file changes from one drawing of the same data to the next."""
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(path, format="svg", metadata={"Date": None})
