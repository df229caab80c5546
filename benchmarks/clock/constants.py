"""Constants of the clock beside the record of the microbenchmarks.

    python benchmarks/clock/constants.py [benchmarks/clock/h200.json] [--chip H200]

Each constant of `tlx_xdsl/timing/chips.py` and of `PipeRates` in `instructions.py` that follows from the record is
printed with the record's value and the difference, then what follows from it besides. A constant whose docstring says
`Measured` has its name in `DERIVED` here, and a unit test holds that it is within 10 % of the record. Where the record
gives no more than bounds, since it counts instructions, too, or differs from case to case, it is within these.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import itertools
import json
import re
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

RECORD = Path(__file__).with_name("h200.json")
DURATIONS = Path(__file__).with_name("durations-h200.json")
MULTIPROCESSORS = 132
MARK = re.compile(r"\bMeasured\b|(?:Guide|Stalls); measured\b")
NEAR = 0.1
"""How far a constant may be from the record that it is said to come from."""


@dataclass(frozen=True)
class Derived:
    """A constant that follows from the record."""

    unit: str
    value: Callable[[Record], float]
    how: str
    most: Callable[[Record], float] | None = None
    """The upper bound, where `value` is the lower one."""

    def bounds(self, record: Record) -> tuple[float, float]:
        """Return between what a constant lies."""
        least = self.value(record)
        return least, self.most(record) if self.most else least


@dataclass(frozen=True)
class Beside:
    """A constant of the clock beside the record."""

    name: str
    value: float
    least: float
    most: float
    is_marked: bool
    """True if its docstring says that it is measured."""

    @property
    def off(self) -> float:
        """Return how far it is from what the record gives, relative."""
        return self.value / min(max(self.value, self.least), self.most) - 1


class Record:
    """The results of the microbenchmarks, and the clock in hertz while they ran."""

    def __init__(self, document: Mapping[str, Any]):
        self.results: Mapping[str, float] = document["results"]
        self.hertz = statistics.median(document["hertz"])

    def __call__(self, *key: str) -> float:
        """Return the result with a key."""
        return self.results[" | ".join(key)]

    def wgmma(self, n: int, element: str = "f16", a: str = "shared", sums: int = 1, groups: int = 1) -> float:
        """Return the cycles of each product of a warp group in a long row, of `groups` together."""
        name = f"m64n{n} {element}, A in {a}, {sums} accumulators, {groups} warp groups"
        return self("wgmma", name, "each product") / groups

    def alone(self, n: int, a: str) -> float:
        """Return the cycles from before one product to the end of the wait for it, less those of its work."""
        name = f"m64n{n} f16, A in {a}, 1 accumulators, 1 warp groups"
        return self("wgmma", name, "1 products") - n / 2

    def tma(self, rows: int, slots: int, multiprocessors: int = 1, where: str = "L2") -> float:
        """Return the cycles of each box of 64 halves by `rows`, `slots` of them under way."""
        return self("tma tensor", f"box 64x{rows}, {slots} in flight, {multiprocessors} SMs, {where}")

    def bulk(self, size: int, slots: int, where: str = "L2") -> float:
        """Return the cycles of each copy of `size` bytes without a tensor map, on one multiprocessor."""
        return self("tma bulk", f"{size} bytes, {slots} in flight, 1 SMs, {where}")

    def store(self, size: int, wait: str, multiprocessors: int = 1) -> float:
        """Return the cycles of a bulk store and the wait for it."""
        return self("tma store", f"{size} bytes, wait {wait}, {multiprocessors} SMs")

    def stream(self, name: str, multiprocessors: int) -> float:
        """Return the bytes that so many multiprocessors move in a cycle."""
        return multiprocessors / self("bandwidth", name)

    def launch(self, kind: str, grid: int, shared: int) -> float:
        """Return the microseconds of an empty launch of CTAs with 128 threads."""
        return self("launch", kind, f"grid {grid}, 128 threads, {shared} bytes of shared memory")

    def rate(self, name: str) -> float:
        """Return the cycles that an instruction of a warp takes of its sub-partition."""
        return self("instructions", name, "warps 16, chains 4")

    def latency(self, name: str) -> float:
        """Return the cycles from an instruction to the next one, which needs its result."""
        return self("instructions", name, "warps 1, chains 1")


def _line(small: tuple[float, float], large: tuple[float, float]) -> tuple[float, float]:
    """Return what a line through two points has at 0, and its slope."""
    slope = (large[1] - small[1]) / (large[0] - small[0])
    return small[1] - slope * small[0], slope


def _tma_turn(r: Record) -> float:
    """Cycles of issuing, arriving and waking up, for a box without bytes."""
    return _line((1024, r.tma(8, 1)), (16384, r.tma(128, 1)))[0]


def _thread_turn(r: Record) -> float:
    """Cycles of the thread alone that waits for a phase that is over, expects bytes and issues a copy."""
    return min(r.tma(rows, 6) for rows in (8, 16, 32))


def _wait_loop(r: Record) -> float:
    return r("barriers", "wait loop for a phase that is over", "warps 1")


def _tma_latency(r: Record, turn: float) -> float:
    """Cycles from a copy to its first bytes: of a turn, less the thread's own, in which the wait comes last."""
    return turn - _thread_turn(r)


