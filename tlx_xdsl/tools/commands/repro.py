"""`tlx repro FILE.py:KERNEL`: write a script that fails as the kernel does, with all that it needs."""

from __future__ import annotations

import argparse
from pathlib import Path

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.limits import POLICIES

from ..launch_line.kernel_options import KERNEL, add_format_argument, add_kernel_arguments

_EPILOG = """\
With --grid the kernel is run in the interpreter on the arguments (--arg), then and without it compiled to a binary.
What fails first gets a folder with repro.py, the IR that the step had got, the arguments, and the versions.
With TLX_REPRO=DIR every compile, launch and run writes one where it fails.

examples:
  tlx repro kernel.py:softmax
  tlx repro kernel.py:softmax --grid 4 --arg x=randn:fp32[4,256] --arg n=256 -o bug/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("kernel", **KERNEL)
    parser.add_argument("-o", "--output", default="repro", metavar="DIR", help="folder for it (repro)")
    parser.add_argument("--grid", metavar="X,Y,Z", help="programs of a run; expressions over arguments and sizes")
    parser.add_argument("--stage", default="frontend", help="of a run: frontend (default), aliased, ttgir, a pass, ptx")
    parser.add_argument("--schedule", choices=POLICIES, default=POLICIES[0], help="of a run: who goes on first")
    parser.add_argument("--seed", type=int, default=0, help="of the schedule and of random numbers (0)")
    add_format_argument(parser)
    add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns 0 where a reproducer was written.

    Raises CompilationError where nothing fails, and for a command line that does not fit the kernel.
    """
    # They take a second, and `--help` does without.
    from tlx_xdsl.runtime.repro import Failing, find_failure, write
    from tlx_xdsl.runtime.simulate.options import Options

    from ..documents import document
    from ..launch_line.launches import launch_at
    from ..launch_line.request import read
    from ..launch_line.specialization import specialization_of
    from ..output import print_document

    request = read(args)
    kernel = request.source, specialization_of(request), request.options["num_stages"]
    tries = [Failing(*kernel)]
    if args.grid is not None:
        launch = launch_at(request, request.sizes)
        settings = Options(**launch.options, stage=args.stage, schedule=args.schedule, seed=args.seed)
        tries.insert(0, Failing(*kernel, launch.grid, launch.arguments, settings, launch.types))
    for what in tries:
        failure = find_failure(what)
        if failure is not None:
            script = write(Path(args.output), what, failure)
            if args.format == "json":
                facts = {"step": failure.step, "script": str(script), "text": str(failure.error)}
                print_document(document("tlx repro", facts))
                return 0
            print(f"{failure.error}\nreproducer of the step '{failure.step}': python {script}")
            return 0
    done = "compiles" if args.grid is None else "runs and compiles"
    raise CompilationError(f"'{request.source.name}' {done}: there is nothing to reproduce")
