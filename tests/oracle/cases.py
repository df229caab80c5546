"""What a kernel of the oracle is compiled with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """A kernel and its arguments."""

    name: str
    kernel: Any
    arguments: dict[str, Any]
    """For each run-time argument its type: "*fp16", "i32", ... or, if it is divisible by 16, "*fp16:16", or a tuple
    of types. For each compile-time argument its value (a string is wrapped into `Constant`)."""
    library: bool
    """Whether stock writes what the kernel calls in Python over primitives: then IR need not be equal."""


@dataclass(frozen=True)
class Constant:
    """The value of a compile-time argument that is a string."""

    value: str


registered: list[Case] = []
"""The cases of the kernel file that is being loaded."""


def case(arguments: dict[str, Any], *, name: str | None = None, library: bool = False) -> Callable[[Any], Any]:
    """Make a case of a jitted function. Stacked, it makes several, each with its name.

    Args:
        arguments: See `Case`.
        name: The case's name; by default that of the function.
        library: See `Case`.
    """

    def register(kernel: Any) -> Any:
        registered.append(Case(name or kernel.__name__, kernel, arguments, library))
        return kernel

    return register
