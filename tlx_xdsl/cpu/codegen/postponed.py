"""Operands of products that are read where they lie: a tile is copied only where a mask leaves out part of it.

A load is a buffer, which is filled with the value of masked elements if there are any, and one copy into it, which may
stand in a loop over pieces. Whether the copy writes all of the buffer is known when it runs. Where it does, it leaves
the address and the strides of its source for the product to read; else it fills the buffer first, and copies.

```mlir
%tile = memref.alloc() : memref<128x64xf32>
linalg.fill ins(%zero : f32) outs(%tile : memref<128x64xf32>)
scf.while ... {
  memref.copy %source, %box                 // of 128 x 64 elements: nothing is filled or copied
}
linalg.matmul ins(%tile, ...) outs(...)     // reads %source
```

Between the copy and the product nothing may write memory that is not the program's own.

An accumulator that is filled with a number before its first product is not filled either: that product begins with the
number in its registers. Everything else that comes to the buffer looks first whether it is still to be filled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects import memref as upstream
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import linalg, memref

from .builder import I8, I32, I64, PTR, Builder, Value, constant
from .forwarding import VIEWS, buffer_of, may_write, views_of
from .views import Number, View, address, as_value

_EMPTY, _COPIED, _DIRECT = range(3)
"""What was done for a tile so far: nothing, a fill and some copies, or a note of its source."""


@dataclass
class Postponed:
    """A load that a product may do without."""

    buffer: SSAValue
    fill: linalg.FillOp | None
    is_repeated: bool
    """Whether the copy stands in a loop over pieces."""
    state: Value | None = None
    """Where one of the three numbers above is, once the allocation is written."""
    base: Value | None = None
    """Where the address of the source is."""
    strides: list[Value] = field(default_factory=list[Value])
    """Where its strides are."""
    source: View | None = None
    """What was copied from, as far as the types say."""
    is_direct: bool = False
    """Whether the source is always read."""

    def begin(self, b: Builder) -> None:
        """Note that nothing was done yet."""
        if self.state is None:
            self.state, self.base = b.alloca(I32, 4), b.alloca(PTR)
            self.strides = [b.alloca(I64) for _ in memref.sizes_of(self.buffer.type)]
        b.store(constant(_EMPTY, I32), self.state, 4)

    def copy(
        self,
        b: Builder,
        source: View,
        sizes: tuple[Number, ...],
        fill: Callable[[], None],
        copy: Callable[[], None],
        copy_all: Callable[[], None] | None,
    ) -> None:
        """Note the source if all elements are there; else fill the buffer, unless that is done, and copy.

        All elements are copied, too, where there is a function that does so: in another order they are slow to read.
        """
        assert self.state is not None
        whole: Value | None = None
        for size, wanted in zip(sizes, memref.sizes_of(self.buffer.type), strict=True):
            if size != wanted:
                same = b.compare("icmp eq", as_value(size), as_value(wanted or 0))
                whole = same if whole is None else b.binary("and", whole, same)
        if copy_all is None:
            self.source = source
            if whole is None and not self.is_repeated:
                self.is_direct = True
                return
        direct, copies, done = b.name(), b.name(), b.name()
        if whole is None:
            b.branch(direct)
        else:
            b.branch_if(whole, direct, copies)
            b.begin(copies)
            self._fill(b, fill)
            copy()
            b.branch(done)
        b.begin(direct)
        if copy_all is None:
            self._note(b, source)
        else:
            b.store(constant(_COPIED, I32), self.state, 4)
            copy_all()
        b.branch(done)
        b.begin(done)

    def _note(self, b: Builder, source: View) -> None:
        assert self.state is not None and self.base is not None
        b.store(constant(_DIRECT, I32), self.state, 4)
        b.store(address(b, source, source.offset), self.base, 8)
        for stride, slot in zip(source.strides, self.strides, strict=True):
            b.store(as_value(stride), slot, 8)

    def _fill(self, b: Builder, fill: Callable[[], None]) -> None:
        assert self.state is not None
        empty, filled = b.name(), b.name()
        state = b.load(I32, self.state, align=4)
        b.branch_if(b.compare("icmp eq", state, constant(_EMPTY, I32)), empty, filled)
        b.begin(empty)
        if self.fill is not None:
            fill()
        b.store(constant(_COPIED, I32), self.state, 4)
        b.branch(filled)
        b.begin(filled)

    def operand(self, b: Builder, buffer: View, fill: Callable[[], None]) -> View:
        """Return the view that the product reads: of the source, or of the buffer."""
        assert self.state is not None and self.base is not None
        if self.is_direct and self.source is not None:
            return self.source
        self._fill(b, fill)
        if self.source is None:
            return buffer
        direct = b.compare("icmp eq", b.load(I32, self.state, align=4), constant(_DIRECT, I32))
        base = b.select(direct, b.load(PTR, self.base, align=8), address(b, buffer, buffer.offset))
        strides: list[Number] = []
        for known, own, slot in zip(self.source.strides, buffer.strides, self.strides, strict=True):
            same = isinstance(known, int) and known == own
            strides.append(known if same else b.select(direct, b.load(I64, slot, align=8), as_value(own)))
        return View(base, buffer.element, 0, buffer.sizes, tuple(strides))


@dataclass
class Unfilled:
    """The fill of an accumulator, which its first product may do without."""

    fill: linalg.FillOp
    state: Value | None = None
    """Where the flag is that it is still to be done."""

    def starts(self, op: Operation) -> bool:
        """Return whether an operation is a product that may begin with the number instead."""
        return (
            isinstance(op, linalg.MatmulOp) and op.outputs[0] is self.fill.outputs[0] and op.outputs[0] not in op.inputs
        )

    def note(self, b: Builder, *, is_left: bool) -> None:
        """Note whether it is still to be done."""
        b.store(constant(is_left, I8), self._state(b))

    def is_left(self, b: Builder) -> Value:
        """Return whether it is still to be done; from here on it is not."""
        found = b.compare("icmp ne", b.load(I8, self._state(b)), constant(0, I8))
        self.note(b, is_left=False)
        return found

    def _state(self, b: Builder) -> Value:
        if self.state is None:
            self.state = b.alloca(I8, 1)
            b.entry.append(f"  store i8 0, {self.state.typed}")
        return self.state


def unfilled_accumulators(function: Operation) -> dict[Operation, list[Unfilled]]:
    """Find the fills that products may do without, by all operations that come to their buffers."""
    found: dict[Operation, list[Unfilled]] = {}
    products = [op for op in function.walk() if isinstance(op, linalg.MatmulOp)]
    for buffer in dict.fromkeys(op.outputs[0] for op in products if op.outputs[0] not in op.inputs):
        uses = [use.operation for view in views_of(buffer) for use in view.uses if use.operation.name not in VIEWS]
        users = list(dict.fromkeys(uses))
        fills = [op for op in users if isinstance(op, linalg.FillOp)]
        # Through control flow, calls and bodies of nests it would be met under other names, or in lanes.
        is_plain = isinstance(buffer.owner, upstream.AllocOp) and all(
            op.dialect_name() in _ON_BUFFERS and not isinstance(op.parent_op(), LinalgStructuredOperation)
            for op in users
        )
        if is_plain and len(fills) == 1 and fills[0].outputs[0] is buffer:
            wait = Unfilled(fills[0])
            for op in users:
                found.setdefault(op, []).append(wait)
    return found


_ON_BUFFERS = frozenset({"affine", "linalg", "memref"})


def postponed_copies(function: Operation) -> dict[Operation, Postponed]:
    """Find the loads that products may do without: each by its allocation, its fill, its copy and its product."""
    found: dict[Operation, Postponed] = {}
    for op in function.walk():
        # A product that writes the user's memory could change what it reads.
        if isinstance(op, linalg.MatmulOp) and buffer_of(op.outputs[0]) is not None:
            for value in op.inputs:
                found.update(_load_of(op, value))
    return found


def _load_of(product: Operation, buffer: SSAValue) -> dict[Operation, Postponed]:
    alloc, block = buffer.owner, product.parent
    assert block is not None
    if not isinstance(alloc, upstream.AllocOp) or alloc.parent is not block:
        return {}
    users = [(use.operation, view) for view in views_of(buffer) for use in view.uses]
    copies = [op for op, _ in users if isinstance(op, memref.CopyOp)]
    fills = [op for op, _ in users if isinstance(op, linalg.FillOp)]
    others = [op for op, view in users if op not in (*copies, *fills) and not _is_box(op, view, buffer)]
    if others != [product] or len(copies) != 1 or len(fills) > 1 or buffer_of(copies[0].source) is not None:
        return {}
    if any(fill.parent is not block or fill.outputs[0] is not buffer for fill in fills):
        return {}
    wait = Postponed(buffer, fills[0] if fills else None, copies[0].parent is not block)
    place = block.find_ancestor_op_in_block(copies[0])
    is_after_fill = not fills
    op: Operation | None = alloc
    # The order is: allocation, fill, copy, product.
    while op is not None and op is not place:
        if op is product:
            return {}
        is_after_fill = is_after_fill or op in fills
        op = op.next_op
    while op is not None and op is not product:
        # Control flow writes what is inside of it, and nothing else.
        if any(inner.dialect_name() != "scf" and may_write(inner) for inner in op.walk()):
            return {}
        op = op.next_op
    return {each: wait for each in (alloc, *fills, *copies)} if op is not None and is_after_fill else {}


def _is_box(op: Operation, view: SSAValue, buffer: SSAValue) -> bool:
    """Return whether an operation makes a box of the buffer, which has as many dimensions."""
    return (
        isinstance(op, upstream.SubviewOp)
        and view is buffer
        and set(op.static_strides.get_values()) <= {1}
        and len(memref.sizes_of(op.result.type)) == len(memref.sizes_of(buffer.type))
    )
