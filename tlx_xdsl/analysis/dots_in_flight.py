"""Results of asynchronous dots that may still be in flight, and the operations that use them too early.

A wgmma is issued to the tensor cores and writes its registers some time later (PTX ISA, "wgmma.mma_async"). Each
`ttng.warp_group_dot` is a group of its own; `ttng.warp_group_dot_wait {pendings = n}` completes all groups but the n
last ones that were issued. So a result is safe after a wait that takes it, if at least n dots were issued since.

The data flow is that of values, as the registers are: a wait makes its own results safe, not the names that went in.
The state at a point is the least number of dots issued so far, and for each value in flight that number at its own
issue; their difference is the least number of dots since, on any path through branches and loops, where the analysis
has reached its fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, builtin, scf
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects.regions import Edges, forwarded
from tlx_xdsl.dialects.ttg import WarpSpecializePartitionsOp
from tlx_xdsl.dialects.ttng import WarpGroupDotOp, WarpGroupDotWaitOp

from .dataflow import Arrivals, ForwardWalk


@dataclass(frozen=True)
class Flight:
    """A result that may be in flight."""

    dot: WarpGroupDotOp
    issued: int
    """Dots issued when this one was, itself included."""
    short: WarpGroupDotWaitOp | None = None
    """The last wait that took it and did not reach it."""


@dataclass(frozen=True)
class EarlyUse:
    """An operation that touches a result in flight."""

    op: Operation
    flight: Flight
    since: int
    """The least number of dots issued since."""


def check_dots_in_flight(function: Operation, report: Callable[[EarlyUse], None]) -> None:
    """Call `report` for each use of a result in flight by anything but a wait, a dot that adds to it, or control flow.

    Loops, branches and their terminators only forward values. A use may be reported more than once.
    """
    if any(isinstance(op, WarpGroupDotOp) and op.is_async.value.data for op in function.walk()):
        _Walk(report).run(function, _State(0))


@dataclass(frozen=True)
class _State:
    """The facts that hold at a point of the function."""

    issued: int
    """The least number of dots issued."""
    arrived: tuple[Flight | None, ...] = ()
    """Dots in flight among the successor inputs with which the block began."""


class _Walk(ForwardWalk[_State]):
    """The analysis; a value is in flight, or not, from its definition on, so that this is kept by value."""

    def __init__(self, report: Callable[[EarlyUse], None]):
        self._report = report
        self._flights: dict[SSAValue, Flight] = {}

    def transfer(self, op: Operation, state: _State) -> _State:
        """Count dots, and report what uses a result in flight."""
        match op:
            case WarpGroupDotOp():
                # It may add to what is in flight; A comes from registers that must be there.
                self._use(op, (op.a, op.b), state)
                issued = state.issued + 1
                self._set(op.d, Flight(op, issued) if op.is_async.value.data else None)
                return replace(state, issued=issued)
            case WarpGroupDotWaitOp():
                self._wait(op, state)
            case _:
                passed = forwarded(op)
                self._use(op, [value for number, value in enumerate(op.operands) if number not in passed], state)
        return state

    def join(self, arrivals: Arrivals[_State]) -> _State:
        """Take the fewest dots that were issued; of each input the flight with the fewest dots since."""
        first, _ = arrivals[0]
        # A partition has warps, and so dots, of its own.
        is_task = isinstance(first.source, WarpSpecializePartitionsOp)
        issued = 0 if is_task else min(state.issued for _, state in arrivals)
        arrived = tuple(
            _worst([_rebased(self._flights.get(edge.operands[i]), state.issued, issued) for edge, state in arrivals])
            for i in range(len(first.inputs))
        )
        for value, flight in zip(first.inputs, arrived, strict=True):
            self._set(value, flight)
        return _State(issued, arrived)

    def edges(self, op: Operation) -> Edges | None:
        """Leave out the edge past a loop that is known to run."""
        found = super().edges(op)
        if found is not None and isinstance(op, scf.ForOp) and _runs(op):
            return tuple(edge for edge in found if edge.target is not op)
        return found

    def _use(self, op: Operation, operands: Sequence[SSAValue], state: _State) -> None:
        for operand in operands:
            if (flight := self._flights.get(operand)) is not None:
                self._report(EarlyUse(op, flight, state.issued - flight.issued))

    def _wait(self, op: WarpGroupDotWaitOp, state: _State) -> None:
        pendings = op.pendings.value.data
        for before, after in zip(op.inputs, op.outputs, strict=True):
            flight = self._flights.get(before)
            if flight is not None and state.issued - flight.issued >= pendings:
                flight = None
            self._set(after, flight and Flight(flight.dot, flight.issued, op))

    def _set(self, value: SSAValue, flight: Flight | None) -> None:
        if flight is None:
            self._flights.pop(value, None)
        else:
            self._flights[value] = flight


def _rebased(flight: Flight | None, issued: int, base: int) -> Flight | None:
    """`flight` as it is where `issued` dots were issued, counted where `base` were: as many dots since."""
    return flight and replace(flight, issued=flight.issued - issued + base)


def _worst(flights: Sequence[Flight | None]) -> Flight | None:
    """The one with the fewest dots since."""
    return max((flight for flight in flights if flight is not None), key=lambda f: f.issued, default=None)


def _runs(loop: scf.ForOp) -> bool:
    """True if the body is known to run at least once."""
    bounds = [_constant(loop.lb), _constant(loop.ub)]
    return bounds[0] is not None and bounds[1] is not None and bounds[0] < bounds[1]


def _constant(value: SSAValue) -> int | None:
    op = value.owner
    return (
        op.value.value.data if isinstance(op, arith.ConstantOp) and isinstance(op.value, builtin.IntegerAttr) else None
    )
