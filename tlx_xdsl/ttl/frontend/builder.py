"""Insertion of located operations, and integers as values of the IR."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from xdsl.dialects import arith
from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import (
    AffineMapAttr,
    CallSiteLoc,
    FileLineColLoc,
    IndexType,
    IntAttr,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    UnknownLoc,
    i32,
)
from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.errors import SourceLocation

from .affine import Affine, Quotient, Remainder
from .values import Index

OpT = TypeVar("OpT", bound=Operation)

_INDEX = IndexType()


@lru_cache(maxsize=8192)
def located(file: str, line: int, column: int, call_site: LocationAttr | None) -> LocationAttr:
    """The location attribute of a place in the source, and of the call that led there."""
    location = FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))
    return location if call_site is None else CallSiteLoc(location, call_site)


@dataclass(frozen=True, eq=False)
class Frame:
    """A block of the IR that is open."""

    block: Block
    loop: tuple[SSAValue, Index] | None = None
    """Of a loop's body: the loop's index, and its first value."""
    computed: dict[Hashable, SSAValue] = field(default_factory=dict[Hashable, SSAValue])
    """Constants and integers that were computed in it."""


class Builder:
    """Appends operations to the innermost open block; each gets the current location."""

    def __init__(self, block: Block) -> None:
        self.location: LocationAttr = UnknownLoc()
        self.frames = [Frame(block)]
        """The open blocks, outermost first."""

    @property
    def block(self) -> Block:
        """The block that operations are appended to."""
        return self.frames[-1].block

    def locate(self, place: SourceLocation, call_site: LocationAttr | None) -> None:
        """Give the operations that follow this location."""
        self.location = located(place.filename, place.line, place.column, call_site)

    @contextmanager
    def into(self, block: Block, first: Index | None = None) -> Generator[None]:
        """Append to `block` inside the `with`; to a loop's body, if the first value of the loop's index is given."""
        for argument in block.args:
            argument.location = self.location
        self.frames.append(Frame(block, None if first is None else (block.args[0], first)))
        try:
            yield
        finally:
            self.frames.pop()

    @contextmanager
    def outermost(self) -> Generator[None]:
        """Append to the kernel's own block inside the `with`."""
        inner, self.frames = self.frames, self.frames[:1]
        try:
            yield
        finally:
            self.frames = inner

    def insert(self, op: OpT) -> OpT:
        """Append `op` at the current location."""
        op.location = self.location
        self.block.add_op(op)
        return op

    def _once(self, key: Hashable, make: Operation) -> SSAValue:
        """The result of `make`, or of what was computed under the same key in a block that is open."""
        for frame in self.frames:
            if key in frame.computed:
                # A detached operation would stay a user of its operands, which patterns would visit.
                make.erase()
                return frame.computed[key]
        value = self.insert(make).results[0]
        self.frames[-1].computed[key] = value
        return value

    def constant(self, value: int) -> SSAValue:
        """The index `value`."""
        made = self._once(("index", value), arith.ConstantOp(IntegerAttr(value, _INDEX)))
        made.name_hint = made.name_hint or f"c{value}".replace("-", "m")
        return made

    def constant_i32(self, value: int) -> SSAValue:
        """The i32 `value`."""
        return self._once(("i32", value), arith.ConstantOp(IntegerAttr(value, i32)))

    def index(self, value: Index) -> SSAValue:
        """An integer as an index."""
        affine = value.affine
        if affine.known is not None:
            return self.constant(affine.known)
        if len(affine.terms) == 1 and not affine.constant and affine.terms[0][1] == 1:
            atom = affine.terms[0][0]
            if isinstance(atom, SSAValue):
                return atom
        if value.is_affine:
            map_, operands = affine.map()
            return self._once(affine, ApplyOp(operands, AffineMapAttr(map_)))
        return self._arithmetic(affine)

    def _arithmetic(self, affine: Affine) -> SSAValue:
        """An integer by operations of arith: where affine maps may not be used."""
        total: SSAValue | None = None
        for atom, factor in affine.terms:
            term = atom if isinstance(atom, SSAValue) else self._division(atom)
            if factor != 1:
                term = self._once(("mul", term, factor), arith.MuliOp(term, self.constant(factor)))
            total = term if total is None else self._once(("add", total, term), arith.AddiOp(total, term))
        if total is None or affine.constant:
            constant = self.constant(affine.constant)
            if total is None:
                return constant
            total = self._once(("add", total, constant), arith.AddiOp(total, constant))
        return total

    def _division(self, atom: Quotient | Remainder) -> SSAValue:
        dividend, divisor = self._arithmetic(atom.dividend), self.constant(atom.divisor)
        quotient = self._once(("div", dividend, divisor), arith.FloorDivSIOp(dividend, divisor))
        if isinstance(atom, Quotient):
            return quotient
        # The remainder of arith has the sign of the dividend, Python's that of the divisor.
        whole = self._once(("mul", quotient, divisor), arith.MuliOp(quotient, divisor))
        return self._once(("sub", dividend, whole), arith.SubiOp(dividend, whole))
