"""Compile the kernels of GEMM benchmarks ahead, in parallel processes, into the cache on disk that launches look into.

    python benchmarks/gemm/compile.py --parts shapes,fp8 [--processes 16]

No GPU takes part: launches are made with arrays of the CPU that are not touched, as for a GPU with 132 multiprocessors.
Each process makes all of them, and compiles those whose turn is its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gemm import common
from benchmarks.gemm.program import compile_parts

MODULES = {
    "fit": "fit",
    "shapes": "every_shape",
    "aligned": "aligned",
    "configurations": "configurations",
    "fp8": "fp8",
    "grouped": "grouped",
    "epilogues": "epilogues",
    "cubins": "cubins",
    "rows-cubins": "rows_cubins",
}
"""The benchmarks by name, in the order in which they run."""


def part_named(name: str) -> common.Part:
    """A benchmark."""
    return import_module(f"benchmarks.gemm.{MODULES[name]}").PART


def kernels_of(names: Sequence[str]) -> dict[tuple[Any, ...], Any]:
    """One launch for each thing to compile; what can't be launched is left out, and said."""
    common.on_large_gpu()
    found: dict[tuple[Any, ...], Any] = {}
    for name in names:
        for launch in _launches(name):
            options = (launch.num_warps, launch.cluster, launch.launch_pdl, launch.maxnreg)
            key = (launch.kernel, *launch.signature.items(), *launch.constexprs.items(), *options)
            found.setdefault(key, launch)
    return found


def _launches(name: str) -> Iterator[Any]:
    # The benchmark itself says what it could not do.
    try:
        makers = list(part_named(name).launches())
    except Exception as error:
        makers = []
        print(f"{name}: {type(error).__name__}: {error}"[:200], file=sys.stderr, flush=True)
    for make in makers:
        try:
            yield from common.each_launch(make())
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}"[:200], file=sys.stderr, flush=True)


def compile_share(names: Sequence[str], share: int, shares: int) -> int:
    """Compile every `shares`-th kernel; returns how many failed."""
    failed = 0
    for at, launch in enumerate(kernels_of(names).values()):
        if at % shares != share:
            continue
        try:
            launch.compiled()
        except Exception as error:  # the others are not lost
            failed += 1
            print(f"{common.described(launch)}: {error}"[:600], file=sys.stderr, flush=True)
    return failed


def main() -> int:
    """Compile, or be one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(MODULES))
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=150.0, help="the most that all may take")
    parser.add_argument("--share", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="print the kernels, and compile nothing")
    args = parser.parse_args()
    names = args.parts.split(",")
    if args.list:
        for launch in kernels_of(names).values():
            print(common.described(launch))
        return 0
    if args.share is not None:
        return 1 if compile_share(names, args.share, args.processes) else 0
    return 0 if compile_parts(names, args.processes, args.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
