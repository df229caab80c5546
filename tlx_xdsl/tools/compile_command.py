"""`tlx compile FILE.py:KERNEL`: compile a kernel and write its stages to files."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from itertools import count
from math import prod
from pathlib import Path
from typing import Any, Literal, cast

from tlx_xdsl.backend import (
    BackendOptions,
    BackendResult,
    compile_ttgir,
    installed_triton_version,
    start_worker,
)
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.lower.tlx_tma import MAX_CTAS
from tlx_xdsl.runtime.compilation import (
    CONVERSIONS,
    CompiledText,
    Conversion,
    Specialization,
    compile_text,
    frontend_text,
)
from tlx_xdsl.runtime.defaults import KernelDefaults
from tlx_xdsl.runtime.kernel import Kernel
from tlx_xdsl.text.profiles import NEUTRAL, parse_version
from tlx_xdsl.tools import bundle_option
from tlx_xdsl.tools.loading import assignments, constexpr_value, load_kernel
from tlx_xdsl.tools.report import format_report

STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin", "json")
"""What can be written, in the order in which it comes to be; `json` is what a launcher must know."""
_DEFAULT_STAGES = "ttir,ttgir,ptx,cubin,json"


_EPILOG = """\
What is not given here comes from the table TLX_COMPILE in the kernel's file, if there is one:
  TLX_COMPILE = {"relu": {"signature": {"x": "*fp16:16", "n": "i32"}, "constexprs": {"BLOCK": 1024}, "num_warps": 8}}

examples:
  tlx compile examples/hopper_gemm_ws.py:matmul --target sm_90a -o build/
  tlx compile examples/hopper_gemm_ws.py:matmul --emit ttgir -o -
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("kernel", metavar="FILE.py:KERNEL", help="the kernel, a function decorated with tlx_xdsl.jit")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder for the files (build); - prints them")
    parser.add_argument(
        "--emit",
        metavar="STAGES",
        help=f"what to write, of {','.join(STAGES)} (all but llir; none with --bundle alone)",
    )
    bundle_option.add_arguments(parser)
    parser.add_argument(
        "--triton-version",
        metavar="VERSION",
        help="Triton whose text is written (the installed one's, else 3.9)",
    )
    parser.add_argument(
        "--print-after-all", action="store_true", help="also write the module behind every pass, for tlx-opt"
    )
    parser.add_argument("--no-verify", action="store_true", help="do not verify the module")
    parser.add_argument("-q", "--quiet", action="store_true", help="no report")

    add_conversion_argument(parser)
    add_kernel_arguments(parser)


def add_kernel_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that say what a kernel is compiled for."""
    parser.add_argument("--target", metavar="SM", help="GPU to compile for, such as sm_90a (the default) or sm_100a")
    parser.add_argument(
        "--signature",
        action="append",
        default=[],
        metavar="NAME=TYPE",
        help="type of a runtime argument: *fp16, *fp16:16 (16-byte aligned), i32, tensordesc<fp16[128, 64]>",
    )
    parser.add_argument(
        "--constexpr",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of a compile-time argument",
    )
    parser.add_argument("--num-warps", type=int, help="warps outside of warp-specialised tasks (4)")
    parser.add_argument("--num-stages", type=int, help="depth of automatic pipelining; explicit TLX has its own")
    parser.add_argument("--num-ctas", type=int, help="CTAs that share one tile (1)")
    parser.add_argument("--maxnreg", type=int, help="bound on the registers of a thread")
    parser.add_argument("--cluster", metavar="X,Y,Z", help="thread-block cluster of the launch, recorded in the json")


def add_conversion_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the argument that says whose passes give tensors their layouts."""
    parser.add_argument(
        "--conversion",
        choices=CONVERSIONS,
        default="auto",
        help="who gives tensors their layouts: our passes, or stock Triton's, which take plain Triton kernels only and "
        "pipeline their loops (auto: stock's for plain kernels)",
    )


