"""The page and the plot of the GPU benchmark, from what its processes have written."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

OURS = "tlx_xdsl"

COLOURS = {
    "cuBLAS": "#9aa5b1", "cuDNN": "#9aa5b1", "FlashAttention": "#c9b18a", "Triton": "#8fb5d9", OURS: "#c2410c",
    f"{OURS}, deterministic": "#e8a06f", "copy": "#d5dae0", "torch": "#c9b18a", "torch.compile": "#8fb5d9",
    f"{OURS}, pages of 64": "#e8a06f", f"{OURS}, pages of 16": "#f3cba8",
    f"{OURS}, fp8": "#5a8f3d", f"{OURS}, fp8, pages of 64": "#a9cb92",
}  # fmt: skip
"""Of the bars; ours stands out."""

TITLE = "Speed on the GPU"

INTRODUCTION = """\
# {title}

Measured on {date}; `make bench-gpu` (`benchmarks/gpu/kernels.py`) measures, and writes this page.
{device}, Triton {triton}, torch {torch} (CUDA {cuda}, cuDNN {cudnn}).

TFLOP/s, or GB/s where memory is the limit; a causal mask counts half of the operations, and of memory what has to be
read and written once. *cool* is a burst of 5 launches after 100 ms of rest, with the
L2 cache emptied before each: kernels at full clock. *hot*, in brackets, is sustained load at the clock that the power
limit leaves, where differences below 5 % are noise. Candidates take turns, round by round; a rate is of the median of
{cool} (cool) or {hot} (hot) rounds. The ratio is the median over the rounds of our rate over that of the library, of
the fastest where several are named: above 1 we are faster. Inputs are random, outputs were NaN before, and everything
was compared with references in float32 or float64 before it was timed. Which configuration runs is a rule that is
committed (`tlx_xdsl/kernels/`): nothing is tuned in the run.
"""


def rates(case: Mapping[str, Any], regime: str) -> dict[str, float]:
    """Each candidate's rate, in the case's `unit`."""
    scale = 1e-6 if case.get("traffic") else 1e-9
    return {name: _work(case, name) / median(times) * scale for name, times in case[regime]["times"].items()}


def _work(case: Mapping[str, Any], candidate: str) -> float:
    """Bytes, or operations, of one launch."""
    traffic: Mapping[str, float] = case.get("traffic") or {}
    return traffic[candidate] if traffic else case["flops"]


def unit(record: Mapping[str, Any]) -> str:
    """Return the unit of a family's rates."""
    return "GB/s" if any(case.get("traffic") for case in record["cases"].values()) else "TFLOP/s"


def ratio(case: Mapping[str, Any], regime: str) -> float | None:
    """The median over the rounds of our rate over that of the fastest peer; None where either is missing."""
    times = case[regime]["times"]
    peers = [name for name in case["peer"].split(", ") if name in times]
    if OURS not in times or not peers:
        return None
    speeds = {name: [_work(case, name) / each for each in times[name]] for name in (OURS, *peers)}
    fastest = [max(each) for each in zip(*(speeds[name] for name in peers), strict=True)]
    return median(ours / peer for ours, peer in zip(speeds[OURS], fastest, strict=True))


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    product = 1.0
    for value in values:
        product *= value
    return product ** (1 / len(values))


def clocks(case: Mapping[str, Any], regime: str) -> str:
    """The SM clocks in MHz, from the lowest to the highest."""
    found = sorted(clock for clock in case[regime]["clocks"] if clock is not None)
    if not found:
        return "?"
    return str(found[0]) if found[0] == found[-1] else f"{found[0]} to {found[-1]}"


def candidates(record: Mapping[str, Any]) -> list[str]:
    """All candidates of a family, in order."""
    names = {name: None for case in record["cases"].values() for name in (*case["cool"]["times"], *case["errors"])}
    return [name for name in names if name != OURS] + [OURS]


def table(record: Mapping[str, Any]) -> str:
    """A family's table, what is missing in it, and its failed checks."""
    names = candidates(record)
    peers = dict.fromkeys(case["peer"] for case in record["cases"].values())
    lines = [f"## {record.get('title', record['family'])}, {unit(record)}", ""]
    lines.append(f"| problem | {' | '.join(names)} | ratio to {' or '.join(peers)} | clock, MHz | {OURS} runs |")
    lines.append("|---|" + "---|" * (len(names) + 3))
    notes: list[str] = []
    ratios: list[float] = []
    for name, case in record["cases"].items():
        cool, hot = rates(case, "cool"), rates(case, "hot")
        cells = [f"{cool[each]:.0f} ({hot[each]:.0f})" if each in cool else "-" for each in names]
        found, sustained = ratio(case, "cool"), ratio(case, "hot")
        if found is not None:
            ratios.append(found)
        shown = "-" if found is None or sustained is None else f"**{found:.3f}** ({sustained:.3f})"
        clock = f"{clocks(case, 'cool')} ({clocks(case, 'hot')})"
        lines.append(f"| {name} | {' | '.join(cells)} | {shown} | {clock} | {case['config']} |")
        notes += [f"- {name}: {each}: {why}" for each, why in case["errors"].items()]
    if ratios:
        notes.insert(0, f"- Geometric mean of the ratios, cool: {geometric_mean(ratios):.3f}.")
    checks = record["checks"]
    failed = [check for check in checks if not check["ok"]]
    notes.append(f"- {len(checks) - len(failed)} of {len(checks)} checks before the timing held.")
    notes += [f"- **Failed**: {check['label']}: {check['error']} {check.get('why', '')}".rstrip() for check in failed]
    notes += [f"- **Stopped** at {where}: {why}" for where, why in record["skipped"].items()]
    if not record.get("finished"):
        notes.append("- **Not finished.**")
    return "\n".join([*lines, "", *(note.replace("\n", " ") for note in notes)])


