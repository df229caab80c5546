"""Several launches of a kernel on one stream, over the same arrays: what only a later one does wrong, and why.

A launch ends before the next one begins, so accesses of different launches are ordered. What is passed on is memory: a
counter that the first launch leaves raised, a flag that stays set. Which array it is, is found by trying: with that one
as it was before the first launch, the later launch does not go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import CompilationError, Note, OverBudgetError, SourceLocation
from tlx_xdsl.interpreter.faults import Deadlock, Fault, Unsupported
from tlx_xdsl.interpreter.orders.reduction import Orders
from tlx_xdsl.text.diagnostics import Diagnostic

from ..simulate.interpret import Interpretation

Run: TypeAlias = Callable[[Mapping[str, Any]], Interpretation]
"""One launch, with these options besides those that all launches have."""

DEPENDENT = "dependent"
"""The rule of what goes wrong where a launch begins before the one before it has ended."""
MOST_SUSPECTS = 8
"""Arrays that are tried as the cause of what a later launch does wrong; the smallest ones come first."""


MOST_DESCENDING = 16
"""Clusters that every target runs side by side, and so in any order (Jetson AGX Orin has 16 multiprocessors)."""


REFUSALS = ("compile", "budget")
"""Rules of what the compiler refuses: an error in the kernel, and more of a resource than there is."""
UNRUN = (*REFUSALS, "unsupported")
"""Rules of what can't be run."""


@dataclass(frozen=True)
class Seen:
    """A fault that one launch shows."""

    diagnostic: Diagnostic
    rule: str
    """`deadlock`, `fault`, `warning`, `dependent`, `unsupported`, or one of `REFUSALS`."""
    launch: int
    """From 1."""
    left: Left | None = None
    """What makes a later launch go wrong."""

    @property
    def key(self) -> tuple[str, str]:
        """Return what it is: the same for all launches and orders."""
        place = self.diagnostic.location
        return self.rule, self.diagnostic.message if place is None else str(place)


@dataclass(frozen=True)
class Left:
    """An array without whose change by earlier launches a later one does nothing wrong."""

    array: str
    before: int | float
    """What the first element that was changed held before the first launch."""


