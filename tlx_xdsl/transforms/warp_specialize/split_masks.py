"""`tlx-ws-split-masks`: the turns of a loop whose masks are true everywhere run first, in a loop without the masks.

Attention hides the keys after a row's own, or after the last one. Only the last blocks of a row have such keys. A mask
that compares positions is true everywhere up to some turn, which arithmetic finds; from there on the loop is as it was.

Before:
```mlir
scf.for %start = %c0 to %end step %c64 {
  %keep = arith.cmpi slt, %columns(%start), %length : tensor<64x64xi32>
  %masked = arith.select %keep, %scores, %hidden : tensor<64x64xi1>, tensor<64x64xf32>
```
After, in Python:
```python
whole = min(max(length, 0) // 64, cdiv(end, 64)) * 64
for start in range(0, whole, 64):
    masked = scores
for start in range(whole, end, 64):
    masked = tl.where(columns < length, scores, hidden)
```
Done for innermost loops with products, of tasks where there are some, for the masks of selects that are true in the
first turns if in any. All replicas of a task split at the same turn. Numbers are taken not to wrap around in their
type, as all analyses of addresses take them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith as upstream, scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.integers.polynomials import Polynomial
from tlx_xdsl.analysis.integers.symbols import Scalar
from tlx_xdsl.analysis.integers.transfer import bits_of
from tlx_xdsl.analysis.structure.analysis import Structure
from tlx_xdsl.analysis.structure.sums import Sums, counter
from tlx_xdsl.analysis.structure.values import Linear
from tlx_xdsl.dialects import arith, tt, ttg
from tlx_xdsl.dialects.base import as_tensor, scalar_type
from tlx_xdsl.dialects.tlx import ReplicaIdOp

from ..drop_unused import drop_unused
from ..rewriting import Pass, constant, constant_integer, insert_before, ops_of
from .accesses.emission import Emission
from .tasks_of import NOTE, copies_of

_SIGNED = {2: "slt", 3: "sle", 4: "sgt", 5: "sge"}
"""Orders of signed numbers by the numbers of `arith.cmpi`'s predicates (MLIR, `arith` dialect)."""
REARRANGED = (tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp)
"""Operations that repeat or rearrange the elements of a block."""


