"""Asynchronous operations: mbarriers, copies, and the tensor cores."""

from __future__ import annotations

import re
from typing import Any

from xdsl.dialects.arith import ShLIOp
from xdsl.ir import SSAValue

from tlx_xdsl.dialects.tt.enums import DescriptorReduceKind, InputPrecision

from .function import Function, given, handles, prop
from .memory import cache_hints, offsets
from .types import NotExpressible, Text, call, dtype, listed, number_of

# --- barriers ---------------------------------------------------------------------------------------------------------


def _predicate(fn: Function, value: SSAValue | None) -> Text | None:
    return None if value is None or number_of(value) is True else fn.text(value)


@handles("ttng.barrier_expect")
def _expect(fn: Function, op: Any) -> Text:
    size = prop(op, "size")
    return fn.call("tlx.barrier_expect_bytes", op.alloc, size, pred=_predicate(fn, op.pred))


@handles("ttng.wait_barrier")
def _wait(fn: Function, op: Any) -> Text:
    phase = fn.number_or_text(op.phase)
    return fn.call("tlx.barrier_wait", op.alloc, phase, pred=_predicate(fn, op.pred))


@handles("ttng.arrive_barrier", "tlx.arrive_remote")
def _arrive(fn: Function, op: Any) -> Text:
    count = prop(op, "count")
    arrivals = None if count == 1 else count
    return fn.call("tlx.barrier_arrive", op.alloc, arrivals, pred=op.pred)


@handles("tlx.arrive_per_thread")
def _arrive_per_thread(fn: Function, op: Any) -> Text:
    return fn.call("tlx.barrier_arrive", op.alloc, pred=op.pred)


@handles("tlx.named_barrier_wait", "tlx.named_barrier_arrive")
def _named(fn: Function, op: Any) -> Text:
    return call(op.name, fn.number_or_text(op.id), prop(op, "threads"))


_BAR = re.compile(r"bar\.(sync|arrive) (\d+), (\d+);")


@handles("nvvm.inline_ptx")
def _inline_ptx(fn: Function, op: Any) -> Text:
    """The named barriers, as our own pass writes them: numbered from 0 again, as kernels number them."""
    code = prop(op, "ptxCode")
    found = _BAR.fullmatch(code)
    if found is None:
        raise NotExpressible(f"the PTX '{code}'")
    kind, number, threads = found.groups()
    known = fn.module.named_barriers
    index = known.setdefault(number, len(known))
    return call(f"tlx.named_barrier_{'wait' if kind == 'sync' else 'arrive'}", str(index), threads)


# --- asynchronous copies ----------------------------------------------------------------------------------------------


@handles("ttg.async_copy_global_to_local")
def _async_load(fn: Function, op: Any) -> Text:
    mask = fn.optional(op.mask)
    other = None if op.other is None or not number_of(op.other) else fn.number_or_text(op.other)
    if op.other is not None and number_of(op.other) is None:
        other = fn.typed(op.other)
    return fn.call(
        "tlx.async_load",
        fn.typed(op.src),
        op.result,
        mask=mask,
        other=other,
        **cache_hints(op),
        is_volatile=given(op, "isVolatile"),
    )


@handles("ttg.async_commit_group")
def _commit(fn: Function, op: Any) -> Text:
    return call("tlx.async_load_commit_group", listed(fn.text(token) for token in op.input_tokens))


@handles("ttg.async_wait")
def _async_wait(fn: Function, op: Any) -> Text:
    tokens = listed(fn.text(token) for token in op.async_token) if op.async_token else None
    return call("tlx.async_load_wait_group", prop(op, "num"), tokens)


@handles("ttng.async_tma_copy_global_to_local", "tlx.async_tma_load")
def _tma_load(fn: Function, op: Any) -> Text:
    targets = None
    if op.name == "tlx.async_tma_load":
        targets = _targets(fn, op.multicast)
        if targets is None or prop(op, "two_ctas") is not None:
            raise NotExpressible("a load for computed CTAs, or a pair")
    elif prop(op, "multicast"):
        raise NotExpressible("a multicast by an attribute")
    return fn.call(
        "tlx.async_descriptor_load",
        op.desc,
        op.result,
        offsets(fn, op.coord),
        op.barrier,
        pred=_predicate(fn, op.pred),
        multicast_targets=targets,
        **cache_hints(op),
    )