class Arrays:
    """The arrays of a launch, by name, with what they hold at different times."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]):
        self._arrays = dict(arrays)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what they hold now."""
        return {name: each.copy() for name, each in self._arrays.items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Let those that `state` names hold what they held then."""
        for name, held in state.items():
            self._arrays[name][...] = held


class Recorded:
    """The first run at a stage, to compare others with: what its arrays held before, and hold after it."""

    def __init__(self, stage: str):
        self._stage = stage
        self._found: tuple[Interpretation, Mapping[str, NDArray[Any]], Mapping[str, NDArray[Any]]] | None = None

    def of(self, run: Run, arrays: Arrays) -> Run:
        """The same launch, whose first run at the stage is recorded where it ends without a fault."""

        def recording(options: Mapping[str, Any]) -> Interpretation:
            if self._found is not None or options.get("stage") != self._stage:
                return run(options)
            before = arrays.state()
            result = run(options)
            self._found = result, before, arrays.state()
            return result

        return recording

    def again(self, arrays: Arrays) -> Interpretation | None:
        """Let arrays hold what they hold after the run; None, and nothing done, where it began with others."""
        if self._found is None:
            return None
        result, before, after = self._found
        now = arrays.state()
        if now.keys() != before.keys() or any(_differs(now[name], before[name]) for name in now):
            return None
        arrays.restore(after)
        return result


@dataclass
class FirstLaunches:
    """The first launches so far, with the same arguments at one stage."""

    orders: Orders = field(default_factory=Orders)
    left: set[bytes] = field(default_factory=set[bytes])
    """What they have left in the arrays, each as a digest."""


def launched(
    run: Run,
    arrays: Arrays,
    options: Mapping[str, Any],
    launches: int | None,
    firsts: FirstLaunches,
    *,
    is_first: bool,
) -> Iterator[Seen]:
    """Yield what that many launches do wrong, one after the other; by default two where programs communicate, else one.

    If it `is_first`, the first one has no order but that of its schedule, and what the second launch does not write is
    asked for, too; else it is in the order that `firsts` has begun. Where an earlier one has left the same, or there is
    a fault, there is no other launch. Arrays are left in any state.
    """
    before, first = arrays.state(), one_launch(run, options if is_first else {**options, "order": firsts.orders}, 1)
    yield from (*first.seen, *first.dependent)
    known = {each.key for each in first.seen}
    if is_first and first.ended and first.communicates and first.clusters > 1:
        after = arrays.state()
        for schedule in (str(options["schedule"]), "random"):
            arrays.restore(before)
            for each in overlapping(run, {**options, "schedule": schedule}):
                if each.key not in known:
                    known.add(each.key)
                    yield each
        arrays.restore(after)
    wanted = launches if launches is not None else 2 if first.communicates else 1
    last = first
    for number in range(2, wanted + 1):
        if not last.ended:
            return
        left = arrays.state()
        if number == 2 and _is_known(left, firsts.left):
            return
        last = one_launch(run, options, number)
        after = arrays.state()
        seen = [(each, options) for each in last.seen]
        if number == 2 and first.communicates and first.clusters <= MOST_DESCENDING:
            # A flag that stays set lets a reader pass that starts before its writer.
            descending = {**options, "descending": True}
            arrays.restore(left)
            seen += [(each, descending) for each in one_launch(run, descending, number).seen]
        for each, how in seen:
            if each.key not in known:
                known.add(each.key)
                yield _explained(run, arrays, how, before, left, each)
        arrays.restore(after)
    if is_first and wanted > 1 and not known:
        yield from _unwritten(run, arrays, options, before)


def overlapping(run: Run, options: Mapping[str, Any]) -> Iterator[Seen]:
    """Yield what a launch does wrong whose programs run side by side.

    In rounds each goes on to its next atomic operation; by chance, some get ahead of others.
    """
    note = f"programs ran side by side (tlx run --overlapping --schedule {options['schedule']})"
    for each in one_launch(run, {**options, "overlapping": True}, 1).seen:
        yield replace(each, diagnostic=replace(each.diagnostic, notes=(*each.diagnostic.notes, note)))


def _is_known(state: Mapping[str, NDArray[Any]], known: set[bytes]) -> bool:
    """Return whether arrays were left so before; note it."""
    digest = sha256()
    for each in state.values():
        digest.update(np.ascontiguousarray(each).tobytes())
    found = digest.digest()
    is_known = found in known
    known.add(found)
    return is_known


def _unwritten(
    run: Run, arrays: Arrays, options: Mapping[str, Any], before: Mapping[str, NDArray[Any]]
) -> Iterator[Seen]:
    """Arrays that one launch writes, and the next one does not, because of an array of integers that was left changed.

    Each array of integers that a launch changes is tried: another launch gets it as it was left, and all others as they
    were. A counter of programs that is not set back has no last program then, and no one writes the result.
    """
    arrays.restore(before)
    writers = one_launch(run, options, 1).writers
    left = arrays.state()
    changed = _changed(before, left)
    for suspect in [name for name in changed if left[name].dtype.kind in "iu"][:MOST_SUSPECTS]:
        arrays.restore({**before, suspect: left[suspect]})
        if not one_launch(run, options, 2).ended:
            continue
        after = arrays.state()
        for name in changed:
            if name != suspect and not _differs(after[name], before[name]):
                message = f"'{name}' is written by the first launch, and not by the second"
                note = _note("in the second launch", _left(suspect, "the first", before, left))
                found = Diagnostic("warning", message, writers.get(suspect), (note,))
                yield Seen(found, "warning", 2, Left(suspect, _first_change(before[suspect], left[suspect])[1]))


@dataclass(frozen=True)
class OneLaunch:
    seen: tuple[Seen, ...]
    ended: bool
    """False where a fault has stopped it."""
    communicates: bool = False
    clusters: int = 0
    writers: Mapping[str, SourceLocation] = field(default_factory=dict[str, SourceLocation])
    """Where each array was written last."""
    dependent: tuple[Seen, ...] = ()
    """What goes wrong in a launch that begins before the one before has ended."""


def one_launch(run: Run, options: Mapping[str, Any], number: int) -> OneLaunch:
    """Return what one launch does wrong; what the compiler refuses is wrong, too."""
    try:
        result = run(options)
    except Unsupported as error:
        return OneLaunch((Seen(_diagnostic(error), "unsupported", number),), ended=False)
    except Fault as fault:
        is_deadlock = isinstance(fault, Deadlock)
        message = f"deadlock: {fault.message.removeprefix('deadlock: ')}" if is_deadlock else fault.message
        found = Diagnostic("error", message, fault.location, fault.notes)
        return OneLaunch((Seen(found, "deadlock" if is_deadlock else "fault", number),), ended=False)
    except CompilationError as error:
        rule = "budget" if isinstance(error, OverBudgetError) else "compile"
        return OneLaunch((Seen(_diagnostic(error), rule, number),), ended=False)
    warnings = [each for each in (*result.warnings, *result.unfilled) if each.severity == "warning"]
    return OneLaunch(
        tuple(Seen(each, "warning", number) for each in warnings), True, result.communicates, result.clusters,
        result.writers, tuple(Seen(each, DEPENDENT, number + 1) for each in result.dependent),
    )  # fmt: skip


def _diagnostic(error: CompilationError) -> Diagnostic:
    return Diagnostic("error", error.message, error.location, error.notes)


_REMEDY = "the kernel must set it back, or the host before each launch"


def _note(which: str, left: str) -> Note:
    return Note(f"{which}: {left}; {_REMEDY}", is_remedy=True)


def _explained(
    run: Run,
    arrays: Arrays,
    options: Mapping[str, Any],
    before: Mapping[str, NDArray[Any]],
    left: Mapping[str, NDArray[Any]],
    seen: Seen,
) -> Seen:
    """Say which launch it was, what it got from those before, and how its programs started."""
    notes = list(seen.diagnostic.notes)
    if "descending" in options:
        notes.append("programs started with the last one (tlx run --descending): no order of them is promised")
        arrays.restore(before)
        if any(each.key == seen.key for each in one_launch(run, options, 1).seen):
            # Then the order is why, and no earlier launch.
            return replace(seen, launch=1, diagnostic=replace(seen.diagnostic, notes=tuple(notes)))
    note, cause = _cause(run, arrays, options, before, left, seen)
    return replace(seen, diagnostic=replace(seen.diagnostic, notes=(*notes, note)), left=cause)


def _cause(
    run: Run,
    arrays: Arrays,
    options: Mapping[str, Any],
    before: Mapping[str, NDArray[Any]],
    left: Mapping[str, NDArray[Any]],
    seen: Seen,
) -> tuple[str, Left | None]:
    """A note with the launch, and the array without whose change it does nothing wrong."""
    which = f"in the {_ORDINALS.get(seen.launch, f'{seen.launch}th')} launch"
    earlier = "the first" if seen.launch == 2 else "those before"
    changed = _changed(before, left)
    for name in changed[:MOST_SUSPECTS]:
        arrays.restore({**left, name: before[name]})
        if all(each.key != seen.key for each in one_launch(run, options, seen.launch).seen):
            return _note(which, _left(name, earlier, before, left)), Left(
                name, _first_change(before[name], left[name])[1]
            )
    names = " and ".join(f"'{name}'" for name in changed)
    return (f"{which}: {names} are as {earlier} left them" if changed else which), None


_ORDINALS = {2: "second", 3: "third"}


def _changed(before: Mapping[str, NDArray[Any]], left: Mapping[str, NDArray[Any]]) -> list[str]:
    """The arrays that a launch has changed, small ones first: counters and flags are the likeliest cause."""
    return sorted((name for name in before if _differs(left[name], before[name])), key=lambda name: before[name].nbytes)


def _differs(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.tobytes() != other.tobytes()


def _left(name: str, earlier: str, before: Mapping[str, NDArray[Any]], left: Mapping[str, NDArray[Any]]) -> str:
    """Return what the first element that was changed holds now, and held before."""
    new = left[name]
    at, was = _first_change(before[name], new)
    place = [int(i) for i in np.unravel_index(at, new.shape)]
    element = f"'{name}'" if new.size == 1 else f"element {place} of '{name}'"
    return f"{element} is left at {new.ravel()[at]} by {earlier}, which was {was}"


def _first_change(old: NDArray[Any], new: NDArray[Any]) -> tuple[int, Any]:
    """The number of the first element that was changed, and what it held."""
    differs = [each.reshape(-1, 1).view(np.uint8) for each in (old, new)]
    at = int(np.flatnonzero((differs[0] != differs[1]).any(1))[0])
    return at, old.ravel()[at]
