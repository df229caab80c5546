"""Scans as loops along their axis, or along parts of long rows that lie beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith as scalar
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Region, SSAValue

from tlx_xdsl.dialects import arith, linalg, tt
from tlx_xdsl.dialects.base.tensors import shape_of_tensor

from .emitter import Emitter, Options, like, lowers
from .reductions import at_place, place_of
from .regions import moved

_PARTS = 16
"""Parts of a row that are scanned side by side: the lanes of a vector."""
_LONG = 16 * _PARTS
"""Elements of a row that is scanned so: each part is a vector long, for it is transposed in squares."""
_FEW = 4
"""Rows up to which that is done; more of them fill the lanes themselves."""


@lowers(tt.ScanOp)
def scan(emit: Emitter, op: tt.ScanOp, _options: Options) -> Sequence[SSAValue]:
    """Combine in the order of the elements; a long row in parts, which is all that an associative function allows."""
    axis, sources, backward = op.axis.value.data, list(op.srcs), bool(op.reverse.value.data)
    shape = shape_of_tensor(sources[0].type)
    is_last = axis == len(shape) - 1
    # With NaN these are not associative.
    compares = "arith.cmpf" in {each.name for each in op.combine_op.walk()}
    if is_last and not (backward or compares) and shape[axis] >= _LONG and prod(shape[:axis]) <= _FEW:
        return _in_parts(emit, sources, op.combine_op)
    return _in_order(emit, sources, op.combine_op, axis, backward=backward)


def _in_order(
    emit: Emitter, sources: Sequence[SSAValue], combine: Region, axis: int, *, backward: bool = False
) -> Sequence[SSAValue]:
    """A loop along the axis, which carries what was combined so far and the results.

    What is carried are slices without the axis, which a `linalg.generic` combines.
    """
    size = shape_of_tensor(sources[0].type)[axis]
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
            lambda body, arguments: moved(body, combine.clone(), arguments),
        )
        return [*new, *(_placed(inner, part, whole, axis, place) for part, whole in zip(new, filled, strict=True))]

    return emit.loop(1, size, [*slices, *results], turn)[len(sources) :]


def _placed(emit: Emitter, part: SSAValue, whole: SSAValue, axis: int, place: SSAValue | int) -> SSAValue:
    return emit.inserted(part, whole, *place_of(whole.type, axis, place))


def _in_parts(emit: Emitter, sources: Sequence[SSAValue], combine: Region) -> Sequence[SSAValue]:
    """Scan the parts of each row side by side, then their totals, and combine what comes before a part with it."""
    shape = shape_of_tensor(sources[0].type)
    rows, length = prod(shape[:-1]), shape[-1] // _PARTS
    aside = [_aside(emit, emit.reshaped(source, [rows, _PARTS, length])) for source in sources]
    scanned = _in_order(emit, aside, combine, 0)
    totals = _in_order(emit, [at_place(emit, value, 0, length - 1) for value in scanned], combine, 1)
    before = [_moved_on(emit, value) for value in totals]

    def body(inner: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        alone = values[len(sources) :]
        both = moved(inner, combine.clone(), values)
        is_first = inner.result(arith.CmpiOp("eq", inner.result(linalg.IndexOp(1)), inner.index(0)))
        return [inner.result(arith.SelectOp(is_first, *each)) for each in zip(alone, both, strict=True)]

    types = [like(source.type, [rows, _PARTS, length]) for source in sources]
    maps = [(0, 1)] * len(sources) + [(2, 0, 1)] * len(sources)
    return [emit.reshaped(value, shape) for value in emit.generic([*before, *scanned], types, body, maps)]


def _aside(emit: Emitter, parts: SSAValue) -> SSAValue:
    """The parts of rows with their elements along the first dimension."""
    rows, count, length = shape_of_tensor(parts.type)
    empty = emit.empty(like(parts.type, [length, rows, count]))
    return emit.result(linalg.TransposeOp(parts, empty, DenseArrayBase.from_list(i64, [2, 0, 1])))


def _moved_on(emit: Emitter, totals: SSAValue) -> SSAValue:
    """The total before each part; the first part has any, for there is none before it."""
    rows, count = shape_of_tensor(totals.type)
    first = emit.slice(totals, [0, 0], [rows, 1])
    others = emit.slice(totals, [0, 0], [rows, count - 1])
    whole = emit.inserted(first, emit.empty(totals.type), [0, 0], [rows, 1])
    return emit.inserted(others, whole, [0, 1], [rows, count - 1])
