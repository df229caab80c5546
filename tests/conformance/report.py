"""Tables in Markdown of what the suites gave.

python -m tests.conformance.report RECORDS.json    the records that `tests.conformance.mlir --json` wrote
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_COLUMNS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("stock accepts", lambda verdict: verdict in _ACCEPTED),
    ("round trip", lambda verdict: verdict == "round trip"),
    ("refused by the parser", lambda verdict: verdict == "refused by parser"),
    ("by a verifier", lambda verdict: verdict == "refused by verifier"),
    ("print not readable", lambda verdict: verdict in _BROKEN),
    ("error expected", lambda verdict: verdict.startswith("error ")),
    ("at its line", lambda verdict: verdict == "error at its line"),
    ("at stock's line", lambda verdict: verdict == "error at stock's line"),
    ("at another", lambda verdict: verdict in ("error at another line", "error without line")),
    ("missed", lambda verdict: verdict == "error missed"),
)
_BROKEN = ("print", "reprint", "unstable print", "internal error", "traceback")
_ACCEPTED = ("round trip", "refused by parser", "refused by verifier", *_BROKEN)


def mlir_table(records: Sequence[dict[str, Any]]) -> str:
    """Return a table with a row per directory of the suite, and one per class of chunks that do not count."""
    core = [record for record in records if record["kind"] == "core"]
    rows: dict[str, list[str]] = {}
    for directory in sorted({record["directory"] for record in core}):
        rows[directory] = [record["verdict"] for record in core if record["directory"] == directory]
    rows["**sum**"] = [record["verdict"] for record in core]
    for kind in ("amd", "gluon", "other dialects"):
        rows[f"(not counted: {kind})"] = [record["verdict"] for record in records if record["kind"] == kind]
    lines = ["| directory | " + " | ".join(name for name, _ in _COLUMNS) + " |", "|---" * (len(_COLUMNS) + 1) + "|"]
    for name, verdicts in rows.items():
        counts = (str(sum(map(belongs, verdicts))) for _, belongs in _COLUMNS)
        lines.append(f"| {name} | " + " | ".join(counts) + " |")
    return "\n".join(lines)


def mlir_summary(records: Sequence[dict[str, Any]]) -> str:
    """Return the shares that the conformance is measured by."""
    counts = Counter(record["verdict"] for record in records if record["kind"] == "core")
    accepted = sum(counts[verdict] for verdict in _ACCEPTED)
    expected = sum(count for verdict, count in counts.items() if verdict.startswith("error "))
    at_line = counts["error at its line"] + counts["error at stock's line"]
    return "\n".join(
        (
            f"{len(records)} chunks; {accepted} that stock accepts, "
            f"{_share(counts['round trip'], accepted)} round-trip",
            f"{expected} errors expected, {_share(expected - counts['error missed'], expected)} refused, "
            f"{_share(at_line, expected)} at the expected line or stock's",
            ", ".join(f"{verdict}: {count}" for verdict, count in sorted(counts.items())),
        )
    )


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.1f} %)" if whole else "0"


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_text())
    print(f"{mlir_table(found)}\n\n{mlir_summary(found)}")
