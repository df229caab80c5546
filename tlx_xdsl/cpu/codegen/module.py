"""A module of bufferized linalg as the text of an LLVM module, with the function that runs programs of a grid.

The launch of a kernel is memory that all threads share (`Launch`); each of them takes chunks of programs from it until
none are left:

```c
struct launch { int64_t next, total, chunk; int32_t gx, gy, gz, site; int64_t program; };
int32_t kernel_run(const void *arguments, struct launch *launch, void *scratch);
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute

from tlx_xdsl.dialects.func import program_arguments
from tlx_xdsl.dialects.memref import is_memref

from ..bufferize.plan_arena import BYTES
from .builder import I8, I32, I64, PTR, Builder, Externals, Value, constant
from .control import begin_block, define, types_of
from .forwarding import forwarding, is_only_read
from .function import FunctionEmitter, Sites, Target, load_handlers, refused
from .gathered_rows import gathers
from .host import Features, Host, host
from .llvm import Compiled, optimized
from .metadata import Argument, Metadata
from .postponed import postponed_copies, unfilled_accumulators
from .ticks import Ticks

_PLAIN = 'nounwind "no-trapping-math"="true"'
_ATTRIBUTES = f"""\
attributes #0 = {{ {_PLAIN} }}
attributes #1 = {{ {_PLAIN} "prefer-vector-width"="256" "min-legal-vector-width"="0" }}"""
"""The second group is of functions that wait for memory: a CPU of x86 stores two halves of 512 bits as fast as one
whole, and has no slow start with them."""


class Launch:
    """Offsets of the members of a launch, in bytes; the struct has 48."""

    NEXT, TOTAL, CHUNK, GRID, SITE, PROGRAM = 0, 8, 16, 24, 36, 40


def llvm_module(module: ModuleOp, target: Host, *, checks: bool, ticks: Ticks | None = None) -> tuple[str, Metadata]:
    """Translate a module without tensors, one of whose functions is a kernel; with `ticks` it counts cycles by line.

    Raises CompilationError, at the user's line, for what has no counterpart on a CPU.
    """
    load_handlers()
    externals, sites = Externals(), Sites()
    functions = [op for op in module.ops if isinstance(op, func.FuncOp) and not op.is_declaration]
    kernel = next((each for each in functions if program_arguments(each)), None)
    if kernel is None:
        raise refused(module, "it has no kernel")
    texts: list[str] = []
    sizes: dict[str, int] = {}
    for function in _callees_first(functions):
        text, size = _function(function, externals, sites, target.features, sizes, checks=checks, ticks=ticks)
        texts.append(text)
        sizes[function.sym_name.data] = size
    name = kernel.sym_name.data
    texts.append(_runner(kernel, externals, checks=checks))
    defined = {f"{each.sym_name.data}.body" for each in functions}
    declarations = {name: text for name, text in externals.declarations.items() if name not in defined}
    given = kernel.body.blocks[0].args
    given = given[: len(given) - program_arguments(kernel)]
    arguments = tuple(
        Argument(argument.name_hint or f"arg{number}", _spelled(argument.type), is_only_read(argument))
        for number, argument in enumerate(given)
    )
    symbols = tuple(sorted(name for name in declarations if not name.startswith("llvm.")))
    attributes = _ATTRIBUTES
    if target.features.sve:
        # Vectors of a fixed length take registers that are at least as long; without it, those of NEON.
        attributes = attributes.replace(_PLAIN, f"{_PLAIN} vscale_range({target.features.vector_bytes // 16},16)")
    text = "\n".join([*declarations.values(), *texts, attributes, ""])
    return text, Metadata(
        name, f"{name}_run", arguments, sizes[name], tuple(sites.found), symbols, checks, target.triple, target.cpu
    )


def _spelled(type_: Attribute) -> str:
    return "ptr" if is_memref(type_) else str(type_)


def _callees_first(functions: list[func.FuncOp]) -> list[func.FuncOp]:
    """The functions, each after those that it calls."""
    by_name = {each.sym_name.data: each for each in functions}
    ordered: dict[str, func.FuncOp] = {}
    active: set[str] = set()

    def visit(function: func.FuncOp) -> None:
        name = function.sym_name.data
        if name in ordered:
            return
        if name in active:
            raise refused(function, "it calls itself")
        active.add(name)
        for op in function.walk():
            if isinstance(op, func.CallOp) and (callee := by_name.get(op.callee.string_value())) is not None:
                visit(callee)
        ordered[name] = function

    for function in functions:
        visit(function)
    return list(ordered.values())


def _function(
    function: func.FuncOp,
    externals: Externals,
    sites: Sites,
    features: Features,
    sizes: dict[str, int],
    *,
    checks: bool,
    ticks: Ticks | None,
) -> tuple[str, int]:
    """The text of a function, and the bytes of scratch memory that it needs with all that it calls."""
    held = function.attributes.get(BYTES)
    arena = held.value.data if isinstance(held, IntegerAttr) else 0
    b = Builder(externals, features.vector_bytes)
    fn = FunctionEmitter(b, features, sites, checks, Value("%scratch", PTR), arena, forwarding(function))
    fn.ticks = ticks
    fn.gathers = gathers(function)
    fn.unfilled = unfilled_accumulators(function)
    if not checks:
        # The places of faults are those of the loads.
        fn.postponed = postponed_copies(function)
    first, *others = function.body.blocks
    parameters: list[str] = []
    for number, argument in enumerate(first.args):
        parts = [
            Value(f"%a{number}.{part}", type_) for part, type_ in enumerate(types_of(argument.type, checks=checks))
        ]
        parameters += [part.typed for part in parts]
        define(fn, argument, parts)
    results = [type_ for output in function.function_type.outputs for type_ in types_of(output, checks=checks)]
    fn.returns = [Value(f"%r{number}", PTR) for number in range(len(results))]
    parameters += [place.typed for place in fn.returns]
    fn.blocks = {block: Target(b.name()) for block in others}
    if ticks is not None and program_arguments(function):
        ticks.tick(b, None)
    fn.block(first)
    for block in others:
        begin_block(fn, block)
        fn.block(block)
    called = [op.callee.string_value() for op in function.walk() if isinstance(op, func.CallOp)]
    below = max([fn.extra_bytes, *(sizes[name] for name in called if name in sizes)])
    signature = ", ".join(["ptr noalias align 64 %scratch", *parameters])
    # Instructions of 512 bits by name have no other form.
    streams = fn.streams and not any("@llvm.x86.avx512." in line for line in b.lines)
    group = "#1" if streams else "#0"
    return b.text(f'define internal i32 @"{function.sym_name.data}.body"({signature}) {group}'), arena + below