def _targets(fn: Function, mask: SSAValue | None) -> str | None:
    """The ranks that a mask names: those of its bits, or one that is computed."""
    if mask is None:
        return None
    if (known := number_of(mask)) is not None:
        return listed(str(rank) for rank in range(16) if int(known) >> rank & 1)
    bit = mask.owner
    return listed([fn.text(bit.rhs)]) if isinstance(bit, ShLIOp) and number_of(bit.lhs) == 1 else None


@handles("ttng.async_tma_copy_local_to_global")
def _tma_store(fn: Function, op: Any) -> Text:
    return fn.call(
        "tlx.async_descriptor_store",
        op.desc,
        op.src,
        offsets(fn, op.coord),
        **cache_hints(op),
    )


@handles("ttng.async_tma_reduce")
def _tma_reduce(fn: Function, op: Any) -> Text:
    kind = DescriptorReduceKind(prop(op, "kind")).keyword
    return fn.call("tlx.async_descriptor_store", op.desc, op.src, offsets(fn, op.coord), store_reduce=f'"{kind}"')


@handles("ttng.async_tma_store_wait")
def _tma_wait(fn: Function, op: Any) -> Text:
    written = {} if op.read_only is not None else {"read": "False"}
    return call("tlx.async_descriptor_store_wait", prop(op, "pendings"), **written)


# --- tensor cores -----------------------------------------------------------------------------------------------------


@handles("ttng.warp_group_dot")
def _wgmma(fn: Function, op: Any) -> Text:
    precision = InputPrecision(prop(op, "inputPrecision")).keyword
    # Without a block to add to, the function makes the zeros that it leaves out.
    alone = number_of(op.c) == 0 and op.use_c is not None and number_of(op.use_c) is False
    text = fn.call(
        "tlx.async_dot",
        op.a,
        op.b,
        None if alone else fn.typed(op.c),
        use_acc=None if alone else op.use_c,
        input_precision=None if precision == "tf32" else f'"{precision}"',
        out_dtype=None if dtype(op.d.type) in ("tl.float32", "tl.int32") else dtype(op.d.type),
    )
    if not prop(op, "isAsync"):
        return call("tlx.async_dot_wait", "0", text)
    return text


@handles("ttng.warp_group_dot_wait")
def _wgmma_wait(fn: Function, op: Any) -> Text | None:
    pendings = prop(op, "pendings")
    if len(op.inputs) == 1:
        return fn.call("tlx.async_dot_wait", pendings, op.inputs[0])
    for value, result in zip(op.inputs, op.outputs, strict=True):
        text = call("tlx.async_dot_wait", pendings, fn.text(value))
        fn.write(f"{fn.name(result)} = {text}")
    return None


@handles("ttng.tc_gen5_mma")
def _tcgen05(fn: Function, op: Any) -> Text:
    if prop(op, "multicast") is not None or any(number_of(pred) is not True for pred in op.barrier_preds):
        raise NotExpressible("an MMA whose arrivals depend on a predicate")
    barriers = listed(fn.text(barrier) for barrier in op.barriers) if op.barriers else None
    return fn.call(
        "tlx.async_dot",
        op.a,
        op.b,
        op.d,
        use_acc=_predicate(fn, op.use_d),
        pred=_predicate(fn, op.pred),
        mBarriers=barriers,
        two_ctas=given(op, "two_ctas"),
        force_async=True if prop(op, "is_async") is not None and barriers is None else None,
    )


@handles("ttng.tc_gen5_commit")
def _tcgen05_commit(fn: Function, op: Any) -> Text:
    if op.pred is not None or op.descs:
        raise NotExpressible("a commit with a predicate")
    return fn.call("tlx.tcgen05_commit", op.barrier)
