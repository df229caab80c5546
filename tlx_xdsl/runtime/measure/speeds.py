"""Speeds of a kernel's configurations: a report in their order, as a table, CSV, JSON and a picture."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Source: TypeAlias = Literal["measured", "stored", "predicted", "estimated"]
"""Where times are from: this process has measured them, an earlier one has, the clock predicts them from final code, or
a roofline gives them."""

RESOLUTION = 0.02
"""The difference of predicted times, relative to the smaller one, below which the order of a model means nothing."""

_BAR = 24
"""Characters of the longest bar of a table."""


@dataclass(frozen=True)
class Speed:
    """One configuration."""

    settings: Mapping[str, Any]
    """Compile-time arguments and options of the launch."""
    milliseconds: tuple[float, float, float] | None
    """Of a launch: the median, and what 20 % and 80 % of the launches stay below; None where there is no time."""
    remark: str = ""
    """The reason why there is none, or what is to be said of the binary."""
    cycles: float | None = None
    """Cycles of a multiprocessor, where the clock has predicted them."""

    @property
    def median(self) -> float:
        """The median, in milliseconds; infinity where there is no time."""
        return float("inf") if self.milliseconds is None else self.milliseconds[0]


@dataclass(frozen=True)
class SpeedReport:
    """The configurations of a search, the fastest one first."""

    kernel: str
    device: str
    """The GPU, by its name, or the target of an estimate."""
    source: Source
    speeds: tuple[Speed, ...]
    seconds: float
    """Wall time of the search."""
    checked: bool = False
    """True if each was compared with a reference."""

    @staticmethod
    def of(
        kernel: str, device: str, source: Source, speeds: Sequence[Speed], seconds: float, *, checked: bool = False
    ) -> SpeedReport:
        """The report of configurations in any order."""
        ordered = sorted(speeds, key=lambda each: each.median)
        return SpeedReport(kernel, device, source, tuple(ordered), seconds, checked)

    @property
    def best(self) -> Speed | None:
        """The fastest configuration; None where none has a time."""
        return self.speeds[0] if self.speeds and self.speeds[0].milliseconds is not None else None

    @property
    def summary(self) -> str:
        """One line: how many have a time, from where, and of what."""
        timed = sum(each.milliseconds is not None for each in self.speeds)
        how = {
            "measured": f"measured on {self.device}",
            "stored": f"measured on {self.device} by an earlier process",
            "predicted": f"predicted for {self.device} by the clock: nothing was measured",
            "estimated": f"estimated for {self.device}: nothing was measured, for there is no GPU here",
        }[self.source]
        checked = ", checked against the reference" if self.checked else ""
        return f"{self.kernel}: {timed} of {len(self.speeds)} configurations {how}{checked}; {self.seconds:.1f} s"

    def table(self) -> str:
        """The configurations by what differs between them, with times and bars, and the summary."""
        names = self.varying()
        rows = [("ms", "cycles" if self.source == "predicted" else "20 to 80 %", "of best", *names, "")]
        best = self.best
        for each in self.speeds:
            values = tuple(_shown(each.settings.get(name, "")) for name in names)
            if each.milliseconds is None or best is None:
                rows.append(("-", "-", "-", *values, each.remark))
                continue
            median, low, high = each.milliseconds
            bar = "#" * max(1, round(_BAR * best.median / median))
            spread = "-" if self.source == "estimated" else f"{low:.4g} to {high:.4g}"
            spread = spread if each.cycles is None else f"{each.cycles:,.0f}"
            share = f"{best.median / median:.0%}"
            rows.append((f"{median:.4g}", spread, share, *values, f"{bar} {each.remark}".rstrip()))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
        lines = [
            "  ".join([*(cell.rjust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *self._about_ties(names), self.summary])

    __str__ = table

    def ties(self) -> list[list[Speed]]:
        """Groups of two and more whose modelled times differ by less than `RESOLUTION` from the fastest of each."""
        groups: list[list[Speed]] = []
        for each in self.speeds if self.source in ("predicted", "estimated") else ():
            if each.milliseconds is None:
                break
            if groups and each.median < groups[-1][0].median * (1 + RESOLUTION):
                groups[-1].append(each)
            else:
                groups.append([each])
        return [group for group in groups if len(group) > 1]

    def _about_ties(self, names: Sequence[str]) -> list[str]:
        said: list[str] = []
        for group in self.ties():
            which = "; ".join(
                " ".join(f"{name}={_shown(each.settings.get(name, ''))}" for name in names) for each in group
            )
            said.append(f"the model can't tell these apart, they differ by less than {RESOLUTION:.0%}: {which}")
        return said

    def varying(self) -> list[str]:
        """Names of the settings that are not the same everywhere."""
        names = list(dict.fromkeys(name for each in self.speeds for name in each.settings))
        return [name for name in names if len({repr(each.settings.get(name)) for each in self.speeds}) > 1]

    def as_csv(self) -> str:
        """A line for each configuration, with a head; times are in milliseconds."""
        names = list(dict.fromkeys(name for each in self.speeds for name in each.settings))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*names, "ms", "ms_20", "ms_80", "source", "remark"])
        for each in self.speeds:
            times = each.milliseconds or ("", "", "")
            values = [_shown(each.settings.get(name, "")) for name in names]
            writer.writerow([*values, *times, self.source, each.remark])
        return text.getvalue()

    def as_json(self) -> str:
        """Write all of the report, for other programs."""
        return json.dumps(
            {
                "kernel": self.kernel,
                "device": self.device,
                "source": self.source,
                "seconds": round(self.seconds, 3),
                "checked": self.checked,
                "configurations": [
                    {
                        "settings": {name: _plain(value) for name, value in each.settings.items()},
                        "ms": each.milliseconds,
                        "remark": each.remark,
                        **({} if each.cycles is None else {"cycles": round(each.cycles)}),
                    }
                    for each in self.speeds
                ],
            },
            indent=2,
        )

    def svg(self) -> str:
        """The times as the text of an SVG file: a bar for each configuration."""
        from ..show.bars_svg import bars_as_svg

        names = self.varying()
        bars = [
            (" ".join(f"{name}={_shown(each.settings.get(name, ''))}" for name in names), each.median, each.remark)
            for each in self.speeds
        ]
        return bars_as_svg(self.summary, "ms", bars)

    def _repr_html_(self) -> str:
        """The picture for a notebook."""
        return self.svg()


def _shown(value: Any) -> str:
    return str(getattr(value, "value", value))


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else str(value)
