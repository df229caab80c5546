"""Launches on several ranks: what they do wrong in an order, and what only a launch after the first one does.

Each rank launches the kernel as often as is asked for, one launch after the other in its stream. No rank waits between
its launches until others have ended theirs, as in a stream without a barrier of the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tlx_xdsl.errors import Note

from .launches import Arrays, FirstLaunches, Seen, one_launch, overlapping
from .report import Launchable


def launched_on_ranks(
    launch: Launchable, arrays: Arrays, options: Mapping[str, Any], count: int, firsts: FirstLaunches, *, is_first: bool
) -> Iterator[Seen]:
    """Yield what `count` launches of each rank do wrong; 0 is one where no argument has a value for each launch.

    Then a second launch is tried with the same arguments, in one order; what only that does wrong is of launch 2, since
    the host may give it others. If it `is_first`, the first run has no order but that of its schedule, and programs run
    side by side in others; else it is in the order that `firsts` has begun. Arrays are left in any state.
    """
    before = arrays.state()
    how = {**options, "launches": count or launch.launches or 1}
    first = one_launch(launch.run, how if is_first else {**how, "order": firsts.orders}, 1)
    yield from first.seen
    if not (is_first and first.ended and first.communicates):
        return
    known = {each.key for each in first.seen}
    for schedule in (str(options["schedule"]), "random"):
        arrays.restore(before)
        for each in overlapping(launch.run, {**how, "schedule": schedule}):
            if each.key not in known:
                known.add(each.key)
                yield each
    if count or launch.launches or known:
        return
    arrays.restore(before)
    for each in one_launch(launch.run, {**how, "launches": 2}, 2).seen:
        notes = (*each.diagnostic.notes, _TWICE)
        yield replace(each, diagnostic=replace(each.diagnostic, notes=notes))


_TWICE = Note(
    "each rank has launched the kernel twice with the same arguments, and no rank waits between its launches for "
    "others: arguments that differ, such as an epoch, are tlx_xdsl.per_launch([1, 2])",
    is_remedy=True,
)
