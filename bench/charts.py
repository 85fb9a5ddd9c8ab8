"""What the scripts that draw charts share. Needs matplotlib."""

import json
import sys

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:  # `paths` says so
    plt = None


def paths(documentation, usage, right):
    """What follows the script's name: reports, and the chart's file. `--help` prints the documentation and ends the program;
    so does, with one sentence, a number of files that is not `right(number)`, or a Python without matplotlib."""
    given = sys.argv[1:]
    if "--help" in given or "-h" in given:
        print(documentation.strip())
        sys.exit(0)
    if not right(len(given)) or not given[-1].endswith(".svg"):
        print(f"usage: {usage}", file=sys.stderr)
        sys.exit(2)
    if plt is None:
        sys.exit(f"{sys.argv[0]}: expected a Python with matplotlib, found none")
    return given


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
