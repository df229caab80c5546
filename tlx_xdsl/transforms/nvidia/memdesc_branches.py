"""`tlx-keep-memdesc-branches`: keep upstream Triton 3.6 and 3.7 from choosing between buffers by a select.

Their analysis of shared memory follows a buffer through branches and asserts at an `arith.select`, which MLIR makes of
an `scf.if` that only chooses between values known before it. So each branch computes what it yields: the same bytes
as elements of another type, which is undone after the `scf.if`. Neither takes an instruction.
Triton's views of other types start where their allocation does, so parts of buffers are refused instead.

Before:
```mlir
%view = scf.if %c -> (!ttg.memdesc<64xf32, #shared, #smem, mutable>) {
  scf.yield %a : !ttg.memdesc<64xf32, #shared, #smem, mutable>
} else {
  scf.yield %b : !ttg.memdesc<64xf32, #shared, #smem, mutable>
}
```
After:
```mlir
%bits = scf.if %c -> (!ttg.memdesc<64xi32, #shared, #smem, mutable>) {
  %0 = ttg.memdesc_reinterpret %a : !ttg.memdesc<64xf32, ...> -> !ttg.memdesc<64xi32, ...>
  scf.yield %0 : !ttg.memdesc<64xi32, #shared, #smem, mutable>
} else {
  %1 = ttg.memdesc_reinterpret %b : !ttg.memdesc<64xf32, ...> -> !ttg.memdesc<64xi32, ...>
  scf.yield %1 : !ttg.memdesc<64xi32, #shared, #smem, mutable>
}
%view = ttg.memdesc_reinterpret %bits : !ttg.memdesc<64xi32, ...> -> !ttg.memdesc<64xf32, ...>
```
"""

from __future__ import annotations

from xdsl.dialects import builtin, scf
from xdsl.ir import Block, OpResult, SSAValue

from tlx_xdsl.dialects.base import attribute_of
from tlx_xdsl.dialects.ttg import MemDescReinterpretOp, MemDescType, SharedMemorySpaceAttr
from tlx_xdsl.element_types import BY_NAME
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, insert_adaptor, insert_before, ops_of, retype

_FLOATS = {each.bits: attribute_of(each) for each in (BY_NAME[name] for name in ("fp8e5", "fp16", "fp32", "fp64"))}
"""A float of each width."""


class KeepMemDescBranchesPass(Pass):
    """Have the branches of an `scf.if` that chooses a buffer of shared memory compute what they yield."""

    name = "tlx-keep-memdesc-branches"

    def run(self, op: builtin.ModuleOp) -> None:
        """Handle every `scf.if` of the module.

        Raises CompilationError where an `scf.if` chooses between parts of buffers, and does nothing else.
        """
        for inner in ops_of(op, scf.IfOp):
            for result in inner.results:
                _keep(inner, result)


def _keep(op: scf.IfOp, result: OpResult) -> None:
    type_ = result.type
    if not isinstance(type_, MemDescType) or not isinstance(type_.memory_space, SharedMemorySpaceAttr):
        return
    ends = [region.block.last_op for region in (op.true_region, op.false_region)]
    inside = _other_type(type_)
    if inside is None:
        if all(end is not None and _is_known_before(end.operands[result.index], op) for end in ends):
            what = "parts of buffers" if _is_part(type_) else f"buffers of {type_.element_type}"
            raise error_at(
                op,
                f"Triton 3.6 and 3.7 can't choose between {what}, 3.8 is the first version that can",
                ["access each of them in a branch of its own"],
            )
        return
    for end in ends:
        assert isinstance(end, scf.YieldOp)
        view = MemDescReinterpretOp(operands=[end.operands[result.index]], result_types=[inside])
        end.operands[result.index] = insert_before(end, view).result
    retype(result, inside)
    insert_adaptor(result, MemDescReinterpretOp(operands=[result], result_types=[type_]))


def _other_type(type_: MemDescType) -> MemDescType | None:
    """The type of the same bytes as other elements; None where a view can't have it."""
    if _is_part(type_) or type_.element_bits not in _FLOATS:
        return None
    integer = builtin.IntegerType(type_.element_bits)
    element = _FLOATS[type_.element_bits] if type_.element_type == integer else integer
    return MemDescType.get(type_.shape, element, type_.encoding, type_.memory_space, mutable=type_.is_mutable)


def _is_part(type_: MemDescType) -> bool:
    return type_.alloc_shape[-len(type_.shape) :] != type_.shape


def _is_known_before(value: SSAValue, op: scf.IfOp) -> bool:
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
    return block not in (op.true_region.block, op.false_region.block)
