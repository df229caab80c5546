"""The work of `tlx compile`: a kernel for a GPU, its stages written to files.

What was compiled before is read from the cache: nothing of the compiler is loaded then.
"""

from __future__ import annotations

import argparse
import json
import linecache
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from tlx_xdsl.backend import BackendResult, UpTo, installed_triton_version, start_worker
from tlx_xdsl.errors import CompilationError, SourceLocation, relative_paths, render, with_shown_paths
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.progress import Progress
from tlx_xdsl.runtime.bundle.manifest import MANIFEST
from tlx_xdsl.runtime.driver import cache
from tlx_xdsl.runtime.driver.binaries import KIND, Products, load_products, product_key, store_products
from tlx_xdsl.runtime.driver.phases import Clock
from tlx_xdsl.runtime.driver.reproducible import reproducible
from tlx_xdsl.runtime.driver.specialization import Specialization

from ..entry import STARTED
from ..launch_line.kernel_options import STAGES
from ..launch_line.request import Request, read
from ..launch_line.specialization import specialization_of, triton_version
from ..output import print_document, say, section, times_section, warn, write_file

_TEXT = ("ttir", "ttgir")
_DEFAULT_STAGES = "ttir,ttgir,ptx,cubin,json"

NEEDS_TRITON = "stock Triton is not installed: pip install 'tlx-xdsl[nvidia]' (Linux only)"
"""Why a stage after the text is missing."""


def run(args: argparse.Namespace) -> None:
    """Write, or print, the stages of a kernel for a GPU; raises as `compile_command.run` does."""
    clock = Clock({"start, imports": (time.perf_counter() - STARTED) * 1e3})
    written, needed = _asked_stages(args)
    upto = _upto(needed)
    version = triton_version(args.triton_version, needs_backend=upto is not None)
    request = read(args)
    source, options = request.source, request.options
    specialization = replace(specialization_of(request), ptxas=args.ptxas, allow_old_ptxas=args.allow_old_ptxas)
    write_bundle = _bundle_writer(args, request, specialization)
    clock.lap("the kernel's file")
    paths: list[Path] = []

    def write(stage: str, content: str | bytes) -> None:
        path = Path(args.output or "build") / f"{source.name}.{stage}"
        write_file(path, content)
        paths.append(path)

    lacks_triton = upto is not None and installed_triton_version() is None
    # Where nothing after the frontend is asked for, a kernel that a pass refuses can be looked at all the same.
    lowers = args.output != "-" or written != ("ttir",)
    job = _Job(source, specialization, version, None if lacks_triton else upto, options["num_stages"], lowers)
    with reproducible(source, specialization=specialization, num_stages=job.num_stages):
        products, found = _products(job, args, clock, write)
    warnings = (*map(with_shown_paths, products.warnings), *_spills(source, products))
    for warning in warnings:
        say(warning)
    facts: dict[str, Any] = {"kernel": source.name, "target": specialization.target, "warnings": warnings}
    if args.output == "-":
        # Documents know all errors of the compiler, of which nothing is loaded for what was compiled before.
        from ..documents import show_texts

        show_texts(facts, {stage: getattr(products, stage) for stage in written}, args.format)
        return
    stages: dict[str, str | bytes] = {stage: getattr(products, stage) for stage in _TEXT}
    if job.upto is not None:
        stages |= {"llir": products.llir, "ptx": products.ptx, "cubin": products.cubin}
        stages["json"] = _launch_json(specialization, options, products)
    for stage in written:
        if stage in stages:
            write(stage, stages[stage])
    missing = [stage for stage in needed if stage not in stages]
    if missing and (args.emit or args.bundle):
        raise CompilationError(f"{', '.join(dict.fromkeys(missing))}: {NEEDS_TRITON}")
    paths += write_bundle(products)
    clock.lap("write")
    if args.format == "json":
        facts |= {"files": [*map(str, paths)], "missing": missing, "times_ms": clock.times, **_report_as_json(products)}
        from ..documents import document

        print_document(document("tlx compile", {**facts, "cached": None if found is None else str(found)}))
    elif not args.quiet:
        by = "" if job.upto is None else f", Triton {products.triton_version}"
        print(format_report(f"{source.name} for {specialization.target}{by}", clock.times, products, paths))
        if found is not None:
            print(f"  compiled before, in {sum(products.times_ms.values()):.0f} ms: {found}")
    if missing:
        warn(f"not written: {', '.join(missing)}: {NEEDS_TRITON}")


