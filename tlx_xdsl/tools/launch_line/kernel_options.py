"""Command-line options that say what a kernel is compiled for, and the kernel or module that a command line names."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from tlx_xdsl.backend import installed_triton_version
from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.frontend.python.signature import Signature
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.runtime.driver.defaults import KernelDefaults
from tlx_xdsl.runtime.driver.specialization import CONVERSIONS, Specialization
from tlx_xdsl.runtime.kernel import Kernel
from tlx_xdsl.text.profiles import NEUTRAL, parse_version
from tlx_xdsl.tools.launch_line.launch_settings import launch_options
from tlx_xdsl.tools.launch_line.loading import assignments, constexpr_value, load_kernel

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


NEEDS_TRITON = "stock Triton is not installed: pip install 'tlx-xdsl[nvidia]' (Linux only)"
"""Why a stage after the text is missing."""


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
    add_fusion_argument(parser)


def add_fusion_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the argument that says whether products and sums are contracted."""
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


def load(args: argparse.Namespace) -> tuple[Kernel, dict[str, Any], Specialization]:
    """The kernel that a command line names, the options of its launch, and what it is compiled for.

    Raises CompilationError for a kernel that can't be loaded and for arguments that don't fit it.
    """
    kernel, defaults = load_kernel(args.kernel)
    options = launch_options(args, defaults)
    return kernel, options, specialization_of(args, kernel.source, defaults, options)


def triton_version(asked: str | None, *, needs_backend: bool) -> str:
    """The version whose text is written; a backend stage must be compiled by the version that is installed, if any.

    Raises CompilationError for what is no version, and for one that can't compile what is asked for.
    """
    installed = installed_triton_version()
    if asked is None:
        return installed or NEUTRAL.name
    try:
        version = parse_version(asked)
    except InputError as error:
        raise CompilationError(f"--triton-version: {error}") from error
    if needs_backend and installed is not None and parse_version(installed) != version:
        raise CompilationError(
            f"--triton-version: the text for Triton {asked} can't be compiled by the installed Triton {installed}; "
            "write text only with --emit ttir,ttgir"
        )
    return asked


def specialization_of(
    args: argparse.Namespace, source: KernelSource, defaults: KernelDefaults, options: Mapping[str, Any]
) -> Specialization:
    """What a kernel is compiled for: as the command line says, and then its file.

    Raises CompilationError for arguments that don't fit the kernel.
    """
    signature: dict[str, Signature] = dict(assignments(args.signature, "--signature"))
    constexprs: dict[str, Any]
    if args.arg or args.size:
        # Loads numpy.
        from tlx_xdsl.tools.launch_line.launches import read_types

        found = read_types(args, source, defaults)
        constexprs, signature = found.constexprs, {**found.signature, **signature}
    else:
        given = assignments(args.constexpr, "--constexpr")
        constexprs = {name: constexpr_value(name, text) for name, text in given.items()}
    return Specialization(
        {**{k: v for k, v in defaults.signature.items() if k not in constexprs}, **signature},
        {**{k: v for k, v in defaults.constexprs.items() if k not in signature}, **constexprs},
        options["target"],
        options["num_warps"],
        options["num_ctas"],
        tuple(options["cluster"]),
        maxnreg=options["maxnreg"],
        enable_fp_fusion=options["enable_fp_fusion"],
    )
