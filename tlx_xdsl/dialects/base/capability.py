"""What operations need of the GPU.

An operation says it beside its name, with the name that users know it by:

    NEEDS: ClassVar = Needs("tlx.async_descriptor_load", Feature.TMA)

Where operands or attributes make a difference, the class has a method `also_needs` that gives the features needed
beyond those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Operation

from tlx_xdsl.targets import Feature


@dataclass(frozen=True, init=False)
class Needs:
    """What every use of an operation needs."""

    display_name: str
    """What users write to get the operation."""
    features: tuple[Feature, ...]
    """All of them are needed."""

    def __init__(self, display_name: str, *features: Feature) -> None:
        object.__setattr__(self, "display_name", display_name)
        object.__setattr__(self, "features", features)


def needs_of(op: Operation) -> tuple[Feature, ...]:
    """The features that `op` needs, all of them."""
    needs: Needs | None = getattr(op, "NEEDS", None)
    more: Callable[[], tuple[Feature, ...]] | None = getattr(op, "also_needs", None)
    return (() if needs is None else needs.features) + (() if more is None else more())


def display_name(op: Operation) -> str:
    """What users write to get `op`: `tlx.async_dot`; the operation's own name where they don't."""
    needs: Needs | None = getattr(op, "NEEDS", None)
    return op.name if needs is None else needs.display_name
