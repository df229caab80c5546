"""The registry of the code that runs each operation.

A builder gets an operation once, when its function is planned, and gives back what runs it: it looks at types and
attributes only then. There are four kinds of what runs an operation:

- pure: `run(*operands)`, values in, values out;
- effect: `run(task, *operands)`, which may touch memory but never blocks;
- step: a coroutine `run(task, *operands)`, in which other tasks may have their turn, and which may block;
- structured: the builder gets the planner, too, for the regions of the operation, and says which kind it is.

xDSL's own interpreter registry dispatches and looks at attributes anew on each execution, and its functions cannot
suspend; so this is one of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias, TypeVar

from xdsl.ir import Operation

from .memory import View


class Kind(IntEnum):
    """The way in which an operation is run."""

    PURE = 0
    EFFECT = 1
    STEP = 2


Run: TypeAlias = Callable[..., Any]
"""Gives the result, a tuple of results where there are several, or anything where there is none."""
Unary: TypeAlias = Callable[[Any], Any]
"""Runs an operation with one operand, or one without operands that takes the task."""
Binary: TypeAlias = Callable[[Any, Any], Any]
"""The same with two."""
Ternary: TypeAlias = Callable[[Any, Any, Any], Any]
"""The same with three."""
Built: TypeAlias = tuple[Kind, Run]
Builder: TypeAlias = Callable[[Any, Any], Built]
"""Plans an operation, with the `Planner` of its function."""
Functions: TypeAlias = dict[type[Operation], Callable[..., Any]]
"""What classes of operations compute."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Reason for which a task cannot go on, and the condition for which it waits."""

    op: Operation
    ready: Callable[[], bool]
    reason: Callable[[], str]
    """Describes what it waits for, and what is missing, for the report of a deadlock."""
    barrier: View | None = None
    """The mbarrier that it waits at."""
    parity: int = 0
    """The parity of the phase that it waits for there."""
    named: int | None = None
    """The named barrier that it waits at."""
    spins: bool = False
    """True if it may wait for what another program writes: it repeats a loop, or polls."""
    polled: int | None = None
    """The address in global memory at which it looks, where that is known."""
    deadline: int | None = None
    """The host's time (`machine.HostTime`) at which it goes on whatever it finds."""
    in_vain: bool = False
    """True if it has polled and found nothing new, and has changed nothing."""


Coroutine: TypeAlias = Generator[Waiting | None, None, Any]
"""Yields why it cannot go on, or None where another task may have its turn."""


def one_or_all(results: Sequence[Any]) -> Any:
    """Return what an operation with those results gives: the only one as it is."""
    return results[0] if len(results) == 1 else results


BUILDERS: dict[type[Operation], Builder] = {}
"""The builder of the code for each class of operations; `ops` fills it."""

THREADWISE: set[type[Operation]] = set()
"""Operations whose code takes numbers that differ between threads, and looks at which threads run (`threads`)."""

_B = TypeVar("_B", bound=Callable[..., Any])


def threadwise(*classes: type[Operation]) -> Callable[[_B], _B]:
    """Note that the function, registered for `classes`, does what each thread of the task does."""

    def register(function: _B) -> _B:
        THREADWISE.update(classes)
        return function

    return register


def pure(*classes: type[Operation]) -> Callable[[_B], _B]:
    """Register a builder `(op) -> run(*operands)`."""
    return _register(classes, Kind.PURE)


def effect(*classes: type[Operation]) -> Callable[[_B], _B]:
    """Register a builder `(op) -> run(task, *operands)`."""
    return _register(classes, Kind.EFFECT)


def step(*classes: type[Operation]) -> Callable[[_B], _B]:
    """Register a builder `(op) -> coroutine run(task, *operands)`."""
    return _register(classes, Kind.STEP)


def action(*classes: type[Operation]) -> Callable[[_B], _B]:
    """Register a function `(task, op, *operands) -> results`, before which other tasks may have their turn."""

    def register(function: _B) -> _B:
        def run(task: Any, op: Operation, *operands: Any) -> Coroutine:
            yield None
            return function(task, op, *operands)

        blocking(*classes)(run)
        return function

    return register


def blocking(*classes: type[Operation]) -> Callable[[_B], _B]:
    """Register a coroutine `(task, op, *operands)`."""
    return _register_function(classes, Kind.STEP)


def immediate(*classes: type[Operation]) -> Callable[[_B], _B]:
    """Register a function `(task, op, *operands) -> results`, which never blocks."""
    return _register_function(classes, Kind.EFFECT)


def _register_function(classes: tuple[type[Operation], ...], kind: Kind) -> Callable[[_B], _B]:
    def register(function: _B) -> _B:
        def build(op: Operation, _planner: Any) -> Built:
            def run(task: Any, *operands: Any) -> Any:
                return function(task, op, *operands)

            return kind, run

        structured(*classes)(build)
        return function

    return register


def structured(*classes: type[Operation]) -> Callable[[_B], _B]:
    """Register a builder `(op, planner) -> (kind, run)`."""

    def register(builder: _B) -> _B:
        for class_ in classes:
            BUILDERS[class_] = builder
        return builder

    return register


def _register(classes: tuple[type[Operation], ...], kind: Kind) -> Callable[[_B], _B]:
    def register(builder: _B) -> _B:
        def build(op: Operation, _planner: Any) -> Built:
            return kind, builder(op)

        structured(*classes)(build)
        return builder

    return register
