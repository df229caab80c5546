"""Loop nests: what structured operations of `linalg` are, with one dimension in the lanes of vectors.

Vectors have the same number of lanes on every CPU, so that sums have the same bits everywhere; LLVM splits what is
wider than the registers. What is left of a dimension after the last whole vector is one more vector, whose lanes are
masked.

No store has a mask that LLVM knows. If that leaves one lane of a vector that was narrowed, LLVM 22.1.0 writes the wide
element, over its neighbours (github.com/llvm/llvm-project/issues/179489).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TypeAlias

from .builder import I8, I32, I64, Value, constant, iota, poison
from .function import FunctionEmitter
from .mathematics.arithmetic import any_lane
from .views import Number, View, add, address, as_value, dense, fetch, load, multiply, store, subtract

VECTOR_BYTES = 64
"""Bytes of a vector of the widest elements of a nest: the registers of AVX-512, or several of another CPU's."""

Compute: TypeAlias = Callable[[Sequence[Value], Sequence[Value], Sequence[Value]], Sequence[Value]]
"""Makes the new elements of the outputs from the elements of the inputs, those of the outputs, and the indices."""


@dataclass(frozen=True)
class Access:
    """Elements that a nest reads or writes, one for each iteration."""

    view: View
    offset: Number
    """Of the element of the first iteration."""
    strides: tuple[Number, ...]
    """Elements from one iteration of each dimension to the next."""
    limits: tuple[Number | None, ...] = ()
    """For each dimension the number of iterations that read memory; None: all of them. Empty: all of all of them."""
    starts: tuple[Number, ...] = ()
    """For each dimension the first of these, which is 0 where all do. Empty: 0 for all."""
    other: Value | None = None
    """What the others get instead; None: anything."""
    ahead: Number = 0
    """Elements from each one to another that the cache is asked for meanwhile; 0: none."""


@dataclass(frozen=True)
class Quick:
    """A faster function in the place of a combiner, with the same results but for those that `is_doubtful` marks."""

    identity: Value
    combine: Callable[[Value, Value], Value]
    is_doubtful: Callable[[Value], Value]
    """Whether a result may be another one."""


@dataclass(frozen=True)
class Combiner:
    """An operation that may be done in any order, with the number that changes nothing."""

    identity: Value
    combine: Callable[[Value, Value], Value]
    quick: Quick | None = None


@dataclass(frozen=True)
class Nest:
    """A loop nest."""

    sizes: tuple[Number, ...]
    reduced: tuple[bool, ...]
    """For each dimension whether the outputs are the same in all of its iterations."""
    inputs: tuple[Access, ...]
    outputs: tuple[Access, ...]
    reads: tuple[bool, ...]
    """For each output whether its elements are needed; where a dimension is reduced they are."""
    compute: Compute
    element_bytes: int
    """Of the widest element that is computed with."""
    vectorizable: bool
    has_indices: bool
    """Whether `compute` asks for indices."""
    combiners: tuple[Combiner, ...] | None = None
    """For each output how its elements are combined; None: in the order of the iterations."""
    is_cheap: bool = False
    """Whether an iteration is so short that a reduction waits for the one before, and may be written several times."""
    is_short: bool = False
    """Whether it mostly has few iterations."""
    replace_combination: Callable[[Callable[[Value, Value], Value] | None], None] = lambda _: None
    """Lets `compute` combine by another function than the operation, or by that again."""

    @property
    def accesses(self) -> tuple[Access, ...]:
        """All accesses, inputs first."""
        return self.inputs + self.outputs


def write_nest(fn: FunctionEmitter, nest: Nest) -> None:
    """Write the instructions of a nest."""
    if 0 in nest.sizes:
        return
    # A nest of few iterations takes less time than its masks, which are the same in all turns of many a loop around it.
    with fn.b.moving() if nest.is_short else nullcontext():
        _write_nest(fn, nest)


