"""Specialised kernels beside stock Triton's and those written by hand, on a Hopper GPU: values first, then times.

    python benchmarks/warp_specialize/prepare.py --out DIR --pack FILE           (before, where no GPU is needed)
    python benchmarks/warp_specialize/speed.py --prepared FILE --out RESULTS [--families attention,gated] [--only 4096]
    python benchmarks/warp_specialize/speed.py --dry                             (no GPU: small problems, made-up times)
    python benchmarks/warp_specialize/speed.py --render RESULTS                  (the table of an earlier run)

A launch's candidates are checked against a reference in float32, with outputs that were NaN and sentinels beside all
arrays, and timed once; then the fastest of each kind take turns, cool (`benchmarks/gpu/measure.py`). Ours is tuned
over decisions as stock is over its configurations; `ours by rule` is what the compiler decides by itself. Each family
runs in a process of its own, which another one continues where a kernel hangs or faults.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gpu.kernels import supervise
from benchmarks.warp_specialize import candidates
from benchmarks.warp_specialize.candidates import HAND, OURS, RULE, STOCK, STOCK_WS
from benchmarks.warp_specialize.machines import Dry, Gpu
from benchmarks.warp_specialize.prepare import unpacked
from benchmarks.warp_specialize.tables import table
from tests.gallery.plain.families import FAMILIES
from tests.gallery.plain.family import Family, Shape

KINDS = (STOCK, STOCK_WS, OURS, RULE, HAND)
WANTED: Mapping[str, float] = {
    "attention": 1.35, "attention_two_loops": 1.35, "gated": 1.15, "matmul_gelu": 1.15, "delta_state": 1.3,
    "delta_output": 1.3,
}  # fmt: skip
"""The speed over stock Triton's that a family should have in the mean; 1 for others."""
OF_HAND: Mapping[str, float] = {"attention": 0.92, "attention_two_loops": 0.92, "gated": 0.93}
"""The speed as a part of that of the kernel by hand; 0.95 for products."""


@dataclass
class Entry:
    """A candidate whose values are right, with the time of the first comparison in ms."""

    label: str
    launch: Callable[[], Any]
    ms: float


@dataclass
class Record:
    """Record of a family, in a file, written after every step."""

    path: Path
    data: dict[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        self.data = {
            "family": self.path.stem,
            "checks": [],
            "checked": True,
            "cases": {},
            "skipped": {},
            "running": None,
        }
        if self.path.exists():
            self.data = json.loads(self.path.read_text(encoding="utf-8"))

    def write(self, **changes: Any) -> None:
        """Change entries, and write all to the file at once."""
        self.data.update(changes)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.data, indent=1, default=str), encoding="utf-8")
        part.replace(self.path)


def named(shape: Shape) -> str:
    """The name of a launch."""
    return " ".join(
        f"{name}={'x'.join(map(str, value)) if isinstance(value, tuple) else value}" for name, value in shape.items()
    )


def run_family(family: Family, machine: Any, record: Record, only: str, most: int) -> None:
    """Compare all candidates of each large launch, then the best of each kind."""
    record.write(machine=machine.machine, wanted=WANTED.get(family.name, 1.0), checked=True)
    record.write(**{"wanted of hand": OF_HAND.get(family.name, 0.95)})
    dry = isinstance(machine, Dry)
    for shape in family.shapes[:2] if dry else candidates.launches(family):
        name = named(shape)
        if name in record.data["cases"] or only not in name:
            continue
        found = _screened(family, shape, name, machine, record, most)
        best = {kind: min(entries, key=lambda each: each.ms) for kind, entries in found["entries"].items() if entries}
        record.write(running=f"{name}: timing")
        timed = machine.cool({kind: each.launch for kind, each in best.items()})
        case = {
            "operations": found["operations"], "screen": found["screen"], "errors": found["errors"],
            "best": {kind: each.label for kind, each in best.items()}, "cool": timed,
        }  # fmt: skip
        record.write(cases={**record.data["cases"], name: case}, machine=machine.machine, running=None)
    record.write(finished=True, running=None)


