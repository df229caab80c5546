"""Tables and the plot of the CPU's benchmark."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from benchmarks.cpu.cases import BOUND, OURS
from benchmarks.cpu.mlir_rival import FREED, NAME

RIVALS = ("numpy", "torch", FREED, NAME)
"""The columns of the table; the plot has no room for the last."""

LAUNCH_LINES = {"kernel[grid]": 30.0, "bound": 8.0}
"""Microseconds that a launch may take."""
COMPILE_LINES = {"cold": 150.0, "from disk": 10.0, "import": 200.0}
"""Milliseconds that the medians may take."""

COLOURS = {OURS: "#c2410c", "numpy": "#9aa5b1", "torch": "#c9b18a", FREED: "#8fb5d9"}


def least(times: Mapping[str, Sequence[float]], name: str) -> float:
    """The shortest round: nothing but other work on the machine makes a round longer."""
    return min(times[name])


def speed_table(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    """Milliseconds of all candidates, and ours over each rival's, in Markdown."""
    shown = [name for name in RIVALS if any(name in problem["times"] for problem in problems)]
    lines = [f"| problem | {' | '.join((OURS, *shown))} | wanted |", "|---|" + "---|" * (len(shown) + 2)]
    for problem in problems:
        times, limits = problem["times"], problem["lines"]
        ours = f"{least(times, OURS):.3g}"
        if BOUND in times:
            ours += f", bound {least(times, BOUND):.3g}"
        cells = [_cell(times, name, limits.get(name)) for name in shown]
        held = {name: limit for name, limit in limits.items() if name in times}
        # A rival without a column is ours in another type.
        said = [f"{name} {_cell(times, name, limit)}" for name, limit in held.items() if name not in shown]
        wanted = [f"{limit:.2f} of {name}" for name, limit in held.items() if name not in (NAME, FREED)]
        lines.append(f"| {problem['title']} | {'; '.join((ours, *said))} | {' | '.join(cells)} | {', '.join(wanted)} |")
    return lines


def _cell(times: Mapping[str, Sequence[float]], name: str, limit: float | None) -> str:
    """A rival's time, and ours over it: bold where that is more than it may be."""
    if name not in times:
        return ""
    ratio = least(times, OURS) / least(times, name)
    said = f"**{ratio:.2f}**" if limit is not None and ratio > limit else f"{ratio:.2f}"
    return f"{least(times, name):.3g} ({said})"


def thread_table(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    """One thread and two, in Markdown."""
    heads = ("one thread, ms", "two", "faster by", "CPU time of one, ms", "of the busier of two", "faster by")
    lines = [f"| problem | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for problem in problems:
        shown: list[str] = []
        for names in (("1", "2"), ("1, CPU", "2, CPU")):
            one, two = (least(problem["times"], name) for name in names)
            shown += [f"{one:.3g}", f"{two:.3g}", f"{one / two:.2f}"]
        lines.append(f"| {problem['title']} | {' | '.join(shown)} |")
    return lines


def launch_table(costs: Mapping[str, Sequence[float]], wake_ups: Sequence[float]) -> list[str]:
    """Microseconds of launches, in Markdown."""
    lines = ["| launch | least, us | median, us | wanted |", "|---|---|---|---|"]
    for name, found in (*costs.items(), ("waking a thread of the pool", wake_ups)):
        line = next((limit for way, limit in LAUNCH_LINES.items() if name.startswith(way)), None)
        wanted = "" if line is None else f"at most {line:.0f}"
        lines.append(f"| {name} | {min(found):.1f} | {statistics.median(found):.1f} | {wanted} |")
    return lines


def compile_table(
    cold: Mapping[str, Mapping[str, float]], disk: Mapping[str, float], imports: Sequence[float]
) -> list[str]:
    """Milliseconds of compilation, in Markdown."""
    whole = [sum(times.values()) for times in cold.values()]
    limits = COMPILE_LINES
    lines = [f"| {len(whole)} kernels | median, ms | slowest, ms | wanted |", "|---|---|---|---|"]
    lines.append(f"| cold, all stages | **{statistics.median(whole):.0f}** | {max(whole):.0f} | {limits['cold']:.0f} |")
    for stage in next(iter(cold.values())):
        found = [times[stage] for times in cold.values()]
        lines.append(f"| {stage} | {statistics.median(found):.1f} | {max(found):.0f} | |")
    lines.append(
        f"| from the cache on disk | **{statistics.median(disk.values()):.1f}** | {max(disk.values()):.1f} | "
        f"{limits['from disk']:.0f} |"
    )
    lines.append(
        f"| `import tlx_xdsl` (a process each) | **{statistics.median(imports):.0f}** | {max(imports):.0f} | "
        f"{limits['import']:.0f} |"
    )
    return lines


def page(record: Mapping[str, Any]) -> str:
    """All tables, in Markdown."""
    parts: list[list[str]] = []
    if "speed" in record:
        parts.append(speed_table(record["speed"]))
    if "threads" in record:
        parts.append(thread_table(record["threads"]))
    if "launch" in record:
        parts.append(launch_table(record["launch"], record["wake-up"]))
    if "compile" in record:
        parts.append(compile_table(record["compile"], record["disk"], record["import"]))
    return "\n\n".join("\n".join(part) for part in parts)


# --- the plot ---------------------------------------------------------------------------------------------------------

LEFT, BAR, GAP, WIDTH, TOP, NUMBER = 190, 11, 9, 620, 46, 60
MOST = 6.0
"""Bars end there, and their number says the rest."""


def svg(problems: Sequence[Mapping[str, Any]]) -> str:
    """Times over ours, a bar for each candidate of each problem."""
    names = [name for name in COLOURS if any(name in problem["times"] for problem in problems)]
    rows = [(problem, [name for name in names if name in problem["times"]]) for problem in problems]
    height = TOP + sum(len(shown) * BAR + GAP for _, shown in rows) + 10
    unit = (WIDTH - LEFT - NUMBER) / MOST
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        _text(8, 16, "Time on one thread over that of tlx_xdsl: longer is slower", 12),
    ]
    place = 8
    for name in names:
        parts.append(f'<rect x="{place}" y="{25}" width="9" height="9" fill="{COLOURS[name]}"/>')
        parts.append(_text(place + 13, 33, name, 9))
        place += 28 + round(5.2 * len(name))
    y = TOP
    for problem, shown in rows:
        parts.append(_text(8, y + BAR * len(shown) // 2 + 3, problem["title"], 9))
        ours = least(problem["times"], OURS)
        for name in shown:
            ratio = least(problem["times"], name) / ours
            length = min(ratio, MOST) * unit
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 1}" fill="{COLOURS[name]}"/>')
            said = f"{least(problem['times'], name):.3g} ms" if name == OURS else f"{ratio:.2f}"
            parts.append(_text(round(LEFT + max(length, unit) + 4), y + BAR - 2, said, 8))
            y += BAR
        y += GAP
    at = f'x1="{LEFT + unit}" y1="{TOP - 4}" x2="{LEFT + unit}" y2="{height - 10}"'
    parts.append(f'<line {at} stroke="#888" stroke-dasharray="2 2"/>')
    return "\n".join([*parts, "</svg>", ""])


def _text(x: int, y: int, text: str, size: int) -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="#222">{escape(text)}</text>'
