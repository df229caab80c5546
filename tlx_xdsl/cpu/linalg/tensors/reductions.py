"""Reductions as `linalg.reduce`.

Elements are combined in their order, what was combined so far on the left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan, prod

from xdsl.dialects import arith as scalar, bufferization, scf, tensor
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, TensorType, f32, i1, i32
from xdsl.ir import Attribute, Operation, Region, SSAValue

from tlx_xdsl.dialects import arith, linalg, tt
from tlx_xdsl.dialects.base.tensors import as_tensor, element_bits, integer_bits, scalar_type, shape_of_tensor

from .emitter import Emitter, Options, like, lowers
from .regions import moved, only_operation
from .shapes import stacked, unstacked

_Neutral = Callable[[int], float]
"""The neutral element of an operation on integers of so many bits, or on floats."""


def _zero(_bits: int) -> float:
    return 0


def _one(_bits: int) -> float:
    return 1


def _all_bits(_bits: int) -> float:
    return -1


def _lowest(bits: int) -> float:
    return -(1 << bits - 1)


def _highest(bits: int) -> float:
    return (1 << bits - 1) - 1


_NEUTRAL: dict[type[Operation], _Neutral] = {
    scalar.AddiOp: _zero, scalar.MuliOp: _one, scalar.AndIOp: _all_bits, scalar.OrIOp: _zero, scalar.XOrIOp: _zero,
    scalar.MaxSIOp: _lowest, scalar.MinSIOp: _highest, scalar.MaxUIOp: _zero, scalar.MinUIOp: _all_bits,
    scalar.AddfOp: _zero, scalar.MulfOp: _one, scalar.MaximumfOp: lambda _bits: -inf,
    scalar.MinimumfOp: lambda _bits: inf,
    # The number wins against NaN, so NaN is what changes nothing: rows of NaN stay NaN.
    scalar.MaxnumfOp: lambda _bits: nan, scalar.MinnumfOp: lambda _bits: nan,
}  # fmt: skip
_WITH_INFINITY = (BFloat16Type, Float16Type, Float32Type, Float64Type)


def _neutral(op: tt.ReduceOp) -> float | None:
    """The number from which the only operand can be reduced; None where the first elements must begin."""
    combine = only_operation(op.combine_op.block)
    type_: Attribute = scalar_type(op.srcs[0].type)
    if combine is None or (find := _NEUTRAL.get(type(combine))) is None:
        return None
    bits = integer_bits(type_)
    if bits is None and not isinstance(type_, _WITH_INFINITY):
        return None
    return find(bits or 0)


@lowers(tt.ReduceOp)
def reduce(emit: Emitter, op: tt.ReduceOp, _options: Options) -> Sequence[SSAValue]:
    """Reduce from the neutral element of a region with one known operation, else from the first elements on.

    Sums of f16 and bf16 are accumulated in f32 and rounded once.
    """
    if _is_narrow_sum(op):
        return [_narrow_sum(emit, op)]
    axis, sources = op.axis.value.data, list(op.srcs)
    if (number := _neutral(op)) is not None:
        shape = without(sources[0].type, axis)
        starts = [_start(emit, emit.constant(number, scalar_type(sources[0].type)), shape)]
    else:
        starts = [at_place(emit, source, axis, 0) for source in sources]
        if shape_of_tensor(sources[0].type)[axis] == 1:
            return [_as_result(emit, start, result.type) for start, result in zip(starts, op.result, strict=True)]
        sources = [_rest(emit, source, axis) for source in sources]

    def body(inner: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        elements, combined = values[: len(sources)], values[len(sources) :]
        return moved(inner, op.combine_op, [*combined, *elements])

    reduced = _reduced(emit, sources, starts, axis, body)
    return [_as_result(emit, value, result.type) for value, result in zip(reduced, op.result, strict=True)]


def _reduced(
    emit: Emitter,
    sources: Sequence[SSAValue],
    starts: Sequence[SSAValue],
    axis: int,
    body: Callable[[Emitter, Sequence[SSAValue]], Sequence[SSAValue]],
) -> Sequence[SSAValue]:
    types = [scalar_type(value.type) for value in (*sources, *starts)]
    names = ["in"] * len(sources) + ["init"] * len(starts)
    block = emit.block_of(types, body, linalg.YieldOp, names)
    return emit.add(linalg.ReduceOp(sources, starts, [axis], Region(block))).results


def _is_narrow_sum(op: tt.ReduceOp) -> bool:
    is_narrow = isinstance(scalar_type(op.srcs[0].type), BFloat16Type | Float16Type)
    return is_narrow and isinstance(only_operation(op.combine_op.block), scalar.AddfOp)


def _narrow_sum(emit: Emitter, op: tt.ReduceOp) -> SSAValue:
    source, axis = op.srcs[0], op.axis.value.data
    start = _start(emit, emit.constant(0, f32), without(source.type, axis))

    def add(inner: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        wide = inner.result(arith.ExtFOp(values[0], f32))
        return [inner.result(scalar.AddfOp(wide, values[1]))]

    (total,) = _reduced(emit, [source], [start], axis, add)
    element = scalar_type(source.type)
    if as_tensor(op.result[0].type) is None:
        return emit.result(arith.TruncFOp(emit.element(total, []), element))
    return emit.mapped([total], element, lambda inner, values: inner.result(arith.TruncFOp(values[0], element)))


def _start(emit: Emitter, number: SSAValue, shape: Sequence[int]) -> SSAValue:
    """A tensor with one number in all elements, to which elements are added; one of rank 0 is memory of its own."""
    type_ = TensorType(number.type, shape)
    if shape:
        return emit.filled(number, type_)
    return emit.result(tensor.InsertOp(number, emit.result(bufferization.AllocTensorOp(type_)), []))


def without(type_: Attribute, axis: int) -> list[int]:
    """The shape of a tensor without a dimension."""
    shape = list(shape_of_tensor(type_))
    del shape[axis]
    return shape


def place_of(type_: Attribute, axis: int, place: SSAValue | int) -> tuple[list[SSAValue | int], list[int]]:
    """The offsets and sizes of one element along a dimension, and all along the others."""
    sizes = list(shape_of_tensor(type_))
    offsets: list[SSAValue | int] = [0] * len(sizes)
    offsets[axis], sizes[axis] = place, 1
    return offsets, sizes


def at_place(emit: Emitter, value: SSAValue, axis: int, place: SSAValue | int) -> SSAValue:
    """The elements at one place along a dimension, which vanishes."""
    offsets, sizes = place_of(value.type, axis, place)
    return emit.slice(value, offsets, sizes, without(value.type, axis))


def _rest(emit: Emitter, value: SSAValue, axis: int) -> SSAValue:
    """All elements but the first along a dimension."""
    offsets, _ = place_of(value.type, axis, 1)
    sizes = list(shape_of_tensor(value.type))
    sizes[axis] -= 1
    return emit.slice(value, offsets, sizes)


def _as_result(emit: Emitter, value: SSAValue, type_: Attribute) -> SSAValue:
    """A tensor of rank 0 as a scalar, where the result is one."""
    return value if as_tensor(type_) is not None else emit.element(value, [])


# Histograms as loops, and maps with a region as `linalg.generic`.


@lowers(tt.HistogramOp)
def histogram(emit: Emitter, op: tt.HistogramOp, _options: Options) -> Sequence[SSAValue]:
    """A loop over the elements, of which each that has a bin and is not masked counts."""
    (bins,) = shape_of_tensor(op.result.type)
    count, type_ = scalar_type(op.result.type), op.result.type
    zero = emit.constant(0, count)

    def turn(inner: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        place, counts = values
        number = inner.element(op.src, [place])
        if number.type == i1:
            number = inner.result(arith.ExtUIOp(number, i32))
        wanted = _has_bin(inner, number, bins)
        if op.mask is not None:
            wanted = inner.result(scalar.AndIOp(wanted, inner.element(op.mask, [place])))

        def add(then: Emitter, _values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            bin_ = then.to_index(number)
            more = then.result(scalar.AddiOp(then.element(counts, [bin_]), then.constant(1, count)))
            return [then.result(tensor.InsertOp(more, counts, [bin_]))]

        then = inner.block_of([], add, scf.YieldOp)
        otherwise = inner.block_of([], lambda _inner, _values: [counts], scf.YieldOp)
        return inner.add(scf.IfOp(wanted, [type_], Region(then), Region(otherwise))).results

    size = shape_of_tensor(op.src.type)[0]
    return emit.loop(0, size, [emit.filled(zero, type_)], turn)


def _has_bin(emit: Emitter, number: SSAValue, bins: int) -> SSAValue:
    """Return whether 0 <= number < bins; as unsigned, a negative number is a large one."""
    if bins >= 1 << element_bits(number.type) - 1:
        return emit.result(arith.CmpiOp("sge", number, emit.constant(0, number.type)))
    return emit.result(arith.CmpiOp("ult", number, emit.constant(bins, number.type)))


@lowers(tt.MapElementwiseOp)
def map_elementwise(emit: Emitter, op: tt.MapElementwiseOp, _options: Options) -> Sequence[SSAValue]:
    """One `linalg.generic` for all groups of elements; a group is made of neighbours in row-major order."""
    pack, shape = op.pack.value.data, shape_of_tensor(op.srcs[0].type)

    def body(inner: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return moved(inner, op.scalar_op, values)

    if pack == 1:
        return emit.generic(op.srcs, [result.type for result in op.result], body)
    groups = prod(shape) // pack
    columns = [column for source in op.srcs for column in unstacked(emit, emit.reshaped(source, [groups, pack]))]
    types = [like(result.type, [groups]) for result in op.result for _ in range(pack)]
    out = emit.generic(columns, types, body)
    whole = [stacked(emit, out[at : at + pack]) for at in range(0, len(out), pack)]
    return [emit.reshaped(value, shape) for value in whole]
