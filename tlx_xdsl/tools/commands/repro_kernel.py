"""The work of `tlx repro`: find the step that fails, and write its reproducer."""

from __future__ import annotations

import argparse
from pathlib import Path

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.repro import Failing, find_failure, write
from tlx_xdsl.runtime.simulate.options import Options
from tlx_xdsl.tools.launch_line.launches import launch_at
from tlx_xdsl.tools.launch_line.request import read


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns 0 where a reproducer was written.

    Raises CompilationError where nothing fails, and for a command line that does not fit the kernel.
    """
    request = read(args)
    kernel = request.source, request.specialization, request.options["num_stages"]
    tries = [Failing(*kernel)]
    if args.grid is not None:
        launch = launch_at(request, request.sizes)
        settings = Options(**launch.options, stage=args.stage, schedule=args.schedule, seed=args.seed)
        tries.insert(0, Failing(*kernel, launch.grid, launch.arguments, settings, launch.types))
    for what in tries:
        failure = find_failure(what)
        if failure is not None:
            script = write(Path(args.output), what, failure)
            print(f"{failure.error}\nreproducer of the step '{failure.step}': python {script}")
            return 0
    done = "compiles" if args.grid is None else "runs and compiles"
    raise CompilationError(f"'{request.source.name}' {done}: there is nothing to reproduce")
