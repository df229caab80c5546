"""The transfer functions of integer arithmetic, of shapes of tensors, and of pointers, for every abstract domain.

`TRANSFER` decodes an operation once: what it computes (`functions.py`), signed or unsigned, at which width, and how it
moves the elements of a tensor. What that means for abstract values is a method of the domain: `axis_domain.py` (how
regular values are along each axis), `addresses/polynomial_domain.py` (polynomials in program ids) and
`addresses/coverage/vector_domain.py` (the values in all programs of a grid).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar, cast

from xdsl.dialects import arith as upstream, builtin
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import arith, tlx, tt, ttg
from tlx_xdsl.dialects.base import as_tensor, element_bits, integer_bits, scalar_type, splat_number
from tlx_xdsl.layouts.encodings import Ints

V = TypeVar("V")


class Domain(Generic[V]):
    """An abstract domain: what it knows of the first result of `op`, from what it knows of the operands.

    None is what a domain has no transfer function for: the analysis takes its own value for the unknown.
    """

    def constant(self, op: Operation, numbers: Sequence[int], bits: int) -> V | None:
        """The number of all elements, or one for each."""

    def program_id(self, op: tt.GetProgramIdOp) -> V | None:
        """The program's index along an axis of the grid."""

    def num_programs(self, op: tt.GetNumProgramsOp) -> V | None:
        """The size of the grid along an axis."""

    def make_range(self, op: tt.MakeRangeOp, start: int, end: int) -> V | None:
        """The numbers from `start` to `end - 1`."""

    def binary(self, op: Operation, function: str, left: V, right: V, *, signed: bool) -> V | None:
        """`add`, `sub`, `mul`, `shl`, or one of `FUNCTIONS`, modulo the width; of single bits `and`, `or` or `xor`."""

    def compare(self, op: Operation, sign: str, left: V, right: V, *, signed: bool) -> V | None:
        """The bit that says how two numbers compare: one of `COMPARISONS`; single bits are unsigned."""

    def select(self, op: arith.SelectOp, condition: V, left: V, right: V) -> V | None:
        """`left` where the condition holds, else `right`."""

    def extend(self, op: Operation, value: V, *, signed: bool) -> V | None:
        """The same number in more bits."""

    def truncate(self, op: Operation, value: V) -> V | None:
        """The low bits."""

    def elementwise(self, op: Operation, operands: Sequence[V]) -> V | None:
        """Another function, which gives equal results for equal operands."""

    def rearrange(self, op: Operation, value: V, sources: Sequence[int | None]) -> V | None:
        """The elements along other dimensions: that of the operand for each of the result, or None for a new one.

        Along a new dimension, and along one that had one element, all elements are equal.
        """

    def reshape(self, op: tt.ReshapeOp, value: V) -> V | None:
        """The elements in the same order in another shape."""

    def add_pointer(self, op: tt.AddPtrOp, pointer: V, offset: V) -> V | None:
        """The pointer moved by so many elements; bytes do not wrap around in the offset's type."""

    def bitcast(self, op: tt.BitcastOp, value: V) -> V | None:
        """The same bits as another type: pointers stay what they are, and so do integers."""
        before, after = op.src, op.result
        is_same = bits_of(before) is not None if bits_of(after) is not None else is_pointer(after)
        return value if is_same else None

    def describe(self, op: Operation, pointer: V, shape: Sequence[V], strides: Sequence[V]) -> V | None:
        """A tensor descriptor."""


Transfer: TypeAlias = Callable[[Domain[Any], Any, Sequence[Any]], Any]


def transfer(domain: Domain[V], op: Operation, operands: Sequence[V]) -> V | None:
    """The state in `domain` of the result of `op`; None if the domain, or the table, knows nothing about it."""
    function = TRANSFER.get(type(op))
    return None if function is None else function(domain, op, operands)


# --- types ----------------------------------------------------------------------------------------------------------


def bits_of(value: SSAValue) -> int | None:
    """The width of an integer or of the integers of a tensor; None for other values."""
    scalar = scalar_type(value.type)
    return 64 if isinstance(scalar, builtin.IndexType) else integer_bits(scalar)


def shape_of(value: SSAValue) -> Ints:
    """The dimensions of a tensor; none of a scalar."""
    tensor = as_tensor(value.type)
    return () if tensor is None else tuple(tensor.get_shape())


def is_pointer(value: SSAValue) -> bool:
    """True if it is a pointer, or a tensor of pointers."""
    return isinstance(scalar_type(value.type), tt.PointerType)


