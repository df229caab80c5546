"""Facts about each access to global memory, as the analysis reports them.

The element at position `(i0, i1, ...)` of an access lies `offset` bytes after `base`, where `offset` is a polynomial in
the program ids, the kernel's arguments, the positions and the counters of the loops around. A polynomial counts in
whole numbers (`polynomials.py`); addresses are taken modulo 2^64.

**What a fact means.** It is about the block of an access as if nothing were masked. Under a mask, and where a
descriptor drops what lies outside of its tensor, the elements that are touched are a subset of the block (`masked`;
`guards` say which, as far as known). An access under a condition may not happen at all (`conditional`). A fact holds
under the access's `conditions`, its preconditions on the launch: each is a bound inside of which the kernel's integers
do not wrap around. Facts about a launch (`LaunchFacts`: grid, arguments) decide conditions: those that hold vanish,
others make the access UNKNOWN. An access whose conditions no facts about a launch could decide is UNKNOWN from the
start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.integers.polynomials import Counter, Polynomial, Symbol
from tlx_xdsl.dialects import tt
from tlx_xdsl.layouts.encodings import Ints

from .intervals import Interval

if TYPE_CHECKING:
    from .values import State


class Classification(Enum):
    """The dependence of an access's addresses on the program's ids."""

    PID_INDEPENDENT = "PID_INDEPENDENT"
    """Not at all: every program touches the same block."""
    PID_AFFINE = "PID_AFFINE"
    """By a stride along one axis of the grid, the same from each program to the next."""
    PID_MULTI_AXIS = "PID_MULTI_AXIS"
    """By a stride along each of several axes."""
    PID_QUASI_AFFINE = "PID_QUASI_AFFINE"
    """Through quotients, remainders, minima or choices, such as a grouped order of tiles; the offset is exact."""
    PID_NONLINEAR = "PID_NONLINEAR"
    """By the program's ids and the arguments alone, but in another way."""
    UNKNOWN = "UNKNOWN"
    """No fact is known; `Access.reason` says why."""


