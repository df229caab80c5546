"""Addresses that PTX can use: of buffers in shared memory of this CTA and of others, of descriptors, of tensor memory.

Upstream Triton lowers a buffer to a struct: the pointer to the array's tile, and the offsets of the part that the view
is. A cast to that struct folds away when upstream Triton lowers its own casts; the address follows from the struct and
the layout, since the offsets of a part (`ttg.memdesc_subslice`) are not in the pointer.

```mlir
%s = builtin.unrealized_conversion_cast %b : !ttg.memdesc<64xf32, ...> to !llvm.struct<(!llvm.ptr<3>, i32)>
%p = llvm.extractvalue %s[0] : !llvm.struct<(!llvm.ptr<3>, i32)>
%a = llvm.ptrtoint %p : !llvm.ptr<3> to i32
```

Upstream Triton's allocator sees no use of the buffer through such a cast: `tlx-extend-buffer-lifetimes` has to run
later.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntAttr, UnrealizedConversionCastOp, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects.base import layout_of
from tlx_xdsl.dialects.tlx import MapToRemoteOp, MemDescDynamicSubsliceOp
from tlx_xdsl.dialects.ttg import MemDescType, memdesc_type
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.conversion.shared import buffer_rank
from tlx_xdsl.layouts.encodings import Ints, SharedLayout
from tlx_xdsl.layouts.offset_terms import OffsetTerm, offset_terms
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import insert_before

from .integers import Integers, Number
from .ptx import inline_ptx
from .threads import extract

SHARED_POINTER = llvm.LLVMPointerType(IntAttr(3))
"""A pointer to shared memory; tensor memory has such pointers, too."""
GENERIC_POINTER = llvm.LLVMPointerType()


def shared_address(anchor: Operation, buffer: SSAValue) -> SSAValue:
    """The address of the first element of `buffer` in the window of `.shared::cta`, an i32, before `anchor`.

    It is an address of `.shared::cluster`, too: that of this CTA's own memory.

    Raises CompilationError for a part of a buffer whose layout has no linear addresses.
    """
    integers = Integers(anchor)
    base, start = shared_base(anchor, buffer)
    if any(at != 0 for at in start):
        base = integers.value(integers.add(base, byte_of(integers, address_terms(anchor, buffer), start)))
    return base


def shared_base(anchor: Operation, buffer: SSAValue) -> tuple[SSAValue, list[Number]]:
    """The address of the tile that `buffer` is a part of, an i32, and the index in it where the part begins.

    The byte of an element is that of its index plus this start, by `address_terms`: swizzles depend on offsets in
    the tile.
    """
    integers = Integers(anchor)
    if isinstance(view := buffer.owner, MemDescDynamicSubsliceOp):
        base, start = shared_base(anchor, view.src)
        return base, [integers.add(at, more) for at, more in zip(start, view.offsets, strict=True)]
    type_ = memdesc_type(buffer.type)
    rank, members = len(type_.shape), [SHARED_POINTER, *[i32] * len(type_.shape)]
    struct = _cast(anchor, buffer, llvm.LLVMStructType.from_type_list(members))
    pointer = extract(anchor, struct, 0)
    base = insert_before(anchor, llvm.PtrToIntOp(pointer, i32)).output
    if type_.alloc_shape[-rank:] == type_.shape:
        return base, [0] * rank
    return base, [extract(anchor, struct, 1 + dim) for dim in range(rank)]


def shared_layout(anchor: Operation, type_: MemDescType) -> SharedLayout:
    """The layout of a buffer in shared memory.

    Raises CompilationError at `anchor` where it has none.
    """
    if not isinstance(layout := layout_of(type_.encoding), SharedLayout):
        raise error_at(anchor, f"a buffer in shared memory with a layout is needed here, found {type_}")
    return layout


def address_terms(anchor: Operation, buffer: SSAValue) -> tuple[OffsetTerm, ...]:
    """The byte of an element from the start of the tile that `buffer` is a part of, as a formula of its index.

    Raises CompilationError at `anchor` where there is none.
    """
    type_ = memdesc_type(buffer.type)
    layout = shared_layout(anchor, type_)
    if buffer_rank(layout) != len(type_.shape):
        raise error_at(anchor, f"one buffer is needed here, found an array of them: {type_}")
    try:
        return offset_terms(layout, _tile(type_), type_.element_bits)
    except InputError as error:
        raise error_at(anchor, f"no address can be computed in {type_}: {error}") from error


def byte_of(integers: Integers, terms: Sequence[OffsetTerm], index: Sequence[Number]) -> Number:
    """The byte of an element of that index, which are scalars or tensors of one shape."""
    result: Number = 0
    for term in terms:
        result = integers.xor(result, integers.shifted(integers.both(index[term.dim], term.mask), term.shift))
    return result


def descriptor_address(anchor: Operation, descriptor: SSAValue) -> SSAValue:
    """The generic address of the 128 bytes of a tensor descriptor, an i64."""
    pointer = _cast(anchor, descriptor, GENERIC_POINTER)
    return insert_before(anchor, llvm.PtrToIntOp(pointer, i64)).output


def tensor_memory_address(anchor: Operation, buffer: SSAValue) -> SSAValue:
    """The address of the first column of a buffer in tensor memory, an i32 (PTX ISA, "Tensor Memory Addressing")."""
    pointer = _cast(anchor, buffer, SHARED_POINTER)
    return insert_before(anchor, llvm.PtrToIntOp(pointer, i32)).output


# --- of another CTA of the cluster (PTX ISA, "mapa") ---------------------------------------------------------------


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
    """The address in CTA `rank` that corresponds to `address` in the shared memory of this one."""
    operands = [address, Integers(anchor).value(rank)]
    return insert_before(anchor, inline_ptx("mapa.shared::cluster.u32 $0, $1, $2;", operands, [i32])).write_only_args[0]


def _mapped(anchor: Operation, view: SSAValue) -> MapToRemoteOp:
    if not isinstance(mapped := view.owner, MapToRemoteOp):
        raise error_at(
            anchor, "a view of another CTA's memory can't be carried by control flow: make it where it is used"
        )
    return mapped


# --- casts ----------------------------------------------------------------------------------------------------------


def _tile(type_: MemDescType) -> Ints:
    return type_.alloc_shape[-len(type_.shape) :]


def _cast(anchor: Operation, value: SSAValue, type_: Attribute) -> SSAValue:
    return insert_before(anchor, UnrealizedConversionCastOp.get([value], [type_])).outputs[0]
