"""The registers in which a single thread holds a tensor, and its number, for PTX.

Upstream Triton lowers a tensor to a structure of the elements that one thread holds, so a cast to that structure
reaches them, in every version.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, TensorType, UnrealizedConversionCastOp, i32, i64
from xdsl.dialects.llvm import ExtractValueOp, LLVMStructType
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import LayoutAttr, layout_attr, num_warps_of, tensor_type
from tlx_xdsl.layouts.conversion.distributed import distributed_to_linear
from tlx_xdsl.layouts.conversion.tiling import REGISTER
from tlx_xdsl.layouts.distributed import WARP_SIZE
from tlx_xdsl.layouts.encodings import BlockedLayout, DistributedLayout
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.text.profiles import PROFILES
from tlx_xdsl.transforms.rewriting import insert_before


def registers_of(anchor: Operation, tensor: SSAValue) -> list[SSAValue]:
    """The elements of `tensor` that a thread holds, one by one, as operations before `anchor` give them.

    Raises CompilationError as `register_count` does.
    """
    count = register_count(anchor, tensor.type)
    struct = LLVMStructType.from_type_list([tensor_type(tensor.type).element_type] * count)
    cast = insert_before(anchor, UnrealizedConversionCastOp(operands=[tensor], result_types=[[struct]]))
    return [extract(anchor, cast.results[0], index) for index in range(count)]


def register_count(anchor: Operation, tensor: Attribute) -> int:
    """The number of elements of a tensor of that type that a thread holds, for `anchor`.

    Raises CompilationError where the tensor has no layout, or one that Triton's versions take for different numbers of
    registers.
    """
    type_ = tensor_type(tensor)
    if not isinstance(type_.encoding, LayoutAttr) or not isinstance(type_.encoding.data, DistributedLayout):
        raise error_at(anchor, f"the threads that hold {type_} are not known: it has no layout")
    layout, shape = type_.encoding.data, type_.get_shape()
    counts = {distributed_to_linear(layout, shape, each.version).in_sizes.get(REGISTER, 1) for each in PROFILES}
    if len(counts) > 1:
        raise error_at(anchor, f"the threads hold elements of {type_} several times, in some versions of Triton only")
    return counts.pop()


def extract(anchor: Operation, struct: SSAValue, index: int) -> SSAValue:
    """Element `index` of a structure, taken before `anchor`."""
    type_ = struct.type
    assert isinstance(type_, LLVMStructType)
    position = DenseArrayBase.from_list(i64, [index])
    return insert_before(anchor, ExtractValueOp(position, struct, type_.types.data[index])).results[0]


def warps_at(anchor: Operation) -> int:
    """The number of warps that run `anchor`.

    Raises CompilationError where the module does not say.
    """
    if (warps := num_warps_of(anchor)) is None:
        raise error_at(anchor, "the number of warps that run this is not known ('ttg.num-warps')")
    return warps


def thread_number(anchor: Operation) -> SSAValue:
    """The number of the thread among those of its region, from 0, before `anchor`.

    In a partition, `%tid` counts from the threads of the other ones, and where they begin is Triton's choice; a range
    with one element in each thread counts from here.
    """
    warps = warps_at(anchor)
    threads = warps * WARP_SIZE
    layout = layout_attr(BlockedLayout((1,), (WARP_SIZE,), (warps,), (0,)))
    range_ = tt.MakeRangeOp(
        properties={"start": IntegerAttr(0, i32), "end": IntegerAttr(threads, i32)},
        result_types=[TensorType(i32, [threads], layout)],
    )
    return registers_of(anchor, insert_before(anchor, range_).result)[0]
