"""Arguments of the commands whose work loads a compiler or the interpreter, which `--help` does without."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tlx_xdsl.runtime.simulate.options import MINIMIZE_SECONDS, PTX, SECONDS, STAGES

from ..launch_line.kernel_options import (
    KERNEL,
    SIZE_HELP,
    VALUES,
    add_conversion_argument,
    add_format_argument,
    add_kernel_arguments,
    add_launch_arguments,
    add_run_arguments,
)


@dataclass(frozen=True)
class Face:
    """A command: what declares its arguments, and who does its work."""

    add_arguments: Callable[[argparse.ArgumentParser], None]
    work: str
    """The module beside this one, loaded when the command is run."""
    function: str = "run"

    def run(self, args: argparse.Namespace) -> int | None:
        """Carry the command out; returns and raises as its work does."""
        return getattr(import_module(f"{__package__}.{self.work}"), self.function)(args)


FORMATS = ("github", "json", "junit", "sarif", "text")
"""What `check_formats` writes."""

_REPEATED: dict[str, Any] = {"action": "append", "default": []}


_RUN_EPILOG = f"""\
{VALUES}
example:
  tlx run examples/hopper_gemm_ws.py:matmul --grid 'cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)' \\
      --arg a_desc=randn[512,512] --arg b_desc=randn[512,512] --arg c_desc=nan[512,512] \\
      --arg M=512 --arg N=512 --arg K=512 --check c_desc=a_desc@b_desc
"""


def _run(parser: argparse.ArgumentParser) -> None:
    """Declare those of `tlx run FILE.py:KERNEL` or `tlx run FILE.mlir[:FUNCTION]`: a run on the CPU."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _RUN_EPILOG
    parser.add_argument("kernel", metavar="FILE", help="FILE.py:KERNEL, or IR at any stage in FILE.mlir[:FUNCTION]")
    add_launch_arguments(parser)
    parser.add_argument("--save", **_REPEATED, metavar="NAME=FILE.npy", help="write an array to a file at the end")
    parser.add_argument(
        "--check",
        **_REPEATED,
        metavar="NAME=EXPR",
        help="what an array must hold, over the arrays from before the run: sqrt exp max mean sum softmax where ...",
    )
    parser.add_argument("--tolerance", type=float, help="largest error for --check, relative to the largest value")
    parser.add_argument(
        "--compare", action=argparse.BooleanOptionalAction,
        help="with --stage ptx: run the TTGIR in the interpreter, too, and compare (the default)",
    )  # fmt: skip
    add_run_arguments(parser)
    parser.add_argument("--svg", metavar="FILE", help="with --profile --stage cpu: write the profile as a picture")
    add_format_argument(parser)
    parser.add_argument("--watch", action="store_true", help="run again whenever the file changes, until Ctrl-C")
    timeline = parser.add_argument_group(
        "timeline", "what the clock predicts for a GPU (docs/clock.md); nothing is run"
    )
    timeline.add_argument(
        "--timeline", nargs="?", const="-", metavar="FILE",
        help="predict the launch: FILE.html, FILE.json or FILE.perfetto.json, or a short text without one",
    )  # fmt: skip
    timeline.add_argument(
        "--beside", **_REPEATED, metavar="NAME=VALUE,...",
        help="another configuration, shown beside the first: compile-time arguments and options of the launch",
    )  # fmt: skip
    _add_clock_arguments(timeline.add_argument)


def _add_clock_arguments(add: Callable[..., object]) -> None:
    """Declare those that say which GPU the clock predicts."""
    add("--chip", metavar="NAME", help="H200, H100 or B200 (what the target is of)")
    add("--clock", metavar="HERTZ", help="clock of the multiprocessors, as in 1.755GHz, for times")


RUN = Face(_run, "run_kernel")


_DEBUG_EPILOG = f"""\
{VALUES}
The run is recorded first; commands then go forwards and backwards in it: 'help' lists them (docs/debugger.md).

examples:
  tlx debug ring.py:ring --grid 1 --arg src=randn[320,64] --arg dst=nan[320,64]
  tlx debug ring.py:ring --grid 1 --arg src=randn[320,64] --arg dst=nan[320,64] -c 'why; who dst[0, 0]'
"""