def _runner(kernel: func.FuncOp, externals: Externals, *, checks: bool) -> str:
    """The function that takes programs from a launch and runs them."""
    b = Builder(externals)
    arguments, launch, scratch = (Value(f"%{name}", PTR) for name in ("arguments", "launch", "scratch"))
    count = program_arguments(kernel)
    given = kernel.body.blocks[0].args
    given = given[: len(given) - count]

    def member(offset: int, element: str) -> Value:
        return b.load(element, b.gep(I8, launch, b.index(offset)), align=4)

    parts: list[Value] = []
    for number, argument in enumerate(given):
        types = types_of(argument.type, checks=checks)
        slot = b.gep(I64, arguments, b.index(number))
        parts.append(_slot(b, slot, types[0]))
        if len(types) == 3:
            bounds = len(given) + 2 * number
            parts += [b.load(I64, b.gep(I64, arguments, b.index(bounds + each)), align=8) for each in range(2)]
    total, chunk = member(Launch.TOTAL, I64), member(Launch.CHUNK, I64)
    grid = [member(Launch.GRID + 4 * axis, I32) for axis in range(3)]
    wide = [b.resized(each, I64, signed=False) for each in grid]
    plane = b.binary("mul", wide[0], wide[1])
    site = b.gep(I8, launch, b.index(Launch.SITE))
    take, work, run, done, failed = (b.name() for _ in range(5))
    b.branch(take)
    b.begin(take)
    start = b.emit(f"atomicrmw add {launch.typed}, {chunk.typed} monotonic, align 8", I64)
    b.branch_if(b.compare("icmp slt", start, total), work, done)
    b.begin(work)
    end = b.intrinsic("llvm.smin", b.binary("add", start, chunk), total)
    with b.loop(start, end, b.index(1)) as (program, _, _):
        # Another thread may have failed.
        seen = b.emit(f"load atomic i32, {site.typed} monotonic, align 4", I32)
        b.branch_if(b.compare("icmp eq", seen, constant(0, I32)), run, done)
        b.begin(run)
        place = [
            b.binary("urem", program, wide[0]),
            b.binary("urem", b.binary("udiv", program, wide[0]), wide[1]),
            b.binary("udiv", program, plane),
        ]
        coordinates = [*(b.resized(each, I32) for each in place), *grid][:count]
        status = b.call(f"{kernel.sym_name.data}.body", Value("", I32), scratch, *parts, *coordinates)
        assert status is not None
        fine = b.name()
        b.branch_if(b.compare("icmp eq", status, constant(0, I32)), fine, failed)
        b.begin(fine)
    b.branch(take)
    b.begin(done)
    b.lines.append(f"  ret i32 {b.emit(f'load atomic i32, {site.typed} monotonic, align 4', I32).text}")
    b.begin(failed)
    first = b.emit(f"cmpxchg {site.typed}, i32 0, {status.typed} monotonic monotonic", "{ i32, i1 }")
    won, lost = b.name(), b.name()
    b.branch_if(b.emit(f"extractvalue {first.typed}, 1", "i1"), won, lost)
    b.begin(won)
    b.store(program, b.gep(I8, launch, b.index(Launch.PROGRAM)), 8)
    b.branch(lost)
    b.begin(lost)
    b.lines.append(f"  ret {status.typed}")
    name = kernel.sym_name.data
    return b.text(f'define i32 @"{name}_run"(ptr %arguments, ptr %launch, ptr noalias align 64 %scratch) #0')


def _slot(b: Builder, slot: Value, element: str) -> Value:
    """An argument, whose bits are the low ones of 8 bytes."""
    if element == "i1":
        return b.cast("trunc", b.load(I8, slot), "i1")
    return b.load(element, slot, align=8)


# From a module of bufferized linalg to an object file.


@dataclass(frozen=True)
class CpuObject:
    """An object file, and what a launch has to know of it."""

    code: bytes
    metadata: Metadata


def compile_module(module: ModuleOp, *, checks: bool = False, opt_level: int = 2) -> CpuObject:
    """Compile a module without tensors (`cpu/bufferize`) for this machine.

    With `checks` every access outside of its array ends the program with an error. Raises CompilationError, at the
    user's line, for what has no counterpart on a CPU; InputError where llvmlite is missing.
    """
    compiled, metadata = lowered(module, checks=checks, opt_level=opt_level)
    return CpuObject(compiled.object_code(), metadata)


def lowered(module: ModuleOp, *, checks: bool = False, opt_level: int = 2) -> tuple[Compiled, Metadata]:
    """The same before the object file is written, for those who want the assembly."""
    text, metadata = llvm_module(module, host(), checks=checks)
    return optimized(text, opt_level), metadata
