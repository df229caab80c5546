"""Are two modules equal up to names, locations and the order of operations without effects?

Both modules are walked together. Effects are paired in their order (see `effects`), and everything that they use must
be paired too: operations by name, attributes, types and operands, regions by what stands in them. Equal expressions
count as one value wherever they stand (each side is value-numbered), so hoisting and common subexpressions make no
difference. A value of one side has one partner on the other side, so the walk is linear.

What a loop, a branch, a block or a task takes in is a bound variable: its position doesn't matter, only that one
variable of one side always stands for the same one of the other side, with equal values at every entry. What nothing
uses isn't compared. Operands are never exchanged, not even of commutative operations.
"""

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from tests.oracle.effects import is_read
from tests.oracle.explain import described, place
from tests.oracle.normal_text import normalised
from tests.oracle.sides import (
    Carried,
    Difference,
    Reason,
    Side,
    attributes_of,
    callee,
    jump_arguments,
    last_operands,
    only_different,
    visibility,
)
from tlx_xdsl.text.parser import parse_module


def difference(first: str, second: str) -> str | None:
    """Return why two texts differ, in words for a reader of both; None if they are equal.

    The modules' attributes of the launch (`ttg.num-warps` and the like) don't count: stock adds them later.
    """
    if normalised(first) == normalised(second):
        return None
    return difference_of_modules(parse_module(first), parse_module(second))


def difference_of_modules(first: ModuleOp, second: ModuleOp) -> str | None:
    """Return why two modules differ; see `difference`."""
    try:
        _Comparison(first, second).run()
    except Difference as found:
        return str(found)
    return None


