"""Kernels on this CPU against numpy, torch and upstream MLIR; what launches and compilation cost.

    python benchmarks/cpu/run.py [--rounds 60] [--parts speed,threads,launch,compile]
    make bench-cpu            (writes the figures of docs/cpu.md and docs/images/cpu.svg)
    python benchmarks/cpu/run.py --render FILE       (from the figures of an earlier run, which --record has written)

All candidates take turns, round by round, in one process; a time is the shortest round. On one thread it is the CPU
time of the calling thread, so that other work on the machine is not in it; two threads are compared by the clock on the
wall, which wants an idle machine. Results were NaN before, and are compared with float64 before anything is timed.

Without torch, or without the wheel `torch-mlir` (`pip install torch-mlir==20261001`), their columns are left out.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

PAGE = ROOT / "docs" / "cpu.md"
IMAGE = ROOT / "docs" / "images" / "cpu.svg"
BEGIN, END = "<!-- figures -->", "<!-- end of the figures -->"
PARTS = ("speed", "threads", "launch", "compile")
SLOWER_PARTS = 4
"""Fewer rounds where one takes longer: two threads, and each of the oracle's kernels."""


def measured(parts: list[str], rounds: int) -> dict[str, Any]:
    """The figures of some parts."""
    # numpy and torch read these when they are loaded.
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    from benchmarks.cpu import launch, speed

    few = max(rounds // SLOWER_PARTS, 3)
    record: dict[str, Any] = {"machine": machine()}
    if "speed" in parts:
        record["speed"] = speed.one_thread(rounds)
    if "threads" in parts:
        record["threads"] = speed.two_threads(few)
    if "launch" in parts:
        record["launch"] = launch.launch_costs(rounds)
        record["wake-up"] = launch.wake_up(few)
    if "compile" in parts:
        from benchmarks.cpu.compile import cold, from_disk, imports

        record["compile"] = cold(3)
        record["disk"] = from_disk(3)
        record["import"] = imports(few)
    return record


def machine() -> dict[str, str]:
    """Return versions of the packages, the CPU, and the date of the run."""
    from tlx_xdsl.cpu.codegen.host import host

    found = {name: metadata.version(name) for name in ("numpy", "llvmlite")}
    for name, module in (("torch", "torch"), ("torch-mlir", "torch_mlir")):
        if importlib.util.find_spec(module) is not None:
            found[name] = metadata.version(name)
    target = host()
    vectors = next((name for name in ("avx512f", "avx2", "neon") if f"+{name}" in target.attributes), "no vectors")
    return {
        "date": f"{datetime.date.today()}",
        "cpu": f"{target.cpu} ({vectors}), {os.cpu_count()} cores",
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": ", ".join(f"{name} {version}" for name, version in found.items()),
    }


def write(record: dict[str, Any]) -> None:
    """Put the figures into the page, and draw the plot."""
    from benchmarks.cpu import report

    about = record["machine"]
    where = f"Measured on {about['date']} on {about['cpu']}, {about['system']}, {about['versions']}."
    where += f" Load by other processes at the beginning: {about['load']}."
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{where}\n\n{report.page(record)}\n\n{END}{after}")
    IMAGE.write_text(report.svg(record["speed"]))


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/cpu.md")
    parser.add_argument("--record", type=Path, help="write the figures to this file as JSON")
    parser.add_argument("--render", type=Path, help="write the page with the figures of this file, measure nothing")
    arguments = parser.parse_args()
    parts = arguments.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    if arguments.write and set(parts) != set(PARTS):
        parser.error("--write needs all parts")
    if arguments.render:
        write(json.loads(arguments.render.read_text()))
        return
    record = measured(parts, arguments.rounds)
    if arguments.record:
        arguments.record.write_text(json.dumps(record, indent=1))
    from benchmarks.cpu import report

    print("\n".join(f"{name}: {value}" for name, value in record["machine"].items()) + "\n")
    print(report.page(record))
    if arguments.write:
        write(record)


if __name__ == "__main__":
    main()