def _write_nest(fn: FunctionEmitter, nest: Nest) -> None:
    if not nest.has_indices:
        nest = _coalesced(nest)
    if any(nest.reduced):
        fn.streams = False
    dim = _vector_dimension(nest)
    writer = _Writer(fn, nest, dim, 1 if dim is None else _lanes(nest, dim))
    parallel = [each for each in range(len(nest.sizes)) if not nest.reduced[each] and each != dim]
    offsets = [access.offset for access in nest.accesses]
    rows = _row_dimension(nest, dim)
    if rows is None or dim is None:
        writer.loops(parallel, offsets, writer.inner)
        return
    parallel.remove(rows)
    writer.lanes = min(writer.lanes, _MOST_ROWS)
    writer.loops(parallel, offsets, lambda at: writer.blocks(rows, at))


def _coalesced(nest: Nest) -> Nest:
    """The same iterations with fewer dimensions: those of size 1 go, neighbours that are walked in one step are one."""
    kept = [dim for dim, size in enumerate(nest.sizes) if size != 1]
    groups: list[list[int]] = []
    for dim in kept:
        if groups and _is_one_walk(nest, groups[-1][-1], dim):
            groups[-1].append(dim)
        else:
            groups.append([dim])

    def last(access: Access) -> Access:
        strides = tuple(access.strides[group[-1]] for group in groups)
        limits = tuple(access.limits[group[-1]] for group in groups) if access.limits else ()
        starts = tuple(access.starts[group[-1]] for group in groups) if access.starts else ()
        return replace(access, strides=strides, limits=limits, starts=starts)

    sizes: list[Number] = []
    for group in groups:
        size: Number = nest.sizes[group[0]]
        for dim in group[1:]:
            inner = nest.sizes[dim]
            assert isinstance(size, int) and isinstance(inner, int)
            size *= inner
        sizes.append(size)
    return replace(
        nest,
        sizes=tuple(sizes),
        reduced=tuple(nest.reduced[group[-1]] for group in groups),
        inputs=tuple(map(last, nest.inputs)),
        outputs=tuple(map(last, nest.outputs)),
    )


def _is_one_walk(nest: Nest, outer: int, inner: int) -> bool:
    size = nest.sizes[inner]
    if nest.reduced[outer] != nest.reduced[inner] or not isinstance(size, int):
        return False
    if not isinstance(nest.sizes[outer], int):
        return False
    if any(access.limits and (access.limits[outer], access.limits[inner]) != (None, None) for access in nest.inputs):
        return False

    def follows(access: Access) -> bool:
        far, near = access.strides[outer], access.strides[inner]
        return isinstance(far, int) and isinstance(near, int) and far == near * size

    return all(map(follows, nest.accesses))


def _vector_dimension(nest: Nest) -> int | None:
    """The dimension whose elements mostly lie one after the other; None for scalar code."""
    if not nest.vectorizable:
        return None
    best: tuple[int, int, int] | None = None
    for dim, size in enumerate(nest.sizes):
        if size == 1 or (nest.reduced[dim] and nest.combiners is None):
            continue
        score = sum(_score(access.strides[dim], 1) for access in nest.inputs)
        if not nest.reduced[dim]:
            score += sum(_score(access.strides[dim], 2) for access in nest.outputs)
        # A short vector costs as many instructions as a long one.
        room = min(size, 16) if isinstance(size, int) else 16
        best = max(best, (score * room, room, dim)) if best is not None else (score * room, room, dim)
    return None if best is None else best[2]


_MOST_ROWS = 16
"""Rows of a block that is transposed: as many as there are registers left beside them."""


def _row_dimension(nest: Nest, dim: int | None) -> int | None:
    """The dimension along which inputs lie one after the other that do not along the lanes; None if there is none.

    Blocks of such an input are read in its own order, and transposed in registers.
    """
    if dim is None or any(nest.reduced) or not _is_long(nest.sizes[dim]):
        return None
    for other, size in enumerate(nest.sizes):
        if other != dim and _is_long(size) and any(_is_transposed(access, dim, other) for access in nest.inputs):
            return other
    return None


