"""`tlx minimize-sync FILE.py:KERNEL`: which waits, arrivals and fences of a kernel are redundant."""

from __future__ import annotations

import argparse

from tlx_xdsl.runtime.simulate.options import MINIMIZE_SECONDS, STAGES

from ..launch_line.kernel_options import SIZE_HELP, VALUES, add_launch_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{VALUES}\nA deletion that no run refutes is no proof, unless the line says so.\n"
    parser.add_argument("kernel", metavar="FILE", help="FILE.py:KERNEL")
    add_launch_arguments(parser, f"{SIZE_HELP}; several as in 0..3,7 or small, of which all combinations are run")
    parser.add_argument(
        "--seconds",
        type=float,
        default=MINIMIZE_SECONDS,
        help=f"time for each deletion at all sizes ({MINIMIZE_SECONDS:g})",
    )
    parser.add_argument("--stages", default=",".join(STAGES), help=f"stages of the pipeline ({','.join(STAGES)})")
    parser.add_argument("--seed", type=int, default=0, help="of random numbers (0)")
    parser.set_defaults(sweep=True)


def run(args: argparse.Namespace) -> int:
    """Carry the command out.

    Raises CompilationError for a kernel that does not compile, and for a command line that does not fit it.
    """
    from tlx_xdsl.runtime.check.minimize import minimize

    from .check_kernel import stages_of, subject_of

    print(minimize(subject_of(args), stages_of(args), args.seconds))
    return 0
