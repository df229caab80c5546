"""Handlers of operations by name, and the state that they share while they write the instructions of a function."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import error_at, source_location

from ..bufferize.plan_arena import aligned
from .builder import I8, I32, PTR, Builder, Value, constant
from .forwarding import Forwarding
from .gathered_rows import Gather
from .host import Features
from .metadata import Site
from .postponed import Postponed, Unfilled
from .ticks import Ticks, is_counted
from .views import View

# The handlers of operations, by their names; the files beside this one fill it.

Scalar: TypeAlias = Callable[[Any, Any, Sequence[Value]], Sequence[Value] | Value]
"""Computes the results of an operation on scalars, for a `FunctionEmitter`; of vectors, in each of their lanes."""
Handler: TypeAlias = Callable[[Any, Any], None]
"""Writes the instructions of any other operation, for a `FunctionEmitter`."""

SCALARS: dict[str, Scalar] = {}
HANDLERS: dict[str, Handler] = {}

_F = TypeVar("_F", bound=Callable[..., Any])


def scalar(*classes: type[Operation]) -> Callable[[_F], _F]:
    """Register what computes these operations in each lane."""

    def register(function: _F) -> _F:
        SCALARS.update(dict.fromkeys((each.name for each in classes), function))
        return function

    return register


def emits(*classes: type[Operation]) -> Callable[[_F], _F]:
    """Register what writes these operations."""

    def register(function: _F) -> _F:
        HANDLERS.update(dict.fromkeys((each.name for each in classes), function))
        return function

    return register


def load_handlers() -> None:
    """Import the files that fill the registry."""
    for name in ("scalars", "memory", "structured", "control"):
        importlib.import_module(f"tlx_xdsl.cpu.codegen.{name}")


def refused(op: Operation, reason: str) -> CompilationError:
    """The error that an operation cannot be compiled for a CPU."""
    return error_at(op, f"'{op.name}' cannot be compiled for a CPU: {reason}")


class Sites:
    """The places that may end a program with an error; their numbers begin at 1."""

    def __init__(self) -> None:
        self.found: dict[Site, int] = {}

    def number(self, op: Operation, message: str) -> int:
        """The number of a place."""
        place = source_location(op.location)
        site = Site("", 0, 0, message) if place is None else Site(place.filename, place.line, place.column, message)
        return self.found.setdefault(site, len(self.found) + 1)


@dataclass
class Target:
    """A block that others jump to."""

    label: str
    ways: list[tuple[list[Value], str]] = field(default_factory=list[tuple[list[Value], str]])
    """The operands of each jump that was written before the block, and the label of the block that it ends."""
    lines: list[int] | None = None
    """Of its phis, once it has begun."""


@dataclass
class FunctionEmitter:
    """Writes one function: the value of each SSA value, and what the operations share."""

    b: Builder
    features: Features
    sites: Sites
    checks: bool
    """Whether accesses are checked to be inside of their arrays."""
    scratch: Value
    """The arena of the program."""
    arena_bytes: int
    """What the buffers of the function take of it."""
    forwarding: Forwarding = field(default_factory=Forwarding)
    """The loads whose copies are left out."""
    postponed: dict[Operation, Postponed] = field(default_factory=dict[Operation, Postponed])
    """The loads that products may do without, by their operations."""
    gathers: dict[Operation, Gather] = field(default_factory=dict[Operation, Gather])
    """The gathers that are stored as they are, by their operations."""
    unfilled: dict[Operation, list[Unfilled]] = field(default_factory=dict[Operation, "list[Unfilled]"])
    """The accumulators that may be still to be filled, by the operations that come to them."""
    values: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    """Scalars; vectors while the body of a loop nest is written."""
    views: dict[SSAValue, View] = field(default_factory=dict[SSAValue, View])
    """Memory."""
    indices: Sequence[Value] = ()
    """Of the loop nest whose body is written, by its dimensions."""
    mask: Value | None = None
    """The lanes that count, in the body of a loop nest; None: all."""
    combination: tuple[Operation, Callable[[Value, Value], Value]] | None = None
    """An operation of a nest's body, and what is written instead of it."""
    yielded: Sequence[SSAValue] = ()
    """The operands of the terminator that was met last."""
    blocks: dict[Block, Target] = field(default_factory=dict[Block, Target])
    """The blocks of the function, but for the first one."""
    returns: Sequence[Value] = ()
    """Where the caller wants the results."""
    streams: bool = True
    """Whether all nests up to now only read and write elements: their limit is memory, not arithmetic."""
    ticks: Ticks | None = None
    """The counters of a profile."""
    extra_bytes: int = 0
    """Memory that instructions need beside the buffers, after them in the arena."""

    def emit(self, op: Operation) -> None:
        """Write one operation.

        Raises CompilationError for one that has no counterpart on a CPU.
        """
        if self.combination is not None and self.combination[0] is op:
            first, second = (self.values[operand] for operand in op.operands)
            self.values[op.results[0]] = self.combination[1](first, second)
        elif (compute := SCALARS.get(op.name)) is not None:
            found = compute(self, op, [self.values[operand] for operand in op.operands])
            for result, value in zip(op.results, [found] if isinstance(found, Value) else found, strict=True):
                self.values[result] = value
        elif (handler := HANDLERS.get(op.name)) is not None:
            for wait in self.unfilled.get(op, ()):
                if wait.fill is op:
                    wait.note(self.b, is_left=True)
                    return
                if not wait.starts(op):
                    self.fill(wait)
            handler(self, op)
        else:
            raise refused(op, "it has no counterpart there")

    def fill(self, wait: Unfilled) -> None:
        """Fill an accumulator if that is still to be done."""
        left, done = self.b.name(), self.b.name()
        self.b.branch_if(wait.is_left(self.b), left, done)
        self.b.begin(left)
        HANDLERS[wait.fill.name](self, wait.fill)
        self.b.branch(done)
        self.b.begin(done)

    def block(self, block: Block) -> Sequence[SSAValue]:
        """Write the operations of a block; gives the operands of its terminator."""
        self.yielded = ()
        if self.ticks is not None and is_counted(block):
            self._counted(self.ticks, block)
            return self.yielded
        for op in block.ops:
            self.emit(op)
        return self.yielded

    def _counted(self, ticks: Ticks, block: Block) -> None:
        """Write the operations of a block, and after the work of each line what counts its cycles."""
        pending: int | None = None
        for op in block.ops:
            turns = op is block.last_op or op.name.startswith("scf.")
            number = ticks.number(op)
            if pending is not None and (turns or number not in (None, pending)):
                ticks.tick(self.b, pending)
                pending = None
            self.emit(op)
            if number is not None:
                pending = number

    def fail_unless(self, condition: Value, op: Operation, message: str) -> None:
        """End the program with an error at `op`, unless a scalar condition holds."""
        fine, failed = self.b.name(), self.b.name()
        self.b.branch_if(condition, fine, failed)
        self.b.begin(failed)
        self.b.lines.append(f"  ret i32 {self.sites.number(op, message)}")
        self.b.begin(fine)

    def return_if_failed(self, status: Value) -> None:
        """Hand on the error of a function that was called."""
        fine, failed = self.b.name(), self.b.name()
        self.b.branch_if(self.b.compare("icmp eq", status, constant(0, I32)), fine, failed)
        self.b.begin(failed)
        self.b.lines.append(f"  ret {status.typed}")
        self.b.begin(fine)

    def temporary(self, bytes_: int) -> Value:
        """Memory for one operation, which the next one may have again."""
        self.extra_bytes = max(self.extra_bytes, aligned(bytes_))
        return self.b.gep(I8, self.scratch, self.b.index(self.arena_bytes))

    def buffer(self, offset: int) -> Value:
        """The address of a buffer in the arena."""
        return Value(self.scratch.text, PTR) if offset == 0 else self.b.gep(I8, self.scratch, self.b.index(offset))
