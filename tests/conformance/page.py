"""Write docs/conformance.md of the records of the suites.

    python -m tests.conformance.page FOLDER

FOLDER holds what the harnesses write with `--json`, under these names:

    mlir.json                                  tests.conformance.mlir
    NAME.stock.json and NAME.ours.json         tests.conformance.stock_python, one pair for each run
    NAME.meta.FILE.json                        tests.conformance.meta, one for each file of the suite
    NAME.tutorials.PART.json                   tests.conformance.tutorials
    NAME.foreign.PART.json                     tests.conformance.foreign, with `--cubin`
    NAME.txt                                   the title of that run, and the conditions: commit, machine, versions
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.conformance import report, stock_report
from tests.conformance.meta_reasons import FAILURES, OTHER, reason_of

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"

HEAD = """\
# Conformance

<!-- Made by `python -m tests.conformance.page FOLDER` of the records of the suites (tests/conformance). -->

Suites that others wrote, run against this project. None of them is kept here: each harness takes a checkout
(`python -m tests.conformance.mlir`, `stock_python`, `meta`, `tutorials`, `foreign`; `--help` says how). They are the
`.mlir` tests, the Python tests of the language, the TLX tests and the tutorials of Meta's fork of Triton at db4666f22,
which holds stock's as well, and TLX kernels of several projects.
"""


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _head(folder: Path, suite: str, name: str) -> str:
    """The heading of a section, and under what conditions its records were made."""
    title, _, conditions = (folder / f"{name}.txt").read_text(encoding="utf-8").partition("\n")
    return f"## {suite}{title}\n\n{conditions.strip()}\n"


def _mlir(folder: Path) -> Iterable[str]:
    records = _read(folder / "mlir.json")
    yield _head(folder, "MLIR suites: ", "mlir")
    yield (
        "Stock Triton's parser and verifiers, which know all of its dialects, are the reference. *Round trip*: parsed, "
        "verified, printed, parsed and printed again without a change.\n"
    )
    yield "\n".join(f"- {line}" for line in report.mlir_summary(records).splitlines()) + "\n"
    yield report.mlir_table(records) + "\n"


def _stock(folder: Path, name: str) -> Iterable[str]:
    stock, ours = (_read(folder / f"{name}.{who}.json")["cases"] for who in ("stock", "ours"))
    yield _head(folder, "Stock's Python tests: ", name)
    yield stock_report.table(stock, ours) + "\n"
    causes = stock_report.only_stock(stock, ours, {})
    if causes:
        yield "What only stock passes:\n"
        yield "\n".join(f"- {len(cases)}: {one_line(cause)}" for cause, cases in _by_size(causes)) + "\n"


def _meta(folder: Path, name: str) -> Iterable[str]:
    counts: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for path in sorted(folder.glob(f"{name}.meta.*.json")):
        for case, result in _read(path)["tests"].items():
            file = case.partition("::")[0].rpartition("/")[2]
            counts.setdefault(file, Counter())[result["outcome"]] += 1
            if result["outcome"] in FAILURES:
                reason = reason_of(result)
                reasons[f"{reason}: {case.rpartition('::')[2]}" if reason == OTHER else reason] += 1
    yield _head(folder, "Meta's TLX tests: ", name)
    rows = [(file, *(str(found[each]) for each in ("passed", "skipped"))) for file, found in counts.items()]
    failed = {file: str(sum(found[each] for each in FAILURES)) for file, found in counts.items()}
    yield table(("file", "passed", "skipped", "failed"), [(*row, failed[row[0]]) for row in rows])
    yield "Failures:\n"
    yield "\n".join(f"- {count}: {reason}" for reason, count in reasons.most_common()) + "\n"


def _tutorials(folder: Path, name: str) -> Iterable[str]:
    yield _head(folder, "Tutorials: ", name)
    rows: list[tuple[str, ...]] = []
    for path in sorted(folder.glob(f"{name}.tutorials.*.json")):
        rows += [(case, each["outcome"], one_line(each["reason"])) for case, each in _read(path).items()]
    yield table(("tutorial", "outcome", "reason"), sorted(rows))


def _foreign(folder: Path, name: str) -> Iterable[str]:
    """A table of TLX kernels of other projects, and the numbers of their outcomes."""
    found = {case: each for path in sorted(folder.glob(f"{name}.foreign.*.json")) for case, each in _read(path).items()}
    yield _head(folder, "TLX kernels of others: ", name)
    counts = Counter(each["outcome"] for each in found.values())
    compiled = sum(each.get("cubin") == "" for each in found.values())
    yield (
        f"{len(found)} kernels: {', '.join(f'{count} {outcome}' for outcome, count in counts.most_common())}; "
        f"{compiled} of those that ran compile to a cubin.\n"
    )
    rows = [
        (
            case, each["target"], each["outcome"], _cubin(each), _error(each),
            ": ".join(filter(None, (each.get("defect"), one_line(each["reason"])))), each["source"],
        )
        for case, each in sorted(found.items())
    ]  # fmt: skip
    yield table(("kernel", "target", "outcome", "cubin", "largest error", "reason", "source"), rows)


def _cubin(result: Mapping[str, Any]) -> str:
    return {"": "yes", None: "-"}.get(result.get("cubin"), one_line(result.get("cubin") or ""))


def _error(result: Mapping[str, Any]) -> str:
    return f"{max(result['errors']):.1g}" if result.get("errors") else ""


def one_line(text: str) -> str:
    """The message alone: no class of Python's, no file of the suite."""
    return re.sub(r"(?:[\w.]+: )?\S+\.py:\d+:\d+: error: ", "", " ".join(text.split())).replace("|", "\\|")[:200]


def _by_size(causes: Mapping[str, list[str]]) -> list[tuple[str, list[str]]]:
    return sorted(causes.items(), key=lambda item: -len(item[1]))


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [" | ".join(head), "|".join("---" for _ in head), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def page(folder: Path, before: str = "") -> str:
    """Return the text of the page, with a section for each run that `folder` has records of.

    Sections of `before` stay, but for those that there are records of.
    """
    parts: list[str] = []
    if (folder / "mlir.json").exists():
        parts += _mlir(folder)
    sections = (
        ("*.ours.json", _stock), ("*.meta.*.json", _meta), ("*.tutorials.*.json", _tutorials),
        ("*.foreign.*.json", _foreign),
    )  # fmt: skip
    for pattern, section in sections:
        for name in sorted({path.name.partition(".")[0] for path in folder.glob(pattern)}):
            parts += section(folder, name)
    found = _sections(before) | _sections("\n".join(part for part in parts if part))
    return HEAD + "\n" + "\n".join(f"{heading}\n{body}" for heading, body in found.items())


def _sections(text: str) -> dict[str, str]:
    """The sections of a page by their headings."""
    parts = re.split(r"^(## .*)\n", text, flags=re.MULTILINE)[1:]
    return {heading: f"\n{body.strip()}\n" for heading, body in zip(parts[::2], parts[1::2], strict=True)}


if __name__ == "__main__":
    PAGE.write_text(page(Path(sys.argv[1]), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
