"""`tlx-lower-named-barriers`: give the user's named barriers hardware numbers that are free.

A thread block has 16 named barriers (PTX ISA, "bar"). Upstream Triton takes number 0 for the default warps, 1 for
starting partitions, and 2 + i for partition i; the user's come after. Constant ids are numbered densely in their
order, so that any 16 - 2 - partitions different ids fit, whatever their values; where a kernel computes an id, all ids
keep their distances. The text is PTX that Triton passes on as it is: it takes `nvvm.barrier` for its own barrier.

Before, with two partitions:
```mlir
%c9 = arith.constant 9 : i32
tlx.named_barrier_wait %c9, 256
```
After:
```mlir
nvvm.inline_ptx "bar.sync 4, 256;"
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects.arith import AddiOp, ConstantOp
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import SSAValue

from tlx_xdsl.dialects.tlx import NAMED_BARRIERS, NamedBarrierArriveOp, NamedBarrierWaitOp
from tlx_xdsl.dialects.ttg import WarpSpecializeOp
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, constant_integer, insert_before, ops_of, replace
from .emit.ptx import inline_ptx

_NamedBarrierOp: TypeAlias = NamedBarrierWaitOp | NamedBarrierArriveOp

_TRITONS_OWN = 2
"""Barriers that upstream Triton uses besides one per partition."""


class LowerNamedBarriersPass(Pass):
    """Replace the operations on named barriers by PTX."""

    name = "tlx-lower-named-barriers"

    def run(self, op: ModuleOp) -> None:
        """Number the barriers of the module, and rewrite their uses.

        Raises CompilationError when there are more than the hardware has.
        """
        uses = ops_of(op, NamedBarrierWaitOp, NamedBarrierArriveOp)
        if not uses:
            return
        partitions = max((len(inner.num_warps) for inner in ops_of(op, WarpSpecializeOp)), default=0)
        base = _TRITONS_OWN + partitions
        ids = [_known(use.id) for use in uses]
        numbers = _numbers([known for known in ids if known is not None], dense=None not in ids)
        for use, known in zip(uses, ids, strict=True):
            if known is not None and base + numbers[known] >= NAMED_BARRIERS:
                raise error_at(use, _too_many(partitions, sorted(numbers)))
            _lower(use, base, None if known is None else numbers[known])


def _known(value: SSAValue) -> int | None:
    """The number that an id is, if it is a constant or a sum of constants."""
    if isinstance(value.owner, AddiOp):
        terms = [_known(term) for term in value.owner.operands]
        return None if None in terms else sum(term for term in terms if term is not None)
    return constant_integer(value)


def _numbers(ids: Sequence[int], *, dense: bool) -> dict[int, int]:
    """The number of each id, counted from the end of Triton's own barriers."""
    return {known: number if dense else known for number, known in enumerate(sorted(set(ids)))}


def _too_many(partitions: int, ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids))
    return (
        f"a thread block has {NAMED_BARRIERS} named barriers: Triton uses {_TRITONS_OWN}, {partitions} partitions one "
        f"each, and the kernel asks for {len(ids)} ({shown})"
    )


def _lower(op: _NamedBarrierOp, base: int, number: int | None) -> None:
    instruction = "bar.sync" if isinstance(op, NamedBarrierWaitOp) else "bar.arrive"
    threads = op.threads.value.data
    if number is not None:
        code, operands = f"{instruction} {base + number}, {threads};", []
    else:
        offset = insert_before(op, ConstantOp(IntegerAttr(base, i32)))
        code, operands = f"{instruction} $0, {threads};", [insert_before(op, AddiOp(op.id, offset.result)).result]
    replace(op, inline_ptx(code, operands))
