"""The proof of a protocol across ranks: for all data, all orders, and any number of launches.

* The kernel is followed for each rank and program with all data unknown (`trace`), in each launch of a period: numbers
  that grow from launch to launch are forms, and the path must not depend on them. So all launches do the same.
* Counters that are waited for only grow, in each period by as much as what is waited for (`counters`). So launches find
  what those of the period before have found, and what is shown of the first periods holds for all: of the first one,
  which begins with what the host has stored, and of two more.
* No wait is in vain: all programs come to an end in one order, and so in all.
* What two programs access, and one of them writes, is ordered (`order`): in one launch one way or the other, and from
  one launch to each of the next ones, up to a period later. What comes later still is after that, in its rank's stream.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.protocol.prove import Answer, Proof
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import num_ctas_of
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.text.diagnostics import Diagnostic, error_at

from .counters import Traces, protocol_of
from .events import DeadlockError, Space, UnprovedError
from .order import Order, check_order, check_tickets
from .trace import Kernel, traces_of
from .values import UNKNOWN, Growth, LongerPeriodError, Value

_MORE = 3
"""Launches that are followed after those in which all is shown: fast ranks may be ahead by some."""


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel on a rank: numbers by launch, an array, or the table of a symmetric tensor."""

    name: str
    values: Sequence[Any]
    """For each launch that the host names; one where all are alike."""
    arrays: Sequence[NDArray[Any]] = ()
    """Of a symmetric tensor, the array of each rank."""

    @property
    def array(self) -> NDArray[Any] | None:
        """The array that this rank alone has; None for others."""
        is_own = not self.arrays and isinstance(self.values[0], np.ndarray)
        return cast("NDArray[Any]", self.values[0]) if is_own else None


@dataclass(frozen=True)
class RanksProof(Proof):
    """Result of the proof of a protocol across ranks."""

    launches: int | None = None
    """Launches of each rank for which it is; None for any number of them."""
    wraps: bool = False
    """Whether a counter wraps around after these."""
    grid: tuple[int, int, int] = (1, 1, 1)
    period: int = 1

    @property
    def extent(self) -> str:
        """The launches that it is for."""
        if self.launches is None:
            return "any number of launches"
        return f"{self.launches:,} launch{'' if self.launches == 1 else 'es'} of each rank" + (
            ", after which a number wraps around" if self.wraps else ""
        )

    def lines(self, which: str, spent: str) -> list[str]:
        """Return the lines of a report."""
        return [
            f"the protocol of {which} is proved for {self.extent} ({spent})",
            f"  proved: {'; '.join(PROVED)}",
            f"  for: all data, all orders of programs, this grid {self.grid}, these sizes and numbers of the host",
            f"  not looked at: {', '.join(self.unseen)}",
            f"  assumed: {'; '.join(ASSUMPTIONS)}",
        ]


PROVED = (
    "no deadlock",
    "no wait that a lost signal leaves waiting, or a doubled one lets pass too early",
    "no unordered access to global memory, between ranks, programs and launches",
)
"""What a proof says."""
ASSUMPTIONS = (
    "each rank makes its launches in one stream, and all of them",
    "counters have the given values before the first launch, and no one else changes them",
    "different arrays are different memory",
    "a wait with a limit never gives up",
)
"""What a proof assumes."""
UNSEEN = ("numbers and layouts", "the threads of a program among each other", "shared memory")
"""What a proof does not look at."""


@dataclass
class _Work:
    """The proof as far as it has got."""

    module: ModuleOp
    function: tt.FuncOp
    grid: tuple[int, int, int]
    arguments: Sequence[Sequence[Argument]]
    """Of each rank."""
    launches: int | None
    space: Space = field(default_factory=Space)
    states: int = 0


def prove_ranks(
    module: ModuleOp,
    grid: tuple[int, int, int],
    arguments: Sequence[Sequence[Argument]],
    *,
    launches: int | None = None,
    resident: int,
) -> RanksProof:
    """Prove the protocol of the one kernel of a module across ranks, or say which line stops the proof.

    `arguments` are those of each rank, in the order of the kernel's parameters. With `launches` it is for so many
    launches of each rank, else for any number of them: a number that the host names for several launches must go on
    evenly. At least `resident` programs run side by side on each rank.
    """
    began = time.process_time()
    function = next(op for op in module.walk() if isinstance(op, tt.FuncOp) and op.is_kernel and op.body.blocks)
    work = _Work(module, function, grid, arguments, launches)
    answer: Answer = "proved"
    reason: Diagnostic | None = None
    most, period = launches, 1
    try:
        _check_launch(work, resident)
        most, period = _proved(work)
    except UnprovedError as error:
        answer = "refuted" if isinstance(error, DeadlockError) else "unproved"
        reason = _described(error)
    return RanksProof(
        function.sym_name.data, answer, reason, work.states, time.process_time() - began, tasks=len(arguments),
        unseen=UNSEEN, launches=most, wraps=launches is None and most is not None, grid=grid, period=period,
    )  # fmt: skip


def _described(error: UnprovedError) -> Diagnostic:
    notes = [f"{what} {error_at(op, what).location}" for what, op in error.notes]
    found = error_at(error.op, error.reason, notes)
    return Diagnostic("error", found.message, found.location, found.notes)


