"""The work of `tlx repro`: find the step that fails, and write its reproducer."""

from __future__ import annotations

import argparse
from pathlib import Path

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.repro import Failing, find_failure, write
from tlx_xdsl.runtime.simulate.options import Options
from tlx_xdsl.tools.launch_line.kernel_options import load
from tlx_xdsl.tools.launch_line.launches import read_kernel


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns 0 where a reproducer was written.

    Raises CompilationError where nothing fails, and for a command line that does not fit the kernel.
    """
    kernel, options, specialization = load(args)
    tries = [Failing(kernel.source, specialization, options["num_stages"])]
    if args.grid is not None:
        launch = read_kernel(args)
        settings = Options(**launch.launch, stage=args.stage, schedule=args.schedule, seed=args.seed)
        tries.insert(0, Failing(
            kernel.source, specialization, options["num_stages"], launch.grid, launch.arguments, settings, launch.types
        ))  # fmt: skip
    for what in tries:
        failure = find_failure(what)
        if failure is not None:
            script = write(Path(args.output), what, failure)
            print(f"{failure.error}\nreproducer of the step '{failure.step}': python {script}")
            return 0
    done = "compiles" if args.grid is None else "runs and compiles"
    raise CompilationError(f"'{kernel.source.name}' {done}: there is nothing to reproduce")
