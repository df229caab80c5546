"""Lowering of votes of a warp, and of what `tlx` computes where a predicate holds."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import tlx as dialect
from tlx_xdsl.language.core import int1, int32, int64, pointer_type, uint32

from .. import semantic
from ..calls import Call, lowers
from ..functions import call_jitted
from ..python.foreign import source_of
from ..values import Constexpr, Tensor, TupleValue, Value
from ..visitor import CallSite


@lowers("tlx.vote_ballot_sync")
def _vote_ballot_sync(call: Call) -> Value:
    mask, pred = call.scalar("mask", int32), call.args["pred"]
    if not isinstance(pred, Tensor) or not pred.shape:
        pred = call.scalar("pred", int1)
    if pred.dtype != int1:
        call.expected("pred", "an int1 or a block of int1")
    return call.emit_tensor(dialect.VoteBallotOp, int32, pred.shape, mask, pred)


def _ballot(call: Call, symbol: str = "!=") -> Tensor:
    """A bit for each thread of the warp: whether any element of a block that it holds compares so with 0."""
    pred = call.block("pred")
    if isinstance(pred.dtype, pointer_type):
        call.expected("pred", "a block of numbers")
    votes = semantic.compare(call.builder, symbol, pred, Constexpr(0))
    return call.emit_tensor(dialect.VoteBallotOp, int32, (), call.as_scalar("pred", Constexpr(-1), int32), votes)


@lowers("tlx.warp_any")
def _warp_any(call: Call) -> Value:
    return semantic.compare(call.builder, "!=", _ballot(call), Constexpr(0))


@lowers("tlx.warp_all")
def _warp_all(call: Call) -> Value:
    return semantic.compare(call.builder, "==", _ballot(call, "=="), Constexpr(0))


@lowers("tlx.warp_ballot")
def _warp_ballot(call: Call) -> Value:
    return semantic.cast(call.builder, Tensor(_ballot(call).ssa, uint32), int64)


@lowers("tlx.warp_predicate")
def _warp_predicate(call: Call) -> Value:
    source = source_of(call.python("body", "a jitted function"))
    if source is None:
        call.expected("body", "a jitted function")
    call.flag("wave_uniform")
    given, more = (call.visitor.items_of(call.args[name]) for name in ("inits", "args"))
    inits = (call.args["inits"],) if given is None else given
    arguments = (*inits, *((call.args["args"],) if more is None else more))
    block, before = call.builder.block, call.builder.mark()
    returned = call_jitted(CallSite(call.visitor, call.node, [(call.node, value) for value in arguments]), source)
    call.visitor.locate(call.node)
    first = block.first_op if before is None else before.next_op
    if call.builder.block is not block or not all(map(is_side_effect_free, _from(first))):
        call.fail("body", "the body may only compute: all threads run it, also where the predicate does not hold")
    items = call.visitor.items_of(returned)
    results = (returned,) if items is None else items
    if len(results) != len(inits):
        call.fail("body", f"the body must return {len(inits)} values, as many as there are inits, found {len(results)}")
    selected = tuple(_where(call, init, result) for init, result in zip(inits, results, strict=True))
    return selected[0] if given is None else TupleValue(selected)


def _from(op: Operation | None) -> Iterator[Operation]:
    """`op` and those after it in its block."""
    while op is not None:
        yield op
        op = op.next_op


def _where(call: Call, init: Value, result: Value) -> Tensor:
    """`result` where the predicate holds, and `init` elsewhere."""
    if not isinstance(init, Tensor):
        call.fail("inits", f"the inits must be blocks, found {init.describe()}")
    if not isinstance(result, Tensor) or (init.dtype, init.shape) != (result.dtype, result.shape):
        call.fail("body", f"the body must return {init.describe()} for it, found {result.describe()}")
    condition = call.condition("predicate")
    if condition.shape != init.shape[: len(condition.shape)]:
        call.fail("predicate", f"'predicate' must have the first dimensions of {init.describe()}")
    if condition.shape:
        for dim in range(len(condition.shape), len(init.shape)):
            condition = semantic.expand_dims(call.builder, condition, dim)
    return semantic.where(call.builder, condition, result, init)