def bytes_of(element: Attribute) -> int:
    """Bytes from one element to the next, of scalars or of a tensor of them; an i1 takes a byte."""
    return -(-element_bits(scalar_type(element)) // 8)


def pointee_bytes(value: SSAValue) -> int:
    """Bytes of what a pointer, or a tensor of pointers, points to; 1 for other values."""
    pointer = scalar_type(value.type)
    return bytes_of(pointer.pointee) if isinstance(pointer, tt.PointerType) else 1


# --- decoding -------------------------------------------------------------------------------------------------------


def _constant(domain: Domain[V], op: upstream.ConstantOp, _: Sequence[V]) -> V | None:
    value, bits = op.value, bits_of(op.result)
    if bits is None:
        return None
    numbers: Sequence[Any]
    match value:
        case builtin.IntegerAttr():
            numbers = [value.value.data]
        case builtin.DenseIntOrFPElementsAttr():
            numbers = [splat_number(value)] if value.is_splat() else cast(Any, value).get_values()
        case _:
            return None
    return domain.constant(op, [int(number) & 1 if bits == 1 else int(number) for number in numbers], bits)


_OF_BITS = {"add": "xor", "sub": "xor", "mul": "and", "min": "and", "max": "or", "and": "and", "or": "or", "xor": "xor"}
"""Functions of integers of one bit, modulo 2."""


def _binary(function: str, *, signed: bool = True) -> Transfer:
    # As a signed number, the bit 1 is -1.
    reversed_ = {"min": "max", "max": "min"} if signed else {}
    of_bits = _OF_BITS.get(reversed_.get(function, function))

    def decoded(domain: Domain[V], op: Any, operands: Sequence[V]) -> V | None:
        name = of_bits if bits_of(op.result) == 1 else function
        return None if name is None else domain.binary(op, name, *operands, signed=signed)

    return decoded


_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _compare(domain: Domain[V], op: arith.CmpiOp, operands: Sequence[V]) -> V | None:
    predicate, (left, right) = op.predicate_name, operands
    if predicate[0] == "s" and bits_of(op.lhs) == 1:
        left, right = right, left
    return domain.compare(op, _SIGNS[predicate[-2:]], left, right, signed=predicate[0] != "u")


def _extend(*, signed: bool) -> Transfer:
    return lambda domain, op, operands: domain.extend(op, *operands, signed=signed)


def _index_cast(domain: Domain[V], op: upstream.IndexCastOp, operands: Sequence[V]) -> V | None:
    growth = cast(int, bits_of(op.result)) - cast(int, bits_of(op.input))
    if growth == 0:
        return operands[0]
    return domain.extend(op, *operands, signed=True) if growth > 0 else domain.truncate(op, *operands)


def _rearrange(sources: Callable[[Any], Sequence[int | None]]) -> Transfer:
    return lambda domain, op, operands: domain.rearrange(op, operands[0], sources(op))


def _expanded(op: tt.ExpandDimsOp) -> Sequence[int | None]:
    rank, axis = len(shape_of(op.src)), op.axis.value.data
    return (*range(axis), None, *range(axis, rank))


def _reshape(domain: Domain[V], op: tt.ReshapeOp, operands: Sequence[V]) -> V | None:
    return None if op.allow_reorder is not None else domain.reshape(op, *operands)


def _describe(domain: Domain[V], op: tt.MakeTensorDescOp | tlx.MakeTensorDescOp, operands: Sequence[V]) -> V | None:
    rank = len(op.shape)
    numbers = operands[-2 * rank :]
    return domain.describe(op, operands[-2 * rank - 1], numbers[:rank], numbers[rank:])


TRANSFER: dict[type[Operation], Transfer] = {
    upstream.ConstantOp: _constant,
    upstream.AddiOp: _binary("add"),
    upstream.SubiOp: _binary("sub"),
    upstream.MuliOp: _binary("mul"),
    upstream.DivSIOp: _binary("truncdiv"),
    upstream.DivUIOp: _binary("floordiv", signed=False),
    upstream.FloorDivSIOp: _binary("floordiv"),
    upstream.CeilDivSIOp: _binary("ceildiv"),
    upstream.RemSIOp: _binary("truncmod"),
    upstream.RemUIOp: _binary("mod", signed=False),
    upstream.ShLIOp: _binary("shl"),
    upstream.ShRSIOp: _binary("shr"),
    upstream.ShRUIOp: _binary("shr", signed=False),
    upstream.AndIOp: _binary("and"),
    upstream.OrIOp: _binary("or"),
    upstream.XOrIOp: _binary("xor"),
    upstream.MinSIOp: _binary("min"),
    upstream.MaxSIOp: _binary("max"),
    upstream.MinUIOp: _binary("min", signed=False),
    upstream.MaxUIOp: _binary("max", signed=False),
    arith.CmpiOp: _compare,
    arith.SelectOp: lambda domain, op, operands: domain.select(op, *operands),
    arith.ExtSIOp: _extend(signed=True),
    arith.ExtUIOp: _extend(signed=False),
    arith.TruncIOp: lambda domain, op, operands: domain.truncate(op, *operands),
    upstream.IndexCastOp: _index_cast,
    tt.GetProgramIdOp: lambda domain, op, _: domain.program_id(op),
    tt.GetNumProgramsOp: lambda domain, op, _: domain.num_programs(op),
    tt.MakeRangeOp: lambda domain, op, _: domain.make_range(op, op.start.value.data, op.end.value.data),
    tt.SplatOp: _rearrange(lambda op: (None,) * len(shape_of(op.result))),
    tt.UnsplatOp: _rearrange(lambda op: ()),
    tt.ExpandDimsOp: _rearrange(_expanded),
    tt.BroadcastOp: _rearrange(lambda op: range(len(shape_of(op.result)))),
    tt.TransOp: _rearrange(lambda op: [int(dim) for dim in op.order.get_values()]),
    tt.ReshapeOp: _reshape,
    ttg.ConvertLayoutOp: lambda _, __, operands: operands[0],
    tlx.RequireLayoutOp: lambda _, __, operands: operands[0],
    tlx.ReleaseLayoutOp: lambda _, __, operands: operands[0],
    tt.AddPtrOp: lambda domain, op, operands: domain.add_pointer(op, *operands),
    tt.BitcastOp: lambda domain, op, operands: domain.bitcast(op, *operands),
    tt.MakeTensorDescOp: _describe,
    tlx.MakeTensorDescOp: _describe,
    tt.LoadOp: lambda domain, op, operands: domain.elementwise(op, operands),
    tt.MulhiUIOp: lambda domain, op, operands: domain.elementwise(op, operands),
}
"""By the class of the operation; of what is not here no domain knows anything."""
