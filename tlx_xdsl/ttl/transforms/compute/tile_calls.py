"""The calls for operations on tiles: what prepares the hardware, and what is done for one tile."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import singledispatch
from typing import NamedTuple, Protocol

from xdsl.dialects.builtin import FloatAttr, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from tlx_xdsl.ttl.dialects import ttkernel, ttl
from tlx_xdsl.ttl.dialects.ttcore import is_float


class Buffers(Protocol):
    """The circular buffers of a body."""

    def cb(self, argument: SSAValue) -> SSAValue:
        """The buffer that an argument of the body is a tile of."""
        ...

    @property
    def output(self) -> SSAValue:
        """Return the buffer of the first output."""
        ...


class Operands(Protocol):
    """Operands of the calls for one tile."""

    def cb(self, argument: SSAValue) -> SSAValue:
        """The circular buffer that an argument of the body is a tile of."""
        ...

    def tile(self, argument: SSAValue) -> SSAValue:
        """The number of this tile."""
        ...

    def register(self, value: SSAValue) -> SSAValue:
        """The number of the register that a tile of the body is in."""
        ...


class Calls(NamedTuple):
    """The classes of two calls, their buffers and attributes."""

    prepare: type[Operation]
    call: type[Operation]
    buffers: Sequence[SSAValue]
    """The buffers that both take, in the order of their operands."""
    needs_output: bool = False
    """Whether the preparation takes the output's buffer, too."""
    attributes: Mapping[str, Attribute] = {}
    """Those of both calls."""
    own: Mapping[str, Attribute] = {}
    """Those of the second one."""

    def preparation(self, of: Buffers) -> tuple[Hashable, Operation]:
        """The call that prepares, and what it prepares for."""
        buffers = [of.cb(argument) for argument in self.buffers]
        if self.needs_output:
            buffers.append(of.output)
        key = self.prepare, *buffers, *sorted((name, str(value)) for name, value in self.attributes.items())
        return key, self.prepare.create(operands=buffers, properties=dict(self.attributes))


@singledispatch
def calls_of(op: ttl.TileOp) -> Calls:
    """The calls of an operation."""
    return _vector(op)


def _vector(op: ttl.TileOp) -> Calls:
    """The calls of an operation of the vector unit: the function of floats, or that of integers."""
    type_ = ttl.tile_of(op.result.type).data_type
    if is_float(type_) or op.INTEGER is None:
        return Calls(*op.LOWERED, [])
    return _with_format(op.INTEGER, type_)


def _with_format(functions: tuple[type[IRDLOperation], type[IRDLOperation]], type_: Attribute) -> Calls:
    """Calls, each with the type of the integers if it needs that."""
    prepare, call = (("format" in each.get_irdl_definition().properties) for each in functions)
    both = {"format": type_}
    return Calls(*functions, [], attributes=both if prepare else {}, own=both if call else {})


@calls_of.register
def _binary(op: ttl.TileBinaryOp) -> Calls:
    if op.fpu is None:
        return _vector(op)
    assert op.FPU is not None, "the attribute is for what the matrix unit can do"
    return Calls(*op.FPU, list(op.operands))


@calls_of.register
def _unary(op: ttl.TileUnaryOp) -> Calls:
    return _vector(op) if op.parameters is None else Calls(*op.LOWERED, [], own={"parameters": op.parameters})


@calls_of.register
def _copy(op: ttl.TileCopyOp) -> Calls:
    if not isinstance(op.input, BlockArgument):
        type_ = ttl.tile_of(op.result.type).data_type
        return Calls(*op.LOWERED, [], own={} if is_float(type_) else {"format": type_})
    return Calls(ttkernel.CopyTileInitOp, ttkernel.CopyTileOp, [op.input])


@calls_of.register
def _fill(op: ttl.TileFillOp) -> Calls:
    functions = op.LOWERED if isinstance(op.value, FloatAttr) else op.INTEGER
    assert functions is not None, "checked by the verifier"
    return Calls(*functions, [], own={"value": op.value})


@calls_of.register
def _typecast(op: ttl.TileTypecastOp) -> Calls:
    return Calls(*op.LOWERED, [], attributes={"source": op.source, "target": op.target})


@calls_of.register
def _bcast(op: ttl.TileBcastOp) -> Calls:
    return Calls(*op.LOWERED, [op.input], needs_output=True, attributes={"dims": op.dims})


@calls_of.register
def _transpose(op: ttl.TileTransposeOp) -> Calls:
    return Calls(*op.LOWERED, [op.input], needs_output=True)


@calls_of.register
def _matmul(op: ttl.TileMatmulOp) -> Calls:
    return Calls(*op.LOWERED, [op.lhs, op.rhs], needs_output=True)


@calls_of.register
def _reduce(op: ttl.TileReduceOp) -> Calls:
    kind = StringAttr(op.FUNCTION.removeprefix("reduce_"))
    return Calls(*op.LOWERED, [op.input, op.scaler], needs_output=True, attributes={"dims": op.dims, "kind": kind})


def call(op: ttl.TileOp, calls: Calls, operands: Operands) -> Operation:
    """The call for one tile: buffers, their tiles, registers that are read, and the one that is written.

    An operation in place has one register.
    """
    is_read = [each for each in op.operands if not isinstance(each, BlockArgument)]
    registers = [] if op.IN_PLACE else [operands.register(each) for each in is_read]
    return calls.call.create(
        operands=[
            *(operands.cb(each) for each in calls.buffers),
            *(operands.tile(each) for each in calls.buffers),
            *registers,
            operands.register(op.result),
        ],
        properties={**calls.attributes, **calls.own},
    )
