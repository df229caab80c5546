"""The layouts of mbarriers, responses and copied buffers over the CTAs of a cluster (TritonNvidiaGPUOps.cpp)."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, NoneAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.encodings import (
    Bases,
    DistributedLayout,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLinearLayout,
)
from tlx_xdsl.layouts.inferred import places

from ..base import chosen_layout, outermost, tensor_type
from ..tt import DescriptorType
from ..ttg import MemDescType

TWO_CTAS = "ttng.two-ctas"
"""The attribute of a module whose MMAs are those of pairs of CTAs, or are not."""
GATHERED_ROWS = 4
"""Rows that one instruction of TMA gathers or scatters (PTX ISA, ".tile::gather4")."""


def cga_of(buffer: MemDescType) -> Bases | None:
    """The bases of the CTAs in the layout of a buffer; None where the layout is not chosen."""
    layout = chosen_layout(buffer.encoding)
    if layout is None or isinstance(layout, DistributedLayout):
        return None
    return layout.block if isinstance(layout, PaddedSharedLayout | SharedLinearLayout) else layout.cga_layout


def _one_per_cta(count: int) -> Bases:
    return tuple((1 << bit,) for bit in range(count))


def verify_completion_barrier(barrier: MemDescType) -> None:
    """Check that every CTA has a barrier of its own, or that all share one, for the end of what runs by itself."""
    bases = cga_of(barrier)
    if bases is None or not any(map(any, bases)) or bases == _one_per_cta(len(bases)):
        return
    expected = [list(basis) for basis in _one_per_cta(len(bases))]
    raise VerifyException(f"the CGALayout of the barrier must be {expected}, or zeros, found {_shown(bases)}")


def verify_copy_barrier(op: Operation, barrier: MemDescType) -> None:
    """Check that a copy completes on the barrier of each CTA, or of each pair of CTAs in a module of pairs."""
    bases, pairs = cga_of(barrier), outermost(op).attributes.get(TWO_CTAS)
    if bases is None or not isinstance(pairs, IntegerAttr):
        return
    allowed = [_one_per_cta(len(bases))]
    if pairs == BoolAttr.from_bool(True) and bases:
        allowed.append(((0,), *_one_per_cta(len(bases) - 1)))
    if bases not in allowed:
        either = " or ".join(map(_shown, allowed))
        raise VerifyException(f"the CGALayout of the barrier must be {either}, found {_shown(bases)}")


def verify_response_layout(buffer: MemDescType) -> None:
    """Check that all CTAs share the response of the cluster launch control."""
    if any(map(any, cga_of(buffer) or ())):
        raise VerifyException(f"the CGALayout of a response must be zeros, found {_shown(cga_of(buffer) or ())}")


def verify_multicast(buffer: MemDescType) -> None:
    """Check that several CTAs hold the same block, so that one copy can bring it to them."""
    bases = cga_of(buffer)
    if bases is not None and all(map(any, bases)):
        raise VerifyException(f"a multicast needs CTAs that hold the same block, found the CGALayout {_shown(bases)}")


def verify_tile(descriptor: DescriptorType, buffer: MemDescType) -> None:
    """Check that the tile of a descriptor and the buffer it is copied to or from are swizzled alike."""
    block, tile = chosen_layout(descriptor.encoding), chosen_layout(buffer.encoding)
    if not isinstance(block, NvmmaSharedLayout) or not isinstance(tile, NvmmaSharedLayout):
        return
    for name in ("transposed", "swizzling_byte_width", "element_bit_width", "fp4_padded"):
        if getattr(block, name) != getattr(tile, name):
            raise VerifyException(f"descriptor and buffer must have one layout, found {descriptor} and {buffer}")


def verify_row_offsets(offsets: Attribute, buffer: MemDescType) -> None:
    """Check that each warp holds the row offsets of a gather or scatter as the instruction takes them."""
    tensor = tensor_type(offsets)
    layout = chosen_layout(tensor.encoding)
    if isinstance(tensor.encoding, NoneAttr) or not isinstance(layout, DistributedLayout):
        return
    registers, lanes, _, ctas = places(layout, tensor.get_shape())
    if registers[:2] != ((1,), (2,)):
        raise VerifyException(f"a thread must hold {GATHERED_ROWS} consecutive row offsets, found {offsets}")
    if any(map(any, lanes)):
        raise VerifyException(f"all threads of a warp must hold the same row offsets, found {offsets}")
    bases = cga_of(buffer)
    if bases is None:
        return
    # The layout of a buffer counts tiles of one CTA, that of the offsets elements.
    rows = tensor.get_shape()[0] >> sum(1 for basis in bases if basis[0])
    if tuple((basis[0] * rows,) for basis in bases) != ctas:
        raise VerifyException(f"the CTAs must hold the offsets of their own rows, found {offsets} for {buffer}")


def _shown(bases: Bases) -> str:
    return str([list(basis) for basis in bases])