def _is_transposed(access: Access, dim: int, rows: int) -> bool:
    return access.strides[rows] == 1 and access.strides[dim] not in (0, 1) and set(access.limits) <= {None}


def _is_long(size: Number) -> bool:
    return not isinstance(size, int) or size >= _MOST_ROWS


def _score(stride: Number, weight: int) -> int:
    """Return how good it is to access vectors with such a stride."""
    if stride == 1:
        return 3 * weight
    # An instruction that gathers takes as long as the loads of all its lanes.
    return 1 if stride == 0 else -4 * weight


def _lanes(nest: Nest, dim: int) -> int:
    size = nest.sizes[dim]
    lanes = VECTOR_BYTES // nest.element_bytes
    if nest.is_short:
        # Masks of vectors that are split into several registers are taken apart, too.
        lanes //= 2
    if any(nest.reduced) and nest.is_cheap and isinstance(size, int):
        # Several sums at a time: each addition waits for the one before.
        fewest = 2 * lanes if nest.reduced[dim] else lanes
        lanes *= 4 if size >= 4 * fewest else 2 if size >= 2 * fewest else 1
    while isinstance(size, int) and lanes > size:
        lanes //= 2
    return lanes


@dataclass
class _Writer:
    fn: FunctionEmitter
    nest: Nest
    dim: int | None
    """The dimension in the lanes."""
    lanes: int

    def __post_init__(self) -> None:
        self.indices: list[Value] = [constant(0, I64) for _ in self.nest.sizes]
        self.others = [dim for dim, reduced in enumerate(self.nest.reduced) if reduced and dim != self.dim]
        self.start = constant(0, I64)
        """The index along `dim` of the first lane."""
        self.have_all = self.have_none = False
        """Whether inputs with a limit along `dim` have all lanes, or none."""
        self.left: int | None = None
        """The lanes of a last vector that count, where their number is known."""
        self.strides = [0 if self.dim is None else access.strides[self.dim] for access in self.nest.accesses]
        self.whole: set[int] = set()
        """Dimensions within all limits."""
        self.known: dict[int, Value] = {}
        """By their numbers the inputs whose elements are in registers."""

    def loops(self, dims: Sequence[int], offsets: list[Number], then: Callable[[list[Number]], None]) -> None:
        """Loops over parallel dimensions, around `then`."""
        if not dims:
            then(offsets)
            return
        dim, *rest = dims
        if self.nest.sizes[dim] == 1:
            self.loops(rest, offsets, then)
            return

        def turn(number: Value, _: Sequence[Value]) -> Sequence[Value]:
            self.loops(rest, self._moved(offsets, dim, number), then)
            return ()

        self._turns(dim, (), turn)

    def inner(self, offsets: list[Number]) -> None:
        """Write what stands inside of the loops over the other parallel dimensions."""
        if self.dim is None:
            self.elements(offsets, None)
        elif self.nest.reduced[self.dim]:
            self.reduce_lanes(offsets)
        else:
            self.chunks(offsets, (), lambda at, mask, _: (self.elements(at, mask), ())[1])

    def blocks(self, rows: int, offsets: list[Number]) -> None:
        """Write square blocks along the lanes and along `rows`, and single rows of what is left."""
        size, b = self.nest.sizes[rows], self.fn.b
        whole = (
            size // self.lanes * self.lanes if isinstance(size, int) else b.binary("and", size, b.index(-self.lanes))
        )
        inputs = [
            number
            for number, access in enumerate(self.nest.inputs)
            if self.dim is not None and _is_transposed(access, self.dim, rows)
        ]
        with b.loop(b.index(0), as_value(whole), b.index(self.lanes)) as (first, _, _):

            def body(at: list[Number], mask: Value | None, _: Sequence[Value]) -> Sequence[Value]:
                columns = {number: self._columns(number, at[number], mask) for number in inputs}
                if self.nest.is_cheap:
                    for row in range(self.lanes):
                        self.indices[rows] = b.binary("add", first, b.index(row))
                        self.known = {number: found[row] for number, found in columns.items()}
                        self.elements(self._moved(at, rows, row), mask)
                else:
                    # The body stands there once; the columns wait in memory.
                    kept = self._kept(columns)
                    with b.loop(b.index(0), b.index(self.lanes), b.index(1)) as (row, _, _):
                        self.indices[rows] = b.binary("add", first, row)
                        place = multiply(b, row, self.lanes)
                        self.known = {number: load(b, view, place, 1, self.lanes) for number, view in kept.items()}
                        self.elements(self._moved(at, rows, row), mask)
                self.known = {}
                return ()

            self.chunks(self._moved(offsets, rows, first), (), body)
        if whole == size:
            return
        with b.loop(as_value(whole), as_value(size), b.index(1)) as (number, _, _):
            self.indices[rows] = number
            self.inner(self._moved(offsets, rows, number))

    def _kept(self, columns: dict[int, list[Value]]) -> dict[int, View]:
        """The columns of each input in memory, one after the other."""
        size = self.lanes * self.lanes
        base = self.fn.temporary(len(columns) * size * VECTOR_BYTES // self.lanes)
        kept: dict[int, View] = {}
        for place, (number, found) in enumerate(columns.items()):
            start = self.fn.b.gep(I8, base, self.fn.b.index(place * size * VECTOR_BYTES // self.lanes))
            kept[number] = dense(start, self.nest.inputs[number].view.element, (self.lanes, self.lanes))
            for row, values in enumerate(found):
                store(self.fn.b, values, kept[number], row * self.lanes, 1, self.lanes)
        return kept

    def _columns(self, number: int, offset: Number, mask: Value | None) -> list[Value]:
        """The elements of an input for each row of a block, which lie one after the other from row to row."""
        b, view, stride = self.fn.b, self.nest.inputs[number].view, self.strides[number]
        found: list[Value] = []
        for lane in range(self.lanes):
            if self.left is not None and lane >= self.left:
                found.append(poison(view.in_register, self.lanes))
                continue
            counts = None if mask is None or self.left is not None else b.splat(b.extract(mask, lane), self.lanes)
            place = add(b, offset, multiply(b, lane, stride))
            found.append(load(b, view, place, 1, self.lanes, counts))
        return b.transposed(found)

    def chunks(
        self,
        offsets: list[Number],
        carried: Sequence[Value],
        body: Callable[[list[Number], Value | None, Sequence[Value]], Sequence[Value]],
    ) -> Sequence[Value]:
        """A loop over whole vectors, and what is left under a mask; gives what the body has carried."""
        assert self.dim is not None
        fn, size, lanes = self.fn, self.nest.sizes[self.dim], self.lanes
        b = fn.b
        if self.nest.is_short and not isinstance(size, int):
            return self._few_chunks(offsets, size, carried, body)
        if isinstance(size, int):
            whole: Number = size // lanes * lanes
            rest: Number = size - whole
        else:
            whole = b.binary("and", size, b.index(-lanes))
            rest = b.binary("sub", size, whole)
        if whole == lanes:
            self._at(b.index(0))
            carried = body(offsets, None, carried)
        elif whole != 0:
            bounds = [b.index(0), as_value(whole)]
            known = [each for each in self.nest.inputs if each.limits and each.limits[self.dim] is not None]
            if ends := [self._ends(each, self.dim) for each in known]:
                # Masks cost more than elements that come from far: only vectors at the limits get one.
                for place, (name, more) in enumerate((("llvm.smin", 0), ("llvm.smax", lanes - 1))):
                    limit = reduce(partial(b.intrinsic, name), [each[place] for each in ends])
                    limit = b.intrinsic("llvm.smax", limit, b.index(0))
                    limit = b.binary("and", b.binary("add", limit, b.index(more)), b.index(-lanes))
                    bounds.insert(-1, b.intrinsic("llvm.smin", limit, bounds[-1]))
            for each, (start, end) in enumerate(itertools.pairwise(bounds)):
                self.have_all, self.have_none = len(bounds) == 4 and each == 0, each == 2
                with b.loop(start, end, b.index(lanes), carried) as (number, values, following):
                    self._at(number)
                    following[:] = body(self._moved(offsets, self.dim, number), None, values)
                carried = following
            self.have_none = False
        if rest == 0:
            return carried
        count = as_value(rest) if isinstance(rest, int) else b.opaque(rest)
        mask = b.compare("icmp slt", iota(lanes, I32), b.resized(count, I32))
        at = self._moved(offsets, self.dim, as_value(whole))
        if isinstance(rest, int):
            self._at(as_value(whole))
            self.left = rest
            carried = body(at, mask, carried)
            self.left = None
            return carried
        # No vector may be left: what it would read is not there.
        skipped, some, done = b.label, b.name(), b.name()
        b.branch_if(b.compare("icmp sgt", rest, b.index(0)), some, done)
        b.begin(some)
        self._at(as_value(whole))
        ended = body(at, mask, carried)
        last = b.label
        b.branch(done)
        b.begin(done)
        return [
            b.phi(before.element, before.lanes, [(before, skipped), (after, last)])[0]
            for before, after in zip(carried, ended, strict=True)
        ]

    def _ends(self, access: Access, dim: int) -> tuple[Value, Value]:
        """Return the ends of elements from place 0 on, and of all."""
        b, start = self.fn.b, access.starts[dim] if access.starts else 0
        end = as_value(add(b, start, access.limits[dim] or 0))
        return b.select(b.compare("icmp sgt", as_value(start), b.index(0)), b.index(0), end), end

    def _few_chunks(
        self,
        offsets: list[Number],
        size: Value,
        carried: Sequence[Value],
        body: Callable[[list[Number], Value | None, Sequence[Value]], Sequence[Value]],
    ) -> Sequence[Value]:
        """One vector, and a loop over others, which mostly has none; all of them are masked."""
        assert self.dim is not None
        b, lanes = self.fn.b, self.lanes
        count = b.resized(b.opaque(size), I32)
        self._at(b.index(0))
        carried = body(offsets, b.compare("icmp slt", iota(lanes, I32), count), carried)
        with b.loop(b.index(lanes), size, b.index(lanes), carried) as (number, values, following):
            self._at(number)
            places = b.binary("add", iota(lanes, I32), b.resized(number, I32))
            at = self._moved(offsets, self.dim, number)
            following[:] = body(at, b.compare("icmp slt", places, count), values)
        return following

    def _at(self, number: Value) -> None:
        assert self.dim is not None
        self.start = number
        if self.nest.has_indices:
            self.indices[self.dim] = self.fn.b.binary("add", number, iota(self.lanes, I64))

    def elements(self, offsets: list[Number], mask: Value | None) -> None:
        """Compute and write the elements of one iteration of the parallel dimensions."""
        nest, b = self.nest, self.fn.b
        split = len(nest.inputs)
        old = [
            load(b, access.view, offset, stride, self.lanes, mask) if reads else self._unread(access)
            for access, offset, stride, reads in zip(
                nest.outputs, offsets[split:], self.strides[split:], nest.reads, strict=True
            )
        ]
        old = [b.splat(value, self.lanes) for value in old] if self.others else old
        new = self.reduce(self.others, offsets, old, mask)
        lanes, mask = (self.lanes, mask) if self.left is None else (self.left, None)
        for access, offset, stride, value in zip(nest.outputs, offsets[split:], self.strides[split:], new, strict=True):
            store(b, b.first(value, lanes), access.view, offset, stride, lanes, mask)

    @staticmethod
    def _unread(access: Access) -> Value:
        return Value("poison", access.view.in_register)

    def reduce(
        self, dims: Sequence[int], offsets: list[Number], values: Sequence[Value], mask: Value | None
    ) -> Sequence[Value]:
        """Loops over reduced dimensions, which carry the elements of the outputs."""
        if not dims:
            return self._computed(offsets, values, mask)
        dim, *rest = dims
        if self.nest.sizes[dim] == 1:
            return self.reduce(rest, offsets, values, mask)

        def turn(number: Value, carried: Sequence[Value]) -> Sequence[Value]:
            found = self.reduce(rest, self._moved(offsets, dim, number), carried, mask)
            return [self.fn.b.splat(new, old.lanes) for new, old in zip(found, carried, strict=True)]

        return self._turns(dim, values, turn)

    def reduce_lanes(self, offsets: list[Number]) -> None:
        """Reduce with a partial result in each lane, which are then combined."""
        nest, b = self.nest, self.fn.b
        assert nest.combiners is not None
        split = len(nest.inputs)

        def along(dims: Sequence[int], at: list[Number], values: Sequence[Value]) -> Sequence[Value]:
            if not dims:
                return self.chunks(at, values, step)
            dim, *rest = dims
            return self._turns(dim, values, lambda number, carried: along(rest, self._moved(at, dim, number), carried))

        def step(at: list[Number], mask: Value | None, values: Sequence[Value]) -> Sequence[Value]:
            new = self._computed(at, values, mask)
            if mask is None:
                return new
            return [b.select(mask, after, before) for after, before in zip(new, values, strict=True)]

        def reduced(combiners: Sequence[Combiner | Quick]) -> list[Value]:
            start = [b.splat(each.identity, self.lanes) for each in combiners]
            partial = along([dim for dim in self.others if nest.sizes[dim] != 1], offsets, start)
            return [b.folded(value, each.combine) for value, each in zip(partial, combiners, strict=True)]

        quick = nest.combiners[0].quick if len(nest.combiners) == 1 else None
        if quick is None:
            found = reduced(nest.combiners)
        else:
            nest.replace_combination(quick.combine)
            (first,) = reduced([quick])
            before, again, done = b.label, b.name(), b.name()
            b.branch_if(quick.is_doubtful(first), again, done)
            b.begin(again)
            nest.replace_combination(None)
            (second,) = reduced(nest.combiners)
            after = b.label
            b.branch(done)
            b.begin(done)
            found = [b.phi(first.element, 1, [(first, before), (second, after)])[0]]
        for access, offset, value, combiner in zip(nest.outputs, offsets[split:], found, nest.combiners, strict=True):
            store(b, combiner.combine(load(b, access.view, offset), value), access.view, offset)

    def _computed(self, offsets: list[Number], old: Sequence[Value], mask: Value | None) -> Sequence[Value]:
        nest, fn = self.nest, self.fn
        split = len(nest.inputs)
        places = zip(nest.inputs, offsets[:split], self.strides[:split], strict=True)
        read = [
            self.known[number] if number in self.known else self._read(access, offset, stride, mask)
            for number, (access, offset, stride) in enumerate(places)
        ]
        fn.mask = mask
        found = nest.compute(read, old, self.indices)
        fn.mask = None
        return found

    def _read(self, access: Access, offset: Number, stride: Number, mask: Value | None) -> Value:
        """The elements of an input, or what stands for those that it does not have."""
        b = self.fn.b
        bounded = [
            dim for dim, limit in enumerate(access.limits)
            if limit is not None and not (dim == self.dim and self.have_all) and dim not in self.whole
        ]  # fmt: skip
        if not bounded:
            if access.ahead != 0 and stride == 1 and mask is None:
                fetch(b, access.view, add(b, offset, access.ahead), self.lanes)
            return load(b, access.view, offset, stride, self.lanes, mask)
        if self.have_none and self.dim in bounded:
            return b.splat(access.other or poison(access.view.in_register, self.lanes), self.lanes)
        inside: Value | None = None
        for dim in bounded:
            if dim != self.dim or self.lanes == 1:
                number = self.start if dim == self.dim else self.indices[dim]
                here = self._is_inside(access, dim, number, None)
                inside = here if inside is None else b.binary("and", inside, here)
        if self.dim is None or self.lanes == 1:
            assert inside is not None
            return self._read_one(access, offset, inside)
        lanes = self._is_inside(access, self.dim, self.start, inside) if self.dim in bounded else None
        if lanes is None:
            assert inside is not None
            lanes = b.splat(inside, self.lanes)
        if mask is not None:
            lanes = b.binary("and", lanes, mask)
        view = access.view
        if stride == 0:
            view, offset = self._view_of_one(view, offset, inside if self.dim not in bounded else None, lanes), 0
        found = load(b, view, offset, stride, self.lanes, lanes)
        return found if access.other is None else b.select(lanes, found, access.other)

    def _view_of_one(self, view: View, offset: Number, inside: Value | None, lanes: Value) -> View:
        """The element that all lanes have, or memory of the program's own if none has one: theirs need not be there."""
        b = self.fn.b
        some = any_lane(b, lanes) if inside is None else inside
        return replace(view, base=b.select(some, address(b, view, offset), self.fn.temporary(VECTOR_BYTES)))

    def _is_inside(self, access: Access, dim: int, number: Value, also: Value | None) -> Value:
        """Return whether an iteration reads memory; along the lanes, whose first one is `number`, those that do."""
        b = self.fn.b
        limit, start = as_value(access.limits[dim] or 0), access.starts[dim] if access.starts else 0
        predicate = "icmp slt" if start == 0 else "icmp ult"
        if dim != self.dim or self.lanes == 1:
            return b.compare(predicate, as_value(subtract(b, number, start)), limit)
        if start == 0:
            limit = b.binary("sub", limit, number)
        limit = limit if also is None else b.select(also, limit, b.index(0))
        places = iota(self.lanes, I32)
        if start != 0:
            places = b.binary("add", places, b.resized(as_value(subtract(b, number, start)), I32))
        return b.compare(predicate, places, b.resized(limit, I32))

    def _read_one(self, access: Access, offset: Number, inside: Value) -> Value:
        b = self.fn.b
        before, some, done = b.label, b.name(), b.name()
        b.branch_if(inside, some, done)
        b.begin(some)
        found = load(b, access.view, offset)
        after = b.label
        b.branch(done)
        b.begin(done)
        other = access.other or poison(found.element)
        return b.phi(found.element, 1, [(other, before), (found, after)])[0]

    def _turns(
        self, dim: int, carried: Sequence[Value], turn: Callable[[Value, Sequence[Value]], Sequence[Value]]
    ) -> Sequence[Value]:
        """A loop over a dimension; of a cheap nest one within all limits, without masks, and one over the rest."""
        b, bounds = self.fn.b, [self.fn.b.index(0), as_value(self.nest.sizes[dim])]
        known = [each for each in self.nest.inputs if each.limits and each.limits[dim] is not None]
        if known and self.nest.is_cheap and all(not each.starts or each.starts[dim] == 0 for each in known):
            limit = reduce(
                partial(b.intrinsic, "llvm.smin"), [as_value(each.limits[dim] or 0) for each in known], bounds[1]
            )
            bounds.insert(1, b.intrinsic("llvm.smax", limit, bounds[0]))
        for start, end in itertools.pairwise(bounds):
            self.whole ^= {dim} if len(bounds) == 3 else set()
            with b.loop(start, end, b.index(1), carried) as (number, values, following):
                self.indices[dim] = number
                following[:] = turn(number, values)
            carried = following
        return carried

    def _moved(self, offsets: list[Number], dim: int, number: Number) -> list[Number]:
        b = self.fn.b
        return [
            add(b, offset, multiply(b, number, access.strides[dim]))
            for offset, access in zip(offsets, self.nest.accesses, strict=True)
        ]
