"""The work of `tlx compile`: a kernel for a GPU, its stages written to files."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from tlx_xdsl.backend import BackendResult, UpTo, compile_ttgir, start_worker
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.source import KernelSource
from tlx_xdsl.runtime.bundle.manifest import MANIFEST
from tlx_xdsl.runtime.bundle.write import LaunchFlags, check_launchable, check_name, write_compiled
from tlx_xdsl.runtime.compilation import CompiledText, Conversion, Specialization, compile_text, frontend_text
from tlx_xdsl.runtime.kernel import Kernel
from tlx_xdsl.text.printer import locations_first
from tlx_xdsl.tools.files import write_file
from tlx_xdsl.tools.kernel_options import STAGES, load, triton_version
from tlx_xdsl.tools.report import section, times_section

_DEFAULT_STAGES = "ttir,ttgir,ptx,cubin,json"


def run(args: argparse.Namespace) -> None:
    """Write, or print, the stages of a kernel for a GPU; raises as `compile_command.run` does."""
    stages, needed = _asked_stages(args)
    needs_backend = any(stage in needed for stage in ("llir", "ptx", "cubin", "json"))
    version = triton_version(args.triton_version, needs_backend=needs_backend)
    if needs_backend:
        # Triton's import takes longer than our passes: let it happen meanwhile.
        start_worker()
    kernel, options, specialization = load(args)
    write_bundle = _bundle_writer(args, kernel.source, specialization, options)
    output = Path(args.output or "build")
    paths: list[Path] = []
    if args.output == "-":
        _print_text(kernel, specialization, version, stages, verify=not args.no_verify, conversion=args.conversion)
        return

    def write(stage: str, content: str | bytes) -> None:
        path = output / f"{kernel.source.name}.{stage}"
        write_file(path, content)
        paths.append(path)

    numbers = count()

    def on_stage(stage: str, text: str) -> None:
        write(f"{next(numbers):02d}-{stage}.mlir", locations_first(text))

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
        write("ttir", locations_first(text.ttir))
    if "ttgir" in stages:
        write("ttgir", locations_first(text.ttgir))
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
        paths += write_bundle(text, result)
    if not args.quiet:
        print(format_report(kernel.source.name, specialization.target, times, result, paths))


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
        # Nothing after the frontend is asked for: a kernel that a pass refuses can be looked at all the same.
        print(locations_first(frontend_text(kernel.source, specialization, verify=verify)), end="")
        return
    text = compile_text(kernel.source, specialization, triton_version=version, verify=verify, conversion=conversion)
    print("".join(locations_first(getattr(text, stage)) for stage in stages), end="")


def _asked_stages(args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The stages to write as files, and those to compile.

    With `--bundle` and no other option about files, only the bundle is written.
    """
    if args.bundle is None:
        written = _stages(args.emit or _DEFAULT_STAGES)
        return written, written
    written = _stages(args.emit or _DEFAULT_STAGES) if args.emit or args.output else ()
    return written, (*written, "ptx", "cubin")


def _bundle_writer(
    args: argparse.Namespace, source: KernelSource, specialization: Specialization, options: Mapping[str, Any]
) -> Callable[[CompiledText, BackendResult], list[Path]]:
    """A function that writes the bundle that is asked for, if any, and gives its files, the manifest last.

    Raises CompilationError, before anything is compiled, for what can't be bundled.
    """
    if args.bundle is None:
        for option in ("bundle_name", "launch_pdl", "launch_cooperative_grid"):
            if getattr(args, option):
                text = f"--{option.replace('_', '-')}: there is no bundle that it is for, add --bundle DIR"
                raise CompilationError(text)
        return lambda _text, _result: []
    if args.output == "-":
        raise CompilationError("--output -: text is printed, while --bundle writes files: ask for one of the two")
    check_name(args.bundle_name or source.name)
    check_launchable(source, specialization)

    def write(text: CompiledText, result: BackendResult) -> list[Path]:
        folder = write_compiled(
            args.bundle,
            source,
            specialization,
            text,
            result,
            name=args.bundle_name,
            num_stages=options["num_stages"],
            flags=LaunchFlags(args.launch_pdl, args.launch_cooperative_grid),
        )
        return [*sorted(folder.glob(f"{folder.name}.*")), folder / MANIFEST]

    return write


