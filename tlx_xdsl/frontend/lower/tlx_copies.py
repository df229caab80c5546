"""Lowering of copies between global memory and buffers without a descriptor: by the threads, and in bulk."""

from __future__ import annotations

from math import prod

from tlx_xdsl.dialects import tlx, tlx as dialect, ttg
from tlx_xdsl.language.core import int1, int32
from tlx_xdsl.layouts.shared import bytes_of

from .. import semantic
from ..calls import Call, lowers
from ..values import AsyncToken, BufferedTensor, Constexpr, Tensor, TensorDescriptor, Value
from .tlx_common import cache_policy, one_barrier, shared_buffer


def _scalar_pointer(call: Call, parameter: str) -> Tensor:
    pointer, _ = call.pointer(parameter)
    if pointer.shape:
        call.expected(parameter, "one pointer")
    return pointer


def _mask(call: Call, shape: tuple[int, ...]) -> Tensor | None:
    if not call.given("mask"):
        return None
    mask = call.tensor("mask")
    if mask.dtype != int1:
        call.expected("mask", "an int1")
    return semantic.broadcast_to(call.builder, mask, shape)


@lowers("tlx.async_load")
def _async_load(call: Call) -> Value | None:
    if call.flag("bulk"):
        return _bulk_load(call)
    for parameter in ("bulk_size", "barrier"):
        if call.given(parameter):
            call.fail(parameter, f"'{parameter}' is for bulk copies, which need bulk=True")
    (source, element), buffer = call.pointer("src", "a block of pointers"), shared_buffer(call, "result")
    if (element, source.shape) != (buffer.dtype, buffer.shape):
        call.fail("result", f"'result' must take the elements of {source.describe()}, found {buffer.describe()}")
    mask, other = _mask(call, source.shape), None
    if call.given("other") and mask is None:
        call.fail("other", "'other' needs a mask")
    if mask is not None:
        # What is masked out is zero, not what happened to be in the buffer.
        value = call.args["other"] if call.given("other") else Constexpr(0)
        if isinstance(value, Tensor):
            value = semantic.cast(call.builder, value, buffer.dtype)
            other = semantic.broadcast_to(call.builder, value, source.shape)
        else:
            other = semantic.full(call.builder, source.shape, value, buffer.dtype)
    volatile, policy = call.flag("is_volatile"), cache_policy(call)
    return AsyncToken(
        call.emit(
            ttg.AsyncCopyGlobalToLocalOp,
            source,
            buffer,
            mask,
            other,
            results=[ttg.AsyncTokenType()],
            isVolatile=volatile,
            cachePolicy=policy,
        ).token
    )


def _bulk_load(call: Call) -> Value | None:
    for parameter in ("mask", "other"):
        if call.given(parameter):
            call.fail(parameter, f"a bulk copy takes no '{parameter}'")
    source, buffer = _scalar_pointer(call, "src"), shared_buffer(call, "result")
    size = _size(call, "bulk_size", buffer)
    call.emit(dialect.AsyncBulkLoadOp, source, buffer, size, one_barrier(call, "barrier"))
    return None


def _size(call: Call, parameter: str, buffer: BufferedTensor) -> Tensor:
    """The argument, bytes of a bulk copy; those of `buffer` when it is None."""
    whole = bytes_of(prod(buffer.shape), buffer.dtype.primitive_bitwidth)
    value = call.args[parameter] if call.given(parameter) else Constexpr(whole)
    if isinstance(value, Constexpr) and isinstance(value.value, int):
        if value.value <= 0 or value.value % tlx.BULK_BYTES:
            call.fail(
                parameter, f"a bulk copy moves a positive multiple of {tlx.BULK_BYTES} bytes, found {value.value}"
            )
        if value.value > whole:
            call.fail(parameter, f"the buffer has {whole} bytes, found {value.value}")
    return call.as_scalar(parameter, value, int32)


@lowers("tlx.async_store")
def _async_store(call: Call) -> None:
    pointer, buffer = _scalar_pointer(call, "dst_global_ptr"), shared_buffer(call, "src_smem")
    size = _size(call, "size", buffer)
    call.emit(dialect.AsyncBulkStoreOp, buffer, pointer, size)


def _tokens(call: Call) -> list[AsyncToken]:
    tokens: list[AsyncToken] = []
    for item in call.items("tokens", "a list of async_tokens"):
        if not isinstance(item, AsyncToken):
            call.fail("tokens", f"'tokens' must hold async_tokens, found {item.describe()}")
        tokens.append(item)
    return tokens


@lowers("tlx.async_load_commit_group")
def _async_load_commit_group(call: Call) -> Value:
    tokens = _tokens(call)
    return AsyncToken(call.emit(ttg.AsyncCommitGroupOp, tokens, results=[ttg.AsyncTokenType()]).async_token)


@lowers("tlx.async_load_wait_group")
def _async_load_wait_group(call: Call) -> Value:
    tokens = _tokens(call)
    return AsyncToken(
        call.emit(
            ttg.AsyncWaitOp, tokens, results=[ttg.AsyncTokenType()], num=call.integer("pendings", minimum=0)
        ).ret_token
    )


@lowers("tlx.prefetch")
def _prefetch(call: Call) -> None:
    level = call.choice("level", {"L1": tlx.CacheLevel.L1, "L2": tlx.CacheLevel.L2})
    if call.flag("tensormap"):
        if call.given("mask"):
            call.fail("mask", "the prefetch of a descriptor takes no mask")
        descriptor = call.of("pointer", TensorDescriptor, "a tensor descriptor")
        call.emit(dialect.PrefetchTensormapOp, descriptor)
        return
    pointer, _ = call.pointer("pointer", "a pointer or a block of pointers")
    mask = _mask(call, pointer.shape)
    call.emit(dialect.PrefetchOp, pointer, mask, level=level)
