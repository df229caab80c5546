"""Tiles of circular buffers: which buffer a view is of, and which of its tiles one of the view's is.

Numbers of tiles are i32, as TT-Metalium's functions take them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, i32
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from tlx_xdsl.dialects import memref
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.ttl.dialects import ttl

from ..emitter import Constants, Emitter, Number, Scalar


class Arithmetic(Emitter):
    """Emits each sum, product and cast once.

    All are at one place of a block, so that what was emitted before can be used.
    """

    def __init__(self, constants: Constants, anchor: Operation) -> None:
        super().__init__(constants, anchor)
        self._known: dict[tuple[str, Number, Number | Scalar], Number] = {}

    def add(self, left: Number, right: Number, type_: Scalar = i32) -> Number:
        """The sum."""
        if ("add", left, right) not in self._known:
            self._known["add", left, right] = super().add(left, right, type_)
        return self._known["add", left, right]

    def mul(self, left: Number, right: Number, type_: Scalar = i32) -> Number:
        """The product."""
        if ("mul", left, right) not in self._known:
            self._known["mul", left, right] = super().mul(left, right, type_)
        return self._known["mul", left, right]

    def i32(self, number: Number) -> SSAValue:
        """A number as an i32."""
        found = self._known.get(("i32", number, i32))
        if not isinstance(found, SSAValue):
            found = self._known["i32", number, i32] = super().i32(number)
        return found


@dataclass(frozen=True)
class Place:
    """Where the tiles of a view are."""

    cb: SSAValue
    """The buffer, as it is in `ttl`."""
    begin: Number
    """The number of the view's first tile."""
    strides: tuple[int, ...]
    """Tiles from one to the next along each dimension."""

    def tile(self, map_: AffineMap, coordinates: Sequence[Number], emit: Emitter) -> Number:
        """The number of a tile, from the indices of the loops."""
        found = 0
        begin = self.begin
        for stride, expr in zip(self.strides, map_.results, strict=True):
            match expr:
                case AffineDimExpr(position=position):
                    step = emit.mul(coordinates[position], stride, i32)
                case AffineConstantExpr(value=value):
                    step = value * stride
                case _:
                    raise ValueError(f"expected a loop or a number, found {expr}")
            # Known numbers are added first.
            if isinstance(step, int):
                found += step
            else:
                begin = emit.add(begin, step, i32)
        return emit.add(begin, found, i32)


def buffer_of(view: SSAValue) -> SSAValue:
    """The circular buffer that a view is of.

    Raises CompilationError for other memory.
    """
    while not isinstance(view.owner, ttl.AcquireOp):
        match view.owner:
            case ttl.BlockOp(view=source) | memref.SubviewOp(source=source):
                view = source
            case _:
                raise error_at(view, "a compute reads and writes blocks of circular buffers, found other memory")
    return view.owner.cb


def place_of(view: SSAValue, emit: Emitter) -> Place:
    """Where the tiles of a view are; what is not known is computed.

    Raises CompilationError for memory that is no view of a circular buffer.
    """
    strides, _ = memref.strides_of(view.type)
    begin: Number = 0
    whole = view
    while not isinstance(whole.owner, ttl.AcquireOp):
        match whole.owner:
            case ttl.BlockOp(view=several, index=index):
                step = emit.mul(emit.i32(index), prod(ttl.block_shape(whole.type)), i32)
                begin, whole = emit.add(begin, step, i32), several
            case memref.SubviewOp(source=source) as part:
                begin, whole = emit.add(begin, _offset(part, emit), i32), source
            case _:
                break
    return Place(buffer_of(whole), begin, tuple(each for each in strides if each is not None))


def _offset(part: memref.SubviewOp, emit: Emitter) -> Number:
    strides, _ = memref.strides_of(part.source.type)
    dynamic = iter(part.offsets)
    found: Number = 0
    for stride, offset in zip(strides, part.static_offsets.get_values(), strict=True):
        assert stride is not None, "blocks have known shapes"
        number = emit.i32(next(dynamic)) if offset == DYNAMIC_INDEX else offset
        found = emit.add(found, emit.mul(number, stride, i32), i32)
    return found
