"""Addresses in the shared memory of another CTA of the cluster (PTX ISA, "mapa")."""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects.tlx.cluster import MapToRemoteOp
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.nvidia.integers import Integers, Number
from tlx_xdsl.transforms.nvidia.ptx import inline_ptx
from tlx_xdsl.transforms.nvidia.shared_address import shared_address, shared_base
from tlx_xdsl.transforms.rewriting import insert_before


def remote_address(anchor: Operation, view: SSAValue) -> SSAValue:
    """The address of the first element of a view of another CTA's buffer, in the window of `.shared::cluster`, an i32.

    Raises CompilationError for a view that control flow has carried here.
    """
    mapped = _mapped(anchor, view)
    return address_in(anchor, shared_address(anchor, mapped.src), mapped.rank)


def remote_tile(anchor: Operation, view: SSAValue) -> tuple[SSAValue, list[Number]]:
    """The address there of the tile that the view is a part of, and the index in it where the part begins."""
    mapped = _mapped(anchor, view)
    base, start = shared_base(anchor, mapped.src)
    return address_in(anchor, base, mapped.rank), start


def address_in(anchor: Operation, address: SSAValue, rank: Number) -> SSAValue:
    """What `address`, one of this CTA's shared memory, is in that of CTA `rank`."""
    operands = [address, Integers(anchor).value(rank)]
    return insert_before(anchor, inline_ptx("mapa.shared::cluster.u32 $0, $1, $2;", operands, [i32])).write_only_args[0]


def _mapped(anchor: Operation, view: SSAValue) -> MapToRemoteOp:
    if not isinstance(mapped := view.owner, MapToRemoteOp):
        raise error_at(
            anchor, "a view of another CTA's memory can't be carried by control flow: make it where it is used"
        )
    return mapped