class _Comparison:
    def __init__(self, first: ModuleOp, second: ModuleOp) -> None:
        self._first, self._second = Side(first), Side(second)
        self._values: dict[int, int] = {}
        self._values_back: dict[int, int] = {}
        self._operations: dict[Operation, Operation] = {}
        self._operations_back: dict[Operation, Operation] = {}
        self._blocks: dict[Block, Block] = {}
        self._blocks_back: dict[Block, Block] = {}
        self._carried: dict[tuple[object, str], Carried] = {}
        self._work: list[Callable[[], None]] = []

    def run(self) -> None:
        attributes = [
            {name: value for name, value in attributes_of(side.module).items() if not name.startswith("ttg.")}
            for side in (self._first, self._second)
        ]
        if attributes[0] != attributes[1]:
            raise Difference(f"the modules' attributes differ: {attributes[0]} and {attributes[1]}")
        public = [
            {name for name, function in side.functions.items() if visibility(function) == "public"}
            for side in (self._first, self._second)
        ]
        if public[0] != public[1]:
            raise Difference(f"the public functions differ: {sorted(public[0])} and {sorted(public[1])}")
        for name in sorted(public[0]):
            self._pair_functions(name, name, None)
        while self._work:
            self._work.pop()()

    def _differ(self, what: str, first: object, second: object, reason: Reason | None) -> Difference:
        return Difference(f"{what} differ:\n  1: {first}\n  2: {second}" + (f"\n{reason}" if reason else ""))

    # --- functions and blocks ------------------------------------------------------------------------------------

    def _pair_functions(self, first: str, second: str, reason: Reason | None) -> None:
        f, s = self._first.functions[first], self._second.functions[second]
        if self._operations.get(f) is s:
            return
        if f in self._operations or s in self._operations_back:
            raise self._differ("the callees", first, second, reason)
        self._operations[f], self._operations_back[s] = s, f
        one, other = attributes_of(f), attributes_of(s)
        if visibility(f) != "public":
            del one["sym_name"], other["sym_name"]
        if one != other:
            raise self._differ(f"attributes of {first}", *only_different(one, other), reason)
        self._pair_regions(f.regions[0], s.regions[0], reason)

    def _pair_regions(self, first: Region, second: Region, reason: Reason | None) -> None:
        """Pair the regions' entries; what other blocks there are is reached from them."""
        if _does_nothing(first) and _does_nothing(second):
            return
        if bool(first.blocks) != bool(second.blocks):
            raise self._differ("the regions (one is empty)", *(place(r.parent_op()) for r in (first, second)), reason)
        if first.blocks:
            self._pair_blocks(first.blocks[0], second.blocks[0], reason)

    def _pair_blocks(self, first: Block, second: Block, reason: Reason | None) -> None:
        if self._blocks.get(first) is second:
            return
        if first in self._blocks or second in self._blocks_back:
            raise self._differ("the jumps", *(place(block.first_op) for block in (first, second)), reason)
        self._blocks[first], self._blocks_back[second] = second, first
        one, other = self._first.effects.of(first), self._second.effects.of(second)
        for f, s in zip(one, other, strict=False):
            if f.name != s.name:
                raise self._differ(
                    "the effects, in their order,", f"{f.name} [{place(f)}]", f"{s.name} [{place(s)}]", reason
                )
            self._operations[f], self._operations_back[s] = s, f
        if len(one) != len(other):
            more = max(one, other, key=len)[min(len(one), len(other))]
            words = f"{more.name} [{place(more)}]"
            raise self._differ(
                "the effects", *((words, "nothing") if len(one) > len(other) else ("nothing", words)), reason
            )
        # The last work is done first: the terminator comes after the effects.
        self._later(lambda: self._terminators(first.last_op, second.last_op, reason))
        for f, s in zip(reversed(one), reversed(other), strict=True):
            self._later(lambda f=f, s=s: self._open(f, s, reason))

    def _later(self, work: Callable[[], None]) -> None:
        self._work.append(work)

    def _terminators(self, first: Operation | None, second: Operation | None, reason: Reason | None) -> None:
        assert first is not None
        assert second is not None
        reason = Reason(f"{first.name} [{place(first)}] / [{place(second)}]", reason)
        self._check(first, second, reason)
        match first.name:
            case "scf.yield" | "cf.br" | "ttg.warp_specialize.partitions":
                pass
            case "scf.condition" | "cf.cond_br":
                self._same(first.operands[0], second.operands[0], reason)
            case _:
                for f, s in zip(first.operands, second.operands, strict=True):
                    self._same(f, s, reason)
        arguments = (jump_arguments(first), jump_arguments(second))
        for index, (f, s) in enumerate(zip(first.successors, second.successors, strict=True)):
            self._pair_blocks(f, s, reason)
            carried = self._carried.setdefault((f, "block"), Carried())
            way = (arguments[0][index], arguments[1][index])
            carried.ways_in.append(way)
            for i, j in carried.pairs.items():
                self._same(way[0][i], way[1][j], reason)

    # --- operations ----------------------------------------------------------------------------------------------

    def _check(self, first: Operation, second: Operation, reason: Reason | None) -> None:
        """Compare what an operation says itself, without its operands and regions."""
        words = f"{first.name} [{place(first)}]", f"{second.name} [{place(second)}]"
        if first.name != second.name:
            raise self._differ("operations", *words, reason)
        one, other = attributes_of(first), attributes_of(second)
        if first.name == "tt.call":
            del one["callee"], other["callee"]
        # What is carried may be permuted, and what is unused doesn't count.
        carries = first.name in ("scf.if", "scf.for", "scf.while", "scf.yield", "scf.condition", "cf.br", "cf.cond_br")
        if carries:
            one.pop("operandSegmentSizes", None)
            other.pop("operandSegmentSizes", None)
        if one != other:
            raise self._differ(f"attributes of {words[0]} / {words[1]}", *only_different(one, other), reason)
        if carries:
            return
        if len(first.operands) != len(second.operands):
            raise self._differ(
                f"numbers of operands of {words[0]} / {words[1]}", len(first.operands), len(second.operands), reason
            )
        types = [[str(result.type) for result in op.results] for op in (first, second)]
        if types[0] != types[1]:
            raise self._differ(f"result types of {words[0]} / {words[1]}", *types, reason)

    def _open(self, first: Operation, second: Operation, outer: Reason | None) -> None:
        """Compare two operations that are paired already: what they say, use and hold."""
        reason = Reason(f"{first.name} [{place(first)}] / [{place(second)}]", outer)
        self._check(first, second, reason)
        carried = self._carried
        match first.name:
            case "scf.if":
                self._same(first.operands[0], second.operands[0], reason)
                for f, s in zip(first.regions, second.regions, strict=True):
                    self._pair_regions(f, s, reason)
                ways = [
                    (last_operands(f), last_operands(s)) for f, s in zip(first.regions, second.regions, strict=True)
                ]
                carried[first, "results"] = Carried(ways_in=ways)
            case "scf.for":
                for f, s in zip(first.operands[:3], second.operands[:3], strict=True):
                    self._same(f, s, reason)
                yields = (last_operands(first.regions[0]), last_operands(second.regions[0]))
                carried[first, "results"] = Carried(ways_in=[(first.operands[3:], second.operands[3:]), yields])
                self._pair_regions(first.regions[0], second.regions[0], reason)
            case "scf.while":
                yields = (last_operands(first.regions[1]), last_operands(second.regions[1]))
                carried[first, "before"] = Carried(ways_in=[(first.operands, second.operands), yields])
                tests = (last_operands(first.regions[0])[1:], last_operands(second.regions[0])[1:])
                carried[first, "results"] = Carried(ways_in=[tests])
                for f, s in zip(first.regions, second.regions, strict=True):
                    self._pair_regions(f, s, reason)
            case "ttg.warp_specialize.partitions":
                for f, s in zip(first.regions, second.regions, strict=True):
                    self._carried[f.blocks[0], "block"] = Carried(ways_in=[(first.operands, second.operands)])
                    self._pair_regions(f, s, reason)
            case _:
                if first.name == "tt.call":
                    self._pair_functions(callee(first), callee(second), reason)
                for f, s in zip(first.regions, second.regions, strict=True):
                    self._pair_regions(f, s, reason)
                for index, (f, s) in enumerate(zip(first.operands, second.operands, strict=True)):
                    self._same(f, s, Reason(f"operand {index} of {reason.text}", outer))

    # --- values --------------------------------------------------------------------------------------------------

    def _same(self, first: SSAValue, second: SSAValue, reason: Reason | None) -> None:
        """Pair two values; what they are made of is compared later."""
        one, other = self._first.number(first), self._second.number(second)
        if self._values.get(one, -1) == other:
            return
        if first.type != second.type:
            raise self._differ("values", described(first), described(second), reason)
        if isinstance(first, OpResult) and isinstance(second, OpResult):
            if first.op.name != second.op.name:
                raise self._differ("values", described(first), described(second), reason)
        elif not (isinstance(first, BlockArgument) and isinstance(second, BlockArgument)):
            raise self._differ("values", described(first), described(second), reason)
        if one in self._values or other in self._values_back:
            self._explain_conflict(first, second, reason)
        self._values[one], self._values_back[other] = other, one
        if isinstance(first, OpResult):
            assert isinstance(second, OpResult)
            self._later(lambda: self._same_results(first, second, reason))
        else:
            assert isinstance(first, BlockArgument)
            assert isinstance(second, BlockArgument)
            self._later(lambda: self._same_arguments(first, second, reason))

    def _same_results(self, first: OpResult, second: OpResult, outer: Reason | None) -> None:
        f, s = first.op, second.op
        reason = Reason(f"{f.name} [{place(f)}] / [{place(s)}]", outer)
        is_new = f not in self._operations and s not in self._operations_back
        if not is_new and self._operations.get(f) is not s:
            # Equal expressions may stand in several places, effects and regions may not.
            if f.regions or is_read(f) or self._first.effects.is_ordered(f):
                raise self._differ("values (of different effects)", described(first), described(second), outer)
            is_new = True
        if is_new:
            if self._first.effects.is_ordered(f) or self._second.effects.is_ordered(s):
                raise self._differ("values (of different effects)", described(first), described(second), outer)
            if is_read(f) or f.regions:
                self._operations[f], self._operations_back[s] = s, f
            if is_read(f):
                self._check_places(first, second, outer)
            self._open(f, s, outer)
        if (f, "results") in self._carried:
            self._bind(f, first.index, second.index, reason)
        elif first.index != second.index:
            raise self._differ("results", described(first), described(second), reason)

    def _check_places(self, first: OpResult, second: OpResult, reason: Reason | None) -> None:
        """Reads stand in the same block, after the same effects."""
        f, s = first.op, second.op
        block, partner = f.parent_block(), s.parent_block()
        assert block is not None
        if self._blocks.get(block) is not partner:
            raise self._differ("reads (in different blocks)", described(first), described(second), reason)
        one, other = self._first.effects.before(f), self._second.effects.before(s)
        if one != other:
            raise self._differ(
                "reads (after different effects)",
                f"{described(first)} after {one}",
                f"{described(second)} after {other}",
                reason,
            )

    def _same_arguments(self, first: BlockArgument, second: BlockArgument, reason: Reason | None) -> None:
        if self._blocks.get(first.block) is not second.block:
            raise self._differ("values (of different blocks)", described(first), described(second), reason)
        owner = first.block.parent_op()
        assert owner is not None
        offset, key = 0, (owner, "results")
        match owner.name:
            case "scf.for":
                offset = 1
            case "scf.while":
                key = (owner, "before" if first.block.parent is owner.regions[0] else "results")
            case _:
                key = (first.block, "block")
        i, j = first.index - offset, second.index - offset
        if key in self._carried and min(i, j) >= 0:
            self._bind_in(self._carried[key], i, j, described(first), described(second), reason)
        elif i != j:
            raise self._differ("arguments", f"{i}: {described(first)}", f"{j}: {described(second)}", reason)

    def _bind(self, owner: Operation, i: int, j: int, reason: Reason) -> None:
        partner = self._operations[owner]
        words = described(owner.results[i]), described(partner.results[j])
        self._bind_in(self._carried[owner, "results"], i, j, *words, reason)

    def _bind_in(self, carried: Carried, i: int, j: int, first: str, second: str, reason: Reason | None) -> None:
        if carried.pairs.get(i, -1) == j:
            return
        if i in carried.pairs or j in carried.back:
            raise self._differ("carried values (one stands for two)", f"{i}: {first}", f"{j}: {second}", reason)
        carried.pairs[i], carried.back[j] = j, i
        for one, other in carried.ways_in:
            self._same(one[i], other[j], Reason(f"what is carried in {first}", reason))

    def _explain_conflict(self, first: SSAValue, second: SSAValue, reason: Reason | None) -> None:
        """Raise the first difference below two values of which one has another partner already."""
        pending: list[tuple[SSAValue, SSAValue, Reason | None]] = [(first, second, reason)]
        seen: set[tuple[SSAValue, SSAValue]] = set()
        while pending:
            f, s, why = pending.pop()
            if (f, s) in seen or self._values.get(self._first.number(f), -1) == self._second.number(s):
                continue
            seen.add((f, s))
            if not (isinstance(f, OpResult) and isinstance(s, OpResult)):
                raise self._differ("values", described(f), described(s), why)
            self._check(f.op, s.op, why)
            if f.index != s.index or f.op.regions or is_read(f.op) or self._first.effects.is_ordered(f.op):
                raise self._differ("values", described(f), described(s), why)
            pending += [(a, b, why) for a, b in zip(f.op.operands, s.op.operands, strict=True)]
        raise self._differ("values (one has another partner)", described(first), described(second), reason)


def _does_nothing(region: Region) -> bool:
    """Return whether a region is empty, or no more than the end of a side of a branch that passes nothing on."""
    ops = [op for block in region.blocks for op in block.ops]
    return all(op.name == "scf.yield" and not op.operands for op in ops)
