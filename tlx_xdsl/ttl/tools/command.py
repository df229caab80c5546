"""`tlx ttl compile|run|launch|check FILE.py:KERNEL`: kernels for Tenstorrent's cores, as C++, run here or on a card."""

from __future__ import annotations

import argparse
from typing import Any

from tlx_xdsl.interpreter.limits import POLICIES
from tlx_xdsl.tools.launch_line.kernel_options import add_format_argument

_EPILOG = """\
values of tensors:
  randn[64,96]   randn:bf16[64,96]   also rand, zeros, ones, nan, arange:fp32, full(0.5), randint(0,10):fp32
  a.npy   a.npy:bf16                 a file of numpy's
  4   0.5                            a number, which is a part of the kernel that is compiled
What the kernel's annotations describe, as in a: ttl.tensor((64, 96)), may be left out: it is filled by randn.

examples:
  tlx ttl compile examples/ttl/add.py:add --arg a=randn[64,96] --arg b=randn[64,96] --arg out=nan[64,96] -o build
  tlx ttl run examples/ttl/add.py:add --arg a=randn[64,96] --arg b=randn[64,96] --arg out=nan[64,96] --check out=a+b
  tlx ttl check examples/ttl/add.py:add --arg a=randn[64,96] --arg b=randn[64,96] --arg out=nan[64,96]
"""

ACTIONS = ("compile", "run", "launch", "check")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument(
        "action",
        choices=ACTIONS,
        help="write the C++ of a kernel, run it here or on a card, or check it",
    )
    parser.add_argument("kernel", metavar="FILE.py:KERNEL", help="the name may be left out where there is one kernel")
    repeated: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--arg", **repeated, metavar="NAME=VALUE", help="value of a tensor, see below")
    parser.add_argument(
        "--memory", **repeated, metavar="NAME=PLACE",
        help="where a tensor lies: l1, dram, or height_sharded[ROWS,COLUMNS], width_ or block_, with @l1 or @dram",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of random numbers and of the schedule (0)")
    parser.add_argument(
        "--profile", default="0.81", nargs="?", const="", metavar="RELEASE",
        help="TT-Metalium: 0.81 (the default), 0.81-objects or 2025-12; alone, of a run: print bytes, tiles and cycles",
    )  # fmt: skip
    parser.add_argument("--arch", default="wormhole", help="chip: wormhole (the default, 8x8) or blackhole (13x10)")
    parser.add_argument("--grid", metavar="COLUMNSxROWS", help="cores that the device has (those of the chip)")
    parser.add_argument("--l1", type=int, metavar="BYTES", help="memory of a core for circular buffers (the chip's)")
    parser.add_argument("--zones", action="store_true", help="zones of the device's profiler, by lines of Python")
    parser.add_argument("--no-block-calls", action="store_true", help="call the functions of single tiles only")
    parser.add_argument("--no-schedule", action="store_true", help="leave transfers in the order of the source")
    parser.add_argument("--strict", action="store_true", help="refuse what the compiler would repair with a remark")
    parser.add_argument("--capacity", type=int, metavar="TILES", help="destination registers (those of the hardware)")
    parser.add_argument("--fpu", choices=("auto", "always", "never"), default="auto", help="matrix unit for + - *")
    add_format_argument(parser)
    compiling = parser.add_argument_group("compile")
    compiling.add_argument("-o", "--output", metavar="DIR", help="folder for the files (build); - prints the C++")
    compiling.add_argument("--print-after-all", action="store_true", help="write the module after each pass, too")
    compiling.add_argument("--no-lines", action="store_true", help="leave out #line directives")
    running = parser.add_argument_group("run, launch and check")
    running.add_argument("--machine", default="ttkernel", help="what runs it: ttkernel (the default), tensors or cpp")
    running.add_argument(
        "--schedule", type=_schedule, default=POLICIES[0], metavar="POLICY",
        help=f"who goes on when several can: {', '.join(POLICIES)}, or the choices that 'check' has printed",
    )  # fmt: skip
    running.add_argument(
        "--timeline", metavar="FILE", help="of a run: FILE.html, .json or .perfetto.json, or - for a text; an estimate"
    )
    running.add_argument("--check", **repeated, metavar="NAME=EXPR", help="what a tensor must hold after the run")
    running.add_argument("--tolerance", type=float, help="largest error for --check, relative to the largest value")
    running.add_argument("--device", type=int, default=0, metavar="NUMBER", help="the card for launch, by ttnn (0)")
    running.add_argument("--save", **repeated, metavar="NAME=FILE.npy", help="write a tensor to a file at the end")


def _schedule(text: str) -> str | tuple[int, ...]:
    from ..interpreter.ttkernel.threads import choices_of

    found = text if text in POLICIES else choices_of(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"invalid choice: '{text}' (choose from {', '.join(map(repr, POLICIES))})")
    return found


def run(args: argparse.Namespace) -> int:
    """Carry the command out; returns and raises as `kernels.run` does."""
    from .kernels import run

    return run(args)
