"""Lowering of hints about values (assumptions that the compiler may use)."""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, i32
from xdsl.ir import OpResult

from tlx_xdsl.dialects.llvm import AssumeOp
from tlx_xdsl.frontend.calls import Call, lowers
from tlx_xdsl.frontend.values import Tensor, Value
from tlx_xdsl.language.core import int1


@lowers("tl.assume")
def _assume(call: Call) -> None:
    condition = call.tensor("cond")
    if condition.shape or condition.dtype != int1:
        call.expected("cond", "a scalar int1, such as a comparison")
    call.builder.insert(AssumeOp(condition.ssa))


def _lower_hint(name: str, attribute: str) -> None:
    """Let `tl.name` attach `attribute`, an integer for each dimension, to the operation that defines its argument."""

    @lowers(f"tl.{name}")
    def lower(call: Call) -> Value:
        value = call.of("input", Tensor, "a runtime value")
        given = call.python("values", "a constexpr integer for each dimension")
        numbers = list(call.integers("values")) if isinstance(given, tuple | list) else [call.integer("values")]
        if not all(1 <= number < 2**31 for number in numbers):
            call.expected("values", "positive integers of 32 bits")
        rank = max(1, len(value.shape))
        if len(numbers) != rank:
            call.fail("values", f"'values' must have an integer for each of {rank} dimensions, found {len(numbers)}")
        # An argument has no operation to carry the hint, and of a constant everything is known.
        if isinstance(value.ssa, OpResult) and not isinstance(value.ssa.op, ConstantOp):
            value.ssa.op.attributes[attribute] = DenseIntOrFPElementsAttr.from_list(TensorType(i32, [rank]), numbers)
        return value

    _ = lower


_lower_hint("multiple_of", "tt.divisibility")
_lower_hint("max_contiguous", "tt.contiguity")
_lower_hint("max_constancy", "tt.constancy")
