"""The walk over a kernel: what each value is, and which accesses it makes.

Operations are visited in program order, loops once: what goes around a loop is solved for before it (`loops.py`),
so that no visit has to be repeated. A called function is walked once for each call, with the values that it is given.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.analysis.integers.polynomials import Polynomial
from tlx_xdsl.analysis.integers.symbols import ANYTHING, Causes
from tlx_xdsl.analysis.integers.transfer import TRANSFER, transfer
from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.base import Kind, OperandAccess, global_access
from tlx_xdsl.dialects.llvm import AssumeOp
from tlx_xdsl.dialects.regions import Edge, call_edges, edge_to, edges, incoming, region_edges

from .arithmetic import causes_of
from .carried import Loop, is_inside
from .loops import enter_for, for_results
from .model import Guard
from .polynomial_domain import PolynomialDomain
from .values import (
    Descriptor,
    Integer,
    Other,
    Pointer,
    State,
)
from .while_loops import enter_while

MOST_CALLS = 32
"""Calls inside of each other above which callees are not walked: there may be no end."""


@dataclass
class Visit:
    """An operation that touches memory, with what is known where it stands."""

    op: Operation
    access: OperandAccess
    operands: list[State]
    calls: tuple[tt.CallOp, ...]
    loops: tuple[Loop, ...]
    conditional: bool


@dataclass
class Walk:
    """The facts that are known so far."""

    known: PolynomialDomain
    functions: dict[str, tt.FuncOp]
    states: dict[SSAValue, State] = field(default_factory=dict[SSAValue, State])
    visits: list[Visit] = field(default_factory=list[Visit])
    assumptions: list[Guard] = field(default_factory=list[Guard])
    """Conditions that the kernel assumes, on every path through it."""
    _numbers: int = 0
    _calls: tuple[tt.CallOp, ...] = ()
    _loops: tuple[Loop, ...] = ()
    _conditional: bool = False

    def fresh(self) -> int:
        """A number for something without a name."""
        self._numbers += 1
        return self._numbers

    def state(self, value: SSAValue) -> State:
        """Return the known state of a value; nothing is known before it was visited."""
        if (state := self.states.get(value)) is None:
            state = self.states[value] = self.known.state_of_unknown(value, ANYTHING)
        return state

    def operands(self, op: Operation) -> list[State]:
        """The states of the operands."""
        return [self.state(operand) for operand in op.operands]

    def visit_region(self, region: Region) -> None:
        """Visit the blocks in their order."""
        arriving = _arriving(region) if len(region.blocks) > 1 else {}
        for number, block in enumerate(region.blocks):
            if number == 0:
                self.visit_block(block)
                continue
            self._meet(block, number, arriving.get(block, []))
            with self._under_condition():
                self.visit_block(block)

    def _meet(self, block: Block, number: int, ways: Sequence[tuple[int, Sequence[SSAValue]]]) -> None:
        """Set the states of a block's arguments: known where all ways to it have been seen, and agree; else unknown."""
        is_seen = bool(ways) and all(source < number for source, _ in ways)
        for index, argument in enumerate(block.args):
            states = [self.state(values[index]) for _, values in ways] if is_seen else []
            same = bool(states) and not isinstance(states[0], Other) and all(state == states[0] for state in states)
            self.states[argument] = states[0] if same else self.known.state_of_unknown(argument, ANYTHING)

    def visit_block(self, block: Block) -> None:
        """Visit the operations in their order."""
        for op in block.ops:
            self.visit(op)

    def visit(self, op: Operation) -> None:
        """Find out what `op` makes of its operands."""
        if (access := accessed_by(op)) is not None:
            self.visits.append(Visit(op, access, self.operands(op), self._calls, self._loops, self._conditional))
        match op:
            case scf.ForOp():
                self._for(op)
            case scf.WhileOp():
                self._while(op)
            case scf.IfOp():
                self._if(op)
            case tt.CallOp():
                self._call(op)
            case AssumeOp():
                self._assume(op)
            case ttg.WarpSpecializeOp():
                self._partitions(op)
            case tt.ReduceOp() | tt.ScanOp() | tt.MapElementwiseOp():
                self.compute(op)
            case _ if op.regions:
                with self._under_condition():
                    for region in op.regions:
                        self.visit_region(region)
                self._forget(op.results)
            case _:
                self.compute(op)

    def compute(self, op: Operation) -> None:
        """Compute the results of a plain operation."""
        operands = self.operands(op)
        for result in op.results:
            self.states[result] = self.computed(op, result, operands)

    def computed(self, op: Operation, result: SSAValue, operands: Sequence[State]) -> State:
        """The state of a result."""
        state = transfer(self.known, op, operands)
        if state is not None:
            return state
        causes = causes_of(operands)
        if not _is_function(op):
            causes = ANYTHING
        elif type(op) not in TRANSFER or op.regions or not op.operands:
            # It may give each element another value.
            causes = causes | Causes.LANES
        return self.known.state_of_unknown(result, causes)

    def _assume(self, op: AssumeOp) -> None:
        """Keep what is assumed on every path through the kernel, and holds for every launch."""
        state = self.state(op.cond)
        if isinstance(state, Integer) and not (self._conditional or self._loops or self._calls):
            self.assumptions += () if state.conditions.bounds else state.guards

    def _forward(self, edge: Edge) -> None:
        for value, target in edge.pairs:
            self.states[target] = self.state(value)

    def _forget(self, values: Iterable[SSAValue]) -> None:
        for value in values:
            self.states[value] = self.known.state_of_unknown(value, ANYTHING)

    # Control flow --------------------------------------------------------------------------------------------------

    @contextmanager
    def _under_condition(self) -> Generator[None]:
        before, self._conditional = self._conditional, True
        yield
        self._conditional = before

    @contextmanager
    def _inside(self, loop: Loop) -> Generator[None]:
        before = self._loops, self._conditional
        self._loops = (*self._loops, loop)
        self._conditional = self._conditional or not loop.runs
        yield
        self._loops, self._conditional = before

    def _for(self, op: scf.ForOp) -> None:
        loop = enter_for(self, op)
        with self._inside(loop):
            self.visit_block(op.body.block)
        for_results(self, op, loop)

    def _while(self, op: scf.WhileOp) -> None:
        loop = enter_while(self, op)
        with self._inside(loop):
            self.visit_block(op.before_region.block)
            self._forward(edge_to(op.before_region.block.last_op, op.after_region.block))
            with self._under_condition():
                self.visit_block(op.after_region.block)
        self._forget(op.results)

    def _if(self, op: scf.IfOp) -> None:
        with self._under_condition():
            for region in op.regions:
                if region.blocks:
                    self.visit_block(region.block)
        condition = self.state(op.cond)
        for result, values in incoming(region_edges(op) or ()).items():
            left, right = map(self.state, values)
            state = self.known.choose(result, condition, left, right)
            if state is None:
                state = self.known.state_of_unknown(result, causes_of([condition, left, right]))
            self.states[result] = state

    def _partitions(self, op: ttg.WarpSpecializeOp) -> None:
        self.visit_region(op.default_region)
        for region in op.partitions.partition_regions:
            self._forward(edge_to(op.partitions, region.blocks[0]))
            self.visit_region(region)
        self._forget(op.results)

    def _call(self, op: tt.CallOp) -> None:
        callee = self.functions.get(op.callee.string_value())
        if callee is None or not callee.body.blocks or len(self._calls) >= MOST_CALLS:
            self._forget(op.results)
            return
        entry, *returns = call_edges(op, callee)
        self._forward(entry)
        calls, self._calls = self._calls, (*self._calls, op)
        self.visit_region(callee.body)
        self._calls = calls
        for number, result in enumerate(op.results):
            states = [self.state(each.operands[number]) for each in returns]
            state = states[0] if len(states) == 1 else None
            # The next call gives the same operations other values.
            if state is None or not outlives(state, callee):
                state = self.known.state_of_unknown(result, causes_of(states) if len(states) == 1 else ANYTHING)
            self.states[result] = state


