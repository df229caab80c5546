"""`tlx sweep --bench`: what the configurations of a sweep take, in the order of their speed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.numerics.difference import wide
from tlx_xdsl.runtime.sweep import SweepReport
from tlx_xdsl.runtime.sweep.jobs import array_of_argument
from tlx_xdsl.runtime.sweep.measure import bench

from ..documents import document
from ..launch_line.clocked import hertz_of
from ..launch_line.expressions import evaluate
from ..launch_line.launches import grid_of, numbers_of, values_of
from ..launch_line.request import Request
from ..output import print_document, write_file


def print_times(args: argparse.Namespace, request: Request, report: SweepReport) -> None:
    """Measure or estimate what a sweep has compiled, and print the order.

    Raises CompilationError where no configuration has a time, and for a launch that the command line does not say.
    """
    clock = args.clock is not None
    sizes, values = request.sizes, values_of(request, "integers" if clock else "all")
    missing = [
        name
        for name in next(iter(report)).job.specialization.signature
        if name not in values
    ]  # fmt: skip
    if missing:
        raise CompilationError(
            f"{'--clock' if clock else '--bench'}: '{request.source.name}' needs values: --arg {missing[0]}=VALUE"
        )
    arrays = {name: array for name, value in values.items() if (array := array_of_argument(value)) is not None}
    checks = request.lists["check"]
    for name in checks:
        if name not in arrays:
            raise CompilationError(f"--check: there is no array '{name}', the arrays are {', '.join(arrays) or 'none'}")

    def grid(known: Mapping[str, Any]) -> tuple[int, int, int]:
        return grid_of(request, {**sizes, **known})

    def reference(_: Mapping[str, Any]) -> dict[str, Any]:
        names = {**sizes, **numbers_of(values), **{name: wide(array) for name, array in arrays.items()}}
        return {
            name: np.broadcast_to(np.asarray(evaluate("--check", text, names)), arrays[name].shape)
            for name, text in checks.items()
        }

    speeds = bench(
        report,
        grid,
        values,
        reference=reference if checks else None,
        tolerance=args.tolerance,
        seconds=args.seconds,
        progress=False if args.quiet else None,
        clock=clock,
        chip=args.chip,
        hertz=hertz_of(args.clock or None),
    )
    if checks and not speeds.checked:
        print("note: --check: nothing is compared where nothing is launched", file=sys.stderr)
    print_document(
        document("tlx sweep", json.loads(speeds.as_json()), ok=speeds.best is not None)
        if args.format == "json"
        else speeds.table()
    )
    for path, text in ((args.csv, speeds.as_csv), (args.plot, speeds.svg)):
        if path is not None:
            write_file(Path(path), text())
    if speeds.best is None:
        raise CompilationError(f"no configuration can be launched and is right, of {len(speeds.speeds)}")
