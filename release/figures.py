"""Figures of speed in sentences and tables, from the pages that the benchmark writes: docs/performance*.md.

    python -m release.figures            (exit status 1 where a page says something else)
    python -m release.figures --write    (writes the figures into the pages)

A sentence marks each of its figures: `<!-- figure: gemm-fp16 -->0.91 to 1.14<!-- end -->`, with names of FIGURES. A
page marks its table, with a name of TABLES: `<!-- table: gemm -->`, the table, `<!-- end of the table -->`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean

ROOT = Path(__file__).resolve().parents[1]

SOURCE, ROWS = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance-rows.md"

DOCUMENTS = ("README.md", "docs/what-works.md")
TABLE_PAGES = ("docs/attention.md", "docs/gemm.md", "docs/kernels.md")

_FIGURE = re.compile(r"<!-- figure: ([\w-]+) -->(.*?)<!-- end -->", re.DOTALL)
_TABLE = re.compile(r"<!-- table: ([\w-]+) -->\n(.*?)<!-- end of the table -->", re.DOTALL)


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


TABLES: dict[str, tuple[Path, str, dict[str, tuple[str, ...]]]] = {
    "gemm": (
        SOURCE,
        "TFLOP/s, and the ratio to cuBLAS's speed",
        {each: (f"GEMM, {each}",) for each in ("fp16", "bf16")},
    ),
    "attention": (
        SOURCE,
        "TFLOP/s, and the ratio to cuDNN's speed",
        {each: tuple(f"Attention forward, {each}, head dim {dim}" for dim in (128, 64)) for each in ("fp16", "bf16")},
    ),
    "rows": (
        ROWS,
        "GB/s, and the ratio to a copy's speed",
        {
            name: (f"{name}, bf16",)
            for name in ("rms_norm", "rms_norm, gradients", "layer_norm", "layer_norm, gradients", "rms_norm_residual")
        },
    ),
}
"""By name: the page of the figures, what they are, and for each column the headings of its tables."""


def table(page: str, what: str, columns: Mapping[str, Sequence[str]]) -> str:
    """A line that says where and when, and a table: our speed at full clock in each problem, and its ratio.

    Raises ValueError where the page has no table with a heading.
    """
    cells: dict[str, dict[str, str]] = {}
    for column, headings in columns.items():
        for heading in headings:
            found = [section for section in page.split("\n## ")[1:] if section.startswith(heading)]
            if not found:
                raise ValueError(f"no heading that begins with '{heading}'")
            names, _, *rows = [line.strip("|").split("|") for line in found[0].splitlines() if line.startswith("|")]
            ours = [name.strip() for name in names].index("tlx_xdsl")
            at = next(place for place, name in enumerate(names) if name.strip().startswith("ratio"))
            for row in rows:
                ratio = re.search(r"\*\*([\d.]+)\*\*", row[at])
                speed = row[ours].split("(")[0].strip()
                cells.setdefault(row[0].strip(), {})[column] = f"{speed} ({ratio[1]})" if ratio else speed
    ((day, machine),) = re.findall(r"^Measured on ([\d-]+).*?\n(.*?)\.\n", page, re.MULTILINE)
    lines = [
        f"{what}: {machine}, {day}.",
        "",
        f"| problem | {' | '.join(columns)} |",
        "|---" * (len(columns) + 1) + "|",
    ]
    lines += [f"| {name} | {' | '.join(row.get(each, '') for each in columns)} |" for name, row in cells.items()]
    return "\n".join(lines)


def with_tables(text: str) -> str:
    """The text with each marked table as its source has it. Raises ValueError for a name that is not in TABLES."""

    def current(match: re.Match[str]) -> str:
        if match[1] not in TABLES:
            raise ValueError(f"no table '{match[1]}', expected one of {', '.join(TABLES)}")
        source, what, columns = TABLES[match[1]]
        made = table(source.read_text(encoding="utf-8"), what, columns)
        return f"<!-- table: {match[1]} -->\n\n{made}\n\n<!-- end of the table -->"

    return _TABLE.sub(current, text)


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
    for name in (*DOCUMENTS, *TABLE_PAGES):
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        current = with_tables(with_figures(text, page))
        if current == text:
            continue
        if args.write:
            path.write_text(current, encoding="utf-8")
            continue
        stale.append(name)
        print(f"error: {name}: its figures are not those of the benchmarks' pages: python -m release.figures --write")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
