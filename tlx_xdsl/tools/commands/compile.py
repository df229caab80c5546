"""`tlx compile FILE.py:KERNEL`: compile a kernel and write its stages to files."""

from __future__ import annotations

import argparse

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.profiles import MLIR_PROFILES

from ..launch_line.kernel_options import (
    CPU,
    CPU_STAGES,
    KERNEL,
    STAGES,
    add_conversion_argument,
    add_format_argument,
    add_kernel_arguments,
    of_wing,
)

_EPILOG = """\
What is not given here comes from the table TLX_COMPILE in the kernel's file, if there is one:
  TLX_COMPILE = {"relu": {"signature": {"x": "*fp16:16", "n": "i32"}, "constexprs": {"BLOCK": 1024}, "num_warps": 8}}

examples:
  tlx compile examples/hopper_gemm_ws.py:matmul --target sm_90a -o build/
  tlx compile examples/hopper_gemm_ws.py:matmul --emit ttgir -o -
  tlx compile kernel.py:softmax --target linalg -o -
  tlx compile kernel.py:softmax --target cpu -o build/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("kernel", **KERNEL)
    parser.add_argument("-o", "--output", metavar="DIR", help="folder for the files (build); - prints them")
    parser.add_argument(
        "--emit",
        metavar="STAGES",
        help=f"what to write, of {','.join(STAGES)} (all but llir; none with --bundle alone); with --target {CPU} of "
        f"{','.join(CPU_STAGES)} (all)",
    )
    _add_bundle_arguments(parser)
    _add_cpu_arguments(parser)
    parser.add_argument(
        "--mlir-version",
        choices=[profile.name for profile in MLIR_PROFILES],
        default=MLIR_PROFILES[-1].name,
        metavar="RELEASE",
        help="with --target linalg: write text for upstream MLIR of this release of LLVM: 19, newest",
    )
    parser.add_argument(
        "--triton-version",
        metavar="VERSION",
        help="Triton whose text is written (the installed one's, else 3.9)",
    )
    parser.add_argument(
        "--ptxas",
        metavar="PATH|RELEASE",
        help="assembler of the cubin, or stock for the one that Triton takes (the newest that the driver allows)",
    )
    parser.add_argument(
        "--allow-old-ptxas",
        action="store_true",
        help="go on with a ptxas that is known to miscompile products of Hopper",
    )
    parser.add_argument(
        "--print-after-all", action="store_true", help="also write the module after every pass, for tlx-opt"
    )
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="compile anew, and keep nothing (else it is kept in TLX_CACHE_DIR)",
    )
    parser.add_argument("--no-verify", action="store_true", help="do not verify the module")
    parser.add_argument("-q", "--quiet", action="store_true", help="no report")
    add_format_argument(parser)
    add_conversion_argument(parser)
    add_kernel_arguments(parser)


def _add_bundle_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that are about a bundle."""
    parser.add_argument(
        "--bundle",
        metavar="DIR",
        help="write a folder into DIR that tlx_xdsl.runtime.load, or its own C code, launches without a compiler",
    )
    parser.add_argument("--bundle-name", metavar="NAME", help="name of that folder and of the C functions (KERNEL)")
    parser.add_argument(
        "--launch-pdl", action="store_true", help="the bundle's launches may start before their predecessor has ended"
    )
    parser.add_argument(
        "--launch-cooperative-grid", action="store_true", help="all CTAs of the bundle's launches are resident at once"
    )


def _add_cpu_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that are about CPUs alone."""
    parser.add_argument(
        "--cpu",
        metavar="NAME",
        help=f"with --target {CPU}: which CPUs run the code; native (this machine's), x86-64-v3, ...",
    )
    parser.add_argument(
        "--checks",
        action="store_true",
        help=f"with --target {CPU}: an access outside of its array is an error at its line; callers give the sizes",
    )


def run(args: argparse.Namespace) -> None:
    """Carry the command out.

    Raises CompilationError for a fault in the kernel or in what the command line says about it.
    """
    if args.target != CPU:
        for option in ("cpu", "checks"):
            if getattr(args, option):
                raise CompilationError(f"--{option}: it is for --target {CPU}")
    if (module := of_wing(args.target)) is not None:
        module.compile(args)
        return
    from .compile_gpu import run

    run(args)
