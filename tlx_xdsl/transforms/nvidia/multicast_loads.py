"""TMA loads for several CTAs of a cluster, and loads with a cache policy, as PTX.

Upstream Triton has multicast only for tensors that span the cluster, and cache policies of loads from 3.9 on. One
thread issues a copy for each box of the tile (PTX ISA, "cp.async.bulk.tensor"); the coordinates come from the fastest
dimension to the slowest. With `two_ctas` the bytes complete on the barrier of the even CTA of the pair, which
`.cta_group::2` allows.

Before:
```mlir
tlx.async_tma_load %d[%i, %j] %b, %bar, %pred multicast %mask : ...
```
After:
```mlir
nvvm.inline_ptx "{ ... @p cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
  .multicast::cluster [$2], [$3, {$5, $4}], [$6], m; }" ro(%thread, %leader, %b_address, %d_address, %i, %j, ...)
```
"""

from __future__ import annotations

from typing import TypeAlias

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tlx_xdsl.dialects import nvvm, tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import layout_of
from tlx_xdsl.layouts.conversion.shared import tma_box, tma_corners
from tlx_xdsl.layouts.encodings import Ints, NvmmaSharedLayout, SharedLayout
from tlx_xdsl.layouts.offset_terms import offset_of
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import insert_before
from .emit.integers import Integers
from .emit.ptx import run_in_one_thread, wait_for_region
from .emit.shared_address import (
    address_in,
    address_terms,
    byte_of,
    descriptor_address,
    remote_address,
    shared_address,
    shared_base,
)

_EVICTIONS = {tt.EvictionPolicy.EVICT_FIRST: "evict_first", tt.EvictionPolicy.EVICT_LAST: "evict_last"}
"""The policies that a copy can be given (PTX ISA, "createpolicy"); the others are the default."""


def patterns(*, cached_loads: bool) -> list[RewritePattern]:
    """The patterns for TMA loads; with `cached_loads` those with a cache policy stay."""
    return [LowerMulticastLoad()] if cached_loads else [LowerMulticastLoad(), LowerCachedLoad()]


class LowerMulticastLoad(RewritePattern):
    """Replaces a TMA load for several CTAs by PTX.

    Raises CompilationError for a tile that TMA can't write.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.AsyncTMALoadOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        _copy(op)
        view = op.result.owner
        rewriter.erase(op)
        if isinstance(view, tlx.MemDescDynamicSubsliceOp) and not view.result.uses:
            rewriter.erase(view)


class LowerCachedLoad(RewritePattern):
    """Replaces a TMA load with a cache policy by PTX, for Triton 3.6 to 3.8, which refuse the policy.

    It is a hint, and dropped where the tile is transposed or padded.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ttng.AsyncTMACopyGlobalToLocalOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        if op.cache_policy is None:
            return
        if _eviction(op) is None or op.offsets or op.multicast is not None or _is_rearranged(op):
            del op.properties["cachePolicy"]
            return
        _copy(op)
        rewriter.erase(op)


_Load: TypeAlias = tlx.AsyncTMALoadOp | ttng.AsyncTMACopyGlobalToLocalOp


def _copy(op: _Load) -> None:
    """Have one thread issue a copy for each box of the tile."""
    box, corners = _boxes(op)
    integers = Integers(op)
    base, start = shared_base(op, op.result)
    terms = address_terms(op, op.result)
    first = byte_of(integers, terms, start)
    descriptor, barrier = descriptor_address(op, op.desc), _barrier(op)
    wait_for_region(op)
    for corner in corners:
        address = integers.value(integers.add(base, integers.xor(first, offset_of(terms, corner))))
        coordinates = integers.sums(op.coord, corner)
        code, operands = _instruction(op, len(box)), [address, descriptor, barrier, *reversed(coordinates)]
        if isinstance(op, tlx.AsyncTMALoadOp) and op.multicast is not None:
            operands.append(op.multicast)
        run_in_one_thread(op, code, operands, predicate=op.pred)


def _is_rearranged(op: _Load) -> bool:
    layout = layout_of(ttg.memdesc_type(op.result.type).encoding)
    return isinstance(layout, NvmmaSharedLayout) and (layout.transposed or layout.fp4_padded)


def _boxes(op: _Load) -> tuple[Ints, list[Ints]]:
    type_, descriptor = ttg.memdesc_type(op.result.type), op.desc.type
    layout = layout_of(type_.encoding)
    assert isinstance(descriptor, tt.TensorDescType)
    assert isinstance(layout, SharedLayout)
    if _is_rearranged(op):
        raise error_at(op, f"a load for several CTAs can't write a tile that is transposed or padded: {type_}")
    if descriptor.encoding != type_.encoding:
        raise error_at(op, f"the descriptor's layout {descriptor.encoding} is not that of the buffer {type_}")
    box = tma_box(layout, type_.shape, type_.element_bits)
    return box, tma_corners(type_.shape, box)


def _barrier(op: _Load) -> SSAValue:
    """The address of the barrier: of the pair's even CTA, another CTA's, or the own one that each target CTA has."""
    if isinstance(op.barrier.owner, tlx.MapToRemoteOp):
        return remote_address(op, op.barrier)
    address = shared_address(op, op.barrier)
    if not _is_of_a_pair(op):
        return address
    rank = insert_before(op, nvvm.SPECIAL_REGISTERS["cluster.ctarank"]()).results[0]
    return address_in(op, address, Integers(op).both(rank, ~1 & 0xF))


def _is_of_a_pair(op: _Load) -> bool:
    return isinstance(op, tlx.AsyncTMALoadOp) and op.two_ctas is not None


def _instruction(op: _Load, rank: int) -> str:
    """Operands 0 to 2 are target, descriptor and barrier, then the coordinates, then the mask."""
    coordinates = ", ".join(f"{{{3 + dim}}}" for dim in range(rank))
    name = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    setup, arguments = "", f"[{{0}}], [{{1}}, {{{{{coordinates}}}}}], [{{2}}]"
    if _is_of_a_pair(op):
        name += ".cta_group::2"
    if isinstance(op, tlx.AsyncTMALoadOp) and op.multicast is not None:
        name += ".multicast::cluster"
        setup += f".reg .b16 m; cvt.u16.u32 m, {{{3 + rank}}}; "
        arguments += ", m"
    if (eviction := _eviction(op)) is not None:
        name += ".L2::cache_hint"
        setup += f".reg .b64 c; createpolicy.fractional.L2::{eviction}.b64 c, 1.0; "
        arguments += ", c"
    return f"{setup}@p {name} {arguments};"


def _eviction(op: Operation) -> str | None:
    policy = op.properties.get("cachePolicy")
    return _EVICTIONS.get(policy.eviction_policy) if isinstance(policy, tt.CachePolicyAttr) else None
