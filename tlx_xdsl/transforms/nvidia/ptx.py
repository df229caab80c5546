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

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.nvvm import InlinePtxOp
from tlx_xdsl.dialects.ttg import BarrierOp
from tlx_xdsl.dialects.ttg.enums import AddrSpace
from tlx_xdsl.transforms.nvidia.integers import Integers, is_true
from tlx_xdsl.transforms.nvidia.threads import thread_number
from tlx_xdsl.transforms.rewriting import insert_before

_NOBODY = -1
"""No thread has this number."""
_ONE_THREAD = "{ .reg .pred p; setp.eq.s32 p, $0, $1;"
"""How the PTX for one thread begins: the guard `p` holds in it alone."""
_SEEN_BACK = 64
"""Operations that are looked at for the last meeting of the threads: a pass takes time linear in the operations."""


def inline_ptx(code: str, operands: Sequence[SSAValue] = (), results: Sequence[Attribute] = ()) -> InlinePtxOp:
    """PTX that every thread runs: `$0` and so on are the results, and behind them come `operands`, which it reads."""
    return InlinePtxOp(
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
    """Have the first thread of the region run instructions in front of `anchor`, where `predicate` (an i1) holds.

    `code` names `operands`, scalars of 32 or 64 bits, as `{0}`, `{1}`, ..., and guards each instruction by `@p`, such
    as `"@p mbarrier.arrive.shared::cta.b64 _, [{0}];"`; a brace of PTX is doubled.

    Other threads of the region may be anywhere: `wait_for_region` before it has what they did done.
    """
    integers = Integers(anchor)
    leader = integers.value(0) if predicate is None or is_true(predicate) else integers.select(predicate, 0, _NOBODY)
    text = code.format(*(f"${2 + number}" for number in range(len(operands))))
    run(anchor, f"{_ONE_THREAD} {text} }}", [thread_number(anchor), leader, *operands])


def run(anchor: Operation, code: str, operands: Sequence[SSAValue] = ()) -> None:
    """Have every thread of the region run PTX in front of `anchor`; `$0`, `$1`, ... are `operands`."""
    insert_before(anchor, inline_ptx(code, operands))


def wait_for_region(anchor: Operation) -> BarrierOp:
    """Have the threads of the region wait for each other, and see what they did to shared memory; gives the meeting.

    Where they have just met, and have touched no memory since, nothing is needed.
    """
    before = anchor.prev_op
    for _ in range(_SEEN_BACK):
        if before is None or not _leaves_memory(before):
            break
        before = before.prev_op
    if isinstance(before, BarrierOp):
        return before
    return insert_before(anchor, BarrierOp(properties={"addrSpace": IntegerAttr(AddrSpace.Local, i32)}))


def _leaves_memory(op: Operation) -> bool:
    """Whether an operation computes only, or is what one thread has started since the threads have met."""
    if isinstance(op, InlinePtxOp):
        return op.ptx_code.data.startswith(("mapa.", _ONE_THREAD))
    return is_side_effect_free(op)
