"""The program around a GEMM benchmark: compile ahead, run its family in a process that may die, print its table."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gemm.common import Part
from benchmarks.gpu.kernels import failures, supervise
from benchmarks.gpu.measure import HUNG_EXIT_CODE

COMPILER = Path(__file__).with_name("compile.py")


def compile_parts(names: Sequence[str], processes: int, seconds: float) -> bool:
    """Compile the kernels of benchmarks in so many processes, for a limited time; returns whether all went well."""
    started = time.monotonic()
    command = [sys.executable, str(COMPILER), "--parts", ",".join(names), "--processes", str(processes), "--share"]
    # What all of them would say is said by the first one.
    running = [
        subprocess.Popen([*command, str(share)], stderr=None if share == 0 else subprocess.DEVNULL)
        for share in range(processes)
    ]
    good = True
    for each in running:
        try:
            good = each.wait(timeout=max(0.1, started + seconds - time.monotonic())) == 0 and good
        except subprocess.TimeoutExpired:
            each.kill()
            good = False
    print(f"compiled ahead in {time.monotonic() - started:.1f} s{'' if good else ', not all'}", flush=True)
    return good


def main(part: Part, arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark as the command line asks; return the exit status, 1 where something failed."""
    parser = argparse.ArgumentParser(
        description=sys.modules[part.family.__module__].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dry", action="store_true", help="no GPU: small problems, made-up times")
    parser.add_argument("--only", default="", help="only problems with this in their names")
    parser.add_argument("--rounds", type=int, default=part.rounds)
    parser.add_argument("--burst", type=int, default=part.burst, help="launches of a round")
    parser.add_argument("--idle", type=float, default=part.idle_s, help="seconds before each round")
    parser.add_argument("--budget", type=float, default=part.limit_s, help="seconds for everything")
    parser.add_argument("--compile", type=int, default=0, metavar="N", help="compile ahead, in so many processes")
    parser.add_argument("--out", type=Path, help="folder for the figures, as JSON")
    parser.add_argument("--render", type=Path, metavar="FILE", help="print the table of figures of an earlier run")
    parser.add_argument("--family", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.render:
        print(part.table(read(args.render)))
        return 0
    if args.family:
        sys.stdout.flush()
        os._exit(_child(part, args))  # a process with a faulted GPU context may not come to its end by itself
    deadline = time.monotonic() + args.budget
    if args.compile:
        compile_parts([part.name], args.compile, args.budget)
    scratch = Path(tempfile.mkdtemp(prefix="gemm-")) if args.out is None else args.out
    scratch.mkdir(parents=True, exist_ok=True)
    path = scratch / f"{part.name}.json"
    path.unlink(missing_ok=True)
    options = [*(["--dry"] if args.dry else []), f"--only={args.only}", f"--rounds={args.rounds}"]
    options += [f"--burst={args.burst}", f"--idle={args.idle}"]
    record = supervise(part.name, path, options, deadline, program=part.program)
    print(part.table(record), flush=True)
    if args.out is None:
        shutil.rmtree(scratch)
    return failures([record])


def read(path: Path) -> dict[str, Any]:
    """The figures in a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def _child(part: Part, args: argparse.Namespace) -> int:
    import torch

    from benchmarks.gpu.run import DryTimer, GpuTimer, run_family

    torch.backends.cuda.matmul.allow_tf32 = False
    threading.Thread(target=_end_when_stalled, args=(args.result, part.stall_s), daemon=True).start()
    timer = (DryTimer if args.dry else GpuTimer)(args.rounds, args.burst, args.idle, 0)
    return 0 if run_family(part.family(args.dry), args.result, timer, args.only) else 1


def _end_when_stalled(path: Path, seconds: float) -> None:
    """End the process when nothing has been written for so long: a kernel that hangs after its first launch."""
    last = time.time()
    while time.time() - last < seconds:
        time.sleep(0.5)
        if path.exists():
            last = max(last, path.stat().st_mtime)
    print(f"nothing has happened for {seconds:.0f} s", file=sys.stderr, flush=True)
    os._exit(HUNG_EXIT_CODE)
