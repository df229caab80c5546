"""Which values are results of asynchronous dots that may still be in flight, and who uses them too early.

A wgmma is issued to the tensor cores and writes its registers some time later (PTX ISA, "wgmma.mma_async"). Each
`ttng.warp_group_dot` is a group of its own; `ttng.warp_group_dot_wait {pendings = n}` completes all groups but the n
last ones that were issued. So a result is safe behind a wait that takes it, if at least n dots were issued since.

The data flow is that of values, as the registers are: a wait makes its own results safe, not the names that went in.
The state at a point is the least number of dots issued so far, and for each value in flight that number at its own
issue; their difference is the least number of dots since, on any way through branches and loops. Loops are walked
again until nothing that goes round is found to be in flight that was not before, or with fewer dots since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, cf, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tlx_xdsl.dialects.ttg import WarpSpecializeOp, WarpYieldOp
from tlx_xdsl.dialects.ttng import WarpGroupDotOp, WarpGroupDotWaitOp


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
    """Call `report` for each use of a result in flight by anything but a wait, a dot that adds to it, or a carrier.

    Carriers are loops, branches and what ends them. A use may be reported more than once.
    """
    if any(isinstance(op, WarpGroupDotOp) and op.is_async.value.data for op in function.walk()):
        walker = _Walker(report)
        for region in function.regions:
            walker.region(region)


class _Walker:
    """The state of the walk: what is in flight, and how many dots were issued at least."""

    def __init__(self, report: Callable[[EarlyUse], None]):
        self._report = report
        self._flights: dict[SSAValue, Flight] = {}
        self._issued = 0

    # --- operations ------------------------------------------------------------------------------------------------

    def region(self, region: Region) -> None:
        """Walk a region. Arguments of blocks that branches jump to take the worst of what arrives."""
        if len(region.blocks) <= 1:
            for block in region.blocks:
                self._block(block)
            return
        entries: dict[Block, int] = {region.blocks[0]: self._issued}
        while True:
            before = dict(self._flights), dict(entries)
            for block in region.blocks:
                if block in entries:
                    self._issued = entries[block]
                    self._block(block)
                    self._jump(block, entries)
            if before == (self._flights, entries):
                return

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._operation(op)

    def _operation(self, op: Operation) -> None:
        match op:
            case WarpGroupDotOp():
                self._dot(op)
            case WarpGroupDotWaitOp():
                self._wait(op)
            case scf.ForOp():
                self._for(op)
            case scf.WhileOp():
                self._while(op)
            case scf.IfOp():
                self._if(op)
            case WarpSpecializeOp():
                self._warp_specialize(op)
            case scf.YieldOp() | scf.ConditionOp() | WarpYieldOp() | cf.BranchOp() | cf.ConditionalBranchOp():
                return
            case _:
                self._use(op, op.operands)
                for region in op.regions:
                    self.region(region)

    def _use(self, op: Operation, operands: Sequence[SSAValue]) -> None:
        for operand in operands:
            if (flight := self._flights.get(operand)) is not None:
                self._report(EarlyUse(op, flight, self._issued - flight.issued))

    def _dot(self, op: WarpGroupDotOp) -> None:
        # It may add to what is in flight; A comes from registers that must be there.
        self._use(op, (op.a, op.b))
        self._issued += 1
        self._flights.pop(op.d, None)
        if op.is_async.value.data:
            self._flights[op.d] = Flight(op, self._issued)

    def _wait(self, op: WarpGroupDotWaitOp) -> None:
        pendings = op.pendings.value.data
        for before, after in zip(op.inputs, op.outputs, strict=True):
            flight = self._flights.get(before)
            if flight is not None and self._issued - flight.issued >= pendings:
                flight = None
            self._set(after, flight and Flight(flight.dot, flight.issued, op))

    # --- control flow ----------------------------------------------------------------------------------------------

    def _if(self, op: scf.IfOp) -> None:
        start = self._issued
        arriving: list[tuple[Sequence[SSAValue], int]] = []
        for region in op.regions:
            self._issued = start
            self.region(region)
            if region.blocks and (end := region.blocks[-1].last_op) is not None:
                arriving.append((end.operands, self._issued))
            else:
                arriving.append(((), start))
        self._issued = fewest = min(issued for _, issued in arriving)
        for index, result in enumerate(op.results):
            ways = [_rebased(self._flights.get(values[index]), issued, fewest) for values, issued in arriving]
            self._set(result, _worst(ways))

    def _for(self, op: scf.ForOp) -> None:
        body, start = op.body.block, self._issued
        end = body.last_op
        assert end is not None
        arguments = body.args[1:]
        self._carry(op.iter_args, arguments)

        def turn() -> bool:
            self._issued = start
            self._block(body)
            return self._lower(arguments, end.operands, start)

        while turn():
            pass
        if _runs(op):
            self._carry(end.operands, op.results)
            return
        ended, self._issued = self._issued, start
        for initial, last, result in zip(op.iter_args, end.operands, op.results, strict=True):
            self._set(result, _worst([self._flights.get(initial), _rebased(self._flights.get(last), ended, start)]))

    def _while(self, op: scf.WhileOp) -> None:
        before, after, start = op.before_region.block, op.after_region.block, self._issued
        condition, end = before.last_op, after.last_op
        assert isinstance(condition, scf.ConditionOp)
        assert end is not None
        self._carry(op.arguments, before.args)

        def turn() -> bool:
            self._issued = start
            self._block(before)
            self._carry(condition.args, after.args)
            self._block(after)
            return self._lower(before.args, end.operands, start)

        while turn():
            pass
        # What leaves was handed on by the condition; no fewer dots were issued than in the first turn.
        self._issued = start
        self._block(before)
        self._carry(condition.args, op.results)

    def _warp_specialize(self, op: WarpSpecializeOp) -> None:
        """Each partition has warps, and so dots, of its own; the default region goes on with those around it."""
        start = self._issued
        for region in op.partitions.partition_regions:
            self._issued = 0
            self.region(region)
        self._issued = start
        self.region(op.default_region)
        last = op.default_region.blocks[-1].last_op
        if isinstance(last, WarpYieldOp):
            self._carry(last.operands, op.results)

    def _jump(self, block: Block, entries: dict[Block, int]) -> None:
        """Hand over what `block` ends with to the blocks that it jumps to."""
        jumps: list[tuple[Block, Sequence[SSAValue]]] = []
        match block.last_op:
            case cf.BranchOp() as op:
                jumps.append((op.successor, op.arguments))
            case cf.ConditionalBranchOp() as op:
                jumps += [(op.then_block, op.then_arguments), (op.else_block, op.else_arguments)]
            case _:
                return
        for target, values in jumps:
            known = entries.get(target, self._issued)
            entries[target] = fewest = min(self._issued, known)
            for value, argument in zip(values, target.args, strict=True):
                earlier = _rebased(self._flights.get(argument), known, fewest)
                arriving = _rebased(self._flights.get(value), self._issued, fewest)
                self._set(argument, _worst([earlier, arriving]))

    # --- what is in flight -----------------------------------------------------------------------------------------

    def _set(self, value: SSAValue, flight: Flight | None) -> None:
        if flight is None:
            self._flights.pop(value, None)
        else:
            self._flights[value] = flight

    def _carry(self, sources: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        for flight, target in [(self._flights.get(s), t) for s, t in zip(sources, targets, strict=True)]:
            self._set(target, flight)

    def _lower(self, arguments: Sequence[SSAValue], yielded: Sequence[SSAValue], start: int) -> bool:
        """Let what goes round arrive at the head of a loop that was entered at `start`; whether it got worse there."""
        arrivals = [_rebased(self._flights.get(value), self._issued, start) for value in yielded]
        worse = False
        for argument, arrival in zip(arguments, arrivals, strict=True):
            known = self._flights.get(argument)
            if arrival is not None and (known is None or arrival.issued > known.issued):
                self._flights[argument] = arrival
                worse = True
        return worse


def _rebased(flight: Flight | None, issued: int, base: int) -> Flight | None:
    """`flight` as it is where `issued` dots were issued, counted where `base` were: as many dots since."""
    return flight and replace(flight, issued=flight.issued - issued + base)


def _worst(flights: Sequence[Flight | None]) -> Flight | None:
    """The one with the fewest dots since."""
    return max((flight for flight in flights if flight is not None), key=lambda f: f.issued, default=None)


def _runs(loop: scf.ForOp) -> bool:
    """Whether the body is known to run at least once."""
    bounds = [_constant(loop.lb), _constant(loop.ub)]
    return bounds[0] is not None and bounds[1] is not None and bounds[0] < bounds[1]


def _constant(value: SSAValue) -> int | None:
    op = value.owner
    return op.value.value.data if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr) else None