@dataclass(frozen=True)
class _Job:
    """A compile, and how far it goes."""

    source: KernelSource
    specialization: Specialization
    triton_version: str
    upto: UpTo | None
    """The last stage of stock Triton, or None for text alone."""
    num_stages: int
    lowers: bool
    """Whether passes run."""


def _upto(stages: Sequence[str]) -> UpTo | None:
    if {"cubin", "json"} & {*stages}:
        return "cubin"
    return "ptx" if "ptx" in stages else "llir" if "llir" in stages else None


def _products(
    job: _Job, args: argparse.Namespace, clock: Clock, write: Callable[[str, str], None]
) -> tuple[Products, Path | None]:
    """The products, and their file where they were made before; the report's times are added to the clock's."""
    if args.print_after_all or args.no_verify or args.no_cache or not job.lowers:
        return _compiled(job, args, clock, write), None
    key = product_key(
        job.source,
        job.specialization,
        job.triton_version,
        upto=job.upto,
        num_stages=job.num_stages,
        conversion=args.conversion,
    )
    found = load_products(key)
    clock.lap("look into the cache")
    if found is not None:
        return found, cache.path_of(key, KIND)
    listener: Any = _Listener(sys.stdout)
    with redirect_stdout(listener):
        products = _compiled(job, args, clock, write)
    # What a kernel prints when it is compiled is to be seen each time.
    if not listener.heard and DUMP_LAYOUT not in products.ttir:
        store_products(key, products)
    clock.lap("store in the cache")
    return products, None


DUMP_LAYOUT = "tlx.dump_layout"


class _Listener:
    """A stream that notes whether something was written, such as by `tl.static_print`."""

    def __init__(self, stream: Any):
        self._stream = stream
        self.heard = False

    def write(self, text: str) -> int:
        self.heard = True
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_PHASES = 8
"""Steps of the bar: ours, and those of stock Triton."""


def _compiled(job: _Job, args: argparse.Namespace, clock: Clock, write: Callable[[str, str], None]) -> Products:
    """Compile; warnings are printed where that ends in an error, and are among the products where it does not."""
    shown = False if args.quiet or args.output == "-" else None
    # What is said at the end is said when the bar is gone.
    with ExitStack() as said, Progress(_PHASES, job.source.name, delay=0.3, wanted=shown) as bar:
        if job.upto is not None:
            # Triton's import takes longer than our passes: let it happen meanwhile.
            start_worker()
        bar.note("imports")
        # They take a second, and what comes from the cache does without.
        from tlx_xdsl.backend import compile_ttgir
        from tlx_xdsl.runtime.driver.compilation import compile_text
        from tlx_xdsl.text.diagnostics import collected_diagnostics, report_again
        from tlx_xdsl.text.printer import locations_first

        clock.lap("imports of the compiler")
        bar.advance()
        numbers = count()

        def on_stage(stage: str, text: str) -> None:
            write(f"{next(numbers):02d}-{stage}.mlir", locations_first(text))

        def on_triton(stage: str) -> None:
            bar.note(f"Triton: {stage}")
            bar.advance()

        result: BackendResult | None = None
        with collected_diagnostics() as diagnostics:
            try:
                text = compile_text(
                    job.source,
                    job.specialization,
                    triton_version=job.triton_version,
                    conversion=args.conversion,
                    verify=not args.no_verify,
                    lowers=job.lowers,
                    check_budget=job.lowers,
                    on_stage=on_stage if args.print_after_all and args.output != "-" else None,
                    on_pass=bar.note,
                )
                clock.times.update(text.times_ms)
                clock.skip()
                bar.advance(2)
                if job.upto is not None:
                    result = compile_ttgir(
                        text.ttgir,
                        job.specialization.backend_options(num_stages=job.num_stages),
                        stages=job.upto,
                        source_name=f"{text.name}.ttgir",
                        on_stage=on_triton,
                    )
            except CompilationError:
                said.callback(lambda: [report_again(each) for each in diagnostics])
                raise
    # They may be read again from another folder.
    with relative_paths(None):
        warnings = tuple(map(str, (*diagnostics, *(() if result is None else result.warnings))))
    made = Products(
        text.name,
        job.triton_version,
        locations_first(text.ttir),
        locations_first(text.ttgir),
        warnings=warnings,
        times_ms=dict(text.times_ms),
    )
    if result is None:
        return made
    times = {f"Triton: {stage}": ms for stage, ms in result.times_ms.items()}
    waited = clock.lap("Triton: start, answer")
    clock.times["Triton: start, answer"] = waited - sum(times.values())
    clock.times.update(times)
    return replace(
        made,
        triton_version=result.triton_version,
        llir=result.llir,
        ptx=result.ptx,
        cubin=result.cubin,
        metadata=result.metadata,
        resources=result.resources,
        fp_fusion=result.fp_fusion,
        assembler=result.assembler,
        times_ms={**made.times_ms, **times},
    )


