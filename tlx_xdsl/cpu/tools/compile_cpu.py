"""`tlx compile --target cpu`: a kernel of the plain language as machine code for CPUs, with what C needs to call it.

`tlx explain --target cpu` prints the passes to it, the memory, and what becomes of each access.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver.stages import Stage
from tlx_xdsl.text.diagnostics import source_location
from tlx_xdsl.text.printer import locations_first
from tlx_xdsl.tools.commands.diff_text import diff
from tlx_xdsl.tools.commands.explain_passes import table
from tlx_xdsl.tools.documents import document, show_texts
from tlx_xdsl.tools.launch_line.kernel_options import CPU, CPU_STAGES
from tlx_xdsl.tools.launch_line.request import read
from tlx_xdsl.tools.launch_line.specialization import specialization_of
from tlx_xdsl.tools.output import Rows, print_document, section, times_section, write_file

from ..bufferize.plan_arena import BYTES, OFFSET
from ..bundle.write import BUNDLED, bundle_symbol, check_bundled, cpu_files, write_files
from ..codegen.host import NATIVE, named_host
from ..linalg.access_report import accesses
from ..runtime.build import CpuSpecialization, CpuStages, bufferized_stages, compile_stages, text_bytes
from ..runtime.linalg import plain_module

_PRINTED = ("ll", "s", "h", "c", "json")
_FOR_GPUS = ("triton_version", "launch_pdl", "launch_cooperative_grid")
_VECTORS = (
    ("on 512-bit registers", r"%zmm"),
    ("on 256-bit registers", r"%ymm"),
    ("on 128-bit registers", r"%xmm|\bv\d+\.\d+[bhsd]\b"),
    ("fused multiply-adds", r"^\s+(?:vfn?m(?:add|sub)|fml[as]\b|fn?m(?:add|sub)\b)"),
)
"""Instructions worth counting, by the pattern that finds them in a line of assembly for x86-64 or Arm."""


def compile(args: argparse.Namespace) -> None:
    """Carry the command out.

    Raises CompilationError for a fault in the kernel or in what the command line says about it.
    """
    for option in _FOR_GPUS:
        if getattr(args, option):
            raise CompilationError(f"--{option.replace('_', '-')}: it is for GPUs, not for --target {CPU}")
    stages = _asked_stages(args)
    # Without llvmlite nothing of this works: that is said first.
    target = named_host(args.cpu or NATIVE)
    # What a kernel may say is that of the GPU which its file names, or of the usual one.
    args.target = None
    request = read(args)
    specialization = specialization_of(request)
    source = replace(request.source, passes=(*request.source.passes, *specialization.passes))
    signature = specialization.signature
    check_bundled(source, signature)
    wanted = CpuSpecialization(
        signature, specialization.constexprs, args.checks, symbol=bundle_symbol(source, args.bundle_name)
    )
    output = None if args.output == "-" else Path(args.output or "build")
    paths: list[Path] = []
    numbers = count()

    def on_stage(stage: str, text: str, end: str = "mlir") -> None:
        if output is None:
            print(f"// -----// IR Dump After {stage} //----- //\n{text}", file=sys.stderr)
        else:
            write(output, f"{next(numbers):02d}-{stage}.{end}", text)

    def write(folder: Path, end: str, content: str | bytes) -> None:
        path = folder / f"{wanted.symbol}.{end}"
        write_file(path, content)
        paths.append(path)

    shows = args.print_after_all
    made = compile_stages(
        source, wanted, target, (lambda stage, text: on_stage(stage, locations_first(text))) if shows else None
    )
    if shows:
        on_stage("to-llvm", made.llvm_ir, "ll")
        on_stage("llvm-passes", made.optimized, "ll")
    files = cpu_files(source, wanted, made)
    facts: dict[str, Any] = {"kernel": source.name, "target": CPU, "warnings": []}
    if output is None:
        show_texts(facts, {stage: files[stage].decode() for stage in stages}, args.format)
        return
    for stage in stages:
        write(output, stage, files[stage])
    if args.bundle is not None:
        folder = write_files(args.bundle, made.metadata.name, files)
        paths += [folder / f"{folder.name}.{end}" for end in BUNDLED]
    if args.format == "json":
        facts |= {"files": [*map(str, paths)], "times_ms": made.times_ms, "resources": dict(_resources(made))}
        facts |= {"instructions": instruction_counts(made.assembly)}
        print_document(document("tlx compile", facts))
    elif not args.quiet:
        print(report(made, paths))


def _asked_stages(args: argparse.Namespace) -> tuple[str, ...]:
    """The stages to write, or to print; with `--bundle` and no other option about files, only the bundle is written."""
    if args.bundle is None and args.bundle_name is not None:
        raise CompilationError("--bundle-name: there is no bundle that it is for, add --bundle DIR")
    if args.bundle is not None and args.output == "-":
        raise CompilationError("--output -: text is printed, while --bundle writes files: ask for one of the two")
    if args.emit is None:
        if args.output == "-":
            return ("s",)
        return () if args.bundle is not None and args.output is None else CPU_STAGES
    wanted = tuple(stage.strip() for stage in args.emit.split(",") if stage.strip())
    unknown = next((stage for stage in wanted if stage not in CPU_STAGES), None)
    if unknown is not None or not wanted:
        raise CompilationError(
            f"--emit: with --target {CPU} expected stages of {', '.join(CPU_STAGES)}, found '{unknown or args.emit}'"
        )
    if args.output == "-" and not {*wanted} <= {*_PRINTED}:
        raise CompilationError(f"--output -: only {', '.join(_PRINTED)} are printed, found --emit {args.emit}")
    return wanted


def explain(args: argparse.Namespace) -> None:
    """Print the way of a kernel to machine code for CPUs, up to LLVM IR; it needs no llvmlite.

    Raises CompilationError for a fault in the kernel, and for what has no meaning on a CPU.
    """
    if args.why is not None:
        raise CompilationError(f"--why: with --target {CPU} values have no layouts")
    # As `tlx compile` does.
    args.target = None
    request = read(args)
    specialization = specialization_of(request)
    stages: list[Stage] = []
    module, times = bufferized_stages(
        replace(request.source, passes=(*request.source.passes, *specialization.passes)),
        CpuSpecialization(specialization.signature, specialization.constexprs),
        lambda name, printed: stages.append(Stage(name, printed)),
    )
    if args.diff is not None:
        print(diff(stages, args.diff, side_by_side=args.side_by_side))
        return
    print(f"{request.source.symbol} for CPUs")
    print(table(stages, times, every=args.all))
    print(f"\n{memory(module)}")
    print(f"\naccesses\n{accesses(plain_module(request.source, specialization))}")


def memory(module: ModuleOp) -> str:
    """A line for each buffer and call of each function: where its bytes begin in the function's memory, and its place.

    Buffers that are not needed at the same time may begin at the same byte.
    """
    lines: list[str] = []
    for function in (op for op in module.ops if isinstance(op, func.FuncOp) and BYTES in op.attributes):
        lines.append(f"memory of {function.sym_name.data}: {_number(function, BYTES)} bytes for each thread")
        for op in function.walk():
            if op is not function and OFFSET in op.attributes:
                what = op.memref.type if isinstance(op, memref.AllocOp) else op.name
                place = source_location(op.location)
                lines.append(f"  from byte {_number(op, OFFSET):8d}  {what}{'' if place is None else f', {place}'}")
    return "\n".join(lines)


def _number(op: Operation, name: str) -> int:
    held = op.attributes[name]
    assert isinstance(held, IntegerAttr)
    return held.value.data


# --- the report ------------------------------------------------------------------------------------------------------


def report(made: CpuStages, paths: Sequence[Path]) -> str:
    """The report as text: times, instructions, memory and paths."""
    known = made.metadata
    lines = [f"{known.name} for {known.cpu} ({known.triple})" + (", with checks" if known.checks else "")]
    lines += times_section(made.times_ms)
    lines += section("instructions", list(instruction_counts(made.assembly).items()))
    lines += section("resources", _resources(made))
    if known.symbols:
        lines.append(f"  calls {', '.join(known.symbols)}")
    lines.append("  written")
    lines.extend(f"    {path}" for path in paths)
    return "\n".join(lines)


def _resources(made: CpuStages) -> Rows:
    return [
        ("machine code, bytes", text_bytes(made.code)),
        ("scratch memory, bytes per thread", made.metadata.scratch_bytes),
        ("assertions", len(made.metadata.sites)),
    ]


def instruction_counts(assembly: str) -> Mapping[str, int]:
    """The number of all instructions in an assembly, and of those in `_VECTORS` that it has."""
    # What is indented and no directive; a line may carry a comment after it.
    lines = [line for line in assembly.splitlines() if re.match(r"\s+[a-z]", line)]
    found = {what: sum(re.search(pattern, line) is not None for line in lines) for what, pattern in _VECTORS}
    return {"all": len(lines), **{what: number for what, number in found.items() if number}}