class AccessKind(Enum):
    """The kind of an access."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    ASYNC_COPY = "async copy"
    """`cp.async`: global to shared memory."""
    BULK_LOAD = "bulk load"
    BULK_STORE = "bulk store"
    TMA_LOAD = "TMA load"
    TMA_STORE = "TMA store"
    TMA_REDUCE = "TMA reduce"
    PREFETCH = "prefetch"

    @property
    def writes(self) -> bool:
        """True if it may change memory."""
        return self in (
            AccessKind.STORE,
            AccessKind.ATOMIC,
            AccessKind.BULK_STORE,
            AccessKind.TMA_STORE,
            AccessKind.TMA_REDUCE,
        )

    @property
    def is_atomic(self) -> bool:
        """True if programs may do it to the same bytes at once."""
        return self in (AccessKind.ATOMIC, AccessKind.TMA_REDUCE)


@dataclass(frozen=True)
class Dimension:
    """One dimension of the block of an access; the three numbers mean what `analysis/axis_info.py` says."""

    extent: int
    """Elements."""
    stride: Polynomial | None
    """Bytes from an element to the next one; None where that is not the same everywhere."""
    contiguity: int
    """In aligned groups of so many elements each lies right after its predecessor."""
    divisibility: int
    """A power of two: the address of the first of each of those groups is a multiple of so many bytes."""
    constancy: int
    """In aligned groups of so many elements all lie at the same place."""


@dataclass(frozen=True)
class LoopTerm:
    """A loop around an access, outermost first."""

    counter: Counter
    stride: Polynomial | None
    """Bytes from one iteration to the next; 0 where the access does not move, None where it moves unevenly."""
    trips: Polynomial | None
    """The number of iterations; None if it is not known."""
    range: Interval
    """Of the counter, in the iterations that happen."""


@dataclass(frozen=True)
class Condition:
    """A bound on the launch: `low <= polynomial <= high`, for all its programs and all positions and iterations."""

    form: Polynomial
    low: int | None
    """None where nothing can be lower."""
    high: int | None
    """None where nothing can be higher."""

    def __str__(self) -> str:
        """Print the condition as `pid_x <= 16777215`, or with both bounds."""
        if self.low is None:
            return f"{self.form} <= {self.high}"
        return f"{self.form} >= {self.low}" if self.high is None else f"{self.low} <= {self.form} <= {self.high}"


@dataclass(frozen=True)
class Guard:
    """A condition that holds for each element that is touched: `left` `predicate` `right`, as whole numbers."""

    left: Polynomial
    predicate: str
    """`<`, `<=`, `>`, `>=`, `==` or `!=`."""
    right: Polynomial

    def __str__(self) -> str:
        """Print the comparison."""
        return f"{self.left} {self.predicate} {self.right}"


@dataclass(frozen=True)
class TensorBounds:
    """The tensor that a descriptor describes, and where in it the block of an access begins. All in elements."""

    shape: tuple[Polynomial, ...]
    strides: tuple[Polynomial, ...]
    corner: tuple[Polynomial, ...]


@dataclass(frozen=True)
class Access:
    """One operation that touches global memory, in one function, along one path of calls to it."""

    op: Operation
    kind: AccessKind
    classification: Classification
    function: tt.FuncOp
    """The kernel that it belongs to."""
    calls: tuple[tt.CallOp, ...]
    """The calls through which the kernel gets to `op`, outermost first."""
    base: SSAValue | None
    """The argument of the kernel, a pointer or a descriptor, that the address begins at; None where not known."""
    base_name: str
    """Without `%`; `?` where the base is not known."""
    offset: Polynomial | None
    """Bytes from the base to an element; None where UNKNOWN."""
    element_size: int
    """Bytes of an element."""
    dimensions: tuple[Dimension, ...]
    """None for a scalar."""
    pid_strides: Mapping[int, Polynomial]
    """Bytes per step along each axis of the grid that the address moves with; empty for other classes than PID_AFFINE
    and PID_MULTI_AXIS."""
    constant_offset: int
    """The part of the offset that is just a number of bytes."""
    lane_range: Interval | None
    """Bytes that the positions add to the offset of the element at 0; None where they do so by symbols."""
    loops: tuple[LoopTerm, ...]
    masked: bool
    """True if elements may be left out, by a mask or at the borders of a descriptor's tensor."""
    guards: tuple[Guard, ...]
    guards_exact: bool
    """True if the guards are all that leaves elements out."""
    conditional: bool
    """True if it may not happen in some program: it is under a condition, or in a loop with perhaps no iteration."""
    conditions: tuple[Condition, ...]
    """For which launches the fact holds; empty when for all."""
    tensor: TensorBounds | None
    """For an access through a descriptor."""
    block_size: int | None
    """Elements of the block that lie in one run without gaps, when that is the whole block; else None."""
    is_coalesced: bool
    """True if 32 neighbouring elements (all, if there are fewer) along some dimension lie in one run without gaps."""
    reason: str | None
    """Why it is UNKNOWN."""

    @property
    def shape(self) -> Ints:
        """Elements of the block along each dimension."""
        return tuple(dimension.extent for dimension in self.dimensions)

    @property
    def is_known(self) -> bool:
        """True if its address is known."""
        return self.classification is not Classification.UNKNOWN


@dataclass(frozen=True)
class DescriptorFacts:
    """The tensor of a descriptor that the kernel is given: elements along each dimension, and strides in elements."""

    shape: Ints
    strides: Ints


@dataclass(frozen=True)
class LaunchFacts:
    """Known facts about a launch. All that is left out may be anything that its type can hold."""

    grid: tuple[int, int, int] | None = None
    arguments: Mapping[str, int | DescriptorFacts] = field(default_factory=dict[str, int | DescriptorFacts])
    """Integers, and descriptors' tensors, by the names of the kernel's arguments (`arg0` for one without a name)."""


@dataclass(frozen=True)
class ProgramAddresses:
    """All accesses of a module's kernels, and what is known of the values that lead to them."""

    module: ModuleOp
    accesses: tuple[Access, ...]
    """In program order, kernel by kernel."""
    ranges: Mapping[Symbol, Interval]
    """The ranges of the symbols in the polynomials."""
    states: Mapping[SSAValue, State]
    """The state of each value; of a function that is called several times, in the last call."""

    @cached_property
    def _by_op(self) -> dict[Operation, tuple[Access, ...]]:
        found: dict[Operation, tuple[Access, ...]] = {}
        for access in self.accesses:
            found[access.op] = (*found.get(access.op, ()), access)
        return found

    def of(self, op: Operation) -> tuple[Access, ...]:
        """The accesses that `op` makes: one for each path of calls to it."""
        return self._by_op.get(op, ())