def _asked_stages(args: argparse.Namespace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The stages to write, and those to compile. Raises CompilationError for those that can't be.

    With `--bundle` and no other option about files, only the bundle is written. Printed are those that are text.
    """
    if args.output == "-":
        if args.bundle is not None:
            raise CompilationError("--output -: text is printed, while --bundle writes files: ask for one of the two")
        stages = _TEXT if args.emit is None else _stages(args.emit)
        if not {*stages} <= {*_TEXT}:
            raise CompilationError(f"--output -: only ttir and ttgir are printed, found --emit {','.join(stages)}")
        return stages, stages
    if args.bundle is None:
        written = _stages(args.emit or _DEFAULT_STAGES)
        return written, written
    written = _stages(args.emit or _DEFAULT_STAGES) if args.emit or args.output else ()
    return written, (*written, "ptx", "cubin")


def _bundle_writer(
    args: argparse.Namespace, request: Request, specialization: Specialization
) -> Callable[[Products], list[Path]]:
    """A function that writes the bundle that is asked for, if any, and gives its files, the manifest last.

    Raises CompilationError, before anything is compiled, for what can't be bundled.
    """
    if args.bundle is None:
        for option in ("bundle_name", "launch_pdl", "launch_cooperative_grid"):
            if getattr(args, option):
                text = f"--{option.replace('_', '-')}: there is no bundle that it is for, add --bundle DIR"
                raise CompilationError(text)
        return lambda _products: []
    # A bundle's text is the compiler's.
    from tlx_xdsl.runtime.bundle.write import LaunchFlags, check_launchable, check_name, write_compiled

    source = request.source
    check_name(args.bundle_name or source.name)
    check_launchable(source, specialization)

    def write(products: Products) -> list[Path]:
        folder = write_compiled(
            args.bundle,
            source,
            specialization,
            products.ttgir,
            products.backend_result(),
            name=args.bundle_name,
            num_stages=request.options["num_stages"],
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


def _launch_json(specialization: Specialization, options: Mapping[str, Any], result: Products) -> str:
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
            "assembler": result.assembler,
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


def format_report(title: str, times_ms: Mapping[str, float], products: Products, paths: Sequence[Path]) -> str:
    """The report as text: times, instruction counts, resources and paths."""
    lines = [title, *times_section(times_ms)]
    if products.ptx:
        lines += section("instructions in the PTX", list(ptx_counts(products.ptx).items()))
    if products.cubin:
        lines.extend(_resources(products))
    lines.append("  written")
    lines.extend(f"    {path}" for path in paths)
    return "\n".join(lines)


def _report_as_json(products: Products) -> dict[str, Any]:
    """Return what the report says of the final code: null where there is none."""
    rows = dict(_resource_rows(products)) if products.cubin else None
    return {
        "triton_version": products.triton_version,
        "assembler": products.assembler or None,
        "instructions": ptx_counts(products.ptx) if products.ptx else None,
        "resources": rows,
    }


def _spills(source: KernelSource, products: Products) -> list[str]:
    """A warning where registers were not enough, with what usually helps."""
    used = products.resources
    if not used.spill_store_bytes and not used.spill_load_bytes:
        return []
    place = SourceLocation(source.filename, source.tree.lineno, source.tree.col_offset + 1)
    message = (
        f"'{source.name}' spills: {used.spill_store_bytes} bytes of stores and {used.spill_load_bytes} of loads per "
        f"thread, with {used.registers} registers"
    )
    notes = (
        "smaller tiles, or more warps (--num-warps) for the same tile, need fewer registers per thread; so does an "
        "accumulator in two halves",
        "with tasks, registers= moves registers from the producer to the consumers; --maxnreg is a bound that may be "
        "too low; `tlx sweep --set` compares choices",
    )
    return [render("warning", message, place, linecache.getline(place.filename, place.line).rstrip() or None, notes)]


def _resources(result: Products) -> list[str]:
    always = ("registers", "spill", "shared memory, bytes per block", "warps")
    rows = tuple(row for row in _resource_rows(result) if row[1] or row[0].startswith(always))
    return section(f"resources, by {result.assembler}", rows)


def _resource_rows(result: Products) -> tuple[tuple[str, int], ...]:
    resources, metadata = result.resources, result.metadata
    return (
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