def _bar(r: Record, warps: int) -> float:
    return r("barriers", "bar.sync", f"warps {warps}")


def _around(r: Record) -> float:
    """Cycles of a fence of products and of reading the clock."""
    return r("barriers", "wgmma.fence", "warps 4") + r("barriers", "clock64", "warps 4")


def _around_ctas(r: Record) -> list[float]:
    """Cycles from event to event less those from the first start of a CTA to the last end, for two grids."""
    return [
        (r("cta", "event to event, us", name) * 1e-6 - r("cta", "first start to last end, ns", name) * 1e-9) * r.hertz
        for name in (CTAS_200K, CTAS_SMALL)
    ]


def _interval(r: Record, shared: int) -> float:
    """Cycles of each empty CTA on a multiprocessor, from 8 and 64 of them."""
    many, few = (r.launch("event to event", grid, shared) for grid in (8448, 1056))
    return (many - few) / 56 * 1e-6 * r.hertz


@cache
def training() -> list[dict[str, Any]]:
    """Return the durations of the problems of training."""
    records = json.loads(DURATIONS.read_text(encoding="utf-8"))["records"]
    return [each for each in records if not each["held_out"]]


@cache
def beside_profiler() -> float:
    """Return the microseconds that launches last longer from event to event than by the profiler."""
    return statistics.median(
        statistics.median(itertools.chain(*each["microseconds"])) - statistics.median(each["profiled"])
        for each in training()
    )


CTAS_200K = "128 threads, 204800 bytes, grid 1320"
CTAS_SMALL = "128 threads, 0 bytes, grid 132"
LOCAL_TURN = "mbarrier: arrival to wake-up, same CTA"
REMOTE_TURN = "mbarrier: arrival to wake-up, other CTA"

