"""All figures of speed on one page, with what they were measured on: docs/figures.md, written from docs/figures.json.

    python -m benchmarks.gpu.dashboard                  (writes the page and the plot again; needs nothing but Python)
    python -m benchmarks.gpu.dashboard --add FILE       (takes the figures of a run into docs/figures.json first)
        --set commit=0123abcd --set driver=580.159.04   (what the file does not say)

FILE is what kernels.py (performance.json), lengths.py, ranks.py (ranks-N.json) or linear_cross_entropy.py of
benchmarks/gpu has written, or a program of benchmarks/gemm, such as aligned.py. Its families
replace those of the same name and card.

A record has `family`, `title`, `unit`, `card`, `date`, `commit`, `driver`, `ptxas`, `clock` (null where that was not
recorded), `versions` of the peers, and `cases`: `problem`, `ours`, `peers`, and `ratio`, which is above 1 where we are
faster than the fastest peer, or than those that `beside` names.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from benchmarks.gpu import report
from benchmarks.gpu.cute import LIBRARIES

DOCS = Path(__file__).resolve().parents[2] / "docs"

RECORDED = ("card", "date", "commit", "driver", "ptxas", "clock")

_PEERS = ("torch", "triton", "cuda", "cudnn", *LIBRARIES)
"""Libraries whose versions a record names, where the run noted them."""

_WIDTH, _LEFT, _RIGHT = 360, 10, 350
"""Units of the plot: pixels of a phone's page of 390."""

_STYLE = """\
text{font:12px system-ui,sans-serif;fill:#1f2933}.s{font-size:10px;fill:#52606d}.g{stroke:#cbd2d9}.one{stroke:#52606d}
.up{fill:#0b6e4f}.down{fill:#c2410c}
@media (prefers-color-scheme:dark){text{fill:#e4e7eb}.s{fill:#9aa5b1}.g{stroke:#3e4c59}.one{stroke:#9aa5b1}
.up{fill:#4ade80}.down{fill:#fb923c}}"""

_INTRODUCTION = """\
# Figures of speed

Each record below says on what it was measured. `docs/figures.json` holds them; `python -m benchmarks.gpu.dashboard`
writes this page and its plot again. A ratio above 1 means that we are faster than what the ratio is to, than the
fastest where several are named. "Not recorded" is what a run did not note down. Times and rates are medians at full
clock ("cool" in [products and attention](performance.md) and [rows](performance-rows.md), which have more of the same
runs).

`make bench-gpu BENCH_ARGS=--quick` measures three families on a Hopper GPU, beside the libraries that are installed,
stops after 150 seconds and writes into `build/quick` only. `python -m benchmarks.gpu.dashboard --add FILE` takes what
`make bench-gpu` or `benchmarks/gpu/ranks.py` has written into the records.

![A line for each family, with a point for each problem: our speed over that of the fastest library](images/figures.svg)
"""


def read() -> list[dict[str, Any]]:
    """The committed records."""
    return json.loads((DOCS / "figures.json").read_text(encoding="utf-8"))


def ratios(record: Mapping[str, Any]) -> list[float]:
    """Our speed over the fastest peer's, of each problem that has one."""
    return [case["ratio"] for case in record["cases"] if case["ratio"] is not None]


