"""The features of the GPU that operations require.

An operation declares them beside its name, with its display name:

    NEEDS: ClassVar = Needs("tlx.async_descriptor_load", Feature.TMA)

Where operands or attributes make a difference, the class has a method `also_needs` that gives the features needed
beyond those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Operation

from tlx_xdsl.targets import Feature as Feature


@dataclass(frozen=True, init=False)
class Needs:
    """The requirements of every use of an operation."""

    display_name: str
    """The call in a kernel that gives the operation."""
    features: tuple[Feature, ...]
    """All of them are required."""

    def __init__(self, display_name: str, *features: Feature) -> None:
        object.__setattr__(self, "display_name", display_name)
        object.__setattr__(self, "features", features)


def needs_of(op: Operation) -> tuple[Feature, ...]:
    """The features that `op` needs, all of them."""
    needs: Needs | None = getattr(op, "NEEDS", None)
    more: Callable[[], tuple[Feature, ...]] | None = getattr(op, "also_needs", None)
    return (() if needs is None else needs.features) + (() if more is None else more())


def display_name(op: Operation) -> str:
    """The call in a kernel that gives `op`, such as `tlx.async_dot`; the name of the operation where there is none."""
    needs: Needs | None = getattr(op, "NEEDS", None)
    return op.name if needs is None else needs.display_name