def _check_launch(work: _Work, resident: int) -> None:
    """Refuse launches whose programs need not all be resident at once, and clusters."""
    if (num_ctas_of(work.function) or 1) > 1:
        raise UnprovedError(work.function, "clusters are not followed across ranks")
    if (programs := prod(work.grid)) > resident:
        raise UnprovedError(
            work.function, f"{programs} programs need not all be resident at once on {resident} multiprocessors"
        )


def _proved(work: _Work) -> tuple[int | None, int]:
    """Prove it; gives the launches that it is for, None for any number, and the launches of a period."""
    values = _bound(work)
    period = work.launches or 1
    while True:
        growth = Growth(period)
        kernel = Kernel(work.function, _functions(work.module), work.grid, work.space, values)
        try:
            traces = traces_of(kernel, growth, is_one_period=work.launches is not None)
        except LongerPeriodError as error:
            period = error.launches
            continue
        return _ordered(work, traces, growth), period


def _ordered(work: _Work, traces: Traces, growth: Growth) -> int | None:
    period, is_all = len(traces), work.launches is not None
    shown = None if is_all else 3 * period
    followed = period if shown is None else shown + period + _MORE
    check_tickets(traces, work.space, prod(work.grid))
    protocol = protocol_of(traces, work.grid, work.space, growth, followed, shown)
    work.states = sum(map(len, protocol.steps))
    run = protocol.check_ends()
    order = Order(protocol, traces)
    order.follow(run)
    check_order(order, shown)
    if is_all:
        return work.launches
    given = max((len(each.values) for of_rank in work.arguments for each in of_rank), default=1)
    if growth.periods is None or growth.periods * period > _LASTING:
        return None
    if growth.periods * period < given:
        raise UnprovedError(work.function, f"a number wraps around within {given} launches")
    return growth.periods * period


_LASTING = 1 << 60
"""Launches that none lives to see: counters of 64 bits do not wrap around before."""


def _functions(module: ModuleOp) -> dict[str, tt.FuncOp]:
    return {op.sym_name.data: op for op in module.walk() if isinstance(op, tt.FuncOp) and op.body.blocks}


def _bound(work: _Work) -> Any:
    """Return the function that gives the arguments of each rank in each launch of a period."""
    _check_apart(work)
    tables: dict[tuple[str, int], Value] = {}
    ranks = len(work.arguments)
    for name in dict.fromkeys(each.name for each in work.arguments[0] if each.arrays):
        arrays = next(each.arrays for each in work.arguments[0] if each.name == name)
        bases = [work.space.add(name, rank, array, shared=True).base for rank, array in enumerate(arrays)]
        for rank in range(ranks):
            table = np.array([*bases, rank], np.int64)
            tables[name, rank] = np.int64(work.space.add(name, rank, table, table=True).base)
    own = {
        (each.name, rank): np.int64(work.space.add(each.name, rank, array).base)
        for rank, of_rank in enumerate(work.arguments)
        for each in of_rank
        if (array := each.array) is not None
    }
    types = [argument.type for argument in work.function.body.block.args]
    if len(types) != len(work.arguments[0]):
        raise UnprovedError(work.function, "tensor descriptors of the host are not followed across ranks")

    def value(each: Argument, rank: int, launch: int, type_: Any, growth: Growth) -> Value:
        if (each.name, rank) in tables:
            return tables[each.name, rank]
        if (each.name, rank) in own:
            return own[each.name, rank]
        if not all(isinstance(one, int | np.integer) for one in each.values):
            return UNKNOWN
        return _number(work, each, launch, type_, growth)

    def arguments(growth: Growth) -> list[list[list[Value]]]:
        return [
            [
                [value(each, rank, launch, type_, growth) for each, type_ in zip(of_rank, types, strict=True)]
                for rank, of_rank in enumerate(work.arguments)
            ]
            for launch in range(growth.launches)
        ]

    return arguments


def _number(work: _Work, each: Argument, launch: int, type_: Any, growth: Growth) -> Value:
    """A number of the host in a launch of the period."""
    dtype, given = dtype_of(type_), [int(one) for one in each.values]
    if dtype.kind == "b":
        return np.bool_(given[0]) if len({*given}) == 1 else UNKNOWN
    if work.launches is not None:
        return dtype.type(given[launch] if len(given) > 1 else given[0])
    change = given[1] - given[0] if len(given) > 1 else 0
    if given != [given[0] + change * number for number in range(len(given))]:
        raise UnprovedError(work.function, f"'{each.name}' does not go on evenly: {', '.join(map(str, given))}")
    return growth.made(given[0] + change * launch, change * growth.launches, dtype.itemsize * 8)


def _check_apart(work: _Work) -> None:
    """Refuse arrays that share memory, and those that differ between launches."""
    arrays: list[tuple[str, NDArray[Any]]] = []
    for rank, of_rank in enumerate(work.arguments):
        for each in of_rank:
            if each.arrays:
                arrays.append((f"{each.name} of rank {rank}", each.arrays[rank]))
            elif (own := each.array) is not None:
                arrays.append((f"{each.name} of rank {rank}", own))
                if any(one is not own for one in each.values):
                    raise UnprovedError(work.function, f"'{each.name}' is another array in another launch")
    for number, (name, array) in enumerate(arrays):
        if not array.flags.c_contiguous:
            raise UnprovedError(work.function, f"'{name}' has gaps between its elements")
        for other, before in arrays[:number]:
            if np.may_share_memory(array, before):
                raise UnprovedError(work.function, f"'{other}' and '{name}' may share memory")
