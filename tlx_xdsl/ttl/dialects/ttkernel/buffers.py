"""Circular buffers: what producers and consumers call, in all threads. TT-Metalium, "Circular Buffer APIs"."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from .base import CBType, TTKernelOp


@irdl_op_definition
class CBReserveBackOp(TTKernelOp):
    """Wait until there is space for so many pages after those that were pushed."""

    name = "ttkernel.cb_reserve_back"
    OF_BUFFER: ClassVar = True

    cb = operand_def(CBType)
    pages = operand_def(i32)


@irdl_op_definition
class CBPushBackOp(TTKernelOp):
    """Give reserved pages to the consumer."""

    name = "ttkernel.cb_push_back"
    OF_BUFFER: ClassVar = True

    cb = operand_def(CBType)
    pages = operand_def(i32)


@irdl_op_definition
class CBWaitFrontOp(TTKernelOp):
    """Wait until so many pages have been pushed and not popped."""

    name = "ttkernel.cb_wait_front"
    OF_BUFFER: ClassVar = True

    cb = operand_def(CBType)
    pages = operand_def(i32)


@irdl_op_definition
class CBPopFrontOp(TTKernelOp):
    """Give the first pages back to the producer."""

    name = "ttkernel.cb_pop_front"
    OF_BUFFER: ClassVar = True

    cb = operand_def(CBType)
    pages = operand_def(i32)


@irdl_op_definition
class GetWritePtrOp(TTKernelOp):
    """The address of the first reserved page, in bytes."""

    name = "ttkernel.get_write_ptr"
    OF_BUFFER: ClassVar = True

    cb = operand_def(CBType)
    result = result_def(i32)


@irdl_op_definition
class GetReadPtrOp(TTKernelOp):
    """The address of the first page that was waited for, in bytes."""

    name = "ttkernel.get_read_ptr"
    OF_BUFFER: ClassVar = True

    cb = operand_def(CBType)
    result = result_def(i32)


@irdl_op_definition
class GetCompileTimeArgValOp(TTKernelOp):
    """A circular buffer by its number, which is a compile-time argument."""

    name = "ttkernel.get_compile_time_arg_val"

    index = prop_def(IntegerAttr)
    result = result_def(CBType)
