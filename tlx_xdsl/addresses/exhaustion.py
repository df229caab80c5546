"""Deciding by trial: whether a form stays inside of an interval for all values of its atoms, where these are few."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.addresses.bounds import Bounds
from tlx_xdsl.addresses.forms import Atom, Call, Form
from tlx_xdsl.addresses.intervals import Interval
from tlx_xdsl.analysis.integers.functions import apply

MOST_TRIALS = 1 << 14
"""Combinations of values that are tried: as much time as a few operations take."""
LARGEST = 1 << 62


def is_always_within(form: Form, interval: Interval, bounds: Bounds) -> bool:
    """Whether `form` is in `interval` for each combination of the values of its atoms; False where they are many."""
    atoms = [atom for atom in form.all_atoms if not isinstance(atom, Call)]
    ranges = [bounds.of(atom) for atom in atoms]
    trials = 1
    for each in ranges:
        trials *= max(0, each.high - each.low) + 1
        if trials > MOST_TRIALS:
            return False
    if any(max(abs(each.low), abs(each.high)) > LARGEST for each in [bounds.of_form(form), *ranges]):
        # Numbers of 64 bits would wrap around.
        return False
    places: dict[Atom, int] = {atom: place for place, atom in enumerate(atoms)}

    def value_of(atom: Atom) -> Any:
        place = places[atom]
        values = np.arange(ranges[place].low, ranges[place].high + 1, dtype=np.int64)
        return values.reshape((-1,) + (1,) * (len(atoms) - 1 - place))

    numbers = np.asarray(form.evaluate(value_of, apply))
    return bool((numbers >= interval.low).all() and (numbers <= interval.high).all())
