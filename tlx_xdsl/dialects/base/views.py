"""Views: operations that see a buffer in another way and move no data.

An operation that is one declares it beside its name: `VIEW: ClassVar = View(ViewLayout.SAME)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from xdsl.ir import Operation

from .effects import space_of


class ViewLayout(Enum):
    """The relation of the layout of a view to that of its buffer."""

    SAME = auto()
    FOLLOWS = auto()
    """The dimensions change, and the layout with them."""
    OWN = auto()
    """The bytes are seen in any layout."""


@dataclass(frozen=True)
class View:
    """A view of the buffer, or array of buffers, that is the first operand."""

    layout: ViewLayout
    of_array: bool = False
    """True if a view of an array is one of as many of its buffers as its type says, which are known when compiling."""


def view_of(op: Operation) -> View | None:
    """The declaration of an operation that is a view of a buffer; None for all others."""
    view: View | None = getattr(op, "VIEW", None)
    return view if view is not None and space_of(op.operands[0].type) is not None else None