def run(args: argparse.Namespace) -> None:
    """Carry the command out.

    Raises CompilationError for a fault in the kernel or in what the command line says about it.
    """
    stages = _asked_stages(args)
    needed = (*stages, *bundle_option.stages(args))
    needs_backend = any(stage in needed for stage in ("llir", "ptx", "cubin", "json"))
    version = triton_version(args.triton_version, needs_backend=needs_backend)
    if needs_backend:
        # Triton's import takes longer than our passes: let it happen meanwhile.
        start_worker()
    kernel, options, specialization = load(args)
    bundle_option.check(args, kernel.source, specialization)
    output = Path(args.output or "build")
    paths: list[Path] = []
    if args.output == "-":
        _print_text(kernel, specialization, version, stages, verify=not args.no_verify, conversion=args.conversion)
        return

    def write(stage: str, content: str | bytes) -> None:
        path = output / f"{kernel.source.name}.{stage}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        paths.append(path)

    numbers = count()

    def on_stage(stage: str, text: str) -> None:
        write(f"{next(numbers):02d}-{stage}.mlir", text)

    text = compile_text(
        kernel.source,
        specialization,
        triton_version=version,
        conversion=args.conversion,
        verify=not args.no_verify,
        keep_ttir="ttir" in stages,
        on_stage=on_stage if args.print_after_all else None,
    )
    if "ttir" in stages:
        write("ttir", text.ttir)
    if "ttgir" in stages:
        write("ttgir", text.ttgir)
    times = dict(text.times_ms)
    result = None
    if needs_backend:
        result = _backend(text, specialization, options, needed)
        times |= {f"Triton: {stage}": ms for stage, ms in result.times_ms.items()}
        products: dict[str, str | bytes] = {
            "llir": result.llir,
            "ptx": result.ptx,
            "cubin": result.cubin,
            "json": _launch_json(specialization, options, result),
        }
        for stage in stages:
            if stage in products:
                write(stage, products[stage])
        for warning in result.warnings:
            print(warning, file=sys.stderr)
        paths += bundle_option.write(args, kernel.source, specialization, text, result, options["num_stages"])
    if not args.quiet:
        print(format_report(kernel.source.name, specialization.target, times, result, paths))


def kernel_of(args: argparse.Namespace) -> tuple[Kernel, Specialization]:
    """The kernel that a command line with `add_kernel_arguments` names, and what it is compiled for.

    Raises CompilationError for a kernel that can't be loaded and for arguments that don't fit it.
    """
    kernel, _, specialization = load(args)
    return kernel, specialization


def load(args: argparse.Namespace) -> tuple[Kernel, dict[str, Any], Specialization]:
    """The kernel that a command line names, the options of its launch, and what it is compiled for.

    Raises CompilationError for a kernel that can't be loaded and for arguments that don't fit it.
    """
    kernel, defaults = load_kernel(args.kernel)
    options = launch_options(args, defaults)
    return kernel, options, _specialization(args, defaults, options)


def _print_text(
    kernel: Kernel,
    specialization: Specialization,
    version: str,
    stages: tuple[str, ...],
    *,
    verify: bool,
    conversion: Conversion,
) -> None:
    """Print the text stages that were asked for."""
    if not set(stages) <= {"ttir", "ttgir"}:
        raise CompilationError(f"--output -: only ttir and ttgir are printed, found --emit {','.join(stages)}")
    if stages == ("ttir",):
        # Nothing behind the frontend is asked for: a kernel that a pass refuses can be looked at all the same.
        print(frontend_text(kernel.source, specialization, verify=verify), end="")
        return
    text = compile_text(kernel.source, specialization, triton_version=version, verify=verify, conversion=conversion)
    print("".join(getattr(text, stage) for stage in stages), end="")


def _asked_stages(args: argparse.Namespace) -> tuple[str, ...]:
    """The stages to write as files. Who asks for a bundle, and for nothing else, gets nothing else."""
    if args.bundle is not None and args.emit is None and args.output is None:
        return ()
    return _stages(args.emit or _DEFAULT_STAGES)


def _stages(text: str) -> tuple[str, ...]:
    wanted = [stage.strip() for stage in text.split(",") if stage.strip()]
    unknown = next((stage for stage in wanted if stage not in STAGES), None)
    if unknown is not None or not wanted:
        raise CompilationError(f"--emit: expected stages of {', '.join(STAGES)}, found '{unknown or text}'")
    return tuple(wanted)


def triton_version(asked: str | None, *, needs_backend: bool) -> str:
    """The version whose text is written; a backend stage must be compiled by the version that is installed.

    Raises CompilationError for what is no version, and for one that can't compile what is asked for.
    """
    installed = installed_triton_version()
    if needs_backend and installed is None:
        raise CompilationError(
            "stock Triton is not installed: install tlx-xdsl[nvidia], or write text only with --emit ttir,ttgir"
        )
    if asked is None:
        return installed or NEUTRAL.name
    try:
        version = parse_version(asked)
    except ValueError as error:
        raise CompilationError(f"--triton-version: {error}") from error
    if needs_backend and installed is not None and parse_version(installed) != version:
        raise CompilationError(
            f"--triton-version: the text for Triton {asked} can't be compiled by the installed Triton {installed}; "
            "write text only with --emit ttir,ttgir"
        )
    return asked