@dataclass(frozen=True)
class SplitMasksPass(Pass):
    """Split loops at the first turn in which a mask hides anything."""

    name = "tlx-ws-split-masks"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the loops of the module in place."""
        for function in ops_of(op, tt.FuncOp):
            tasks = ops_of(function, ttg.WarpSpecializeOp)
            codes = [
                (region, copies_of(each, number))
                for each in tasks
                for number, region in enumerate(each.partitions.partition_regions)
            ]
            for region, copies in codes or [(function.body, 1)]:
                loops = [loop for loop in region.walk() if isinstance(loop, scf.ForOp) and _computes(loop)]
                if any([_Splitter(region, loop, copies).run() for loop in loops]):
                    drop_unused(function)


def _computes(loop: scf.ForOp) -> bool:
    body = loop.body.block
    has_product = any(isinstance(op, tt.DotOp) for op in body.ops)
    return has_product and not any(isinstance(op, scf.ForOp | scf.WhileOp) for op in body.walk())


class _Splitter:
    def __init__(self, code: Region, loop: scf.ForOp, replicas: int):
        self.code, self.loop, self.replicas = code, loop, replicas
        self.sums = Sums()
        (self.turn,) = counter(loop).symbols

    @cached_property
    def structure(self) -> Structure:
        """The analysis of the code, which loops without masks do not need."""
        return Structure(self.code)

    def run(self) -> bool:
        """Split the loop; say whether there was a mask to leave out."""
        found: dict[SSAValue, tuple[Polynomial, int]] = {}
        for op in self.loop.body.block.ops:
            if isinstance(op, arith.SelectOp) and as_tensor(op.condition.type) is not None:
                for part in _parts(op.condition):
                    if isinstance(part.owner, arith.CmpiOp) and (turns := self._turns_of(part.owner)) is not None:
                        found[part] = turns
        if found:
            self._split(list(found), list(dict.fromkeys(found.values())))
        return bool(found)

    # --- where a mask is true everywhere -------------------------------------------------------------------------

    def _turns_of(self, op: arith.CmpiOp) -> tuple[Polynomial, int] | None:
        """A sum and a step: in the first `sum // step` turns the comparison holds everywhere. None if not so."""
        need = self._of_comparison(op)
        factor = None if need is None else need.coefficient(self.turn)
        if need is None or factor is None or factor.number is None or factor.number <= 0:
            return None
        rest = need - Polynomial.of(self.turn, factor.number)
        if rest.depends_on(self.turn) or any(map(self._is_inside, rest.symbols)):
            return None
        return Polynomial.constant(factor.number) - rest, factor.number

    def _is_inside(self, symbol: object) -> bool:
        """True for a number that the loop computes, which may be another one in each turn."""
        return isinstance(symbol, Scalar) and self.loop.is_ancestor(symbol.value.owner)

    def _of_comparison(self, op: arith.CmpiOp) -> Polynomial | None:
        """The sum that is at most 0 exactly if the comparison holds everywhere; None where that is not known."""
        left, right = (self.structure.of(operand) for operand in op.operands)
        if not isinstance(left, Linear) or not isinstance(right, Linear) or left.terms or right.terms:
            return None
        name = _SIGNED.get(op.predicate.value.data)
        if name is None:
            return None
        difference = left.plus(right, -1) if name in ("slt", "sle") else right.plus(left, -1)
        total = difference.base + (name in ("slt", "sgt"))
        for stride, size in zip(difference.strides, difference.shape, strict=True):
            if stride.number is None:
                return None
            total = total + max(stride.number, 0) * (size - 1)
        return self._for_all_replicas(self.sums.expanded(total))

    def _for_all_replicas(self, total: Polynomial) -> Polynomial | None:
        """The largest value that a sum has in any replica; None where that is not known."""
        for symbol in total.symbols:
            if isinstance(symbol, Scalar) and isinstance(symbol.value.owner, ReplicaIdOp):
                factor = total.coefficient(symbol)
                if factor is None or factor.number is None:
                    return None
                most = self.replicas - 1 if factor.number > 0 else 0
                total = total - Polynomial.of(symbol, factor.number) + factor.number * most
        return total

    # --- the two loops -------------------------------------------------------------------------------------------

    def _split(self, masks: Sequence[SSAValue], counts: Sequence[tuple[Polynomial, int]]) -> None:
        loop, type_ = self.loop, self.loop.lb.type
        bits = bits_of(loop.lb)
        assert bits is not None, "an integer"
        emission = Emission(self.code, self.sums)

        def number(value: int) -> SSAValue:
            return insert_before(loop, constant(value, type_)).results[0]

        def made(op: Operation) -> SSAValue:
            return insert_before(loop, op).results[0]

        distance = loop.ub if constant_integer(loop.lb) == 0 else made(upstream.SubiOp(loop.ub, loop.lb))
        step = constant_integer(loop.step)
        if step != 1:
            less = number(step - 1) if step is not None else made(upstream.SubiOp(loop.step, number(1)))
            distance = made(upstream.DivSIOp(made(upstream.AddiOp(distance, less)), loop.step))
        turns = made(upstream.MaxSIOp(distance, number(0)))
        for total, size in counts:
            most = made(upstream.MaxSIOp(emission.value(total, bits, loop), number(0)))
            turns = made(upstream.MinSIOp(turns, made(upstream.DivSIOp(most, number(size))) if size != 1 else most))
        middle = turns if step == 1 else made(upstream.MuliOp(turns, loop.step))
        if constant_integer(loop.lb) != 0:
            middle = made(upstream.AddiOp(loop.lb, middle))
        middle.name_hint = "whole"
        if isinstance(middle.owner, Operation):
            middle.owner.attributes[NOTE] = StringAttr("masks hide nothing before this: the first loop is without them")

        first = loop.clone({})
        pairs = list(zip(loop.walk(), first.walk(), strict=True))
        for old, new in pairs:
            new.location = old.location
            for before, after in zip(_defined(old), _defined(new), strict=True):
                after.name_hint = before.name_hint
        copies: dict[SSAValue, SSAValue] = {}
        for old, new in pairs:
            copies.update(zip(old.results, new.results, strict=True))
        insert_before(loop, first)
        first.operands[1] = middle
        loop.operands[0] = middle
        _leave_out(first, {copies.get(mask, mask) for mask in masks})
        for index, result in enumerate(_handed_on(first)):
            loop.operands[3 + index] = result


def _handed_on(loop: scf.ForOp) -> list[SSAValue]:
    """Return what a loop hands to the one after it, where it stands: the loop is made anew.

    A block that each turn converts at its end, as the operand of a product, is handed on as it is before, and converted
    between the loops. LLVM moves the conversion to the start of the turn, where two elements make a register. If
    another loop took the converted block, LLVM would hand it on element by element, and ptxas put each pair together
    in each turn: 32 instructions of 457 (H200, Triton 3.6.0, ptxas 13.4, 64 x 128 elements).
    """
    body = loop.body.block
    end = body.last_op
    assert end is not None, "a loop's body ends"
    wide = {
        index: (start.owner.operands[0], turned.owner.operands[0])
        for index, (start, turned) in enumerate(zip(loop.iter_args, end.operands, strict=True))
        if isinstance(start.owner, arith.TruncFOp) and isinstance(turned.owner, arith.TruncFOp)
    }
    wide = {index: each for index, each in wide.items() if each[0].type == each[1].type}
    if not wide:
        return list(loop.results)
    for index, (_, turned) in wide.items():
        argument = body.insert_arg(turned.type, len(body.args), body.args[1 + index].location)
        argument.name_hint = turned.name_hint
    end.operands = [*end.operands, *(turned for _, turned in wide.values())]
    loop.body.detach_block(body)
    starts = [*loop.iter_args, *(start for start, _ in wide.values())]
    made = insert_before(loop, scf.ForOp(loop.lb, loop.ub, loop.step, starts, Region(body)))
    made.attributes.update(loop.attributes)
    results: list[SSAValue] = list(made.results[: len(loop.results)])
    for index, value in zip(wide, made.results[len(results) :], strict=True):
        results[index] = insert_before(loop, arith.TruncFOp(value, scalar_type(results[index].type))).result
    for old, new, argument in zip(loop.results, results, body.args[1:], strict=False):
        new.name_hint = argument.name_hint
        old.replace_all_uses_with(new)
    Rewriter.erase_op(loop)
    return results


def _parts(mask: SSAValue) -> Iterator[SSAValue]:
    """The comparisons that all hold where a mask is true."""
    op = mask.owner
    if isinstance(op, (upstream.AndIOp, *REARRANGED)):
        for operand in op.operands:
            yield from _parts(operand)
    else:
        yield mask


def _leave_out(loop: scf.ForOp, true: set[SSAValue]) -> None:
    """Simplify what a loop does with masks that are true everywhere."""
    for op in list(loop.body.block.ops):
        known = [operand in true for operand in op.operands]
        result = op.results[0] if op.results else None
        if isinstance(op, upstream.AndIOp) and any(known) and result is not None:
            if all(known):
                true.add(result)
            else:
                result.replace_all_uses_with(op.operands[known.index(False)])
        elif isinstance(op, REARRANGED) and known[0] and result is not None:
            true.add(result)
        elif isinstance(op, arith.SelectOp) and known[0]:
            op.result.replace_all_uses_with(op.true_value)


def _defined(op: Operation) -> Iterator[SSAValue]:
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.args