def _stages(text: str) -> tuple[str, ...]:
    wanted = [stage.strip() for stage in text.split(",") if stage.strip()]
    unknown = next((stage for stage in wanted if stage not in STAGES), None)
    if unknown is not None or not wanted:
        raise CompilationError(f"--emit: expected stages of {', '.join(STAGES)}, found '{unknown or text}'")
    return tuple(wanted)


def _backend(
    text: CompiledText,
    specialization: Specialization,
    options: Mapping[str, Any],
    stages: tuple[str, ...],
) -> BackendResult:
    upto: UpTo = "cubin" if {"cubin", "json"} & {*stages} else "ptx" if "ptx" in stages else "llir"
    chosen = specialization.backend_options(num_stages=options["num_stages"])
    return compile_ttgir(text.ttgir, chosen, stages=upto, source_name=f"{text.name}.ttgir")


def _launch_json(specialization: Specialization, options: Mapping[str, Any], result: BackendResult) -> str:
    """Return what a launcher must know, as JSON."""
    metadata = result.metadata
    return json.dumps(
        {
            "name": metadata.name,
            "target": specialization.target,
            "arguments": dict(specialization.signature),
            "constexprs": {name: str(value) for name, value in specialization.constexprs.items()},
            "num_warps": metadata.num_warps,
            "num_stages": options["num_stages"],
            "enable_fp_fusion": result.fp_fusion,
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


# --- the report ---------------------------------------------------------------------------------------------------

PTX_COUNTS: tuple[tuple[str, str], ...] = (
    ("wgmma", r"\bwgmma\.mma_async\b"),
    ("TMA loads", r"\bcp\.async\.bulk\.tensor\.[^\s;]*\.shared::\w+\.global"),
    ("TMA stores", r"\bcp\.async\.bulk\.tensor\.[^\s;]*\.global\.shared::"),
    ("mbarrier waits", r"\bmbarrier\.try_wait\b"),
)
"""Instructions worth counting, by the pattern that finds them in PTX."""


def ptx_counts(ptx: str) -> dict[str, int]:
    """Return how often each instruction of `PTX_COUNTS` stands in `ptx`."""
    return {name: len(re.findall(pattern, ptx)) for name, pattern in PTX_COUNTS}


def format_report(
    name: str,
    target: str,
    times_ms: Mapping[str, float],
    result: BackendResult | None,
    paths: Sequence[Path],
) -> str:
    """The report as text: times, instruction counts, resources and paths."""
    lines = [f"{name} for {target}" + (f", Triton {result.triton_version}" if result is not None else "")]
    lines += times_section(times_ms)
    if result is not None and result.ptx:
        lines += section("instructions in the PTX", list(ptx_counts(result.ptx).items()))
    if result is not None and result.cubin:
        lines.extend(_resources(result))
    lines.append("  written")
    lines.extend(f"    {path}" for path in paths)
    return "\n".join(lines)


def _resources(result: BackendResult) -> list[str]:
    resources, metadata = result.resources, result.metadata
    rows = (
        ("registers per thread", resources.registers),
        ("spill stores, bytes per thread", resources.spill_store_bytes),
        ("spill loads, bytes per thread", resources.spill_load_bytes),
        ("stack, bytes per thread", resources.stack_bytes),
        ("shared memory, bytes per block", metadata.shared),
        ("static shared memory, bytes", resources.static_shared_bytes),
        ("tensor memory, columns", metadata.tmem_size),
        ("constant memory, bytes", resources.constant_bytes),
        ("named barriers, of 16", resources.barriers),
        ("warps per block", metadata.num_warps),
    )
    always = ("registers", "spill", "shared memory, bytes per block", "warps")
    rows = tuple(row for row in rows if row[1] or row[0].startswith(always))
    return section("resources, by ptxas", rows)
