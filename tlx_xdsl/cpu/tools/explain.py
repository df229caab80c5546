"""`tlx explain --target cpu|linalg`: the passes to machine code, the memory, and what becomes of each access."""

from __future__ import annotations

import argparse
from dataclasses import replace

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver.stages import Stage
from tlx_xdsl.terminal import coloured_diff
from tlx_xdsl.text.diagnostics import source_location
from tlx_xdsl.tools.commands.explain_passes import diff, table
from tlx_xdsl.tools.launch_line.kernel_options import CPU
from tlx_xdsl.tools.launch_line.request import read
from tlx_xdsl.tools.launch_line.specialization import specialization_of

from ..bufferize.plan_arena import BYTES, OFFSET
from ..linalg.access_report import access_facts
from ..runtime.build import CpuSpecialization
from ..runtime.linalg import plain_module
from ..runtime.stages import bufferized_stages


def explain_linalg(args: argparse.Namespace) -> None:
    """Print what becomes of each access in linalg.

    Raises CompilationError for a fault in the kernel.
    """
    # As `tlx compile` does.
    args.target = None
    request = read(args)
    print(accesses(plain_module(request.source, specialization_of(request))))


def explain_cpu(args: argparse.Namespace) -> None:
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
        print(coloured_diff(diff(stages, args.diff)) or f"{args.diff} changed nothing")
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


def accesses(module: ModuleOp) -> str:
    """A paragraph for each access of a module of plain Triton: what it becomes in linalg, and why."""
    lines: list[str] = []
    for facts in access_facts(module):
        place = source_location(facts.op.location)
        where = "" if place is None else f"{place}: "
        lines.append(f"{where}{facts.op.name} is {facts.grade.value}")
        lines.append(f"    elements  {facts.base} + {facts.address}")
        if facts.mask:
            lines.append(f"    where     {facts.mask}")
        if facts.reason:
            lines.append(f"    because   {facts.reason}")
    return "\n".join(lines)
