"""Running the addresses of a kernel: what each access touches in all programs of a grid at once.

Only numbers, masks and pointers are computed, by the transfer functions of `vector_domain.py`; nothing is loaded.
Programs go through control flow together, those that do not take a way being left out on it. Where a way depends on
what is loaded, both are taken, and what is touched there *may* be touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import builtin, cf, scf
from xdsl.dialects.arith import AndIOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tlx_xdsl.analysis.integers.transfer import TRANSFER, bits_of, is_pointer, transfer
from tlx_xdsl.dialects import arith, tt, ttg
from tlx_xdsl.dialects.regions import edge_to, edges
from tlx_xdsl.text.diagnostics import source_location

from .touches import Touch, UnknownAccess, access_kind, touch_of, written_by_ptx
from .values import Booleans, Number, Truth, Unknown, Value, base_of, merged
from .vector_domain import Programs, VectorDomain

LIMIT = 1_000_000
"""Operations that a walk runs unless a limit is given, so that a loop that never ends does."""


class TooLong(Exception):
    """The walk would take too many operations, or goes round in a way that is not followed."""


@dataclass(frozen=True, eq=False)
class _Way:
    """Values that arrive somewhere in some programs."""

    active: Booleans
    sure: bool
    values: Sequence[Value]


class Walk:
    """One walk through a function of `module` for some programs."""

    def __init__(
        self,
        module: builtin.ModuleOp,
        programs: Programs,
        emit: Callable[[Touch | UnknownAccess], None],
        limit: int = LIMIT,
    ):
        self._programs = programs
        self._limit = limit
        self._emit = emit
        self._values: dict[SSAValue, Value] = {}
        self._functions = {op.sym_name.data: op for op in module.walk() if isinstance(op, tt.FuncOp)}
        self._depth = 0
        self._steps = 0

    def run(self, function: tt.FuncOp, arguments: Mapping[SSAValue, Value]) -> None:
        """Walk through `function`.

        Raises TooLong where that has no end.
        """
        everybody = np.ones(self._programs.count, np.bool_)
        self._graph(function.body, [arguments[each] for each in function.body.blocks[0].args], everybody, sure=True)

    # --- values --------------------------------------------------------------------------------------------------

    def _value(self, value: SSAValue) -> Value:
        return self._values.get(value, Unknown("it is not followed"))

    def _bind(self, names: Sequence[SSAValue], values: Iterable[Value]) -> None:
        for name, value in zip(names, values, strict=True):
            self._values[name] = value

    def _all(self, names: Iterable[SSAValue]) -> list[Value]:
        return [self._value(name) for name in names]

    def _lose(self, names: Iterable[SSAValue], reason: str) -> None:
        for name in names:
            self._values[name] = Unknown(reason)

    def _numbers(self, value: SSAValue) -> NDArray[Any] | None:
        """A scalar as one number for each program; None for one that is not known."""
        known = self._value(value)
        if isinstance(known, Truth):
            return np.broadcast_to(known.total, self._programs.count) if known.exact else None
        return np.broadcast_to(known.total, self._programs.count) if isinstance(known, Number) else None

    # --- blocks --------------------------------------------------------------------------------------------------

    def _block(self, block: Block, active: Booleans, sure: bool) -> Operation | None:
        """Run the operations of a block but its terminator, which is returned."""
        for op in block.ops:
            self._steps += 1
            if self._steps > self._limit:
                raise TooLong(f"more than {self._limit:,} operations would have to be run")
            if op is block.last_op and op.has_trait(IsTerminator):
                return op
            self._operation(op, active, sure)
        return None

    def _graph(self, region: Region, values: Sequence[Value], active: Booleans, *, sure: bool) -> list[Value]:
        """Run a region of several blocks without loops; what it returns."""
        arriving: dict[Block, list[_Way]] = {region.blocks[0]: [_Way(active, sure, values)]}
        returned: list[_Way] = []
        for block in _in_order(region):
            ways = arriving.get(block, [])
            if not ways:
                continue
            here = _joined(ways)
            self._bind(block.args, here.values)
            end = self._block(block, here.active, here.sure)
            for target, way in self._ways(end, here):
                (returned if target is None else arriving.setdefault(target, [])).append(way)
        return list(_joined(returned).values) if returned else []

    def _ways(self, end: Operation | None, here: _Way) -> list[tuple[Block | None, _Way]]:
        """The successors of a block, and the programs that branch to each."""
        if end is None:
            return []
        if not end.successors:
            return [(None, _Way(here.active, here.sure, self._all(end.operands)))]
        if (leaving := edges(end)) is None:
            raise TooLong(f"the branch '{end.name}'{_at(end)} is not followed")
        masks, sure = ((here.active,), here.sure)
        if isinstance(end, cf.ConditionalBranchOp):
            masks, sure = self._masks(end.cond, here.active, here.sure)
        ways = zip(masks, leaving, strict=True)
        # A branch leads to blocks only.
        return [
            (edge.target, _Way(mask, sure, self._all(edge.operands)))
            for mask, edge in ways
            if mask.any() and isinstance(edge.target, Block)
        ]

    def _masks(self, condition: SSAValue, active: Booleans, sure: bool) -> tuple[tuple[Booleans, ...], bool]:
        """The programs for which a condition is true, and those for which it is false; and True if that is certain."""
        known = self._numbers(condition)
        return ((active, active), False) if known is None else (_split(active, known), sure)

    # --- operations ----------------------------------------------------------------------------------------------

    def _operation(self, op: Operation, active: Booleans, sure: bool) -> None:
        match op:
            case scf.ForOp():
                self._for(op, active, sure)
            case scf.WhileOp():
                self._while(op, active, sure)
            case scf.IfOp():
                self._if(op, active, sure)
            case scf.ExecuteRegionOp():
                self._bind(op.results, self._graph(op.region, [], active, sure=sure))
            case tt.CallOp():
                self._call(op, active, sure)
            case ttg.WarpSpecializeOp():
                self._bind(op.results, self._graph(op.default_region, [], active, sure=sure))
                for region in op.partitions.partition_regions:
                    captures = edge_to(op.partitions, region.blocks[0]).operands
                    self._graph(region, self._all(captures), active, sure=sure)
            case _ if access_kind(op) is not None:
                self._emit(touch_of(op, self._value, active, sure=sure))
                self._lose(op.results, f"it is loaded{_at(op)}")
            case _ if op.regions and any(access_kind(inner) is not None for inner in op.walk()):
                self._unfollowed_regions(op, active)
            case _:
                self._compute(op, active)

    def _compute(self, op: Operation, active: Booleans) -> None:
        if (hidden := written_by_ptx(op)) is not None:
            self._emit(hidden)
        if not any(map(_is_followed, op.results)):
            return
        operands = self._all(op.operands)
        unknown = next((value for value in operands if isinstance(value, Unknown)), None)
        result: Value | None = unknown
        if type(op) in TRANSFER:
            domain = VectorDomain(self._programs, active)
            result = transfer(domain, op, operands) if unknown is None else self._partly(op, operands, unknown)
        self._bind(op.results, [result or Unknown(f"it comes from '{op.name}'{_at(op)}")] * len(op.results))

    def _partly(self, op: Operation, operands: Sequence[Value], unknown: Unknown) -> Value:
        """The known part of a result with an operand that is not: the array of a pointer, half of a conjunction."""
        known = next((value for value in operands if not isinstance(value, Unknown)), None)
        if isinstance(op, AndIOp) and isinstance(known, Truth):
            return Truth(known.factors, exact=False)
        # Of a choice both may be; of a shape there is one operand, of `addptr` the first is the pointer.
        bases = {base_of(value) for value in (operands[1:] if isinstance(op, arith.SelectOp) else operands[:1])}
        return Unknown(unknown.reason, bases.pop() if len(bases) == 1 else None)

    def _call(self, op: tt.CallOp, active: Booleans, sure: bool) -> None:
        function = self._functions.get(op.callee.string_value())
        if function is None or not function.body.blocks or self._depth > 50:
            raise TooLong(f"a call of '{op.callee.string_value()}'{_at(op)} is not followed")
        self._depth += 1
        results = self._graph(function.body, self._all(op.arguments), active, sure=sure)
        self._depth -= 1
        if len(results) == len(op.results):
            self._bind(op.results, results)
        else:
            self._lose(op.results, f"it comes from a call{_at(op)}")

    def _if(self, op: scf.IfOp, active: Booleans, sure: bool) -> None:
        masks, is_sure = self._masks(op.cond, active, sure)
        ways: list[_Way] = []
        for edge, mask in zip(edges(op) or (), masks, strict=True):
            if not mask.any():
                continue
            if isinstance(edge.target, Block):
                edge = edge_to(self._block(edge.target, mask, is_sure), op)
            ways.append(_Way(mask, is_sure, self._all(edge.operands)))
        if op.results:
            self._bind(op.results, _joined(ways).values)

    def _for(self, op: scf.ForOp, active: Booleans, sure: bool) -> None:
        lower, upper, step = (self._numbers(value) for value in (op.lb, op.ub, op.step))
        if lower is None or upper is None or step is None or (step <= 0)[active].any():
            reason = f"the bounds of the loop{_at(op)} are not known"
            self._once([op.body], reason, active)
            self._lose(op.results, reason)
            return
        body = op.body.block
        bits = bits_of(body.args[0]) or 64
        entry, again = edge_to(op, body), edge_to(body.last_op, body)
        carried, counter = self._all(entry.operands), lower
        going = active & (counter < upper)
        while going.any():
            # Programs that have left the loop keep a counter that no transfer function needs to wrap.
            self._bind(body.args[:1], [Number((np.where(going, counter, lower),), bits)])
            self._bind(entry.inputs, carried)
            self._block(body, going, sure)
            carried = _carried(going, active, self._all(again.operands), carried)
            counter = counter + step
            going = going & (counter < upper)
        self._bind(edge_to(op, op).inputs, carried)

    def _while(self, op: scf.WhileOp, active: Booleans, sure: bool) -> None:
        before, after = op.before_region.block, op.after_region.block
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp)
        entry, onward, again = edge_to(op, before), edge_to(condition, after), edge_to(after.last_op, before)
        carried: list[Value] = self._all(entry.operands)
        results: list[_Way] = []
        going = active
        while going.any():
            self._bind(entry.inputs, carried)
            self._block(before, going, sure)
            known, forwarded = self._numbers(condition.condition), self._all(onward.operands)
            if known is None:
                reason = f"the end of the loop{_at(op)} is not known"
                self._once([op.before_region, op.after_region], reason, going)
                self._lose(op.results, reason)
                return
            on, off = _split(going, known)
            results.append(_Way(off, sure, forwarded))
            if on.any():
                self._bind(onward.inputs, forwarded)
                self._block(after, on, sure)
                carried = self._all(again.operands)
            going = on
        if op.results and results:
            self._bind(op.results, _joined([way for way in results if way.active.any()] or results).values)

    def _once(self, regions: Sequence[Region], reason: str, active: Booleans) -> None:
        """Pass through the body of a loop of which nothing is known, so that its accesses are reported."""
        for region in regions:
            self._lose(region.blocks[0].args, reason)
            self._block(region.blocks[0], active, sure=False)

    def _unfollowed_regions(self, op: Operation, active: Booleans) -> None:
        reason = f"it comes from '{op.name}'{_at(op)}"
        self._once([region for region in op.regions if region.blocks], reason, active)
        self._lose(op.results, reason)


def _is_followed(value: SSAValue) -> bool:
    """True if it is a number, mask, pointer or descriptor: all others do not matter."""
    return bits_of(value) is not None or is_pointer(value) or isinstance(value.type, tt.TensorDescType)


def _split(active: Booleans, condition: Any) -> tuple[Booleans, Booleans]:
    return active & (condition != 0), active & (condition == 0)


def _carried(going: Booleans, active: Booleans, new: Sequence[Value], old: Sequence[Value]) -> list[Value]:
    """The values that a loop carries: new ones in programs that go on, else old ones."""
    if bool((going == active).all()):
        return list(new)
    return [merged(going, after, before) for after, before in zip(new, old, strict=True)]


def _joined(ways: Sequence[_Way]) -> _Way:
    """Joins the programs and values of all ways into a block."""
    result = ways[0]
    for way in ways[1:]:
        if np.any(result.active & way.active):
            # Both may be taken by one program: it depends on what is not known.
            values: list[Value] = [
                one if one is other else Unknown("it depends on the way that a program takes")
                for one, other in zip(result.values, way.values, strict=True)
            ]
        else:
            values = [merged(way.active, one, other) for one, other in zip(way.values, result.values, strict=True)]
        result = _Way(result.active | way.active, result.sure and way.sure, values)
    return result


def _in_order(region: Region) -> list[Block]:
    """The blocks such that each comes after those that branch to it.

    Raises TooLong where they go round.
    """
    done: list[Block] = []
    state: dict[Block, bool] = {}

    def visit(block: Block) -> None:
        state[block] = False
        last = block.last_op
        for target in () if last is None else last.successors:
            if state.get(target) is False:
                raise TooLong("blocks that branch backwards are not followed")
            if target not in state:
                visit(target)
        state[block] = True
        done.append(block)

    visit(region.blocks[0])
    return done[::-1]


def _at(op: Operation) -> str:
    place = source_location(op.location) if hasattr(op, "location") else None
    return "" if place is None else f" in line {place.line}"
