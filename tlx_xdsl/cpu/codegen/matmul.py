"""Products of matrices: a tile of the accumulator stays in registers while the depth is walked.

For each tile of rows times vectors of columns, and each step of the depth, a vector of each group of columns of B is
loaded and multiplied by one element of each row of A, which is broadcast. Operands of other types than the accumulator
are converted to it first, once, in memory beside the buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tlx_xdsl.dialects.base import is_float

from ..bufferize.plan_arena import aligned
from .builder import F32, F64, FLOATS, I8, I32, I64, Value, constant
from .dot_instructions import WORD, dot_instruction
from .function import FunctionEmitter
from .nest import Access, Nest, write_nest
from .postponed import Unfilled
from .scalars import rounded, widened
from .tiles import SIDE, configure, release, write_tiles
from .views import Number, View, add, address, dense, load, multiply, store

REGISTERS_FOR_OTHERS = 6
"""Registers that hold no accumulator: the vectors of B, an element of A, and what the compiler needs."""


def write_product(fn: FunctionEmitter, a: View, b: View, c: View, start: Unfilled | None) -> bool:
    """Add the product of `a` (MxK) and `b` (KxN) to `c` (MxN), or to the number that `start` would fill `c` with.

    Returns False if a plain nest must do it.
    """
    if not all(isinstance(size, int) for size in (*a.sizes, *b.sizes, *c.sizes)) or c.strides[1] != 1:
        return False
    element = c.element
    if c.in_register not in (F32, F64, I32, I64) or any(is_float(each.element) != is_float(element) for each in (a, b)):
        return False
    fn.streams = False
    product = _Product(fn, a, b, c)
    if start is not None and product.in_tiles:
        fn.fill(start)
    elif start is not None:
        product.start = fn.values[start.fill.inputs[0]], start.is_left(fn.b)
    product.prepare()
    product.write()
    return True


def _convert(fn: FunctionEmitter, sizes: tuple[int, ...], read: Access, written: Access) -> None:
    """Write elements as those of another type."""
    element = written.view.element

    def convert(value: Value) -> Value:
        if is_float(element):
            return rounded(fn, widened(fn, value, read.view.element), element)
        return fn.b.resized(value, written.view.in_register)

    write_nest(fn, Nest(
        sizes, (False,) * len(sizes), (read,), (written,), (False,), lambda found, _old, _indices: [convert(found[0])],
        written.view.bytes, vectorizable=True, has_indices=False,
    ))  # fmt: skip


class _Product:
    def __init__(self, fn: FunctionEmitter, a: View, b: View, c: View):
        self.fn, self.a, self.b, self.c = fn, a, b, c
        rows, columns, depth = c.sizes[0], c.sizes[1], a.sizes[1]
        assert isinstance(rows, int) and isinstance(columns, int) and isinstance(depth, int)
        self.rows, self.columns, self.depth = rows, columns, depth
        lanes = max(fn.features.vector_bytes // c.bytes, 1)
        while lanes > 1 and columns % lanes:
            lanes //= 2
        self.lanes = lanes
        self.in_panels = False
        self.start: tuple[Value, Value] | None = None
        """What to add to instead of the elements of C, and whether."""
        self.dot = dot_instruction(fn.features, a, b, c, lanes)
        self.steps = depth if self.dot is None else depth // self.dot.group
        accumulators = fn.features.registers - REGISTERS_FOR_OTHERS
        self.in_tiles = self.dot is not None and self.dot.in_tiles
        self.across = min(4 if fn.features.registers >= 32 and not self.in_tiles else 2, columns // lanes)
        self.down = max(min(accumulators // self.across, rows, 6 if self.across > 2 else 8), 1)
        if self.in_tiles:
            self.down = min(2 * SIDE, rows)

    def prepare(self) -> None:
        """Copy the operands that are of another type, or that lie where they are slow to read.

        What was copied of B are panels: all rows of the columns that tiles have, side by side.
        """
        copies_a, self.in_panels = self._copied()
        sizes = [(self.rows, self.steps)] * copies_a + [(self.steps, self.columns)] * self.in_panels
        needed = [aligned(self.c.bytes * rows * columns) for rows, columns in sizes]
        if not needed:
            return
        memory = self.fn.temporary(sum(needed))
        element = self.c.element if self.dot is None else WORD
        if copies_a:
            copy = dense(memory, element, sizes[0])
            if self.dot is None:
                _convert(
                    self.fn, sizes[0], Access(self.a, self.a.offset, self.a.strides), Access(copy, 0, copy.strides)
                )
            else:
                self.dot.write_a(self.fn, self.a, copy)
            self.a = copy
        if self.in_panels:
            place = self.fn.b.gep(I8, memory, self.fn.b.index(needed[0])) if copies_a else memory
            self._make_panels(dense(place, element, sizes[-1]))

    def _copied(self) -> tuple[bool, bool]:
        """Return whether A and B are copied."""
        a, b, register = self.a, self.b, self.c.in_register
        if self.dot is not None:
            return not self.in_tiles, True
        lies_well = isinstance(b.strides[0], int) and b.strides[1] == 1
        return a.in_register != register or a.strides[1] != 1, b.in_register != register or not lies_well

    def _make_panels(self, copy: View) -> None:
        b, read = self.fn.b, self.b
        width = self.across * self.lanes
        whole = self.columns // width
        write = _convert if self.dot is None else self.dot.write_b
        for first, count, size in ((0, whole, width), (whole * width, 1, self.columns - whole * width)):
            if size and count:
                strides = (multiply(b, size, read.strides[1]), *read.strides)
                offset = add(b, read.offset, multiply(b, first, read.strides[1]))
                place = Access(copy, first * self.steps, (size * self.steps, size, 1))
                write(self.fn, (count, self.steps, size), Access(read, offset, strides), place)
        self.b = copy

    def write(self) -> None:
        """The tiles: groups of columns, and for each of them all rows."""
        width = self.across * self.lanes
        whole = self.columns // width
        if self.in_tiles:
            configure(self.fn.b)
        if whole:
            self._columns(0, whole, width, self.across)
        left = (self.columns - whole * width) // self.lanes
        if left:
            self._columns(whole * width, 1, left * self.lanes, left)
        if self.in_tiles:
            release(self.fn.b)

    def _columns(self, first: int, count: int, width: int, across: int) -> None:
        b = self.fn.b

        def at(column: Number) -> None:
            excess = self._excess(column, across)
            # As even as possible: a short tile costs almost as much as a whole one.
            tiles = -(-self.rows // self.down)
            height = -(-self.rows // tiles)
            whole = self.rows // height
            if whole == 1:
                self._tile(0, column, height, across, excess)
            else:
                with b.loop(b.index(0), b.index(whole * height), b.index(height)) as (row, _, _):
                    self._tile(row, column, height, across, excess)
            if self.rows - whole * height:
                self._tile(whole * height, column, self.rows - whole * height, across, excess)

        if count == 1:
            at(first)
        else:
            with b.loop(b.index(first), b.index(first + count * width), b.index(width)) as (column, _, _):
                at(column)

    def _columns_of_b(self, column: Number, across: int) -> tuple[list[View], Number]:
        """The beginnings of some columns, and the elements from one row to the next."""
        b = self.fn.b
        start = multiply(b, column, self.steps) if self.in_panels else self.b.place(b, (0, column))
        places = [add(b, start, each * self.lanes) for each in range(across)]
        views = [replace(self.b, base=address(b, self.b, place)) for place in places]
        return views, across * self.lanes if self.in_panels else self.b.strides[0]

    def _excess(self, column: Number, across: int) -> Sequence[Value]:
        """Return what sums of some columns will be too large by."""
        if self.dot is None or not self.dot.offset:
            return ()
        b, lanes = self.fn.b, self.lanes
        views, row = self._columns_of_b(column, across)
        zero = [constant(0, I32, lanes)] * across
        with b.loop(b.index(0), b.index(self.steps), b.index(1), zero) as (k, sums, following):
            vectors = [load(b, view, multiply(b, k, row), 1, lanes) for view in views]
            following[:] = [self.dot.excess(b, *each) for each in zip(vectors, sums, strict=True)]
        return following

    def _tile(self, row: Number, column: Number, down: int, across: int, excess: Sequence[Value]) -> None:
        b, lanes = self.fn.b, self.lanes
        if self.dot is not None and self.in_tiles:
            panel, words = self._columns_of_b(column, across)
            of_a = self.a.with_(offset=self.a.place(b, (row, 0)), sizes=(down, self.steps), strides=self.a.strides)
            of_c = self.c.with_(offset=self.c.place(b, (row, column)), sizes=(down, across), strides=self.c.strides)
            write_tiles(b, self.dot.name, of_a, panel, words, of_c)
            return
        rows = [add(b, row, each) for each in range(down)]
        columns = [add(b, column, each * lanes) for each in range(across)]
        places = [self.c.place(b, (each, other)) for each in rows for other in columns]
        start = self._start(places)
        if excess:
            start = [b.binary("sub", value, excess[number % across]) for number, value in enumerate(start)]
        a_views = [replace(self.a, base=address(b, self.a, self.a.place(b, (each, 0)))) for each in rows]
        b_views, row_of_b = self._columns_of_b(column, across)
        with b.loop(b.index(0), b.index(self.steps), b.index(1), start) as (k, sums, following):
            in_a, in_b = multiply(b, k, self.a.strides[1]), multiply(b, k, row_of_b)
            vectors = [load(b, view, in_b, 1, lanes) for view in b_views]
            for number, view in enumerate(a_views):
                element = load(b, view, in_a)
                for other, vector in enumerate(vectors):
                    which = number * across + other
                    following[which] = self._added(element, vector, sums[which])
        for place, value in zip(places, following, strict=True):
            store(b, value, self.c, place, 1, lanes)

    def _start(self, places: Sequence[Number]) -> list[Value]:
        b = self.fn.b
        if self.start is None:
            return [load(b, self.c, place, 1, self.lanes) for place in places]
        number, is_left = b.splat(self.start[0], self.lanes), self.start[1]
        before, loads, done = b.label, b.name(), b.name()
        b.branch_if(is_left, done, loads)
        b.begin(loads)
        found = [load(b, self.c, place, 1, self.lanes) for place in places]
        b.branch(done)
        b.begin(done)
        return [b.phi(each.element, each.lanes, [(number, before), (each, loads)])[0] for each in found]

    def _added(self, element: Value, vector: Value, total: Value) -> Value:
        b = self.fn.b
        if self.dot is not None:
            return self.dot.added(b, element, vector, total)
        if self.c.in_register in FLOATS:
            return b.intrinsic("llvm.fma", b.splat(element, total.lanes), vector, total)
        return b.binary("add", total, b.binary("mul", element, vector))
