"""The accessors of a kernel's tensors in its threads, and the layout of the arguments that they read.

Arguments at compile time, the same for all threads that move data: the numbers of all circular buffers, then a word for
each tensor of the kernel that describes its layout (`TensorAccessorArgs`). Arguments at run time that all cores have in
common, of one thread: the addresses of the tensors that it has accessors of, in the order of its arguments.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, MemRefType, TensorType, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import ops_of

from ..dialects.ttcore import TileType, element_bytes
from ..dialects.ttkernel.noc import GetCommonArgValOp, TensorAccessorArgsOp, TensorAccessorOp
from ..dialects.ttkernel.types import TensorAccessorArgsType, TensorAccessorType
from ..dialects.ttl.base import block_shape
from ..dialects.ttl.buffers import BindCBOp
from ..dialects.ttl.kernel import KernelDriverOp, TensorAccessorOp as TTLTensorAccessorOp
from ..dialects.ttl.types import LayoutKind, TensorAccessorType as TTLTensorAccessorType, encoding_of
from .emitter import Emitter, integer
from .thread_function import ThreadFunction


def tensor_of(thread: ThreadFunction, accessor: SSAValue) -> int:
    """The number of the tensor that an accessor is of, among the kernel's."""
    origin = thread.origin(accessor).owner
    if not isinstance(origin, TTLTensorAccessorOp) or origin.tensor not in thread.driver.args:
        raise error_at(accessor, "expected the accessor of a tensor of the kernel: make it outside of the threads")
    return list(thread.driver.args).index(origin.tensor)


def common_arguments(thread: ThreadFunction) -> dict[int, SSAValue]:
    """The numbers of the tensors whose addresses the thread takes, in order, with their accessors in the driver."""
    found: dict[int, SSAValue] = {}
    for argument in thread.function.body.block.args:
        if isinstance(argument.type, TTLTensorAccessorType):
            found.setdefault(tensor_of(thread, argument), thread.origin(argument))
    return found


def circular_buffers(driver: KernelDriverOp) -> list[BindCBOp]:
    """The circular buffers of a kernel by their numbers."""
    return sorted(ops_of(driver, BindCBOp), key=lambda op: op.cb_index.value.data)


def element_of(type_: Attribute) -> Attribute:
    """The type of the elements of a tensor."""
    assert isinstance(type_, TensorType | MemRefType)
    return cast(Attribute, type_.element_type)  # pyright: ignore[reportUnknownMemberType]


def page_of(type_: Attribute) -> tuple[Attribute, int]:
    """What a page of a tensor consists of, a tile or elements, and its bytes.

    Raises VerifyException for a type that does not say where the tensor is.
    """
    element = element_of(type_)
    if encoding_of(type_).layout.kind is LayoutKind.INTERLEAVED:
        return element, block_shape(type_)[-1] * element_bytes(element)
    tile = TileType.get(element)
    return tile, tile.bytes


def lower_accessor(thread: ThreadFunction, accessor: SSAValue, user: Operation) -> SSAValue:
    """The accessor as TT-Metalium has it, made at the beginning of the function."""
    tensor = tensor_of(thread, accessor)
    type_ = thread.driver.args[tensor].type
    try:
        element, page_bytes = page_of(type_)
    except VerifyException as error:
        raise error_at(user, str(error)) from error
    crta = integer([*common_arguments(thread)].index(tensor))
    cta = integer(len(circular_buffers(thread.driver)) + tensor)

    def make(emit: Emitter) -> SSAValue:
        args = TensorAccessorArgsOp(properties={"cta": cta, "crta": crta}, result_types=[TensorAccessorArgsType()])
        base = GetCommonArgValOp(properties={"index": crta}, result_types=[i32])
        return emit.result(
            TensorAccessorOp(
                operands=[emit.result(args), emit.result(base), emit.i32(page_bytes)],
                properties={
                    "layout": encoding_of(type_).layout,
                    "shape": ArrayAttr([integer(size) for size in block_shape(type_)]),
                    "element": element,
                },
                result_types=[TensorAccessorType()],
            )
        )

    return thread.hoisted(("accessor", tensor), user, make)