def of_kernels(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Records of what benchmarks/gpu/kernels.py or lengths.py has written, at full clock."""
    found: list[dict[str, Any]] = []
    for family in run["families"]:
        machine = family["machine"]
        clocks = [each for case in family["cases"].values() for each in case["cool"]["clocks"] if each is not None]
        versions = {each: machine[each] for each in _PEERS if each in machine}
        cases: list[dict[str, Any]] = []
        for name, case in family["cases"].items():
            rates = {each: round(rate, 1) for each, rate in report.rates(case, "cool").items()}
            if report.OURS not in rates:
                continue
            ratio = report.ratio(case, "cool")
            entry = {"problem": name, "ours": rates.pop(report.OURS), "peers": rates}
            cases.append({**entry, "beside": case["peer"], "ratio": None if ratio is None else round(ratio, 3)})
        said = {"card": machine["device"], "date": run["date"], "clock": _span(clocks)}
        said |= {each: machine.get(each) for each in ("commit", "driver", "ptxas")}
        title = {"family": family["family"], "title": family["title"], "unit": report.unit(family)}
        found.append({**title, **said, "versions": versions, "cases": cases})
    return found


def of_ranks(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Records of what benchmarks/gpu/ranks.py has written: times of the slower rank."""
    said = {each: run.get(each) for each in RECORDED} | {"card": f"{run['world']} x {run['card']}"}
    said["versions"] = {each: run[each] for each in ("torch", "nccl")}
    found: dict[str, dict[str, Any]] = {}

    def add(family: str, problem: str, ours: float, peers: dict[str, float]) -> None:
        record = {"family": family, "title": f"{family}, {run['world']} GPUs", "unit": "us", **said, "cases": []}
        ratio = round(min(peers.values()) / ours, 3)
        case = {"problem": problem, "ours": ours, "peers": peers, "beside": ", ".join(peers), "ratio": ratio}
        found.setdefault(family, record)["cases"].append(case)

    for each in run.get("sums", ()):
        peers = {name: each[name] for name in ("NCCL", "torch one-shot", "torch two-shot") if name in each}
        add("all_reduce", f"{each['bytes'] >> 10} KiB", each["chosen"], peers)
    for each in run.get("products", ()):
        add(each["function"], each["shape"], each["ours"], {"NCCL and mm": each["NCCL"]})
    return list(found.values())


def _beside(record: Mapping[str, Any]) -> str:
    """The peers that ratios are to."""
    return "; ".join(sorted({case["beside"] for case in record["cases"]}))


def _span(values: Sequence[int]) -> str | None:
    return f"{min(values)} to {max(values)} MHz" if values else None


def plot(records: Sequence[Mapping[str, Any]]) -> str:
    """A line for each record with a point for each problem, on a logarithmic axis; an SVG for light and dark pages."""
    every = [each for record in records for each in ratios(record)]
    low, high = min(0.5, *every), max(2.0, *every)

    def across(ratio: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * math.log(ratio / low) / math.log(high / low)

    parts: list[str] = []
    for at, record in enumerate(records):
        y, values = 30 + 40 * at, ratios(record)
        mean = report.geometric_mean(values)
        span = escape(f"{min(values):.2f} to {max(values):.2f}, mean {mean:.2f} of {_beside(record)}")
        parts.append(f'<text x="{_LEFT}" y="{y}">{escape(record["title"].partition(":")[0])}</text>')
        parts.append(f'<text class="s" x="{_RIGHT}" y="{y + 12}" text-anchor="end">{span}</text>')
        parts.append(f'<path class="g" d="M{_LEFT} {y + 20}H{_RIGHT}"/>')
        for each in values:
            side = "up" if each >= 1 else "down"
            parts.append(f'<circle class="{side}" cx="{across(each):.1f}" cy="{y + 20}" r="3.5" opacity=".75"/>')
    height = 40 * len(records) + 24
    marks = "".join(
        f'<path class="{"one" if mark == 1 else "g"}" d="M{across(mark):.1f} 16V{height}"/>'
        f'<text class="s" x="{across(mark):.1f}" y="11" text-anchor="middle">{mark:g}</text>'
        for mark in (0.5, 1, 2)
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">'
    return f"{head}<style>{_STYLE}</style>\n{marks}\n" + "\n".join(parts) + "\n</svg>\n"


def page(records: Sequence[Mapping[str, Any]]) -> str:
    """The page: of each record where it comes from, and its problems."""
    parts = [_INTRODUCTION]
    for record in records:
        known = [f"{each} {record[each] or 'not recorded'}" for each in RECORDED]
        known += [f"{name} {version}" for name, version in record["versions"].items()]
        parts.append(f"## {record['title']}\n\n{'; '.join(known)}. In {record['unit']}.\n")
        rows = [f"| problem | ours | others | ratio to {_beside(record)} |", "|---|---|---|---|"]
        for case in record["cases"]:
            others = ", ".join(f"{name} {value:g}" for name, value in case["peers"].items())
            ratio = "" if case["ratio"] is None else f"{case['ratio']:.2f}"
            rows.append(f"| {case['problem']} | {case['ours']:g} | {others} | {ratio} |")
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Take figures in where that is asked for, and write the page and the plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", type=Path, metavar="FILE", help="figures of a run")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="what FILE does not say")
    args = parser.parse_args(arguments)
    records = read()
    if args.add:
        try:
            run = json.loads(args.add.read_text(encoding="utf-8"))
            # What other programs write are records.
            # What a program of benchmarks/gemm writes is one family.
            run = {"date": run["machine"]["date"], "families": [run]} if "machine" in run else run
            added = run if isinstance(run, list) else of_kernels(run) if "families" in run else of_ranks(run)
        except (OSError, ValueError, KeyError, TypeError) as error:
            parser.error(f"--add: expected figures of kernels.py or ranks.py in '{args.add}': {error!r}")
        for record in added:
            record.update(each.split("=", 1) for each in args.set)
        names = {(each["family"], each["card"]) for each in added}
        records = [each for each in records if (each["family"], each["card"]) not in names] + added
        (DOCS / "figures.json").write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    (DOCS / "images" / "figures.svg").write_text(plot(records), encoding="utf-8")
    (DOCS / "figures.md").write_text(page(records), encoding="utf-8")


if __name__ == "__main__":
    main()