def launch_options(args: argparse.Namespace, defaults: KernelDefaults) -> dict[str, Any]:
    """The launch options: what the command line says, then what the file says, then the usual ones.

    Raises CompilationError for sizes that can't be.
    """
    options: dict[str, Any] = {
        "num_warps": 4,
        "num_stages": 3,
        "num_ctas": 1,
        "maxnreg": None,
        "target": "sm_90a",
    }
    options |= defaults.options
    given = {name: getattr(args, name, None) for name in (*options, "cluster")}
    options |= {name: value for name, value in given.items() if value is not None}
    options["cluster"] = _cluster(options.get("cluster"))
    for name in ("num_warps", "num_ctas"):
        if not isinstance(options[name], int) or options[name] < 1 or options[name] & (options[name] - 1):
            raise CompilationError(f"{name} must be a power of two, found {options[name]}")
    return options


def _cluster(value: object) -> list[int]:
    if value is None:
        return [1, 1, 1]
    parts = value.split(",") if isinstance(value, str) else list(cast(tuple[object, ...], value))
    try:
        sizes = [int(str(part)) for part in parts]
    except ValueError:
        sizes = []
    if len(sizes) != 3 or min(sizes) < 1:
        raise CompilationError(f"--cluster: expected three sizes X,Y,Z of at least 1, found '{value}'")
    if prod(sizes) > MAX_CTAS:
        raise CompilationError(f"--cluster: a cluster has at most {MAX_CTAS} CTAs, found {prod(sizes)}")
    return sizes


def _specialization(args: argparse.Namespace, defaults: KernelDefaults, options: Mapping[str, Any]) -> Specialization:
    constexprs = {
        name: constexpr_value(name, text) for name, text in assignments(args.constexpr, "--constexpr").items()
    }
    signature = assignments(args.signature, "--signature")
    return Specialization(
        {**{k: v for k, v in defaults.signature.items() if k not in constexprs}, **signature},
        {**{k: v for k, v in defaults.constexprs.items() if k not in signature}, **constexprs},
        options["target"],
        options["num_warps"],
        options["num_ctas"],
        tuple(options["cluster"]),
        maxnreg=options["maxnreg"],
    )


def backend_options(specialization: Specialization, options: Mapping[str, Any]) -> BackendOptions:
    """How stock Triton is to compile a kernel that is launched with `options`."""
    return BackendOptions(
        specialization.target,
        specialization.num_warps,
        specialization.num_ctas,
        options["maxnreg"],
        num_stages=options["num_stages"],
    )


def _backend(
    text: CompiledText,
    specialization: Specialization,
    options: Mapping[str, Any],
    stages: tuple[str, ...],
) -> BackendResult:
    upto: Literal["llir", "ptx", "cubin"] = "llir"
    if "cubin" in stages or "json" in stages:
        upto = "cubin"
    elif "ptx" in stages:
        upto = "ptx"
    return compile_ttgir(
        text.ttgir, backend_options(specialization, options), stages=upto, source_name=f"{text.name}.ttgir"
    )


def _launch_json(specialization: Specialization, options: Mapping[str, Any], result: BackendResult) -> str:
    """What a launcher must know, as JSON."""
    metadata = result.metadata
    return json.dumps(
        {
            "name": metadata.name,
            "target": specialization.target,
            "arguments": dict(specialization.signature),
            "constexprs": {name: str(value) for name, value in specialization.constexprs.items()},
            "num_warps": metadata.num_warps,
            "num_stages": options["num_stages"],
            "num_ctas": metadata.num_ctas,
            "cluster": options["cluster"],
            "shared": metadata.shared,
            "tmem_size": metadata.tmem_size,
            "tensordesc_meta": [dict(meta) for meta in metadata.tensordesc_meta],
            "global_scratch_size": metadata.global_scratch_size,
            "global_scratch_align": metadata.global_scratch_align,
            "profile_scratch_size": metadata.profile_scratch_size,
            "registers": result.resources.registers,
            "triton_version": result.triton_version,
        },
        indent=2,
    )
