"""Command-line options that say a kernel, what it is compiled for, and its launch: their names and helps alone.

`request.py` reads them.
"""

from __future__ import annotations

import argparse
from dataclasses import Field, fields
from importlib import import_module
from typing import Any

from tlx_xdsl import wings
from tlx_xdsl.runtime.driver.specialization import CONVERSIONS
from tlx_xdsl.runtime.simulate.options import Options

KERNEL: dict[str, Any] = {"metavar": "FILE.py:KERNEL", "help": "the kernel, a function decorated with tlx_xdsl.jit"}
"""The argument `kernel` of commands that compile."""

LINALG = "linalg"
"""The target of `tlx compile` and `tlx explain` that is no GPU, but upstream MLIR."""
CPU = "cpu"
"""Their target that is machine code for CPUs."""

STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin", "json")
"""The stages that can be written, in their order; `json` is what a launcher must know."""
CPU_STAGES = ("ll", "s", "o", "h", "c", "json")
"""The stages that can be written, in their order: LLVM IR, assembly, the object, and for callers the launcher's header
and source, and what else a launcher must know."""


def of_wing(target: str | None) -> Any:
    """Return the module of a wing that compiles for a target, and None for a GPU: see `Wing.targets`."""
    # GPUs are the usual case, and looking for wings takes some ms.
    if target is None or target.startswith("sm_"):
        return None
    found = wings.names("targets").get(target)
    return None if found is None else import_module(found[0])


VALUES = """\
values of arguments:
  5   2.5   True   None   5:i64          a number, also with its type
  randn:fp16[512,512]                    an array; also rand, zeros, ones, nan, arange, full(0.5), randint(0,10)
  empty:fp16[512,512]                    an array that nothing has written: to read it is a fault
  a.npy   a.npy:bf16                     a file of numpy's
  desc(randn:fp16[512,512], [64,64])     a tensor descriptor with its block
  (randn[64], 3)                         a tuple
  randn:fp16[M,2*K]   M*K                over the names that --size gives
  symmetric:zeros:i32[4]                 with --ranks: an array on each rank, which all reach; others each has alone
  rank   rank+1   per_launch(1, 2)       with --ranks: a number that differs between ranks, or between --launches
Types and blocks that the file's TLX_COMPILE states may be left out: --arg a_desc=randn[512,512].
"""
"""How values are written on a command line."""

SIZE_HELP = "a number that --arg, --constexpr and --grid may name; a parameter of that name has this value"


def add_format_argument(parser: argparse.ArgumentParser, also: str = "") -> None:
    """Declare that a report is text or a document; `also` is another name for the latter."""
    parser.add_argument(
        "--format", choices=("json", "text"), default="text", help="of the report: text, or JSON for programs (text)"
    )
    if also:
        parser.add_argument(also, action="store_const", dest="format", const="json", help="--format json")


def add_kernel_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that say what a kernel is compiled for."""
    parser.add_argument(
        "--target",
        metavar="SM",
        help="GPU to compile for, such as sm_90a (the default) or sm_100a; for compile and explain also cpu and linalg",
    )
    repeated: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument(
        "--signature",
        **repeated,
        metavar="NAME=TYPE,...",
        help="types of runtime arguments: *fp16, *fp16:16 (16-byte aligned), i32, tensordesc<fp16[128, 64]>",
    )
    parser.add_argument("--constexpr", **repeated, metavar="NAME=VALUE,...", help="values of compile-time arguments")
    parser.add_argument(
        "--arg",
        **repeated,
        metavar="NAME=VALUE",
        help="an argument by a value, as for tlx run, whose type is taken: randn:fp16[512,512], FILE.npy, 5, "
        "desc(randn:fp16[512,512], [64,64])",
    )
    parser.add_argument("--size", **repeated, metavar="NAME=VALUE", help="a number that --arg and --constexpr may name")
    parser.add_argument("--num-warps", type=int, help="warps outside of warp-specialised tasks (4)")
    parser.add_argument("--num-stages", type=int, help="depth of automatic pipelining; explicit TLX has its own")
    parser.add_argument("--num-ctas", type=int, help="CTAs that share one tile (1)")
    parser.add_argument("--maxnreg", type=int, help="bound on the registers of a thread")
    parser.add_argument("--cluster", metavar="X,Y,Z", help="thread-block cluster of the launch, recorded in the json")
    _add_common_arguments(parser)


def add_launch_arguments(
    parser: argparse.ArgumentParser, size_help: str = SIZE_HELP, *, needs_grid: bool = True
) -> None:
    """Declare what says a launch: grid, values, sizes, and options of the kernel."""
    parser.add_argument(
        "--grid",
        required=needs_grid,
        metavar="X,Y,Z",
        help="programs along each axis; expressions over arguments and sizes",
    )
    repeated: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--arg", **repeated, metavar="NAME=VALUE", help="value of an argument, see below")
    parser.add_argument("--constexpr", **repeated, metavar="NAME=VALUE", help="value of a compile-time argument")
    parser.add_argument("--size", **repeated, metavar="NAME=VALUE", help=size_help)
    parser.add_argument("--num-warps", type=int, help="warps outside of warp-specialised tasks (4)")
    parser.add_argument("--num-stages", type=int, help="depth of stock Triton's pipelines in the final PTX (3)")
    parser.add_argument("--num-ctas", type=int, help="CTAs that share one tile (1)")
    parser.add_argument("--cluster", metavar="X,Y,Z", help="thread blocks of a cluster (1,1,1)")
    parser.add_argument("--target", metavar="SM", help="GPU that the kernel is written for (sm_90a)")
    _add_common_arguments(parser)


_KINDS: dict[object, dict[str, Any]] = {
    "bool": {"action": "store_true"}, "bool | None": {"action": argparse.BooleanOptionalAction},
    "int": {"type": int}, "int | None": {"type": int}, "float": {"type": float},
}  # fmt: skip
"""What argparse makes of a field, by its type; all else is text."""


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a run in the interpreter, as `Options` says them."""
    for each in _run_options():
        kind = _KINDS.get(each.type, {})
        parser.add_argument(f"--{each.name.replace('_', '-')}", default=each.default, **kind, **each.metadata)


def run_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of a run that a command line says, by name."""
    return {each.name: getattr(args, each.name) for each in _run_options()}


def _run_options() -> list[Field[Any]]:
    return [each for each in fields(Options) if each.metadata]


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what holds for compiles and launches: whether products and sums are contracted, passes of others."""
    parser.add_argument(
        "--pass", dest="passes", action="append", default=[], metavar="after:NAME=PASS",
        help="a pass of another package, after (or before:) a pass, frontend or end; module:Class names one, too",
    )  # fmt: skip
    parser.add_argument(
        "--fp-fusion", dest="enable_fp_fusion", action=argparse.BooleanOptionalAction,
        help="whether a * b + c may be one fused multiply-add (as Triton: TRITON_DEFAULT_FP_FUSION, else its default)",
    )  # fmt: skip


def add_conversion_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the argument that says whose passes give tensors their layouts."""
    parser.add_argument(
        "--conversion",
        choices=CONVERSIONS,
        default="auto",
        help="who gives tensors their layouts: our passes, or stock Triton's, which take plain Triton kernels only and "
        "pipeline their loops (auto: stock's for plain kernels)",
    )
