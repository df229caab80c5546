"""Figures of speed in sentences, from the page that the benchmark writes: one source, docs/performance.md.

    python -m release.figures            (exit status 1 where a sentence says something else)
    python -m release.figures --write    (writes the figures into the sentences)

A sentence marks each of its figures: `<!-- figure: gemm-fp16 -->0.91 to 1.14<!-- end -->`, with names of FIGURES.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean

ROOT = Path(__file__).resolve().parents[1]

SOURCE = ROOT / "docs" / "performance.md"

DOCUMENTS = ("README.md", "docs/what-works.md")

_FIGURE = re.compile(r"<!-- figure: ([\w-]+) -->(.*?)<!-- end -->", re.DOTALL)


def ratios(page: str, heading: str) -> list[float]:
    """Our speed over the library's at full clock ("cool"), of each problem in the tables whose headings begin so.

    Raises ValueError where the page has none.
    """
    found: list[float] = []
    for section in page.split("\n## ")[1:]:
        if not section.startswith(heading):
            continue
        rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
        column = next(at for at, name in enumerate(rows[0]) if name.strip().startswith("ratio"))
        found += [float(match[1]) for row in rows[2:] if (match := re.search(r"\*\*([\d.]+)\*\*", row[column]))]
    if not found:
        raise ValueError(f"{SOURCE.name}: no ratio below a heading that begins with '{heading}'")
    return found


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def _mean(values: Sequence[float]) -> str:
    return f"{geometric_mean(values):.2f}"


def _count(values: Sequence[float]) -> str:
    return str(len(values))


FIGURES: dict[str, tuple[str, Callable[[Sequence[float]], str]]] = {
    f"{name}{suffix}": (heading, say)
    for name, heading in (("gemm-fp16", "GEMM, fp16"), ("attention-fp16", "Attention forward, fp16"))
    for suffix, say in (("", _range), ("-mean", _mean), ("-count", _count))
}
"""By name, the heading of the tables and how their ratios are said."""


def with_figures(text: str, page: str) -> str:
    """The text with each marked figure as the page has it.

    Raises ValueError for a name that is not in FIGURES.
    """

    def current(match: re.Match[str]) -> str:
        if match[1] not in FIGURES:
            raise ValueError(f"no figure '{match[1]}', expected one of {', '.join(FIGURES)}")
        heading, say = FIGURES[match[1]]
        return f"<!-- figure: {match[1]} -->{say(ratios(page, heading))}<!-- end -->"

    return _FIGURE.sub(current, text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the documents with the page, or write them; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the figures into the documents")
    args = parser.parse_args(arguments)
    page = SOURCE.read_text(encoding="utf-8")
    stale: list[str] = []
    for name in DOCUMENTS:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        current = with_figures(text, page)
        if current == text:
            continue
        if args.write:
            path.write_text(current, encoding="utf-8")
            continue
        stale.append(name)
        print(f"error: {name}: its figures are not those of {SOURCE.name}: python -m release.figures --write")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