def _debug(parser: argparse.ArgumentParser) -> None:
    """Declare those of `tlx debug FILE.py:KERNEL`: a recorded run, looked at forwards and backwards."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _DEBUG_EPILOG
    parser.add_argument("kernel", metavar="FILE", nargs="?", help="FILE.py:KERNEL")
    add_launch_arguments(parser, needs_grid=False)
    parser.add_argument("--check", **_REPEATED, metavar="NAME=EXPR", help="what an array must hold, as for tlx run")
    parser.add_argument("--tolerance", type=float, help="largest error for --check, relative to the largest value")
    parser.add_argument(
        "-c", "--command", dest="command_list", **_REPEATED, metavar="COMMANDS", help="commands, with ; between them"
    )
    parser.add_argument("--script", metavar="FILE", help="file of commands, one on each line")
    parser.add_argument(
        "--dap", nargs="?", type=int, const=0, metavar="PORT",
        help="speak the Debug Adapter Protocol, on standard input and output or at a port of this machine",
    )  # fmt: skip
    add_format_argument(parser)
    add_run_arguments(parser)


DEBUG = Face(_debug, "debug_kernel")


def _check(parser: argparse.ArgumentParser) -> None:
    """Declare those of `tlx check FILE.py:KERNEL`: runs in all orders that matter, and what is wrong in any."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        f"{VALUES}\nThe exit status is 1 where something was found, or not run that was asked for (--allow-unrun).\n"
    )
    parser.add_argument("kernel", metavar="FILE", help="FILE.py:KERNEL")
    add_launch_arguments(parser, f"{SIZE_HELP}; several as in 0..3,7 or small, of which all combinations are run")
    parser.add_argument(
        "--sweep", action=argparse.BooleanOptionalAction, default=True,
        help="run all values of --size, or with --no-sweep the first ones alone",
    )  # fmt: skip
    parser.add_argument(
        "--prove", action="store_true",
        help="prove the synchronisation of the tasks for all trip counts, too, or with --ranks the protocol across "
        "ranks for any number of launches, or say which line stops the proof",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"time for all sizes and orders ({SECONDS:g})")
    parser.add_argument(
        "--all-orders",
        action="store_true",
        help="exit with 1 where orders that make a difference were not run",
    )
    parser.add_argument(
        "--allow-unrun", action="store_true",
        help="exit with 0 where nothing was found, though sizes or a stage that were asked for were not run",
    )  # fmt: skip
    parser.add_argument(
        "--stages",
        help=f"stages of the pipeline ({','.join((*STAGES, PTX))}, if there is stock Triton); also passes, linalg, cpu",
    )  # fmt: skip
    parser.add_argument(
        "--launches", type=int, metavar="N",
        help="launches in a row on the same arrays (2 where there are atomics or while loops, as a remark; else 1); "
        "with --ranks each rank's, with no barrier between ranks (as many as per_launch has values for, else 1)",
    )  # fmt: skip
    parser.add_argument(
        "--ranks", metavar="N,...", help="GPUs that run the grid side by side, each all of it: all numbers are run"
    )
    parser.add_argument("--seed", type=int, default=0, help="of random numbers (0)")
    parser.add_argument("--format", choices=FORMATS, default="text", help="of the report (text)")


CHECK = Face(_check, "check_kernel")


def _minimize(parser: argparse.ArgumentParser) -> None:
    """Declare those of `tlx minimize-sync FILE.py:KERNEL`: which waits, arrivals and fences are redundant."""
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
    add_format_argument(parser)
    parser.set_defaults(sweep=True)


MINIMIZE = Face(_minimize, "check_kernel", "run_minimize")


