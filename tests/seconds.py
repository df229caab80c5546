"""Seconds of the tests by package: `python -m tests.seconds FILE` sums what lit wrote with `--output FILE`.

pytest's own, which tests/unit/conftest.py sums, stand in the same kind of table.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

WIDTH = 4
"""Packages in a line."""


def of_lit(results: str) -> Counter[str]:
    """Return the seconds of each folder directly below tests/filecheck, from lit's results in JSON."""
    found: Counter[str] = Counter()
    for test in json.loads(results)["tests"]:
        found[test["name"].partition(" :: ")[2].partition("/")[0]] += test["elapsed"]
    return found


def of_pytest(durations: Iterable[tuple[str, float]]) -> Counter[str]:
    """Return the seconds of each package, from the id and the seconds of each test's phases."""
    found: Counter[str] = Counter()
    for nodeid, seconds in durations:
        found[package_of(nodeid)] += seconds
    return found


def package_of(nodeid: str) -> str:
    """Return the folder directly below tests/unit or tests that a test is in."""
    folders = [folder for folder in nodeid.partition("::")[0].split("/")[:-1] if folder not in ("tests", "unit")]
    return folders[0] if folders else "(top)"


def table(seconds: Counter[str]) -> Iterator[str]:
    """Yield lines with the most expensive packages first."""
    cells = [f"{value:7.1f} {name:<16}" for name, value in seconds.most_common()]
    for at in range(0, len(cells), WIDTH):
        yield "".join(cells[at : at + WIDTH]).rstrip()


if __name__ == "__main__":
    print("== seconds of the lit tests")
    print("\n".join(table(of_lit(Path(sys.argv[1]).read_text(encoding="utf-8")))))
