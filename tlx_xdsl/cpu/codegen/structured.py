"""Operations of `linalg` on memory, and copies: as loop nests.

Where the order of a reduction does not matter, or is left open, each lane of a vector has a part of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.linalg.ops import IndexOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tlx_xdsl.dialects import linalg, memref
from tlx_xdsl.dialects.base import is_float
from tlx_xdsl.dialects.base.tensors import element_bits

from .builder import FLOATS, I1, I64, Builder, Value, constant, register_type
from .forwarding import FEW, Forwarded, buffer_of
from .function import SCALARS, FunctionEmitter, emits, refused
from .gathered_rows import Gather, write_gather, write_row
from .matmul import write_product
from .memory import affine_number, check_box, offsets_of
from .nest import Access, Combiner, Nest, Quick, write_nest
from .next_turn import next_turn
from .postponed import Postponed
from .scalars import float_constant
from .views import LINE, Number, View, add, address, as_value, byte_range, multiply, subtract

_IDENTITIES: dict[str, Callable[[Attribute], float | None]] = {}
"""By the name of an operation: the number that changes nothing, in a type; None where the order matters."""


def _combines(identity: Callable[[Attribute], float | None], *classes: type[Operation]) -> None:
    _IDENTITIES.update(dict.fromkeys((each.name for each in classes), identity))


def _least(type_: Attribute) -> int:
    return -(1 << element_bits(type_) - 1)


def _in_any_order(number: float) -> Callable[[Attribute], float | None]:
    """Give the neutral element to f32 and f64 alone: their order is open, but below f32 every step would round."""
    return lambda type_: number if register_type(type_) in FLOATS else None


_combines(lambda _: 0, arith.AddiOp, arith.OrIOp, arith.XOrIOp, arith.MaxUIOp)
_combines(lambda _: -1, arith.AndIOp, arith.MinUIOp)
_combines(lambda _: 1, arith.MuliOp)
_combines(_least, arith.MaxSIOp)
_combines(lambda type_: -1 - _least(type_), arith.MinSIOp)
_combines(lambda _: float("-inf"), arith.MaximumfOp)
_combines(lambda _: float("inf"), arith.MinimumfOp)
_combines(lambda _: float("nan"), arith.MaxnumfOp, arith.MinnumfOp)
_combines(_in_any_order(-0.0), arith.AddfOp)
_combines(_in_any_order(1.0), arith.MulfOp)


def combiners_of(fn: FunctionEmitter, body: Block, inputs: int) -> tuple[Combiner, ...] | None:
    """Return how each output is combined with what an iteration adds; None if the order of the iterations matters."""
    found: list[Combiner] = []
    last = body.last_op
    assert last is not None
    for argument, value in zip(body.args[inputs:], last.operands, strict=True):
        combiner = _combiner(fn, argument, value)
        if combiner is None:
            return None
        found.append(combiner)
    return tuple(found)


def _combiner(fn: FunctionEmitter, old: SSAValue, new: SSAValue) -> Combiner | None:
    op = new.owner
    if not isinstance(op, Operation) or old.uses.get_length() != 1 or new.uses.get_length() != 1:
        return None
    if old not in op.operands or len(op.operands) != 2:
        return None
    type_ = old.type
    register = register_type(type_)
    identity = _IDENTITIES.get(op.name, lambda _: None)(type_)
    if identity is None:
        return None
    start = float_constant(fn, identity, type_) if is_float(type_) else constant(identity, register)

    def combine(first: Value, second: Value) -> Value:
        result = SCALARS[op.name](fn, op, [first, second])
        assert isinstance(result, Value)
        return result

    return Combiner(start, combine, _quick(fn, op, type_))


def _quick(fn: FunctionEmitter, op: Operation, type_: Attribute) -> Quick | None:
    """One comparison instead of what separates all NaN and both zeros; two where NaN is kept.

    It may give the other zero, and where NaN gives way the worst of all numbers for none.
    """
    register = register_type(type_)
    keeps_nan = isinstance(op, arith.MaximumfOp | arith.MinimumfOp)
    if not (keeps_nan or isinstance(op, arith.MaxnumfOp | arith.MinnumfOp)) or register not in FLOATS:
        return None
    is_max = isinstance(op, arith.MaxnumfOp | arith.MaximumfOp)
    worst = constant(float("-inf") if is_max else float("inf"), register)
    predicate = "fcmp ogt" if is_max else "fcmp olt"
    b = fn.b

    def combine(old: Value, new: Value) -> Value:
        # A NaN among the elements is not taken, for it is not greater; one that is there stays for the same reason.
        best = b.select(b.compare(predicate, new, old), new, old)
        return b.select(b.compare("fcmp uno", new, new), new, best) if keeps_nan else best

    def is_doubtful(result: Value) -> Value:
        zero = b.compare("fcmp oeq", result, constant(0, register))
        return zero if keeps_nan else b.binary("or", zero, b.compare("fcmp oeq", result, worst))

    return Quick(worst, combine, is_doubtful)


_IN_LANES = frozenset({"linalg.index", "linalg.yield", "cf.assert", "arith.select"})
"""Operations other than those on scalars that may stand in the body of a vectorized nest."""
_CHEAP = 12
"""Operations of a body up to which a reduction waits for the addition before, rather than for its operands."""
_MASKS_LOADS = "memref.load"
_COSTS = {"arith": 1, "math": 16}
"""Instructions of an operation of a body, about."""


@emits(memref.CopyOp)
def copy(fn: FunctionEmitter, op: memref.CopyOp) -> None:
    """All elements, bit by bit; nothing where what reads them reads the source."""
    if op in fn.forwarding.skipped:
        check_box(fn, op, fn.views[op.source])
        return
    if (gather := fn.gathers.get(op)) is not None:
        _gathered(fn, gather, op)
        return
    if (wait := fn.postponed.get(op)) is None:
        _move(fn, op, lambda strides: strides)
        return
    source, target = (fn.views[value] for value in op.operands)
    sizes = tuple(_known(one, other) for one, other in zip(source.sizes, target.sizes, strict=True))
    buffer = fn.views[wait.buffer]
    turns = source.strides[0] == 1 and source.strides[1] != 1
    whole = partial(_write_move, fn, replace(source, sizes=buffer.sizes), buffer) if turns else None
    wait.copy(fn.b, source, sizes, partial(_fill, fn, wait), lambda: _move(fn, op, lambda strides: strides), whole)


def _gathered(fn: FunctionEmitter, gather: Gather, store: memref.CopyOp) -> None:
    """Copy gathered rows to where they are stored, or by a tile where one of them may lie there."""
    b, target, block = fn.b, fn.views[store.target], gather.loop.body.block

    def source(number: Value) -> View:
        fn.values[block.args[0]] = number
        for op in block.ops:
            if op is not gather.copy and op is not block.last_op:
                fn.emit(op)
        return fn.views[gather.copy.source]

    def copy_row(number: Value, view: View) -> None:
        sizes = (1, *map(_known, view.sizes[1:], target.sizes[1:]))
        offset = add(b, target.offset, multiply(b, number, target.strides[0]))
        row = target.with_(offset=offset, sizes=sizes, strides=target.strides)
        check_box(fn, gather.copy, view)
        check_box(fn, store, row)
        size = sizes[-1] * row.bytes if isinstance(sizes[-1], int) else 0
        if len(sizes) == 2 and view.strides[1] == row.strides[1] == 1 and size >= 2 * LINE:
            write_row(b, address(b, view, view.offset), address(b, row, offset), size)
        else:
            _write_move(fn, replace(view, sizes=sizes), row)

    def by_tile() -> None:
        for op in (*gather.before, store):
            del fn.gathers[op]
            fn.emit(op)

    write_gather(b, fn.values[gather.loop.ub], source, target, lambda at: copy_row(at, source(at)), by_tile)


def _fill(fn: FunctionEmitter, wait: Postponed) -> None:
    if wait.fill is not None:
        _structured(fn, wait.fill)


@emits(linalg.TransposeOp)
def transpose(fn: FunctionEmitter, op: linalg.TransposeOp) -> None:
    """The dimensions in another order."""
    order = op.permutation.get_values()
    _move(fn, op, lambda strides: [strides[dim] for dim in order])


@emits(linalg.BroadcastOp)
def broadcast(fn: FunctionEmitter, op: linalg.BroadcastOp) -> None:
    """Repeated along new dimensions."""
    added, rank = op.dimensions.get_values(), len(fn.views[op.operands[1]].sizes)

    def repeated(strides: Sequence[Number]) -> list[Number]:
        kept = iter(strides)
        return [0 if dim in added else next(kept) for dim in range(rank)]

    _move(fn, op, repeated)


def _move(
    fn: FunctionEmitter,
    op: Operation,
    along: Callable[[Sequence[Number]], Sequence[Number]],
) -> None:
    """Write the elements of the first operand to the second; `along` gives the strides of the one, by the dimensions
    of the other.
    """
    read, written = (fn.views[value] for value in op.operands)
    check_box(fn, op, read)
    check_box(fn, op, written)
    sizes = written.sizes
    if isinstance(op, memref.CopyOp):
        sizes = tuple(_known(one, other) for one, other in zip(read.sizes, written.sizes, strict=True))
    _write_move(fn, read.with_(offset=read.offset, sizes=sizes, strides=along(read.strides)), written)


def _write_move(fn: FunctionEmitter, read: View, written: View) -> None:
    """Write the elements of a view to another one, with the sizes of the first."""
    read, written = _as_bits(read), _as_bits(written)
    write_nest(fn, Nest(
        read.sizes, (False,) * len(read.sizes), (Access(read, read.offset, read.strides),),
        (Access(written, written.offset, written.strides),), (False,), lambda found, _old, _indices: found, read.bytes,
        vectorizable=True, has_indices=False, is_cheap=True,
    ))  # fmt: skip


def _as_bits(view: View) -> View:
    """An i1 as the byte that holds it."""
    return replace(view, element=IntegerType(8)) if view.in_register == I1 else view


def _known(one: Number, other: Number) -> Number:
    return one if isinstance(one, int) else other


@emits(linalg.MatmulOp)
def matmul(fn: FunctionEmitter, op: linalg.MatmulOp) -> None:
    """Multiply in registers a plain product of matrices whose rows are contiguous, and others as a nest."""
    usual = op.indexing_maps == type(op).get_irdl_definition().properties["indexing_maps"].default_value
    operands = [*op.inputs, *op.outputs]
    for value in operands:
        check_box(fn, op, fn.views[value])
    for value in op.inputs:
        if isinstance(value.owner, Operation) and (wait := fn.postponed.get(value.owner)) is not None:
            fn.views[value] = wait.operand(fn.b, fn.views[value], partial(_fill, fn, wait))
    start = next((wait for wait in fn.unfilled.get(op, ()) if wait.starts(op)), None)
    a, b, c = (fn.views[value] for value in operands)
    if not usual or not write_product(fn, a, b, c, start):
        if start is not None:
            fn.fill(start)
        structured(fn, op)


@emits(linalg.GenericOp, linalg.FillOp, linalg.ReduceOp, linalg.BatchMatmulOp)
def structured(fn: FunctionEmitter, op: LinalgStructuredOperation) -> None:
    """A nest over the dimensions of the operation, around its body."""
    if op not in fn.forwarding.skipped and op not in fn.postponed and op not in fn.gathers:
        _structured(fn, op)


def _structured(fn: FunctionEmitter, op: LinalgStructuredOperation) -> None:
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    kinds = [attribute.data for attribute in op.get_iterator_types()]
    rank = maps[0].num_dims
    values = [*op.inputs, *op.outputs]
    sizes: list[Number | None] = [None] * rank
    accesses: list[Access | Value] = []
    for number, (value, map_) in enumerate(zip(values, maps, strict=True)):
        if not memref.is_memref(value.type):
            accesses.append(fn.values[value])
            continue
        load = fn.forwarding.reads.get((op, value)) if number < len(op.inputs) else None
        whole = fn.views[value]
        view = whole if load is None else _loaded_from(fn, op, load)
        check_box(fn, op, view)
        offset = view.offset
        strides: list[Number] = [0] * rank
        limits: list[Number | None] = [None] * rank
        starts: list[Number] = [0] * rank
        lows = [0] * len(view.sizes) if load is None else offsets_of(fn, load.box)
        for expression, size, stride, limit, low in zip(
            map_.results, whole.sizes, view.strides, view.sizes, lows, strict=True
        ):
            offset = subtract(fn.b, offset, multiply(fn.b, low, stride))
            at = [affine_number(fn, op, expression, [int(dim == each) for each in range(rank)]) for dim in range(rank)]
            start = affine_number(fn, op, expression, [0] * rank)
            known = [each for each in (*at, start) if isinstance(each, int)]
            assert isinstance(start, int) and len(known) == rank + 1
            offset = _plus(fn, offset, start, stride)
            for dim in range(rank):
                step = known[dim] - start
                strides[dim] = _plus(fn, strides[dim], step, stride)
                if step == 1 and start == 0 and sum(each != start for each in known[:rank]) == 1:
                    sizes[dim] = size if sizes[dim] is None or isinstance(size, int) else sizes[dim]
                    limits[dim] = None if low == 0 and (limit is size or limit == size) else limit
                    starts[dim] = low
        ahead = 0 if load is None else next_turn(fn, op, load)
        accesses.append(Access(view, offset, tuple(strides), tuple(limits), tuple(starts), _filled(fn, load), ahead))
    if any(size is None for size in sizes):
        raise refused(op, "no operand says how large each of its dimensions is")
    body = op.body.block
    reduced = tuple(kind is not IteratorType.PARALLEL for kind in kinds)
    inputs = [each for each in accesses[: len(op.inputs)] if isinstance(each, Access)]
    outputs = [each for each in accesses[len(op.inputs) :] if isinstance(each, Access)]
    scalars = [each if isinstance(each, Value) else None for each in accesses[: len(op.inputs)]]
    arguments = body.args

    def compute(read: Sequence[Value], old: Sequence[Value], indices: Sequence[Value]) -> Sequence[Value]:
        elements = iter(read)
        given = [next(elements) if each is None else each for each in scalars]
        for argument, value in zip(arguments, [*given, *old], strict=True):
            fn.values[argument] = value
        fn.indices = indices
        return [fn.values[value] for value in fn.block(body)]

    def replace_combination(combine: Callable[[Value, Value], Value] | None) -> None:
        last = body.last_op
        assert last is not None
        op = last.operands[0].owner
        if combine is None or not isinstance(op, Operation):
            fn.combination = None
            return
        # There is one output: what was combined so far is the last argument.
        old_first = op.operands[0] is arguments[-1]
        fn.combination = op, combine if old_first else lambda first, second: combine(second, first)

    fn.streams = fn.streams and _waits_for_memory(body)
    write_nest(fn, Nest(
        sizes=tuple(size for size in sizes if size is not None),
        reduced=reduced,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        reads=tuple(bool(argument.uses) for argument in arguments[len(op.inputs) :]),
        compute=compute,
        element_bytes=_widest(body),
        vectorizable=all(_fits_lanes(fn, inner) for inner in body.ops),
        has_indices=any(isinstance(inner, IndexOp) for inner in body.ops),
        combiners=combiners_of(fn, body, len(op.inputs)) if any(reduced) else None,
        is_cheap=sum(1 for _ in body.ops) <= _CHEAP,
        is_short=FEW in op.attributes,
        replace_combination=replace_combination,
    ))  # fmt: skip


def _loaded_from(fn: FunctionEmitter, op: LinalgStructuredOperation, load: Forwarded) -> View:
    """The memory that a nest reads instead of a copy of it."""
    source, box = fn.views[load.source], fn.views[load.box]
    for output in op.outputs:
        if memref.is_memref(output.type) and buffer_of(output) is None:
            buffer = buffer_of(load.box)
            assert buffer is not None, "a load is copied to a buffer"
            copy = _in_the_order_of(source, box, memref.sizes_of(buffer.type))
            source = readable(fn, source, fn.views[output], copy, partial(_write_move, fn, source, copy))
    return source


def _in_the_order_of(source: View, box: View, sizes: Sequence[int | None]) -> View:
    """A box at the beginning of a buffer, whose elements lie one after the other where those of the source do.

    What reads either of the two knows that stride then.
    """
    rows = next((dim for dim, stride in enumerate(source.strides) if stride == 1), None)
    if rows is None or box.strides[rows] == 1:
        return box
    strides: list[Number] = [0] * len(sizes)
    step = 1
    for dim in (rows, *(dim for dim in reversed(range(len(sizes))) if dim != rows)):
        size = sizes[dim]
        assert size is not None, "a buffer has sizes"
        strides[dim] = step
        step *= size
    return box.with_(offset=box.offset, sizes=box.sizes, strides=strides)


def _filled(fn: FunctionEmitter, load: Forwarded | None) -> Value | None:
    """Return what stands for the masked elements of a load that is not copied."""
    return None if load is None or load.fill is None else fn.values[load.fill.inputs[0]]


def _plus(fn: FunctionEmitter, number: Number, factor: int, stride: Number) -> Number:
    return number if factor == 0 else add(fn.b, number, multiply(fn.b, factor, stride))


def _fits_lanes(fn: FunctionEmitter, op: Operation) -> bool:
    if any(memref.is_memref(result.type) for result in op.results):
        return False
    return op.name in SCALARS or op.name in _IN_LANES or (op.name == _MASKS_LOADS and not fn.checks)


def _waits_for_memory(body: Block) -> bool:
    """Return whether the arithmetic of a body takes less time than its elements take to come."""
    return sum(_COSTS.get(inner.name.split(".")[0], 0) for inner in body.ops) <= _CHEAP


def _widest(body: Block) -> int:
    """Bytes of the widest element that a body computes with, apart from indices."""
    types: list[Attribute] = [argument.type for argument in body.args]
    types += [result.type for op in body.ops for result in op.results]
    bits = [
        max(element_bits(type_), 32) if is_float(type_) and len(list(body.ops)) > 1 else element_bits(type_)
        for type_ in types
        if not isinstance(type_, IndexType)
    ]
    return max(-(-each // 8) for each in (*bits, 8))


@emits(IndexOp)
def index(fn: FunctionEmitter, op: IndexOp) -> None:
    """The index of the nest along a dimension."""
    fn.values[op.results[0]] = fn.indices[op.dim.value.data]


@emits(linalg.YieldOp)
def end_of_body(fn: FunctionEmitter, op: linalg.YieldOp) -> None:
    """The new elements of the outputs."""
    fn.yielded = op.operands


# Memory that a nest reads while it writes other memory of the user's: a copy is made where the two overlap in part.


def readable(fn: FunctionEmitter, source: View, written: View, copy: View, make: Callable[[], None]) -> View:
    """Return what a nest reads instead of `source`, element by element, where it writes the elements of `written`.

    All views have the same sizes. That is `source` itself if it lies apart from `written` or is the same memory, else
    `copy`, after `make` has written the instructions that fill it.
    """
    b = fn.b
    apart = _apart(b, source, written)
    direct = address(b, source, source.offset)
    same = b.compare("icmp eq", direct, address(b, written, written.offset))
    for one, other in zip(source.strides, written.strides, strict=True):
        if not (isinstance(one, int) and one == other):
            same = b.binary("and", same, b.compare("icmp eq", as_value(one), as_value(other)))
    fine = b.binary("or", apart, same)
    if source.bytes != written.bytes:
        fine = apart
    before, copies, done = b.label, b.name(), b.name()
    b.branch_if(fine, done, copies)
    b.begin(copies)
    make()
    base = address(b, copy, copy.offset)
    strides = [as_value(stride) for stride in copy.strides]
    after = b.label
    b.branch(done)
    b.begin(done)
    chosen = b.phi("ptr", 1, [(direct, before), (base, after)])[0]
    numbers: list[Number] = []
    for one, other, value in zip(source.strides, copy.strides, strides, strict=True):
        same_stride = isinstance(one, int) and one == other
        numbers.append(one if same_stride else b.phi(I64, 1, [(as_value(one), before), (value, after)])[0])
    return View(chosen, source.element, 0, source.sizes, tuple(numbers), source.bounds)


def _apart(b: Builder, first: View, second: View) -> Value:
    """Return whether two boxes have no byte in common, as far as their first and last ones say."""
    (start, end), (other_start, other_end) = (byte_range(b, view) for view in (first, second))
    return b.binary("or", b.compare("icmp ule", end, other_start), b.compare("icmp ule", other_end, start))
