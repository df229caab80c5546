"""Predictions of the clock beside what was measured: errors, ranks, and what its choices cost.

    python benchmarks/clock/validate.py --held-out [--data DIR] [--only NAME] [--processes 2] [--table FILE]
    python benchmarks/clock/validate.py --training --no-machine-code --chip H200

DIR is what `measure.py` has written. Needs no GPU. Predictions are kept there, too, for `--again`, which only prints.

A measured duration is that of the kernel alone, as the profiler reports it, in cycles by the clock that was noted
while it ran, or measured right after. The clock predicts cycles at the noted clock, or at one that it estimates where
there is none and with `--own-clock`; then the times are compared. From event to event, which `--events` takes, the same
launches last 5,100 cycles longer in the median (an empty one takes 5,400), and this part varies by 1,500 among kernels
of less than 100,000 cycles (standard deviation): that is more than what tells configurations apart there.
"""

from __future__ import annotations

import argparse
import base64
import concurrent.futures
import json
import lzma
import math
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.clock.describe import arguments_of

NEAR = 0.2
"""An error that is still near."""
CHOICE = 0.03
"""What a choice may be slower than the best of its problem."""


@dataclass
class Row:
    """A configuration: cycles measured and predicted, or why there is no prediction."""

    problem: str
    family: str
    config: str
    measured: float
    predicted: float | None = None
    seconds: float = 0.0
    bound: str = ""
    error: str = ""

    @property
    def off(self) -> float:
        """Return the relative error of the prediction; what was not predicted is wholly wrong."""
        return 1.0 if self.predicted is None else self.predicted / self.measured - 1


def measured_cycles(record: Mapping[str, Any], events: bool = False) -> float | None:
    """Cycles of a launch, None where there are none; by the clock while it ran, where that was noted."""
    if record.get("profiled") and not events:
        return statistics.median(record["profiled"]) * 1e-6 * (clock_of(record) or record["profiled_hertz"])
    if not record.get("microseconds"):
        return None
    rounds = [
        statistics.median(each) * 1e-6 * hertz
        for each, hertz in zip(record["microseconds"], record["hertz"], strict=True)
    ]
    return statistics.median(rounds)


def tau(rows: Sequence[Row]) -> float | None:
    """Kendall's tau of a problem's configurations: pairs in the right order less those in the wrong one, of all.

    Pairs that were measured within 1 % do not count; None where no pair does. A pair with equal predictions, or with
    one that is missing, is in no order.
    """
    right = wrong = pairs = 0
    for at, one in enumerate(rows):
        for other in rows[at + 1 :]:
            if abs(one.measured / other.measured - 1) < 0.01:
                continue
            pairs += 1
            if one.predicted is None or other.predicted is None or one.predicted == other.predicted:
                continue
            if (one.measured < other.measured) == (one.predicted < other.predicted):
                right += 1
            else:
                wrong += 1
    return (right - wrong) / pairs if pairs else None


def regret(rows: Sequence[Row]) -> float:
    """Divide the time of the configuration that is predicted to be the fastest by that of the fastest, minus 1.

    Infinite where nothing is predicted.
    """
    known = [each for each in rows if each.predicted is not None]
    if not known:
        return math.inf
    chosen = min(known, key=lambda each: each.predicted or 0.0)
    return chosen.measured / min(each.measured for each in rows) - 1


# --- predictions ------------------------------------------------------------------------------------------------------


@cache
def _held(path: Path) -> dict[str, str]:
    return json.loads(lzma.decompress(path.read_bytes()))


def clock_of(record: Mapping[str, Any]) -> float | None:
    """Hertz of the multiprocessors while a kernel ran; None where it was not noted."""
    running = record.get("running_hertz")
    return statistics.median(running) if running else None


def predict_record(
    record: Mapping[str, Any], data: Path, chip: str, machine_code: bool, timeline: bool = False, own: bool = False
) -> Any:
    """The clock's prediction of a launch that was measured, at the clock of then, or at its own."""
    from tlx_xdsl.sass.text import disassembly, find_nvdisasm
    from tlx_xdsl.timing.predict import predict

    text = _held(data / "ptx.json.xz")[record["key"]]
    code, tool = None, find_nvdisasm()
    if machine_code and tool is not None:
        cubin = base64.b64decode(_held(data / "cubins.json.xz")[record["key"]])
        code = disassembly(cubin, tool, lines_of_ptx=True)
    cluster = record["cluster"]
    return predict(
        text, record["grid"], arguments_of(record["arguments"]), chip=chip, num_warps=record["num_warps"],
        cluster=cluster, shared=record["shared"], scratch=record["scratch"], registers=record["registers"],
        machine_code=code, timeline=timeline, hertz=None if own else clock_of(record),
    )  # fmt: skip


def _one(work: tuple[Mapping[str, Any], Path, str, bool, bool, bool]) -> dict[str, Any]:
    record = work[0]
    named = {"problem": record["problem"], "config": record["config"]}
    before = time.process_time()
    try:
        found = predict_record(*work)
    except Exception as error:  # the others are not lost; the table says it
        return {**named, "error": f"{type(error).__name__}: {error}"[:200], "seconds": time.process_time() - before}
    return {
        **named,
        "cycles": found.cycles,
        "hertz": found.hertz,
        "bound": found.bound,
        "seconds": time.process_time() - before,
    }


