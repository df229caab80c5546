"""Operations of `memref` and `affine`: views, single elements and atomic operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from xdsl.dialects import affine, memref as upstream
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    MemRefType,
    UnrankedMemRefType,
    UnrealizedConversionCastOp,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from tlx_xdsl.dialects import memref
from tlx_xdsl.dialects.base import is_float

from ..bufferize.plan_arena import OFFSET
from .builder import FLOATS, I64, PTR, Builder, Value
from .function import FunctionEmitter, emits, refused
from .scalars import minmax, rounded, widened
from .views import Number, View, add, address, as_value, byte_range, dense, from_memory, gather, load, multiply, store


def number_of(fn: FunctionEmitter, value: SSAValue) -> Number:
    """An index; one that is a constant is known."""
    found = fn.values[value]
    return int(found.text) if found.text.lstrip("-").isdigit() else found


def mixed(fn: FunctionEmitter, static: DenseArrayBase[IntegerType], operands: Iterator[SSAValue]) -> list[Number]:
    """A list some numbers of which are operands."""
    return [number_of(fn, next(operands)) if each == DYNAMIC_INDEX else each for each in static.get_values()]


def offsets_of(fn: FunctionEmitter, box: SSAValue) -> list[Number]:
    """Return where a box of memory begins in what it is a box of; 0 along each dimension of other memory."""
    if isinstance(op := box.owner, upstream.SubviewOp):
        return mixed(fn, op.static_offsets, iter(op.offsets))
    return [0] * len(memref.sizes_of(box.type))


# Views ---------------------------------------------------------------------------------------------------------------


@emits(upstream.AllocOp)
def allocate(fn: FunctionEmitter, op: upstream.AllocOp) -> None:
    """A buffer of the arena."""
    offset = op.attributes.get(OFFSET)
    sizes = memref.sizes_of(op.memref.type)
    if not isinstance(offset, IntegerAttr) or None in sizes:
        raise refused(op, f"it has no place in the arena ('{OFFSET}')")
    base = fn.buffer(offset.value.data)
    fn.views[op.memref] = dense(base, memref.element_of(op.memref.type), [size for size in sizes if size is not None])
    if (wait := fn.postponed.get(op)) is not None:
        wait.begin(fn.b)


@emits(memref.ReinterpretCastOp)
def reinterpret_cast(fn: FunctionEmitter, op: memref.ReinterpretCastOp) -> None:
    """Make a view whose offset counts from the base."""
    (offset,) = mixed(fn, op.static_offsets, iter(op.offsets))
    sizes = mixed(fn, op.static_sizes, iter(op.sizes))
    strides = mixed(fn, op.static_strides, iter(op.strides))
    fn.views[op.result] = fn.views[op.source].with_(offset=offset, sizes=sizes, strides=strides)


@emits(upstream.SubviewOp)
def subview(fn: FunctionEmitter, op: upstream.SubviewOp) -> None:
    """A box, without some dimensions of size 1."""
    source = fn.views[op.source]
    offsets = mixed(fn, op.static_offsets, iter(op.offsets))
    sizes = mixed(fn, op.static_sizes, iter(op.sizes))
    steps = mixed(fn, op.static_strides, iter(op.strides))
    strides = [multiply(fn.b, step, stride) for step, stride in zip(steps, source.strides, strict=True)]
    kept = memref.kept_dimensions(memref.box_type(op), memref.ranked(op.result.type))
    assert kept is not None, "the verifier says so"
    fn.views[op.result] = source.with_(
        offset=source.place(fn.b, offsets), sizes=[sizes[dim] for dim in kept], strides=[strides[dim] for dim in kept]
    )


@emits(memref.CastOp)
def cast_memory(fn: FunctionEmitter, op: memref.CastOp) -> None:
    """The same view; what the type states is known."""
    view = fn.views[op.source]
    if isinstance(op.dest.type, MemRefType):
        sizes = [
            now if size is None else size for size, now in zip(memref.sizes_of(op.dest.type), view.sizes, strict=True)
        ]
        view = view.with_(offset=view.offset, sizes=sizes, strides=view.strides)
    fn.views[op.dest] = view


@emits(upstream.CollapseShapeOp)
def collapse_shape(fn: FunctionEmitter, op: upstream.CollapseShapeOp) -> None:
    """Neighbouring dimensions as one: its stride is that of the last of them that has more than one index."""
    view = fn.views[op.src]
    sizes: list[Number] = []
    strides: list[Number] = []
    for group in op.reassociation.data:
        dims = [cast("IntegerAttr[IntegerType]", each).value.data for each in group.data]
        size: Number = 1
        stride: Number = 1
        for dim in reversed(dims):
            if size == 1:
                stride = view.strides[dim]
            size = multiply(fn.b, view.sizes[dim], size)
        sizes.append(size)
        strides.append(stride)
    fn.views[op.result] = view.with_(offset=view.offset, sizes=sizes, strides=strides)


@emits(upstream.ExpandShapeOp)
def expand_shape(fn: FunctionEmitter, op: upstream.ExpandShapeOp) -> None:
    """Dimensions as several."""
    view = fn.views[op.src]
    sizes = mixed(fn, op.static_output_shape, iter(op.output_shape))
    strides: list[Number] = [1] * len(sizes)
    for group, stride in zip(op.reassociation.data, view.strides, strict=True):
        dims = [cast("IntegerAttr[IntegerType]", each).value.data for each in group.data]
        for dim in reversed(dims):
            strides[dim] = stride
            stride = multiply(fn.b, stride, sizes[dim])
    fn.views[op.result] = view.with_(offset=view.offset, sizes=sizes, strides=strides)


@emits(upstream.DimOp)
def size(fn: FunctionEmitter, op: upstream.DimOp) -> None:
    """One size, of a dimension that is known."""
    dim = number_of(fn, op.index)
    if not isinstance(dim, int) or not 0 <= dim < len(fn.views[op.source].sizes):
        raise refused(op, "its dimension is no number")
    fn.values[op.result] = as_value(fn.views[op.source].sizes[dim])


@emits(memref.ExtractAlignedPointerAsIndexOp)
def base_address(fn: FunctionEmitter, op: memref.ExtractAlignedPointerAsIndexOp) -> None:
    """The address of the base."""
    fn.values[op.results[0]] = fn.b.cast("ptrtoint", fn.views[op.source].base, I64)


@emits(UnrealizedConversionCastOp)
def convert_memory(fn: FunctionEmitter, op: UnrealizedConversionCastOp) -> None:
    """Memory at an address, whose bounds are not known; memory with elements of another type."""
    if len(op.inputs) != 1 or len(op.outputs) != 1:
        raise refused(op, "it casts several values")
    source, result = op.inputs[0], op.outputs[0]
    to: Attribute = result.type
    if not isinstance(to, UnrankedMemRefType):
        raise refused(op, f"a cast from {source.type} to {to}")
    element = memref.element_of(cast(Attribute, to))
    if memref.is_memref(source.type):
        view = fn.views[source]
        fn.views[result] = View(address(fn.b, view, view.offset), element, bounds=view.bounds)
    elif (found := fn.values.get(source)) is not None and found.element == I64:
        unlimited = (fn.b.index(0), fn.b.index(-1))
        fn.views[result] = View(fn.b.cast("inttoptr", found, PTR), element, bounds=unlimited if fn.checks else None)
    else:
        raise refused(op, f"a cast from {source.type}")


# Bounds --------------------------------------------------------------------------------------------------------------


def check_box(fn: FunctionEmitter, op: Operation, view: View) -> None:
    """Check, where accesses are checked, that all elements of a view lie inside of the array; it may have none."""
    if view.bounds is None:
        return
    b = fn.b
    begin, end = byte_range(b, view)
    low, high = view.bounds
    fine = b.binary("and", b.compare("icmp uge", begin, low), b.compare("icmp ule", end, high))
    for size in view.sizes:
        if not isinstance(size, int):
            fine = b.binary("or", fine, b.compare("icmp sle", size, b.index(0)))
    fn.fail_unless(fine, op, "access outside of its array")


# Single elements -----------------------------------------------------------------------------------------------------


def _element(fn: FunctionEmitter, op: Operation, memory: SSAValue, indices: Sequence[SSAValue]) -> tuple[View, Number]:
    """The memory and the place in it of an element, which is checked where accesses are; that of lanes is not."""
    numbers = [number_of(fn, index) for index in indices]
    if isinstance(op, affine.LoadOp | affine.StoreOp):
        # The operands of the map are its dimensions and then its symbols.
        map_ = op.map.data
        dims, symbols = numbers[: map_.num_dims], numbers[map_.num_dims :]
        numbers = [affine_number(fn, op, expression, dims, symbols) for expression in map_.results]
    view = fn.views[memory]
    place = view.place(fn.b, numbers)
    if view.bounds is not None and (isinstance(place, int) or place.lanes == 1):
        check_box(fn, op, view.with_(offset=place, sizes=(), strides=()))
    return view, place


@emits(upstream.LoadOp, affine.LoadOp)
def load_element(fn: FunctionEmitter, op: upstream.LoadOp | affine.LoadOp) -> None:
    """One element; in a vectorized body an element for each lane."""
    view, place = _element(fn, op, op.memref, op.indices)
    if isinstance(place, int) or place.lanes == 1:
        fn.values[op.results[0]] = load(fn.b, view, place)
    else:
        fn.values[op.results[0]] = from_memory(fn.b, view, gather(fn.b, view, place, fn.mask))


@emits(upstream.StoreOp, affine.StoreOp)
def store_element(fn: FunctionEmitter, op: upstream.StoreOp | affine.StoreOp) -> None:
    """One element."""
    view, place = _element(fn, op, op.memref, op.indices)
    store(fn.b, fn.values[op.value], view, place)


def affine_number(
    fn: FunctionEmitter, op: Operation, expression: AffineExpr, dims: Sequence[Number], symbols: Sequence[Number] = ()
) -> Number:
    """The value of an affine expression.

    Raises CompilationError for divisions and remainders.
    """
    match expression:
        case AffineConstantExpr():
            return expression.value
        case AffineDimExpr():
            return dims[expression.position]
        case AffineSymExpr():
            return symbols[expression.position]
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add | AffineBinaryOpKind.Mul as kind):
            first = affine_number(fn, op, expression.lhs, dims, symbols)
            second = affine_number(fn, op, expression.rhs, dims, symbols)
            return (add if kind is AffineBinaryOpKind.Add else multiply)(fn.b, first, second)
        case _:
            raise refused(op, f"the affine expression {expression}")


# Atomic operations ---------------------------------------------------------------------------------------------------

_INSTRUCTIONS = {
    "addi": "add", "assign": "xchg", "maxs": "max", "maxu": "umax", "mins": "min", "minu": "umin", "ori": "or",
    "andi": "and", "xori": "xor", "addf": "fadd",
}  # fmt: skip
"""Kinds that LLVM has an instruction for (LLVM Language Reference, "atomicrmw")."""


_FLOATING: dict[str, tuple[Callable[[Builder, str, Value, Value], Value], str]] = {
    "addf": (Builder.binary, "fadd"),
    "mulf": (Builder.binary, "fmul"),
    **{name: (minmax, name) for name in ("maximumf", "minimumf", "maxnumf", "minnumf")},
}
"""Kinds on floats, which are combined between a load and an exchange."""


@emits(memref.AtomicRMWOp)
def read_modify_write(fn: FunctionEmitter, op: memref.AtomicRMWOp) -> None:
    """The element as it was; sequentially consistent."""
    value, kind = fn.values[op.value], op.kind_name
    view, place = _element(fn, op, op.memref, op.indices)
    narrow = is_float(view.element) and view.in_register not in FLOATS
    if kind in _INSTRUCTIONS and not (narrow and kind == "addf"):
        where = address(fn.b, view, place)
        fn.values[op.result] = fn.b.emit(
            f"atomicrmw {_INSTRUCTIONS[kind]} {where.typed}, {value.typed} seq_cst, align {view.bytes}", value.element
        )
        return

    def combined(old: Value) -> Value:
        if kind == "muli":
            return fn.b.binary("mul", old, value)
        first, second = (widened(fn, each, view.element) for each in (old, value))
        write, name = _FLOATING[kind]
        return rounded(fn, write(fn.b, name, first, second), view.element)

    fn.values[op.result] = _exchanged(fn, view, place, combined)


@emits(memref.GenericAtomicRMWOp)
def generic_read_modify_write(fn: FunctionEmitter, op: memref.GenericAtomicRMWOp) -> None:
    """The element as it was; the region makes the new one, as often as another thread changes it meanwhile."""
    view, place = _element(fn, op, op.memref, op.indices)

    def replaced(old: Value) -> Value:
        fn.values[op.body.block.args[0]] = old
        (new,) = fn.block(op.body.block)
        return fn.values[new]

    fn.values[op.result] = _exchanged(fn, view, place, replaced)


@emits(memref.AtomicYieldOp)
def end_of_atomic_region(fn: FunctionEmitter, op: memref.AtomicYieldOp) -> None:
    """The new element."""
    fn.yielded = op.operands


def _exchanged(fn: FunctionEmitter, view: View, place: Number, combined: Callable[[Value], Value]) -> Value:
    """Replace an element by what is made of it, and give the old one; again until nothing came in between."""
    b = fn.b
    where = address(b, view, place)
    bits = f"i{8 * view.bytes}"
    first = b.emit(f"load atomic {bits}, {where.typed} monotonic, align {view.bytes}", bits)
    before, again, done = b.label, b.name(), b.name()
    b.branch(again)
    b.begin(again)
    old_bits, line = b.phi(bits, 1, [(first, before)])
    old = old_bits if view.in_memory == bits else b.cast("bitcast", old_bits, view.in_memory)
    new = combined(old)
    new_bits = new if new.element == bits else b.cast("bitcast", new, bits)
    pair = b.emit(f"cmpxchg {where.typed}, {old_bits.typed}, {new_bits.typed} seq_cst monotonic", f"{{ {bits}, i1 }}")
    seen, success = b.emit(f"extractvalue {pair.typed}, 0", bits), b.emit(f"extractvalue {pair.typed}, 1", "i1")
    b.add_way(line, seen, b.label)
    b.branch_if(success, done, again)
    b.begin(done)
    return old
