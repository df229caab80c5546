"""Control flow: `scf`, `cf` and `func`. What it carries are scalars, and memory of an unknown rank: a pointer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import cf, func, scf
from xdsl.dialects.builtin import UnrankedMemRefType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import SymbolTable

from tlx_xdsl.dialects import arith
from tlx_xdsl.dialects.memref import element_of, is_memref, ranked, sizes_of, strides_of
from tlx_xdsl.text.diagnostics import source_location

from .builder import I8, I32, I64, PTR, Builder, Value, constant, register_type
from .function import FunctionEmitter, Target, emits, refused
from .mathematics.device import of_device
from .views import View, address, dense

# What values are when they go from block to block --------------------------------------------------------------------


def parts_of(fn: FunctionEmitter, value: SSAValue) -> list[Value]:
    """The operands of LLVM that a value consists of: a pointer, and its bounds if they are checked."""
    if not is_memref(value.type):
        return [fn.values[value]]
    view = fn.views[value]
    bounds = [] if view.bounds is None else [*view.bounds]
    return [address(fn.b, view, view.offset), *bounds]


def types_of(type_: Attribute, *, checks: bool) -> list[str]:
    """The types of those operands."""
    if not is_memref(type_):
        return [register_type(type_)]
    has_bounds = checks and isinstance(type_, UnrankedMemRefType)
    return [PTR, I64, I64] if has_bounds else [PTR]


def define(fn: FunctionEmitter, value: SSAValue, parts: Sequence[Value]) -> None:
    """Let the operands be the value.

    Raises CompilationError for memory whose sizes only the program knows.
    """
    if not is_memref(value.type):
        (fn.values[value],) = parts
        return
    bounds = (parts[1], parts[2]) if len(parts) == 3 else None
    element = element_of(value.type)
    if isinstance(value.type, UnrankedMemRefType):
        fn.views[value] = View(parts[0], element, bounds=bounds)
        return
    type_ = ranked(value.type)
    sizes = [size for size in sizes_of(type_) if size is not None]
    known = dense(parts[0], element, sizes)
    if (known.strides, 0) != strides_of(type_) or len(sizes) != len(sizes_of(type_)):
        raise refused(_owner(value), f"it carries memory of the type {type_}")
    fn.views[value] = known


def _owner(value: SSAValue) -> Operation:
    owner = value.owner
    parent = owner.parent_op() if isinstance(owner, Block) else owner
    assert parent is not None
    return parent


def _all_parts(fn: FunctionEmitter, values: Sequence[SSAValue]) -> list[Value]:
    return [part for value in values for part in parts_of(fn, value)]


def _define_all(fn: FunctionEmitter, values: Sequence[SSAValue], parts: Sequence[Value]) -> None:
    at = 0
    for value in values:
        count = len(types_of(value.type, checks=fn.checks))
        define(fn, value, parts[at : at + count])
        at += count


def _phis(b: Builder, ways: Sequence[tuple[Sequence[Value], str]]) -> list[Value]:
    """A phi for each of the values, which come from several blocks."""
    return [
        b.phi(parts[0].element, 1, [(part, label) for part, (_, label) in zip(parts, ways, strict=True)])[0]
        for parts in zip(*(parts for parts, _ in ways), strict=True)
    ]


@emits(arith.SelectOp)
def select(fn: FunctionEmitter, op: Operation) -> None:
    """Select a value; of memory the address, and the bounds if they are checked."""
    # Rewrites of xDSL make the operation of its own class, with other names.
    condition, *both = op.operands
    ways = (parts_of(fn, each) for each in both)
    define(fn, op.results[0], [fn.b.select(fn.values[condition], *parts) for parts in zip(*ways, strict=True)])


# scf -----------------------------------------------------------------------------------------------------------------


@emits(scf.ForOp)
def for_loop(fn: FunctionEmitter, op: scf.ForOp) -> None:
    """A loop with a signed comparison; nothing where what stores its rows writes it."""
    if op in fn.gathers:
        return
    start, end, step = (fn.values[value] for value in (op.lb, op.ub, op.step))
    block = op.body.block
    with fn.b.loop(start, end, step, _all_parts(fn, op.iter_args)) as (number, carried, following):
        fn.values[block.args[0]] = number
        _define_all(fn, block.args[1:], carried)
        following[:] = _all_parts(fn, fn.block(block))
    _define_all(fn, op.results, following)


@emits(scf.WhileOp)
def while_loop(fn: FunctionEmitter, op: scf.WhileOp) -> None:
    """The first region decides, and what it hands on goes to the second one, or out."""
    b = fn.b
    before, after = op.before_region.block, op.after_region.block
    head, body, done = b.name(), b.name(), b.name()
    start = _all_parts(fn, op.arguments)
    entered = b.label
    b.branch(head)
    b.begin(head)
    phis = [b.phi(part.element, 1, [(part, entered)]) for part in start]
    _define_all(fn, before.args, [value for value, _ in phis])
    condition, *handed = fn.block(before)
    parts = _all_parts(fn, handed)
    b.branch_if(fn.values[condition], body, done)
    b.begin(body)
    _define_all(fn, after.args, parts)
    for (_, line), part in zip(phis, _all_parts(fn, fn.block(after)), strict=True):
        b.add_way(line, part, b.label)
    b.branch(head)
    b.begin(done)
    _define_all(fn, op.results, parts)


@emits(scf.IfOp)
def if_(fn: FunctionEmitter, op: scf.IfOp) -> None:
    """Branch to one of two regions."""
    _choose(fn, op, lambda labels: fn.b.branch_if(fn.values[op.cond], *labels), [op.true_region, op.false_region])


@emits(scf.IndexSwitchOp)
def switch(fn: FunctionEmitter, op: scf.IndexSwitchOp) -> None:
    """Branch to one of several regions."""
    cases = op.cases.get_values()

    def jump(labels: Sequence[str]) -> None:
        _switch(fn.b, fn.values[op.arg], labels[0], list(zip(cases, labels[1:], strict=True)))

    _choose(fn, op, jump, [op.default_region, *op.case_regions])


@emits(scf.ExecuteRegionOp)
def execute_region(fn: FunctionEmitter, op: scf.ExecuteRegionOp) -> None:
    """The blocks of a region; the last one hands the results on.

    Raises CompilationError where another one does.
    """
    first, *others = op.region.blocks
    for block in op.region.blocks:
        if block is not op.region.last_block and isinstance(block.last_op, scf.YieldOp):
            raise refused(op, "its results come from several blocks")
    fn.blocks |= {block: Target(fn.b.name()) for block in others}
    operands = fn.block(first)
    for block in others:
        begin_block(fn, block)
        operands = fn.block(block)
    _define_all(fn, op.results, _all_parts(fn, operands))


def _choose(
    fn: FunctionEmitter, op: Operation, jump: Callable[[Sequence[str]], None], regions: Sequence[Region]
) -> None:
    b = fn.b
    labels, done = [b.name() for _ in regions], b.name()
    jump(labels)
    ways: list[tuple[Sequence[Value], str]] = []
    for label, region in zip(labels, regions, strict=True):
        b.begin(label)
        parts = _all_parts(fn, fn.block(region.block)) if region.blocks else []
        ways.append((parts, b.label))
        b.branch(done)
    b.begin(done)
    _define_all(fn, op.results, _phis(b, ways))


@emits(scf.YieldOp, scf.ConditionOp)
def hand_on(fn: FunctionEmitter, op: Operation) -> None:
    """The operands go to whatever encloses the region."""
    fn.yielded = op.operands


# cf ------------------------------------------------------------------------------------------------------------------


@emits(cf.AssertOp)
def assert_(fn: FunctionEmitter, op: cf.AssertOp) -> None:
    """End the program with an error where it does not hold; in a vectorized body, in any lane that counts."""
    condition = fn.values[op.arg]
    if condition.lanes > 1:
        b = fn.b
        if fn.mask is not None:
            condition = b.binary("or", condition, b.binary("xor", fn.mask, constant(1, "i1", condition.lanes)))
        name = f"llvm.vector.reduce.and.v{condition.lanes}i1"
        b.externals.declare(name, "i1", [condition.type])
        condition = b.emit(f"call i1 @{name}({condition.typed})", "i1")
    # The message begins with the place, which an error has anyway.
    message = op.msg.data.removeprefix(f"{source_location(op.location)}: ")
    fn.fail_unless(condition, op, f"assertion failed: {message}")


@emits(cf.BranchOp)
def jump(fn: FunctionEmitter, op: cf.BranchOp) -> None:
    """Go to a block."""
    _leave(fn, op.successor, op.operands)
    fn.b.branch(_label(fn, op.successor))


@emits(cf.ConditionalBranchOp)
def jump_if(fn: FunctionEmitter, op: cf.ConditionalBranchOp) -> None:
    """Go to one of two blocks."""
    if op.then_block is op.else_block and list(op.then_arguments) != list(op.else_arguments):
        raise refused(op, "both ways lead to one block, with different operands")
    _leave(fn, op.then_block, op.then_arguments)
    if op.else_block is not op.then_block:
        _leave(fn, op.else_block, op.else_arguments)
    fn.b.branch_if(fn.values[op.cond], _label(fn, op.then_block), _label(fn, op.else_block))


def _label(fn: FunctionEmitter, block: Block) -> str:
    return fn.blocks[block].label


def _leave(fn: FunctionEmitter, block: Block, operands: Sequence[SSAValue]) -> None:
    """Note what the arguments of a block are on the way from here."""
    target = fn.blocks[block]
    parts = _all_parts(fn, operands)
    if target.lines is None:
        target.ways.append((parts, fn.b.label))
    else:
        for line, part in zip(target.lines, parts, strict=True):
            fn.b.add_way(line, part, fn.b.label)


def begin_block(fn: FunctionEmitter, block: Block) -> None:
    """Begin a block that others jump to, with a phi for each part of its arguments."""
    target = fn.blocks[block]
    fn.b.begin(target.label)
    types = [type_ for argument in block.args for type_ in types_of(argument.type, checks=fn.checks)]
    phis = [
        fn.b.phi(type_, 1, [(parts[number], label) for parts, label in target.ways])
        for number, type_ in enumerate(types)
    ]
    target.lines = [line for _, line in phis]
    _define_all(fn, block.args, [value for value, _ in phis])


def _switch(b: Builder, value: Value, default: str, cases: Sequence[tuple[int, str]]) -> None:
    ways = " ".join(f"{value.element} {number}, label %{label}" for number, label in cases)
    b.lines.append(f"  switch {value.typed}, label %{default} [ {ways} ]")


# func ----------------------------------------------------------------------------------------------------------------


@emits(func.CallOp)
def call(fn: FunctionEmitter, op: func.CallOp) -> None:
    """A call of a function of the module, of one that the runtime has, or of a device function."""
    b = fn.b
    callee = SymbolTable.lookup_symbol(op, op.callee)
    assert isinstance(callee, func.FuncOp), "the verifier says so"
    arguments = _all_parts(fn, op.arguments)
    if callee.is_declaration:
        if not op.results:
            b.call(callee.sym_name.data, None, *arguments)
            return
        found = of_device(b, callee.sym_name.data, register_type(op.results[0].type), arguments)
        if found is None:
            raise refused(op, f"it calls '{callee.sym_name.data}', which is defined nowhere")
        fn.values[op.results[0]] = found
        return
    scratch = b.gep(I8, fn.scratch, b.index(fn.arena_bytes))
    places = [(b.alloca(type_), type_) for result in op.results for type_ in types_of(result.type, checks=fn.checks)]
    status = b.call(
        f"{callee.sym_name.data}.body", Value("", I32), scratch, *arguments, *(place for place, _ in places)
    )
    assert status is not None
    fn.return_if_failed(status)
    _define_all(fn, op.results, [b.load(type_, place, align=8) for place, type_ in places])


@emits(func.ReturnOp)
def return_(fn: FunctionEmitter, op: func.ReturnOp) -> None:
    """Write the results where the caller wants them; 0: nothing has failed."""
    for place, part in zip(fn.returns, _all_parts(fn, op.operands), strict=True):
        fn.b.store(part, place, 8)
    fn.b.lines.append("  ret i32 0")