def predictions(records: Sequence[Mapping[str, Any]], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Predict all, in so many processes."""
    works = [(each, args.data, args.chip, not args.no_machine_code, False, args.own_clock) for each in records]
    if args.processes == 1:
        return [_one(each) for each in works]
    with concurrent.futures.ProcessPoolExecutor(args.processes) as pool:
        return list(pool.map(_one, works, chunksize=1))


# --- tables -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """Quality of the predictions of some problems."""

    problems: int
    configurations: int
    mean_error: float
    near: float
    mean_tau: float
    good_choices: int
    choices: int
    bias: float

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Figures:
        """Sum up."""
        grouped = by_problem(rows)
        taus = [each for each in map(tau, grouped.values()) if each is not None]
        regrets = [regret(each) for each in grouped.values() if len(each) > 1]
        errors = [abs(each.off) for each in rows]
        ratios = [math.log(each.predicted / each.measured) for each in rows if each.predicted]
        return cls(
            len(grouped), len(rows), statistics.fmean(errors), sum(each <= NEAR for each in errors) / len(errors),
            statistics.fmean(taus) if taus else math.nan, sum(each <= CHOICE for each in regrets), len(regrets),
            math.exp(statistics.fmean(ratios)) if ratios else math.nan,
        )  # fmt: skip

    def cells(self) -> list[str]:
        """Return the figures as the table shows them."""
        return [
            str(self.problems), str(self.configurations), f"{self.mean_error:.1%}", f"{self.near:.0%}",
            "-" if math.isnan(self.mean_tau) else f"{self.mean_tau:.2f}", f"{self.good_choices} of {self.choices}",
        ]  # fmt: skip


def by_problem(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The configurations of each problem."""
    found: dict[str, list[Row]] = {}
    for each in rows:
        found.setdefault(each.problem, []).append(each)
    return found


def table(rows: Sequence[Row], title: str) -> str:
    """The figures of each family and of all, in Markdown."""
    families: dict[str, list[Row]] = {}
    for each in rows:
        families.setdefault(each.family, []).append(each)
    head = [
        "family",
        "problems",
        "configurations",
        "mean error",
        f"within {NEAR:.0%}",
        "tau",
        f"choice within {CHOICE:.0%}",
    ]
    lines = [title, "", f"| {' | '.join(head)} |", f"|---{'|---:' * (len(head) - 1)}|"]
    lines += [f"| {family} | {' | '.join(Figures.of(each).cells())} |" for family, each in families.items()]
    lines.append(f"| **all** | {' | '.join(Figures.of(rows).cells())} |")
    return "\n".join(lines) + "\n"


def listing(rows: Sequence[Row]) -> str:
    """Each configuration: microseconds would hide the clock, so thousands of cycles."""
    lines = []
    for name, found in by_problem(rows).items():
        rank, cost = tau(found), regret(found)
        lines.append(f"{name}   tau {'-' if rank is None else f'{rank:.2f}'}   choice {cost:+.1%}")
        for each in sorted(found, key=lambda row: row.measured):
            shown = (
                each.error if each.predicted is None else f"{each.predicted / 1e3:9.1f} {each.off:+7.1%}  {each.bound}"
            )
            lines.append(f"    {each.config:<44} {each.measured / 1e3:9.1f} {shown}  ({each.seconds:.1f} s)")
    return "\n".join(lines)


def _cycles_then(said: Mapping[str, Any], record: Mapping[str, Any]) -> float | None:
    """The time that is predicted in cycles of the clock that was measured."""
    then = clock_of(record) or record.get("profiled_hertz")
    if "cycles" not in said or then is None or "hertz" not in said:
        return said.get("cycles")
    return said["cycles"] * then / said["hertz"]


def rows_of(records: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]], events: bool) -> list[Row]:
    """Measured and predicted, side by side, in cycles of the clock that was measured."""
    known = {(each["problem"], each["config"]): each for each in found}
    rows = []
    for each in records:
        cycles = measured_cycles(each, events)
        assert cycles is not None, "only what was measured is asked for"
        said = known.get((each["problem"], each["config"]), {"error": "not predicted"})
        rows.append(
            Row(
                each["problem"],
                each["family"],
                each["config"],
                cycles,
                _cycles_then(said, each),
                said.get("seconds", 0.0),
                said.get("bound", ""),
                said.get("error", ""),
            )
        )
    return rows


def main() -> int:
    """Predict and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--training", action="store_true")
    chosen.add_argument("--held-out", action="store_true")
    parser.add_argument("--data", type=Path, default=Path(__file__).with_name("data"))
    parser.add_argument("--only", default="", help="only problems with this in their names")
    parser.add_argument("--chip", default="H200")
    parser.add_argument("--no-machine-code", action="store_true", help="predict from PTX alone")
    parser.add_argument("--events", action="store_true", help="durations from event to event")
    parser.add_argument("--own-clock", action="store_true", help="estimate the clock of a launch, too")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="print the predictions of before")
    parser.add_argument("--table", type=Path, help="a file for the table of families")
    args = parser.parse_args()
    document = json.loads((args.data / "durations.json").read_text(encoding="utf-8"))
    records = [
        each
        for each in document["records"]
        if each["held_out"] == args.held_out and args.only in each["problem"] and measured_cycles(each, args.events)
    ]
    if not records:
        print("nothing was measured of this", file=sys.stderr)
        return 1
    kept = args.data / f"predicted-{'held-out' if args.held_out else 'training'}.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if args.again else predictions(records, args)
    if not args.again and not args.only:
        kept.write_text(json.dumps(found), encoding="utf-8")
    rows = rows_of(records, found, args.events)
    print(listing(rows))
    title = f"{document.get('card', 'no GPU')}, {document['date']}, {'held out' if args.held_out else 'training'}"
    made = table(rows, title)
    figures = Figures.of(rows)
    print(
        f"\n{made}\npredicted over measured, geometric mean: {figures.bias:.3f}; seconds of a prediction, median "
        f"{statistics.median(each.seconds for each in rows):.2f}, most {max(each.seconds for each in rows):.1f}"
    )
    if args.table:
        args.table.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
