"""Compare two runs of `stock_python`: a table in Markdown, how fast both are, and each case that only stock passes.

    python -m tests.conformance.stock_report stock.json ours.json [ours_on_another_target.json]

A case that passes on the other target needs what the first lacks.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Records = Mapping[str, Mapping[str, Any]]

_PASSED = ("passed", "xfailed")
_COLUMNS = ("cases", "both skip", "stock passes", "ours passes", "both fail", "only stock passes", "only ours passes")

_CAUSES = (
    ("AMD's fp8 types", ("fp8e4b8", "fp8e5b16")),
    ("kernels without a source", ("the source of",)),
    ("longer than its time", ("longer than", "killed after")),
)
"""Classes of what only stock passes, by what the error says."""


def verdict(stock: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """The column of a case, beside those that count who passes."""
    outcomes = stock["outcome"], ours["outcome"]
    if all(outcome == "skipped" for outcome in outcomes):
        return "both skip"
    passed = [outcome in _PASSED for outcome in outcomes]
    if all(passed):
        return "both pass"
    return "only stock passes" if passed[0] else "only ours passes" if passed[1] else "both fail"


def table(stock: Records, ours: Records) -> str:
    """Return the table, a row for each file and the sum; cases that one of the runs lacks do not count."""
    rows: dict[str, Counter[str]] = {}
    for case in stock.keys() & ours.keys():
        counts = Counter({"cases": 1, verdict(stock[case], ours[case]): 1})
        for who, records in (("stock", stock), ("ours", ours)):
            counts[f"{who} passes"] += records[case]["outcome"] in _PASSED
        for row in (case.partition("::")[0].rpartition("/")[2], "**sum**"):
            rows.setdefault(row, Counter()).update(counts)
    lines = ["| file | " + " | ".join(_COLUMNS) + " |", "|---" * (len(_COLUMNS) + 1) + "|"]
    for name in (*sorted(rows.keys() - {"**sum**"}), "**sum**"):
        lines.append(f"| {name} | " + " | ".join(str(rows.get(name, Counter())[column]) for column in _COLUMNS) + " |")
    return "\n".join(lines)


def only_stock(stock: Records, ours: Records, elsewhere: Records) -> dict[str, list[str]]:
    """The cases that only stock passes, by cause; what is of no class is under its error."""
    found: dict[str, list[str]] = {}
    for case in sorted(stock.keys() & ours.keys()):
        if verdict(stock[case], ours[case]) != "only stock passes":
            continue
        error: str = ours[case]["error"]
        cause = next((name for name, said in _CAUSES if any(word in error for word in said)), error)
        if elsewhere.get(case, {"outcome": ""})["outcome"] in _PASSED:
            cause = "the target lacks it"
        found.setdefault(cause, []).append(case)
    return found


def speed(stock: Records, ours: Records) -> str:
    """Compare the speed of the two in the cases that both pass: a line with seconds of a processor."""
    both = [case for case in stock.keys() & ours.keys() if verdict(stock[case], ours[case]) == "both pass"]
    timed = [case for case in both if "processor" in stock[case] and "processor" in ours[case]]
    theirs, mine = (sum(records[case]["processor"] for case in timed) for records in (stock, ours))
    ratio = f", ours is {theirs / mine:.2f} x as fast" if mine else ""
    return f"{len(timed)} cases that both pass: stock {theirs:.1f} s of a processor, ours {mine:.1f} s{ratio}"


def main(arguments: Sequence[str]) -> int:
    """Run the command line."""
    stock, ours, *others = (json.loads(Path(each).read_text())["cases"] for each in arguments)
    print(table(stock, ours))
    print(f"\n{speed(stock, ours)}")
    for cause, cases in only_stock(stock, ours, others[0] if others else {}).items():
        print(f"\n{len(cases)}: {cause}", *cases[:20], sep="\n    ")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
