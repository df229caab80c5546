"""Loads whose masked elements, which are 0, are combined with others: in a reduction, a scan or a dot.

Whether the 0 is meant is not known: it adds nothing to a sum, and may be the maximum of negative numbers. It is
harmless where another mask comes in between (`tl.where`, a product with a mask), and where what is combined lies in
one row that is masked as a whole: the mask of a load of rows hides all of a row or nothing, and so may the store.

The values are followed through arithmetic, changes of shape, loops and branches. What goes through memory, or decides
between other values, is not.

```mlir
%v = tt.load %p, %mask : tensor<8x64x!tt.ptr<f32>>     // the mask differs along dimension 1
%w = math.exp %v : tensor<8x64xf32>                    // so do elements of %w
%s = "tt.reduce"(%w) <{axis = 1 : i32}> ...            // which meet here
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.dialects import arith as upstream
from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import MaskedResult, as_tensor, is_elementwise, scalar_type
from tlx_xdsl.dialects.regions import forwarded
from tlx_xdsl.errors import Note
from tlx_xdsl.text.diagnostics import Diagnostic, diagnostic_at

from .axis_info import axis_infos

Dims: TypeAlias = frozenset[int]
"""Dimensions along which some elements may be masked and others not."""


@dataclass(frozen=True)
class Reached:
    """A load or an atomic operation, and who takes what its mask hides."""

    op: Operation
    reader: Operation
    result: MaskedResult

    @property
    def remark(self) -> Diagnostic:
        """The remark at the load."""
        place = diagnostic_at("remark", self.reader, "").location
        where = "" if place is None else f" at {place}"
        if self.result is MaskedResult.ANY:
            message = f"where the mask is false this number is anything, and reaches '{self.reader.name}'{where}"
            notes = ("one thread hands it to the others in shared memory, and then writes nothing there",)
        else:
            message = f"what the mask hides is 0, and reaches '{self.reader.name}'{where}"
            what = "'other=' says what it is to be; unwritten=\"poison\" runs the kernel with NaN instead"
            notes = (Note(what, is_remedy=True),)
        return diagnostic_at("remark", self.op, message, notes)


def reached_by_masked(function: tt.FuncOp) -> Iterator[Reached]:
    """Give each load whose masked elements reach a reduction, a scan or a dot, once, with the first that they reach."""
    masked = [op for op in function.walk() if _result_of(op) is not MaskedResult.GIVEN]
    infos = axis_infos(function) if masked else {}
    for op in masked:
        mask = _mask(op)
        if mask is None or isinstance(mask.owner, upstream.ConstantOp):
            # The frontend gives atomic operations a mask that is true.
            continue
        result, info = _result_of(op), infos.get(mask)
        if result is MaskedResult.ANY:
            reader = _user_of_number(op)
        else:
            shape = _shape(op.results[0])
            same = (1,) * len(shape) if info is None else info.constancy
            reader = _reader(op.results[0], frozenset(dim for dim, size in enumerate(shape) if same[dim] < size))
        if reader is not None:
            yield Reached(op, reader, result)


def _result_of(op: Operation) -> MaskedResult:
    return getattr(op, "masked_result", MaskedResult.GIVEN)


def _mask(op: Operation) -> SSAValue | None:
    return getattr(op, "mask", None)


def _shape(value: SSAValue) -> tuple[int, ...]:
    tensor = as_tensor(value.type)
    return () if tensor is None else tensor.get_shape()


def _user_of_number(op: Operation) -> Operation | None:
    """The first operation that takes a number under no condition, where the atomic operation has one."""
    for use in op.results[0].uses:
        user = use.operation
        if user.parent is op.parent and not _is_masked(user, use.index) and _mask(user) is None:
            return user
    return None


# Values forward ------------------------------------------------------------------------------------------------------


def _reader(value: SSAValue, dims: Dims) -> Operation | None:
    """The first operation that combines elements along one of the dimensions in which a value is masked."""
    known: dict[SSAValue, Dims] = {}
    waiting = [(value, dims)]
    while waiting:
        value, dims = waiting.pop()
        if dims <= known.get(value, frozenset()):
            continue
        dims = known[value] = dims | known.get(value, frozenset())
        for use in sorted(value.uses, key=lambda each: each.index):
            op, index = use.operation, use.index
            if _is_masked(op, index):
                continue
            if (rule := _COMBINES.get(type(op))) is not None:
                combined, dims_after = rule(op, index, dims)
                if combined & dims:
                    return op
                waiting += [(result, dims_after) for result in op.results]
            elif passed := forwarded(op).get(index):
                waiting += [(each, dims) for each in passed]
            elif not op.regions and is_side_effect_free(op):
                waiting += [(result, _after(op, dims, result)) for result in op.results if _is_number(result)]
    return None


def _is_masked(op: Operation, index: int) -> bool:
    """Return whether an operand is chosen by a condition, or is one, or is multiplied by a mask."""
    if isinstance(op, arith.SelectOp):
        return True
    is_product = isinstance(op, upstream.MulfOp | upstream.MuliOp)
    return is_product and _is_mask(op.operands[1 - index])


def _is_mask(value: SSAValue) -> bool:
    """Return whether a number is 0 or 1 by a condition."""
    owner = value.owner
    while isinstance(owner, tt.BroadcastOp | tt.ExpandDimsOp):
        owner = owner.src.owner
    if not isinstance(owner, Operation) or len(owner.operands) != 1:
        return False
    (source,) = owner.operands
    return str(scalar_type(source.type)) == "i1" and str(scalar_type(value.type)) != "i1"


def _is_number(value: SSAValue) -> bool:
    return not isinstance(scalar_type(value.type), tt.PointerType)


def _after(op: Operation, dims: Dims, result: SSAValue) -> Dims:
    """The dimensions of a result along which it is masked, if an operand is so along `dims`."""
    match op:
        case tt.ExpandDimsOp():
            axis = op.axis.value.data
            return frozenset(dim + (dim >= axis) for dim in dims)
        case tt.TransOp():
            return frozenset(dim for dim, source in enumerate(op.order.get_values()) if source in dims)
        case tt.BroadcastOp() | tt.SplatOp():
            return dims
        case _ if is_elementwise(op):
            return dims
        case _:
            return frozenset(dim for dim, size in enumerate(_shape(result)) if size > 1) if dims else dims


Rule: TypeAlias = Callable[[Any, int, Dims], tuple[Dims, Dims]]
"""From an operation, the number of an operand, and the dimensions in which that is masked: the dimensions along which
it is combined, and those in which results are masked."""


def _along_axis(op: tt.ReduceOp, _index: int, dims: Dims) -> tuple[Dims, Dims]:
    axis = op.axis.value.data
    return frozenset((axis,)), frozenset(dim - (dim > axis) for dim in dims if dim != axis)


def _scanned(op: tt.ScanOp, _index: int, dims: Dims) -> tuple[Dims, Dims]:
    return frozenset((op.axis.value.data,)), dims


def _product(op: tt.DotOp | tt.DotScaledOp, index: int, dims: Dims) -> tuple[Dims, Dims]:
    """The last dimension of A and the one before it of B are added up; elements of C stay on their own."""
    last = len(_shape(op.results[0])) - 1
    operand = op.operands[index]
    if operand is op.a:
        return frozenset((last,)), dims - {last}
    if operand is op.b:
        return frozenset((last - 1,)), dims - {last - 1}
    return (frozenset(), dims) if operand is op.c else (dims, frozenset())


def _counted(op: tt.HistogramOp, index: int, dims: Dims) -> tuple[Dims, Dims]:
    return (dims if op.mask is None and index == 0 else frozenset()), frozenset()


_COMBINES: dict[type[Operation], Rule] = {
    tt.HistogramOp: _counted,
    tt.ReduceOp: _along_axis,
    tt.ScanOp: _scanned,
    tt.DotOp: _product,
    tt.DotScaledOp: _product,
}
