"""All GEMM benchmarks in one go, within a time: compile what they need in parallel, then one after the other.

    python benchmarks/gemm/report.py --out DIR [--budget 540] [--parts fit,shapes,fp8,grouped,epilogues,host] [--dry]

Each part is a program of its own with a limit; figures lie in DIR as JSON after every step, so what comes later can't
lose what was found before. The tables come as the parts end, and are in DIR/report.txt.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.gemm.compile import MODULES, part_named
from benchmarks.gemm.program import compile_parts, read

HOST = "host"
HOST_PROGRAM = ROOT / "benchmarks" / "gpu" / "host_call.py"
HOST_LIMIT_S = 90.0

ENDING_S = 8.0
"""Seconds that a part has from its own limit to its table."""

DEFAULT = ("shapes", "fp8", "grouped", "epilogues", HOST)


def run(command: list[str], seconds: float, report: Path) -> int | None:
    """Run a program for a limited time, with what it prints shown and added to a file; None where it was ended."""
    # Its own processes are ended with it: one of them may hold the GPU.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    copying = threading.Thread(target=_copy, args=(process.stdout, report))
    copying.start()
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
    finally:
        copying.join()


def _copy(lines: Iterable[str], report: Path) -> None:
    with report.open("a", encoding="utf-8") as file:
        for line in lines:
            print(line, end="", flush=True)
            file.write(line)


def main() -> int:
    """Run the parts; the exit status is how many did not end well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=540.0, help="seconds for everything")
    parser.add_argument("--parts", default=",".join(DEFAULT), help=f"of {', '.join((*MODULES, HOST))}")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="that compile")
    parser.add_argument("--dry", action="store_true", help="no GPU: small problems, made-up times, nothing compiled")
    parser.add_argument("--only", default="", help="only problems with this in their names")
    args = parser.parse_args()
    names = args.parts.split(",")
    if unknown := [name for name in names if name not in (*MODULES, HOST)]:
        parser.error(f"unknown parts {', '.join(unknown)}, expected some of {', '.join((*MODULES, HOST))}")
    started = time.monotonic()
    args.out.mkdir(parents=True, exist_ok=True)
    report = args.out / "report.txt"
    bad = 0
    compiled = [name for name in names if name != HOST]
    if compiled and not args.dry:
        bad += not compile_parts(compiled, args.processes, args.budget / 3)
    for name in names:
        left = started + args.budget - time.monotonic() - ENDING_S
        print(f"== {name}, {time.monotonic() - started:.0f} s", flush=True)
        if left <= 0:
            print(f"{name}: no time left", flush=True)
            bad += 1
            continue
        if name == HOST:
            command = [sys.executable, str(HOST_PROGRAM), "--json", str(args.out / "host.json")]
            status = run(command, min(left, HOST_LIMIT_S), report)
        else:
            part = part_named(name)
            limit = min(left, part.limit_s)
            options = [
                f"--out={args.out}",
                f"--budget={limit}",
                f"--only={args.only}",
                *(["--dry"] if args.dry else []),
            ]
            status = run([sys.executable, part.program, *options], limit + ENDING_S, report)
        if status is None:
            print(f"{name}: ended after its time", flush=True)
            if name != HOST and (path := args.out / f"{name}.json").exists():
                print(part.table(read(path)), flush=True)
        bad += status != 0
    print(f"{time.monotonic() - started:.0f} s in all; figures in {args.out}", flush=True)
    return min(bad, 100)


if __name__ == "__main__":
    sys.exit(main())