def _explain(parser: argparse.ArgumentParser) -> None:
    """Declare those of `tlx explain FILE.py:KERNEL`: the passes, what each of them did, and what layouts cost."""
    parser.add_argument("kernel", **KERNEL)
    parser.add_argument("--diff", metavar="PASS", help="show what this pass changed, as a unified diff")
    parser.add_argument("--side-by-side", action="store_true", help="with --diff: before and after beside each other")
    parser.add_argument("--all", action="store_true", help="list passes that changed nothing, too")
    parser.add_argument(
        "--why",
        metavar="VALUE",
        help="why a value has its layout: %%acc_1 as printed after the last pass, or the name of a Python variable",
    )
    parser.add_argument(
        "--layout", metavar="VALUE", help="the layout of a value, named as for --why: who holds what, where"
    )
    parser.add_argument(
        "--svg", metavar="FILE", help="write a picture of --layout, or else of all that tlx.dump_layout asks for"
    )
    parser.add_argument(
        "--triton-version", metavar="VERSION", help="Triton to compile for (the installed one, else 3.9)"
    )
    add_conversion_argument(parser)
    add_format_argument(parser)
    slow = parser.add_argument_group("time", "with --why-slow, which takes the arguments of the launch by --arg")
    slow.add_argument(
        "--why-slow", action="store_true",
        help="what costs a launch time, at its lines, as the clock predicts it for a GPU (docs/clock.md)",
    )  # fmt: skip
    decisions = parser.add_argument_group("warp specialisation", "of a plain kernel, for a launch or without one")
    decisions.add_argument(
        "--warp-specialize", action="store_true",
        help="how the kernel would be warp-specialised: decisions, reasons, and what the clock expects of others",
    )  # fmt: skip
    _add_decision_arguments(decisions.add_argument)
    slow.add_argument("--grid", metavar="X,Y,Z", help="programs along each axis; expressions over arguments and sizes")
    _add_clock_arguments(slow.add_argument)
    add_kernel_arguments(parser)


EXPLAIN = Face(_explain, "explain_passes")


def _reverse(parser: argparse.ArgumentParser) -> None:
    """Declare those of `tlx reverse FILE.mlir` or `tlx reverse FILE.py:KERNEL`: IR at any stage as Python."""
    parser.add_argument(
        "kernel", metavar="FILE", help="FILE.py:KERNEL, or IR at any stage in FILE.mlir, .ttir or .ttgir"
    )
    parser.add_argument("-o", "--output", metavar="FILE.py", help="file to write to, instead of standard output")
    parser.add_argument(
        "--stage", metavar="PASS", help="the pass of a kernel's pipeline after which to look (the last one)"
    )
    add_format_argument(parser)
    add_kernel_arguments(parser)


REVERSE = Face(_reverse, "reverse_ir")

_SPECIALIZE_EPILOG = """\
Without --grid, rules decide. With a launch, the clock ranks other decisions, too, and the plain kernel.
The exit status is 1 where the kernel can't be specialised, and where nothing proves the result right.

examples:
  tlx warp-specialize kernels.py:matmul -o specialised.py
  tlx warp-specialize kernels.py:matmul --set depth=3 --set groups=1 -o specialised.py
"""


def _specialize(parser: argparse.ArgumentParser) -> None:
    """Declare those of `tlx warp-specialize FILE.py:KERNEL`: a kernel of plain Triton as tasks, in TLX."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _SPECIALIZE_EPILOG
    parser.add_argument("kernel", **KERNEL)
    parser.add_argument("-o", "--output", metavar="FILE.py", help="file to write to, instead of standard output")
    parser.add_argument(
        "--grid", metavar="X,Y,Z", help="programs along each axis; expressions over arguments and sizes"
    )
    add_format_argument(parser)
    _add_decision_arguments(parser.add_argument)
    parser.add_argument("--chip", metavar="NAME", help="GPU that the clock predicts: H200 or H100")
    add_kernel_arguments(parser)


def _add_decision_arguments(add: Callable[..., object]) -> None:
    """Declare those that say who decides what."""
    add(
        "--set", **_REPEATED, metavar="NAME=VALUE",
        help="a decision, such as depth=3 or groups=1 (docs/warp-specialize.md lists all)",
    )  # fmt: skip
    add("--by", choices=("rules", "clock", "search"), help="who decides (rules; with --grid a search)")
    add("--seconds", type=float, default=60.0, help="time after which a search begins nothing new (60)")


WARP_SPECIALIZE = Face(_specialize, "warp_specialize")

_ADDRESSES_EPILOG = """\
Without --grid, what is said holds for every launch that keeps the conditions that are named. With it, the addresses of
all programs are computed: which of them write the same bytes, which leave an array, and what is not written.