def _screened(family: Family, shape: Shape, name: str, machine: Any, record: Record, most: int) -> dict[str, Any]:
    record.write(running=f"{name}: inputs")
    problem = machine.begin(family, shape)
    entries: dict[str, list[Entry]] = {kind: [] for kind in KINDS}
    screen: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
    errors: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    makers: list[tuple[str, str, Callable[[], Any]]] = []
    for maker in (candidates.stock, candidates.stock_warp_specialized, candidates.ours):
        listed = list(maker(family, shape))[: most or None]
        makers += [(each.who, each.label, lambda each=each: machine.bound(each)) for each in listed]
    makers.append((HAND, "hand", lambda: machine.by_hand(family, shape)))
    for kind, label, make in makers:
        running = f"{name}: {kind}: {label}"
        if running in record.data["skipped"]:
            errors[kind][label] = record.data["skipped"][running]
            continue
        record.write(running=running)
        why, ms, launch = _tried(make, machine, family, running)
        if why:
            errors[kind][label] = why
        else:
            screen[kind][label] = ms
            entries[kind].append(Entry(label, launch, ms))
    # What the compiler decides by itself is one of what can be tuned.
    entries[OURS] += entries[RULE]
    return {"operations": problem.operations, "entries": entries, "screen": screen, "errors": errors}


def _tried(make: Callable[[], Any], machine: Any, family: Family, running: str) -> tuple[str, float, Any]:
    """Try a candidate; return what is wrong with it, the median of some launches in ms, and its launch."""
    try:
        launch, solved = make()
        if isinstance(launch, str):
            return launch, 0.0, None
        machine.poison(solved)
        machine.first(launch, running)
        if wrong := machine.wrong(solved, family):
            print(f"WRONG {running}: {wrong}", flush=True)
            return f"wrong: {wrong}", 0.0, None
        return "", machine.quick(launch), launch
    except Exception as error:  # the others are not lost
        usable = getattr(getattr(machine, "timer", None), "usable", None)
        if usable is not None and not usable():
            # Another process goes on after what was running.
            print(f"FAULT {running}: {error}", file=sys.stderr, flush=True)
            raise SystemExit(4) from error
        return f"{type(error).__name__}: {error}"[:300], 0.0, None


def main() -> int:
    """Run families, each in a process of its own, and print a table of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prepared", type=Path, help="what prepare.py has packed, or its folder")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--only", default="", help="only launches with this in their names")
    parser.add_argument("--most", type=int, default=0, help="candidates of each kind, the first ones; 0 for all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=float, default=540.0, help="seconds for everything")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds for one family")
    parser.add_argument("--out", type=Path, help="folder for the figures, as JSON")
    parser.add_argument("--dry", action="store_true", help="no GPU")
    parser.add_argument("--render", type=Path, metavar="FOLDER", help="print the tables of an earlier run")
    parser.add_argument("--family", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.render:
        for path in sorted(args.render.glob("*.json")):
            print(table(json.loads(path.read_text(encoding="utf-8"))))
        return 0
    if args.prepared is None and not args.dry:
        parser.error("--prepared: expected what prepare.py has made, or --dry")
    folder = Path() if args.dry else unpacked(args.prepared)
    if args.family:
        machine = (Dry if args.dry else Gpu)(folder, args.rounds)
        run_family(FAMILIES[args.family], machine, Record(args.result), args.only, args.most)
        return 0
    out = Path(tempfile.mkdtemp(prefix="speed-")) if args.out is None else args.out
    out.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + args.budget
    shared = [f"--rounds={args.rounds}", f"--only={args.only}", f"--most={args.most}"]
    shared += ["--dry"] if args.dry else [f"--prepared={folder}"]
    for name in args.families.split(","):
        limit = min(deadline, time.monotonic() + args.limit)
        record = supervise(name, out / f"{name}.json", shared, limit, program=__file__)
        print(table(record), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
