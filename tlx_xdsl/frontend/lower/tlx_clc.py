"""Lowering of the cluster launch control of `tlx`."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, i1, i64

from tlx_xdsl.dialects import tlx as dialect, tt, ttg, ttng
from tlx_xdsl.dialects.base import layout_attr
from tlx_xdsl.language.core import int1, int32
from tlx_xdsl.layouts.shared import unswizzled_layout
from tlx_xdsl.targets import Feature

from .. import semantic
from ..attributes import view
from ..builder import hint_all
from ..calls import Call, lowers
from ..values import ClcContext, ClcResponses, Constexpr, MBarriers, Tensor, TupleValue, Value
from .tlx_barriers import allocate_barriers, arrive, expect, fence_async, parity, wait
from .tlx_common import SMEM, cta_rank, one_barrier, remote_view

RESPONSE_BYTES = 16
"""Size of a response (PTX ISA, "clusterlaunchcontrol.try_cancel")."""


def _allocate_responses(call: Call, num: int) -> ClcResponses:
    type_ = ttg.MemDescType.get((num, 2), i64, layout_attr(unswizzled_layout(1)), SMEM)
    return ClcResponses(call.emit(ttg.LocalAllocOp, None, results=[type_]).result, num)


@lowers("tlx.clc_create_context")
def _clc_create_context(call: Call) -> Value:
    call.require(Feature.CLUSTER_LAUNCH_CONTROL)
    consumers, stages = call.integer("num_consumers", minimum=1), call.integer("num_stages", minimum=1)
    empty = allocate_barriers(call, stages, consumers)
    full = allocate_barriers(call, stages, 1)
    responses = _allocate_responses(call, stages)
    hint_all([empty.ssa, full.ssa, responses.ssa], ["clc_empty", "clc_full", "clc_response"])
    return ClcContext(empty, full, responses)


def _stage(call: Call) -> tuple[MBarriers, MBarriers, ClcResponses]:
    """The barriers "empty" and "full" and the response of stage `k`."""
    context = call.of("context", ClcContext, "a CLC context (tlx.clc_create_context)")
    views = [
        view(call.visitor, call.nodes.get("k", call.node), array, call.args["k"])
        for array in (context.empty, context.full, context.responses)
    ]
    empty, full, response = views
    assert isinstance(empty, MBarriers) and isinstance(full, MBarriers) and isinstance(response, ClcResponses)
    return empty, full, response


def _always(call: Call) -> Tensor:
    return call.as_scalar("context", Constexpr(True), int1)


def _several_ctas(call: Call) -> bool:
    """Say whether CTAs share a response: a cluster of one CTA has none to share with, whatever the argument says."""
    return call.flag("multi_ctas") and call.visitor.unit.clustered


@lowers("tlx.clc_producer")
def _clc_producer(call: Call) -> None:
    call.require(Feature.CLUSTER_LAUNCH_CONTROL)
    empty, full, response = _stage(call)
    phase = parity(call, "p_producer")
    if not _several_ctas(call):
        wait(call, empty, phase, _always(call))
        expect(call, full, RESPONSE_BYTES, _always(call))
        call.emit(ttng.CLCTryCancelOp, response, full)
        return
    # The consumers of all CTAs report to the CTA of rank 0, which asks for all of them.
    first = semantic.compare(call.builder, "==", cta_rank(call), Constexpr(0))
    wait(call, empty, phase, first)
    expect(call, full, RESPONSE_BYTES, _always(call))
    call.emit(dialect.CLCTryCancelOp, response, full, first)


@lowers("tlx.clc_consumer")
def _clc_consumer(call: Call) -> Value:
    call.require(Feature.CLUSTER_LAUNCH_CONTROL)
    empty, full, response = _stage(call)
    several, all_three = _several_ctas(call), call.flag("return_3d")
    wait(call, full, parity(call, "p_consumer"), _always(call))
    coordinates = _query(call, response, several=several, dims=3 if all_three else 1)
    # The response was read by this thread, and is written by the asynchronous proxy next.
    fence_async(call)
    more = semantic.compare(call.builder, ">=", coordinates[0], Constexpr(0))
    if several:
        rank = call.as_scalar("context", Constexpr(0), int32)
        empty = MBarriers(remote_view(call, empty.ssa, rank), 0)
    arrive(call, empty, 1, more)
    return TupleValue(tuple(coordinates)) if all_three else coordinates[0]


def _query(call: Call, response: ClcResponses, *, several: bool, dims: int) -> list[Tensor]:
    """The first coordinates of the cluster in a response, or -1 when there is none."""
    loaded = call.emit(ttng.CLCLoadResultOp, response, results=[IntegerType(128)]).clc_result
    found = call.emit(ttng.CLCIsCanceledOp, loaded, results=[i1]).is_canceled
    coordinates: list[Tensor] = []
    for dim in list(tt.ProgramIDDim)[:dims]:
        place: Value = call.emit_tensor(ttng.CLCGetProgramIdOp, int32, (), loaded, dim=dim)
        if several and dim is tt.ProgramIDDim.X:
            # The response names the first CTA of the cluster.
            place = semantic.binary(call.builder, "+", place, cta_rank(call))
        coordinates.append(semantic.where(call.builder, Tensor(found, int1), place, Constexpr(-1)))
    return coordinates


@lowers("tlx._alloc_clc_responses")
def _alloc_clc_responses(call: Call) -> Value:
    call.require(Feature.CLUSTER_LAUNCH_CONTROL)
    return _allocate_responses(call, call.integer("num_responses", minimum=1))


def _response(call: Call) -> ClcResponses:
    response = call.of("response", ClcResponses, "a CLC response")
    if response.num:
        call.fail("response", f"'response' must be one response, such as responses[i], found {response.describe()}")
    return response


@lowers("tlx._clc_issue")
def _clc_issue(call: Call) -> None:
    call.require(Feature.CLUSTER_LAUNCH_CONTROL)
    response, barrier = _response(call), one_barrier(call, "barrier")
    call.emit(ttng.CLCTryCancelOp, response, barrier)


@lowers("tlx._clc_query")
def _clc_query(call: Call) -> Value:
    call.require(Feature.CLUSTER_LAUNCH_CONTROL)
    if call.flag("return_3d"):
        return TupleValue(tuple(_query(call, _response(call), several=False, dims=3)))
    return _query(call, _response(call), several=False, dims=1)[0]
