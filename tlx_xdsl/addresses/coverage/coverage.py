"""The bytes that each program of a grid touches: collisions between programs, accesses out of bounds, and holes.

The addresses of all programs are computed (`walk.py`), for a grid and the values of arguments. What is said
here is what happens: *disjoint* only when all addresses are known and no byte is written by two programs, *collides*
only with two programs and a byte. Arguments are taken to point into arrays of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import as_tensor
from tlx_xdsl.numerics.arrays import distinct

from .launch import Launch, argument_names, argument_values
from .runs import Meeting, Runs, meeting, program_at, runs_of
from .touches import Kind, Touch, UnknownAccess, access_kind
from .vector_domain import Programs
from .walk import LIMIT, TooLong, Walk

_ELEMENTS = 1 << 24
"""Elements of a tensor, over all programs that are looked at together: what fits into memory in 64 bits."""
_RUNS = 1 << 20
"""Runs of an access that are kept before they are united."""
_PIECES = 512
"""Iterations of an access whose runs are kept before they are united."""
_MOST_RUNS = 1 << 25
"""Runs of an access that are kept at all: about 800 MB."""


@dataclass(eq=False)
class Touched:
    """The bytes of one array that an operation touches, in all programs."""

    op: Operation
    kind: Kind
    array: str
    element: int
    """Bytes."""
    runs: Runs
    maybe: Runs
    """Bytes that may be touched in addition: a mask or a way through the kernel is not known."""


@dataclass(frozen=True)
class Unseen:
    """An access of which nothing is known, in some program."""

    op: Operation
    kind: Kind
    array: str | None
    """None: it may be any."""
    reason: str


Verdict: TypeAlias = Literal["disjoint", "collides", "shared by atomics", "not known"]


@dataclass(frozen=True)
class Writing:
    """True if programs write the same bytes of an array."""

    array: str
    verdict: Verdict
    reason: str = ""
    """Why it is not known."""
    meeting: Meeting | None = None
    ops: tuple[Operation, Operation] | None = None
    """The operations by which the two programs of `meeting` write."""


@dataclass(frozen=True)
class Leaving:
    """An access that leaves its array."""

    op: Operation
    array: str
    programs: int
    """The number of programs that do so."""
    program: int
    """The first of them."""
    index: int
    """An element that it touches there, counted from the start of the array; negative before it."""
    elements: int
    """Elements of the array."""
    certain: bool
    """True if it certainly does; False if it may, where a mask or a way through the kernel is not known."""


@dataclass(frozen=True)
class Hole:
    """Bytes `start` to `end - 1` of a written array, which no program writes."""

    start: int
    end: int


class Coverage:
    """The bytes that a launch touches; `limit` bounds the operations that are run for all programs together.

    Raises TooLong where a kernel does not end, or is too irregular to be followed.
    """

    def __init__(self, module: ModuleOp, function: tt.FuncOp, launch: Launch, limit: int = LIMIT):
        self.function = function
        self.launch = launch
        self.names = argument_names(function)
        self.touched: list[Touched] = []
        self.unseen: list[Unseen] = []
        self._found: dict[tuple[Operation, str], tuple[_Pile, _Pile, int]] = {}
        self._run(module, limit)

    # --- questions -----------------------------------------------------------------------------------------------

    def of(self, array: str, *kinds: Kind) -> list[Touched]:
        """The accesses of these kinds to an array."""
        return [each for each in self.touched if each.array == array and each.kind in kinds]

    def writings(self) -> list[Writing]:
        """Say of each array that is written whether two programs write one byte."""
        arrays = dict.fromkeys(each.array for each in self.touched if each.kind != "load")
        arrays |= dict.fromkeys(each.array for each in self.unseen if each.kind != "load" and each.array is not None)
        return [self._writing(array) for array in arrays]

    def _writing(self, array: str) -> Writing:
        stores, atomics = self.of(array, "store"), self.of(array, "atomic")
        sure = Runs.joined([each.runs for each in stores])
        of_atomics = Runs.joined([each.runs for each in atomics])
        found = meeting(sure) or meeting(sure, of_atomics)
        if found is not None:
            first = self._writer([*stores, *atomics], found.program, found.byte)
            second = self._writer([*reversed(stores), *atomics], found.other, found.byte)
            return Writing(array, "collides", meeting=found, ops=(first, second))
        hidden = next((each for each in self.unseen if each.kind != "load" and each.array in (array, None)), None)
        if hidden is not None:
            return Writing(array, "not known", hidden.reason)
        stored = Runs.joined([sure, *(each.maybe for each in stores)])
        updated = Runs.joined([of_atomics, *(each.maybe for each in atomics)])
        if meeting(stored) is not None or meeting(stored, updated) is not None:
            return Writing(array, "not known", "a mask, or a way through the kernel, depends on data")
        return Writing(array, "disjoint" if meeting(updated) is None else "shared by atomics")

    @staticmethod
    def _writer(writers: Sequence[Touched], program: int, byte: int) -> Operation:
        return next(each.op for each in writers if program_at(each.runs, byte, program))

    def leaving(self) -> list[Leaving]:
        """The accesses that leave an array whose size is known."""
        found: list[Leaving] = []
        for each in self.touched:
            if each.array in self.launch.shapes:
                elements = prod(self.launch.shapes[each.array])
                for runs, certain in ((each.runs, True), (each.maybe, False)):
                    outside = runs.where((runs.start < 0) | (runs.end > elements * each.element))
                    if len(outside):
                        found.append(_leaving(each, outside, elements, certain))
                        break
        return found

    def holes(self, array: str) -> list[Hole] | None:
        """The bytes of a written array that no program writes; None where size or addresses are not known."""
        writers = self.of(array, "store", "atomic")
        hidden = any(each.kind != "load" and each.array in (array, None) for each in self.unseen)
        if array not in self.launch.shapes or hidden or not writers or any(len(each.maybe) for each in writers):
            return None
        size = prod(self.launch.shapes[array]) * writers[0].element
        runs = Runs.joined([each.runs for each in writers])
        all_runs = Runs(np.zeros_like(runs.program), runs.start, runs.end).united()
        starts = np.concatenate(([0], all_runs.end))
        ends = np.concatenate((all_runs.start, [size]))
        return [Hole(int(a), int(b)) for a, b in zip(starts, ends, strict=True) if 0 <= a < min(b, size)]

    # --- the walk ------------------------------------------------------------------------------------------------

    def _run(self, module: ModuleOp, limit: int) -> None:
        total = self.launch.programs
        together = max(1, min(total, _ELEMENTS // _largest(self.function)))
        for first in range(0, total, together):
            numbers = np.arange(first, min(first + together, total), dtype=np.int64)
            x, y, _ = self.launch.grid
            programs = Programs(self.launch.grid, (numbers % x, numbers // x % y, numbers // (x * y)))
            walk = Walk(module, programs, lambda touch, at=first: self._note(touch, at), limit)
            walk.run(self.function, dict(argument_values(self.names, self.launch)))
        for (op, array), (runs, maybe, element) in self._found.items():
            kind = access_kind(op)
            assert kind is not None, "only accesses are found"
            self.touched.append(Touched(op, kind, array, element, runs.all(), maybe.all()))
        order = {op: index for index, op in enumerate(module.walk())}
        self.touched.sort(key=lambda each: order[each.op])

    def _note(self, touch: Touch | UnknownAccess, first: int) -> None:
        array = None if touch.base is None else self.names[touch.base]
        if isinstance(touch, UnknownAccess):
            unseen = Unseen(touch.op, touch.kind, array, touch.reason)
            if not any(each.op is unseen.op and each.array == array for each in self.unseen):
                self.unseen.append(unseen)
            return
        assert array is not None
        exact, maybe, _ = self._found.setdefault((touch.op, array), (_Pile(array), _Pile(array), touch.size))
        (exact if touch.is_exact else maybe).add(runs_of(touch, first))


class _Pile:
    """The runs of an access, which come iteration by iteration, and mostly touch those before."""

    def __init__(self, array: str):
        self._array = array
        self._kept: list[Runs] = []
        self._length = 0
        self._bound = _RUNS

    def add(self, runs: Runs) -> None:
        """Put runs onto the pile.

        Raises TooLong where they become too many.
        """
        self._kept.append(runs)
        self._length += len(runs)
        if self._length > self._bound or len(self._kept) > _PIECES:
            united = self.all()
            self._kept, self._length = [united], len(united)
            # Each time twice as many, so that what stays is not sorted again and again.
            self._bound = max(_RUNS, 2 * len(united))
            if len(united) > _MOST_RUNS:
                raise TooLong(f"its programs touch more than {_MOST_RUNS:,} pieces of '{self._array}'")

    def all(self) -> Runs:
        """Return all runs, united."""
        return Runs.joined(self._kept).united()


def _leaving(touched: Touched, outside: Runs, elements: int, certain: bool) -> Leaving:
    programs = distinct(outside.program)
    first = outside.where(outside.program == programs[0])
    start = int(first.start[0])
    byte = start if start < 0 else max(start, elements * touched.element)
    return Leaving(
        touched.op, touched.array, len(programs), int(programs[0]), byte // touched.element, elements, certain
    )


def _largest(function: tt.FuncOp) -> int:
    """Elements of the largest tensor in the module, which all functions of it may use."""
    module = function.parent_op() or function
    types = (as_tensor(value.type) for op in module.walk() for value in (*op.operands, *op.results))
    return max([prod(type_.get_shape()) for type_ in types if type_ is not None], default=1)