example:
  tlx addresses examples/ampere_gemm_pipelined.py:matmul --grid 'cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)' \\
      --arg M=512 --arg N=512 --arg K=256 --arg stride_a=256 --arg stride_b=512 --arg stride_c=512 \\
      --shape a_ptr=M,K --shape b_ptr=K,N --shape c_ptr=M,N --svg coverage.svg
"""


def _addresses(parser: argparse.ArgumentParser) -> None:
    """Declare those of `tlx addresses FILE.py:KERNEL` or `... FILE.mlir[:FUNCTION]`: where programs touch memory."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ADDRESSES_EPILOG
    parser.add_argument(
        "kernel", metavar="FILE", help="FILE.py:KERNEL, or IR at any stage in FILE.mlir[:FUNCTION], .ttir or .ttgir"
    )
    parser.add_argument("--grid", metavar="X,Y,Z", help="programs along each axis; expressions over the arguments")
    parser.add_argument(
        "--shape",
        **_REPEATED,
        metavar="NAME=SIZES",
        help="sizes of the array that a pointer or descriptor addresses: 1024,512; an array of --arg says them, too",
    )
    add_format_argument(parser, also="--json")
    parser.add_argument("--svg", metavar="FILE", help="write a picture: which program touches which block")
    parser.add_argument(
        "--wave", type=int, metavar="N", help="in the picture, one colour for each N programs, which run at a time"
    )
    add_kernel_arguments(parser)


ADDRESSES = Face(_addresses, "addresses_launch")

_LINT_EPILOG = """\
Types and constants are those of the file's TLX_COMPILE; of one kernel they may be given here, too. With --grid and the
arguments (--arg), accesses out of bounds and programs that write the same bytes are looked for as well.
The exit status is 1 where there is an error, with --strict also where there is a warning.

examples:
  tlx lint kernels.py attention.py
  tlx lint kernels.py:softmax --grid 4 --arg x=empty:fp32[4,256] --arg n=256 --format github
"""


def _lint(parser: argparse.ArgumentParser) -> None:
    """Declare those of `tlx lint FILE.py...`: all that is wrong and can be found without a binary or a run."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _LINT_EPILOG
    parser.add_argument("kernels", nargs="+", metavar="FILE", help="FILE.py, for all kernels in it, or FILE.py:KERNEL")
    parser.add_argument("--grid", metavar="X,Y,Z", help="programs of a launch; expressions over arguments and sizes")
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="time of the prover for all kernels; 0 leaves it out (20)"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 where there is a warning, too")
    parser.add_argument("--format", choices=FORMATS, default="text", help="of the report (text)")
    parser.set_defaults(shape=[])
    add_kernel_arguments(parser)


LINT = Face(_lint, "lint_kernels")

_MCP_EPILOG = """\
The server reads requests from standard input and writes answers to standard output (docs/agents.md). A client that
starts it runs the kernels' files that it names, as this user.

example, in a client's configuration:
  {"mcpServers": {"tlx": {"command": "tlx", "args": ["mcp", "--seconds", "60"]}}}
"""


def _mcp(parser: argparse.ArgumentParser) -> None:
    """Declare those of `tlx mcp`: a server of the Model Context Protocol, whose tools are commands."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _MCP_EPILOG
    parser.add_argument("--seconds", type=float, default=120.0, help="time of a call, after which it is ended (120)")
    parser.add_argument("--bytes", type=int, default=100_000, help="size of a result, which is cut to it (100000)")


MCP = Face(_mcp, "mcp_server")