DERIVED: dict[str, Derived] = {
    # Tensor cores.
    "product_column_cycles": Derived(
        "cycles a column", lambda r: (r.wgmma(256) - r.wgmma(128)) / 128, "N = 128 and 256, A in shared memory"
    ),
    "product_least_cycles": Derived("cycles", lambda r: r.wgmma(8, a="registers"), "N = 8, A in registers"),
    "product_shared_cycles": Derived(
        "cycles", lambda r: 2 * r.wgmma(16) - r.wgmma(32), "N = 16 and 32, A in shared memory: what is left at N = 0"
    ),
    "product_shared_column_cycles": Derived(
        "cycles a column", lambda r: (r.wgmma(32) - r.wgmma(16)) / 16, "N = 16 and 32: wavefronts of B"
    ),
    "product_latency": Derived(
        "cycles",
        lambda r: r.alone(256, "registers") - _around(r),
        "one product alone without and with what is around it: its fence and two readings of the clock",
        lambda r: r.alone(256, "shared"),
    ),
    "product_shared_latency": Derived(
        "cycles", lambda r: r.alone(256, "shared"), "one product alone, A in shared memory"
    ),
    "tensor_efficiency": Derived("part", lambda r: 128 / r.wgmma(256), "24 products in a row"),
    "wgmma_groups": Derived(
        "part",
        lambda r: r.wgmma(128) / r.wgmma(128, groups=3),
        "products of one warp group over those of three together",
    ),
    "wgmma_fence_cycles": Derived("cycles", lambda r: r("barriers", "wgmma.fence", "warps 4"), "back to back"),
    # Shared memory.
    "shared_latency": Derived("cycles", lambda r: r("shared", "ld latency"), "a chain of addresses"),
    "shared_bytes_per_cycle": Derived("bytes a cycle", lambda r: 512 / r("shared", "ld.v4", "warps 16"), "16 warps"),
    "shared_conflict_cycles": Derived(
        "cycles", lambda r: r("shared", "ld.b32 32 ways", "warps 16") / 32, "of each way of a conflict"
    ),
    "remote_latency": Derived("cycles", lambda r: r("cluster", "ld latency of the other CTA"), "a chain of addresses"),
    "remote_bytes_per_cycle": Derived(
        "bytes a cycle",
        lambda r: 512 / r("cluster", "ld.v4 of the other CTA", "warps 8"),
        "8 warps: loads, stores",
        lambda r: 512 / r("cluster", "st.v4 of the other CTA", "warps 8"),
    ),
    "remote_arrive_cycles": Derived(
        "cycles",
        lambda r: r("cluster", REMOTE_TURN) - r("barriers", LOCAL_TURN),
        "a turn of arrivals and waits between CTAs, less one within a CTA and in all",
        lambda r: r("cluster", REMOTE_TURN),
    ),
    # Global memory.
    "l1_latency": Derived(
        "cycles",
        lambda r: (r("global", "ld latency L1") * 1024 - r("global", "ld latency L2, 1 MiB") * 128) / 896,
        "1,024 loads less 128 that miss",
    ),
    "l2_latency": Derived("cycles", lambda r: r("global", "ld latency L2, 8 MiB"), "a chain through 8 MiB"),
    "dram_latency": Derived("cycles", lambda r: r("global", "ld latency DRAM, 256 MiB"), "a chain through 256 MiB"),
    "atomic_latency": Derived("cycles", lambda r: r("global", "atom latency"), "a chain of exchanges"),
    "l1_bytes_per_cycle": Derived(
        "bytes a cycle",
        lambda r: 32768 / r.tma(256, 6),
        "one multiprocessor alone: by TMA, by loads",
        lambda r: r.stream("L2 read, 1 SM", 1),
    ),
    "l2_bytes_per_cycle": Derived("bytes a cycle", lambda r: r.stream("L2 read, all SMs", MULTIPROCESSORS), "all"),
    "l2_store_bytes_per_cycle": Derived(
        "bytes a cycle", lambda r: r.stream("L2 write, all SMs", MULTIPROCESSORS), "all multiprocessors"
    ),
    "store_bytes_per_cycle": Derived("bytes a cycle", lambda r: r.stream("L2 write, 1 SM", 1), "one multiprocessor"),
    "dram_bytes_per_second": Derived(
        "bytes a second",
        lambda r: 2 * r.stream("DRAM copy, all SMs", MULTIPROCESSORS) * r.hertz,
        "a copy, both ways together; reading alone",
        lambda r: r.stream("DRAM read, all SMs", MULTIPROCESSORS) * r.hertz,
    ),
    "dram_write_factor": Derived(
        "part",
        lambda r: r("bandwidth", "DRAM write, all SMs") / r("bandwidth", "DRAM read, all SMs"),
        "a byte that is written for one that is read: writing alone, in a copy",
        lambda r: r("bandwidth", "DRAM copy, all SMs") / r("bandwidth", "DRAM read, all SMs") - 1,
    ),
    "dram_write_bytes_per_second": Derived(
        "bytes a second", lambda r: r.stream("DRAM write, all SMs", MULTIPROCESSORS) * r.hertz, "writing 1.9 GB"
    ),
    # TMA.
    "tma_bytes_per_cycle": Derived("bytes a cycle", lambda r: 32768 / r.tma(256, 6), "boxes of 32 KiB, 6 under way"),
    "tma_bytes_per_cycle_of_all": Derived(
        "bytes a cycle", lambda r: MULTIPROCESSORS * 32768 / r.tma(256, 6, 132), "as before, all multiprocessors"
    ),
    "tma_turn_cycles": Derived("cycles", _thread_turn, "a thread that waits, expects and issues: the least of a turn"),
    "tma_latency": Derived(
        "cycles", lambda r: _tma_latency(r, _tma_turn(r)), "one box under way, less the thread's turn"
    ),
    "tma_dram_latency": Derived(
        "cycles",
        lambda r: _tma_latency(r, r.bulk(2048, 1, "DRAM") - 2048 / 118),
        "2 KiB in a row, 64 rows that lie 16 KiB apart, less the bytes and the thread's turn",
        lambda r: _tma_latency(r, r.tma(64, 1, where="DRAM") - 8192 / 118),
    ),
    "tma_store_read_latency": Derived(
        "cycles", lambda r: _line((2048, r.store(2048, "read")), (16384, r.store(16384, "read")))[0], "for no bytes"
    ),
    "tma_store_latency": Derived(
        "cycles", lambda r: _line((2048, r.store(2048, "all")), (16384, r.store(16384, "all")))[0], "for no bytes"
    ),
    "tma_store_bytes_per_cycle": Derived(
        "bytes a cycle",
        lambda r: 1 / _line((2048, r.store(2048, "read")), (16384, r.store(16384, "read")))[1],
        "one multiprocessor",
    ),
    "tma_store_bytes_per_cycle_of_all": Derived(
        "bytes a cycle", lambda r: MULTIPROCESSORS * 16384 / r.store(16384, "3 left", 132), "all multiprocessors"
    ),
    "multicast_latency": Derived(
        "cycles",
        lambda r: (
            r("multicast", "2 CTAs, 1 copies of 8192 bytes")
            - r("multicast", "2 CTAs, 0 copies of 8192 bytes")
            - r("multicast", "1 CTAs, 1 copies of 8192 bytes")
            + r("multicast", "1 CTAs, 0 copies of 8192 bytes")
        ),
        "more than for a copy to one CTA",
    ),
    "multicast_bytes_per_cycle": Derived(
        "bytes a cycle",
        lambda r: (
            3
            * 8192
            / (r("multicast", "4 CTAs, 4 copies of 8192 bytes") - r("multicast", "4 CTAs, 1 copies of 8192 bytes"))
        ),
        "that arrive in each CTA",
    ),
    "cp_async_latency": Derived("cycles", lambda r: r("cp.async", "4 warps, 0 groups left"), "a group and its wait"),
    # Barriers.
    "try_wait_cycles": Derived(
        "cycles", lambda r: r("barriers", "try_wait of a phase that is over", "warps 1"), "without a branch on it"
    ),
    "wait_loop_cycles": Derived("cycles", _wait_loop, "of a phase that is over, with the branch"),
    "arrive_issue_cycles": Derived("cycles", lambda r: r("barriers", "arrive"), "arrivals back to back"),
    "wake_cycles": Derived(
        "cycles",
        _wait_loop,
        "the loop of a wait for a phase that is over; a turn of arrivals and waits within a CTA",
        lambda r: r("barriers", LOCAL_TURN),
    ),
    "named_barrier_turn_cycles": Derived(
        "cycles", lambda r: r("barriers", "named barrier: arrival to wake-up"), "`bar.arrive` to the end of `bar.sync`"
    ),
    "named_barrier_warp_cycles": Derived(
        "cycles a warp", lambda r: (_bar(r, 32) - _bar(r, 4)) / 28, "`bar.sync` of 4 and 32"
    ),
    "named_barrier_cycles": Derived(
        "cycles", lambda r: _line((4, _bar(r, 4)), (32, _bar(r, 32)))[0], "`bar.sync` of 4 and 32 warps: for none"
    ),
    "cluster_barrier_cycles": Derived(
        "cycles",
        lambda r: r("cluster", "barrier.relaxed", "2 CTAs"),
        "relaxed; with release and acquire",
        lambda r: r("cluster", "barrier", "2 CTAs"),
    ),
    "async_fence_cycles": Derived("cycles", lambda r: r("barriers", "fence.proxy.async", "warps 4"), "4 warps"),
    "cluster_fence_cycles": Derived("cycles", lambda r: r("barriers", "fence.acq_rel.cluster", "warps 4"), "4 warps"),
    "setmaxnreg_cycles": Derived("cycles", lambda r: r("setmaxnreg", "slowest warp"), "one group gives, two take"),
    # Launches.
    "event_launch_cycles": Derived(
        "cycles", lambda r: r.launch("event to event", 132, 0) * 1e-6 * r.hertz, "an empty launch, event to event"
    ),
    "launch_cycles": Derived(
        "cycles",
        lambda r: min(_around_ctas(r)) - beside_profiler() * 1e-6 * r.hertz,
        "event to event, less first start to last end of CTAs, and less what events see more than the profiler",
        lambda r: max(_around_ctas(r)) - beside_profiler() * 1e-6 * r.hertz,
    ),
    "row_launch_us": Derived(
        "microseconds", lambda r: r.launch("each of 50 in a row", 132, 0), "empty, of 50 in a row"
    ),
    "cta_start_cycles": Derived(
        "cycles", lambda r: r("cta", "end to next start, cycles, median", CTAS_200K), "end to next start"
    ),
    "cta_interval_cycles": Derived(
        "cycles",
        lambda r: _interval(r, 0),
        "of an empty CTA on each multiprocessor, in a long row: without shared memory, with 200 KiB",
        lambda r: _interval(r, 200 << 10),
    ),
    # Instructions.
    "fma": Derived("cycles", lambda r: r.rate("FADD"), "FADD, 16 warps"),
    "heavy": Derived("cycles", lambda r: r.rate("IMAD"), "IMAD, 16 warps"),
    "alu": Derived("cycles", lambda r: r.rate("LOP3"), "LOP3, 16 warps"),
    "half": Derived("cycles", lambda r: r.rate("HFMA2"), "HFMA2 and HFMA2.MMA in turn, 16 warps"),
    "widening": Derived("cycles", lambda r: r.rate("HADD2.F32 (f16 to f32)"), "HADD2.F32, 16 warps"),
    "narrow": Derived(
        "cycles", lambda r: r.rate("F2FP.E4M3") - r.rate("LOP3"), "F2FP with a LOP3, less a LOP3, 16 warps"
    ),
    "xu": Derived("cycles", lambda r: r.rate("MUFU.EX2"), "MUFU.EX2, 16 warps"),
    "shuffle": Derived("cycles", lambda r: r.rate("SHFL"), "SHFL, 16 warps"),
    "reduction": Derived("cycles", lambda r: r.rate("REDUX"), "REDUX, 16 warps"),
    "arithmetic_latency": Derived("cycles", lambda r: r.latency("LOP3"), "LOP3, a chain"),
    "half_latency": Derived("cycles", lambda r: r.latency("HFMA2"), "HFMA2, a chain"),
    "reduction_latency": Derived("cycles", lambda r: r.latency("REDUX"), "REDUX and moves, a chain"),
    "fp64_latency": Derived("cycles", lambda r: r.latency("DFMA"), "DFMA, a chain"),
    "special_latency": Derived("cycles", lambda r: r.latency("MUFU.EX2"), "MUFU.EX2, a chain"),
    "shuffle_latency": Derived("cycles", lambda r: r.latency("SHFL"), "SHFL, a chain"),
}