def page(records: Sequence[Mapping[str, Any]], date: str, image: str | None, title: str = TITLE) -> str:
    """The whole page; `image` is the plot's path as the page refers to it."""
    facts = {name: "?" for name in ("device", "triton", "torch", "cuda", "cudnn")}
    for record in records:
        machine = record.get("machine", {})
        facts |= {name: machine[name] for name in facts if machine.get(name) is not None}
    first = next((case for record in records for case in record["cases"].values()), None)
    rounds = {
        regime: len(next(iter(first[regime]["times"].values()), [])) if first else 0 for regime in ("cool", "hot")
    }
    parts = [INTRODUCTION.format(title=title, date=date, **facts, **rounds)]
    if image:
        parts.append(f"![Rates of each problem, cool]({image})\n")
    parts += [table(record) + "\n" for record in records]
    return "\n".join(parts)


# --- the plot ---------------------------------------------------------------------------------------------


def plot(records: Sequence[Mapping[str, Any]], path: Path) -> Path | None:
    """Draw the rates, cool: a PNG where there is matplotlib, else an SVG; returns the file, None without figures."""
    shown = [record for record in records if record["cases"]]
    if not shown:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("matplotlib") is None:
        path = path.with_suffix(".svg")
        path.write_text(svg(shown))
        return path
    _matplotlib(shown, path)
    return path


CROWDED = 24
"""Bars of a chart above which their labels are upright, since side by side they would run into each other."""


def _matplotlib(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # As wide as the text of the site, with letters that can be read there.
    figure, axes = pyplot.subplots(len(records), 1, figsize=(8, 3 * len(records)), squeeze=False)
    for (axis,), record in zip(axes, records, strict=True):
        names = candidates(record)
        width = 0.8 / len(names)
        for at, name in enumerate(names):
            values = [rates(case, "cool").get(name, 0.0) for case in record["cases"].values()]
            places = [place + (at - (len(names) - 1) / 2) * width for place in range(len(values))]
            bars = axis.bar(places, values, width, label=name, color=COLOURS.get(name))
            crowded = len(names) * len(record["cases"]) > CROWDED
            labels = [f"{value:.0f}" if value else "" for value in values]
            axis.bar_label(bars, labels, fontsize=7, rotation=90 if crowded else 0, padding=2)
        # Many names side by side would run into each other in one line.
        names_below = [name.replace(" x ", " x\n") if len(record["cases"]) > 5 else name for name in record["cases"]]
        axis.set_xticks(range(len(names_below)), names_below, fontsize=7)
        axis.set_ylabel(unit(record))
        axis.set_title(record.get("title", record["family"]), fontsize=9)
        axis.set_ylim(top=axis.get_ylim()[1] * 1.25)
        axis.legend(fontsize=7, loc="upper center", ncols=len(names), frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


CHART_HEIGHT, BAR_WIDTH, GAP, LEFT, TOP = 180, 26, 24, 48, 34
"""Of the SVG, in its units."""


def svg(records: Sequence[Mapping[str, Any]]) -> str:
    """The same plot without a library."""
    width = max(LEFT + sum(len(candidates(record)) * BAR_WIDTH + GAP for _ in record["cases"]) for record in records)
    height = len(records) * (CHART_HEIGHT + TOP + 44)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 20} {height}" font-family="sans-serif">',
        f'<rect width="{width + 20}" height="{height}" fill="white"/>',
    ]
    for at, record in enumerate(records):
        parts += _chart(record, at * (CHART_HEIGHT + TOP + 44) + TOP)
    return "\n".join([*parts, "</svg>", ""])


def _chart(record: Mapping[str, Any], top: int) -> list[str]:
    names = candidates(record)
    highest = max((rate for case in record["cases"].values() for rate in rates(case, "cool").values()), default=1.0)
    bottom = top + CHART_HEIGHT
    parts = [_text(LEFT, top - 20, f"{record.get('title', record['family'])}, {unit(record)}", 12)]
    for at, name in enumerate(names):
        left = LEFT + 300 + 100 * at
        parts.append(f'<rect x="{left}" y="{top - 28}" width="9" height="9" fill="{COLOURS.get(name, "#888")}"/>')
        parts.append(_text(left + 13, top - 20, name, 9))
    parts.append(f'<line x1="{LEFT}" y1="{bottom}" x2="{LEFT + 1000}" y2="{bottom}" stroke="#ccc"/>')
    x = LEFT
    for label, case in record["cases"].items():
        found = rates(case, "cool")
        for at, name in enumerate(names):
            tall = found.get(name, 0.0) / highest * (CHART_HEIGHT - 14)
            left = x + at * BAR_WIDTH
            parts.append(
                f'<rect x="{left}" y="{bottom - tall:.1f}" width="{BAR_WIDTH - 2}" height="{tall:.1f}" '
                f'fill="{COLOURS.get(name, "#888")}"/>'
            )
            if name in found:
                parts.append(_text(left + 2, round(bottom - tall - 3), f"{found[name]:.0f}", 9))
        parts.append(_text(x, bottom + 14, label, 9))
        x += len(names) * BAR_WIDTH + GAP
    return parts


def _text(x: int, y: int, text: str, size: int) -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="#222">{escape(text)}</text>'