def accessed_by(op: Operation) -> OperandAccess | None:
    """The access to global memory that an operation makes; a prefetch is one, too."""
    return global_access(op, Kind.READ | Kind.WRITE | Kind.PREFETCH)


def _arriving(region: Region) -> dict[Block, list[tuple[int, Sequence[SSAValue]]]]:
    """Return the branches to each block: the number of the block that branches, and what it passes."""
    found: dict[Block, list[tuple[int, Sequence[SSAValue]]]] = {}
    for number, end in ((number, block.last_op) for number, block in enumerate(region.blocks)):
        if end is None or not end.successors:
            continue
        for edge in (leaving := edges(end)) or ():
            if isinstance(edge.target, Block):
                found.setdefault(edge.target, []).append((number, edge.operands))
        if leaving is None:
            # What an unknown branch passes is never seen.
            for block in end.successors:
                found.setdefault(block, []).append((len(region.blocks), ()))
    return found


def _is_function(op: Operation) -> bool:
    """True if results depend on operands and constants alone.

    What is free of side effects in other dialects may still read where in the grid, or in which thread, it runs; so may
    inline assembly.
    """
    dialect = op.name.partition(".")[0]
    return (
        dialect in ("arith", "math", "tt") and not isinstance(op, tt.ElementwiseInlineAsmOp) and is_side_effect_free(op)
    )


def outlives(state: State, scope: Operation) -> bool:
    """True if what is known means the same outside of `scope`, of which operations run again."""

    def lasts(form: Polynomial) -> bool:
        return not any(is_inside(scope, symbol) for symbol in form.all_symbols)

    match state:
        case Integer():
            return lasts(state.form)
        case Pointer():
            return state.base is None or lasts(state.offset)
        case Descriptor():
            return all(map(lasts, (state.offset, *state.shape, *state.strides)))
        case Other():
            return True