def read_record(path: Path = RECORD) -> Record:
    """Return what `microbenchmarks.py` has written."""
    return Record(json.loads(path.read_text(encoding="utf-8")))


def docstrings(kind: type) -> dict[str, str]:
    """Return the docstring of each attribute of a class, in the order of the class."""
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for at, after in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(at, ast.AnnAssign) and isinstance(at.target, ast.Name):
            text = after.value if isinstance(after, ast.Expr) else None
            is_text = isinstance(text, ast.Constant) and isinstance(text.value, str)
            found[at.target.id] = " ".join(text.value.split()) if is_text else ""
    return found


def marks(kind: type) -> set[str]:
    """Return the attributes whose docstrings say that they are measured."""
    return {name for name, text in docstrings(kind).items() if MARK.search(text)}


def compared(constants: Any, record: Record) -> list[Beside]:
    """Return the constants that follow from the record."""
    marked = marks(type(constants))
    return [
        Beside(name, float(getattr(constants, name)), *DERIVED[name].bounds(record), name in marked)
        for name in docstrings(type(constants))
        if name in DERIVED
    ]


def far(constants: Any, record: Record) -> list[str]:
    """Return the constants that are said to be measured, and are not near the record."""
    return [each.name for each in compared(constants, record) if each.is_marked and abs(each.off) > NEAR]


def main() -> int:
    """Print the constants."""
    from tlx_xdsl.timing.chips import chip_named
    from tlx_xdsl.timing.instructions import PipeRates

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, nargs="?", default=RECORD)
    parser.add_argument("--chip", default="H200")
    args = parser.parse_args()
    record = read_record(args.record)
    used = set()
    for constants in (chip_named(args.chip), PipeRates()):
        print(f"\n{type(constants).__name__:<34}{'here':>12}{'record':>12}{'at most':>12}{'off':>8}")
        for each in compared(constants, record):
            used.add(each.name)
            most = f"{each.most:.4g}" if each.most != each.least else ""
            print(
                f"{each.name:<34}{each.value:>12.4g}{each.least:>12.4g}{most:>12}{each.off:>+8.0%}  "
                f"{'measured' if each.is_marked else '':<10}{DERIVED[each.name].unit:<16}{DERIVED[each.name].how}"
            )
    print("\nbesides")
    for name, derived in DERIVED.items():
        if name not in used:
            print(f"{name:<46}{derived.value(record):>12.4g}{'':>32}{derived.unit:<16}{derived.how}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
