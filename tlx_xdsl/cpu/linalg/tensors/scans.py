"""Scans and histograms as loops, and maps with a region as `linalg.generic`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith as scalar, scf
from xdsl.dialects.builtin import i1, i32
from xdsl.dialects.tensor import InsertOp
from xdsl.ir import Region, SSAValue

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base.tensors import element_bits, scalar_type, shape_of_tensor

from .emitter import Emitter, like
from .reductions import at_place, place_of
from .regions import moved
from .registry import Options, lowers
from .shapes import stacked, unstacked


@lowers(tt.ScanOp)
def scan(emit: Emitter, op: tt.ScanOp, _options: Options) -> Sequence[SSAValue]:
    """A loop along the axis, which carries what was combined so far and the results.

    What is carried are slices without the axis, which a `linalg.generic` combines.
    """
    axis, sources = op.axis.value.data, list(op.srcs)
    size = shape_of_tensor(sources[0].type)[axis]
    backward = bool(op.reverse.value.data)
    first = size - 1 if backward else 0
    slices = [at_place(emit, source, axis, first) for source in sources]
    results = [
        _placed(emit, part, emit.empty(part_of.type), axis, first)
        for part, part_of in zip(slices, sources, strict=True)
    ]
    if size == 1:
        return results

    def turn(inner: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        number, carried = values[0], values[1:]
        place = inner.result(scalar.SubiOp(inner.index(first), number)) if backward else number
        combined, filled = carried[: len(sources)], carried[len(sources) :]
        elements = [at_place(inner, source, axis, place) for source in sources]
        new = inner.generic(
            [*combined, *elements],
            [part.type for part in slices],
            lambda body, arguments: moved(body, op.combine_op, arguments),
        )
        return [*new, *(_placed(inner, part, whole, axis, place) for part, whole in zip(new, filled, strict=True))]

    return emit.loop(1, size, [*slices, *results], turn)[len(sources) :]


def _placed(emit: Emitter, part: SSAValue, whole: SSAValue, axis: int, place: SSAValue | int) -> SSAValue:
    return emit.inserted(part, whole, *place_of(whole.type, axis, place))


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
            return [then.result(InsertOp(more, counts, [bin_]))]

        then = inner.block_of([], add, scf.YieldOp)
        otherwise = inner.block_of([], lambda _inner, _values: [counts], scf.YieldOp)
        return inner.add(scf.IfOp(wanted, [type_], Region(then), Region(otherwise))).results

    size = shape_of_tensor(op.src.type)[0]
    return emit.loop(0, size, [emit.filled(zero, type_)], turn)


def _has_bin(emit: Emitter, number: SSAValue, bins: int) -> SSAValue:
    """Whether 0 <= number < bins; as unsigned, a negative number is a large one."""
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
