"""What threads wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Awaited(Protocol):
    """A barrier of any kind."""

    def passed(self, phase: int) -> bool:
        """Return whether a phase, by its number or its parity, is complete."""
        ...

    def describe(self, phase: int) -> str:
        """Say what is waited for, and what it lacks."""
        ...


@dataclass(frozen=True, slots=True)
class Item:
    """Some threads of a cohort wait for a phase of a barrier."""

    mask: NDArray[np.bool_]
    barrier: Awaited
    phase: int


@dataclass(frozen=True, slots=True)
class Wait:
    """What the threads of a cohort wait for; those in no item do not wait."""

    items: tuple[Item, ...]

    def blocked(self) -> NDArray[np.bool_] | None:
        """The threads that have to wait still; None if there are none."""
        found: NDArray[np.bool_] | None = None
        for item in self.items:
            if not item.barrier.passed(item.phase):
                found = item.mask if found is None else found | item.mask
        return found

    def of(self, mask: NDArray[np.bool_]) -> Wait:
        """What some of the threads wait for."""
        items = ((item, item.mask[mask]) for item in self.items)
        return Wait(tuple(Item(kept, item.barrier, item.phase) for item, kept in items if kept.any()))
