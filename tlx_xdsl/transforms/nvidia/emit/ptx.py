"""PTX in the middle of Triton's IR: of every thread, of each element, and of one thread of a region.

For one thread, the condition compares the thread's number with a register: no special register has that number in a
partition, and PTX refuses a constant as a guard.

```mlir
nvvm.inline_ptx "{ .reg .pred p; setp.eq.s32 p, $0, $1; @p mbarrier.arrive.shared::cta.b64 _, [$2]; }" ro(%t, %c0, %a)
```
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import nvvm, tt, ttg
from tlx_xdsl.transforms.rewriting import insert_before

from .integers import Integers, is_true
from .threads import thread_number

_NO_THREAD = -1
"""No thread has this number."""
_ONE_THREAD = "{ .reg .pred p; setp.eq.s32 p, $0, $1;"
"""The begin of PTX for one thread: the guard `p` holds in it alone."""
_SEEN_BACK = 64
"""Operations that are searched for the last barrier of the threads: a pass takes time linear in the operations."""


def inline_ptx(code: str, operands: Sequence[SSAValue] = (), results: Sequence[Attribute] = ()) -> nvvm.InlinePtxOp:
    """PTX that every thread runs: `$0` and so on are the results, followed by `operands`, which it reads."""
    return nvvm.InlinePtxOp(
        operands=[list(operands), [], None], properties={"ptxCode": StringAttr(code)}, result_types=[list(results)]
    )


def elementwise_ptx(
    code: str, constraints: str, pack: int, operands: Sequence[SSAValue], result: Attribute, *, pure: bool
) -> tt.ElementwiseInlineAsmOp:
    """PTX for each `pack` of elements that a thread holds, with the constraints of LLVM's inline assembly."""
    return tt.ElementwiseInlineAsmOp(
        operands=[list(operands)],
        properties={
            "asm_string": StringAttr(code),
            "constraints": StringAttr(constraints),
            "packed_element": IntegerAttr(pack, i32),
            "pure": BoolAttr.from_bool(pure),
        },
        result_types=[[result]],
    )


def run_in_one_thread(
    anchor: Operation, code: str, operands: Sequence[SSAValue], *, predicate: SSAValue | None = None
) -> None:
    """Have the first thread of the region run instructions before `anchor`, where `predicate` (an i1) holds.

    `code` names `operands`, scalars of 32 or 64 bits, as `{0}`, `{1}`, ..., and guards each instruction by `@p`, such
    as `"@p mbarrier.arrive.shared::cta.b64 _, [{0}];"`; a brace of PTX is doubled.

    It does not wait for the other threads of the region: `wait_for_region` does.
    """
    integers = Integers(anchor)
    leader = integers.value(0) if predicate is None or is_true(predicate) else integers.select(predicate, 0, _NO_THREAD)
    text = code.format(*(f"${2 + number}" for number in range(len(operands))))
    run(anchor, f"{_ONE_THREAD} {text} }}", [thread_number(anchor), leader, *operands])


def run(anchor: Operation, code: str, operands: Sequence[SSAValue] = ()) -> None:
    """Have every thread of the region run PTX before `anchor`; `$0`, `$1`, ... are `operands`."""
    insert_before(anchor, inline_ptx(code, operands))


def wait_for_region(anchor: Operation) -> ttg.BarrierOp:
    """Insert a barrier of the region's threads, after which they see each other's writes to shared memory, and give it.

    After a barrier without accesses to memory since, no other is needed.
    """
    before = anchor.prev_op
    for _ in range(_SEEN_BACK):
        if before is None or not _leaves_memory(before):
            break
        before = before.prev_op
    if isinstance(before, ttg.BarrierOp):
        return before
    return insert_before(anchor, ttg.BarrierOp.of(ttg.AddrSpace.Local))


def _leaves_memory(op: Operation) -> bool:
    """True if an operation computes only, or is PTX that one thread has issued since the last barrier."""
    if isinstance(op, nvvm.InlinePtxOp):
        return op.ptx_code.data.startswith(("mapa.", _ONE_THREAD))
    return is_side_effect_free(op)
