"""Global memory: pointers, atomics and tensor descriptors."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects.tt.attrs import CachePolicyAttr
from tlx_xdsl.dialects.tt.enums import (
    CacheModifier,
    DescriptorReduceKind,
    EvictionPolicy,
    MemSemantic,
    MemSyncScope,
    PaddingOption,
    RMWOp,
)
from tlx_xdsl.dialects.tt.types import TensorDescType

from .elementwise import as_unsigned, peeled
from .function import Function, given, handles, prop
from .types import (
    NotExpressible,
    Text,
    call,
    dtype,
    element_of,
    listed,
    literal,
    method,
    number_of,
    shape_of,
    survives_float32,
)


def cache_hints(op: Operation) -> dict[str, str]:
    """The arguments that say how an access uses the caches."""
    hints: dict[str, str] = {}
    policy: Attribute | None = prop(op, "cachePolicy")
    if policy is not None and not isinstance(policy, CachePolicyAttr):
        raise NotExpressible(f"the cache policy {policy}")
    if policy is not None and policy.cache_modifier is not CacheModifier.NONE:
        hints["cache_modifier"] = f'".{policy.cache_modifier.keyword}"'
    if policy is not None and policy.eviction_policy is not EvictionPolicy.NORMAL:
        hints["eviction_policy"] = f'"{policy.eviction_policy.keyword}"'
    return hints


def _repeated(fn: Function, value: SSAValue | None, shape: tuple[int, ...]) -> Text | None:
    """A value that the language repeats to the shape of the pointers."""
    if value is None:
        return None
    short = peeled(value)
    fits = not shape_of(short) or len(shape_of(short)) == len(shape)
    return fn.typed(short if fits else value)


def _element(fn: Function, value: SSAValue | None, shape: tuple[int, ...]) -> Text | None:
    """Spell a repeated element: a number where the language makes the same constant of it."""
    if value is None:
        return None
    number = number_of(value)
    element = element_of(value.type)
    plain = isinstance(element, IntegerType) == (not isinstance(number, float)) and not str(element).startswith("f8")
    if number is not None and plain and survives_float32(number):
        return literal(number, element)
    return _repeated(fn, value, shape)


@handles("tt.load")
def _load(fn: Function, op: Any) -> Text:
    shape = shape_of(op.ptr)
    return call(
        "tl.load",
        fn.text(op.ptr),
        mask=_repeated(fn, op.mask, shape),
        other=_element(fn, op.other, shape),
        **cache_hints(op),
        volatile=given(op, "isVolatile"),
    )


@handles("tt.store")
def _store(fn: Function, op: Any) -> Text:
    shape = shape_of(op.ptr)
    mask = _repeated(fn, op.mask, shape)
    hints = cache_hints(op)
    return call("tl.store", fn.text(op.ptr), _element(fn, op.value, shape), mask=mask, **hints)


# --- atomics ----------------------------------------------------------------------------------------------------------

_RMW = {
    RMWOp.AND: "and", RMWOp.OR: "or", RMWOp.XOR: "xor", RMWOp.ADD: "add", RMWOp.FADD: "add", RMWOp.MAX: "max",
    RMWOp.MIN: "min", RMWOp.UMAX: "max", RMWOp.UMIN: "min", RMWOp.XCHG: "xchg",
}  # fmt: skip


def _ordering(op: Any) -> dict[str, str]:
    sem, scope = MemSemantic(prop(op, "sem")).keyword, MemSyncScope(prop(op, "scope")).keyword
    return {"sem": f'"{sem}"', "scope": f'"{scope}"'}


def _mask(fn: Function, mask: SSAValue | None, shape: tuple[int, ...]) -> Text | None:
    """The mask of an atomic operation, unless it is true everywhere."""
    return None if mask is None or number_of(mask) is True else _repeated(fn, mask, shape)


@handles("tt.atomic_rmw")
def _rmw(fn: Function, op: Any) -> Text:
    kind = RMWOp(prop(op, "atomic_rmw_op"))
    shape = shape_of(op.ptr)
    pointer, mask = fn.typed(op.ptr), _mask(fn, op.mask, shape)
    name = f"tl.atomic_{_RMW[kind]}"
    if kind not in (RMWOp.UMAX, RMWOp.UMIN):
        return call(name, pointer, _element(fn, op.val, shape), mask=mask, **_ordering(op))
    pointer = method(pointer, "to", dtype(op.ptr.type, unsigned=True), bitcast=True)
    value = as_unsigned(fn, op.val)
    return method(call(name, pointer, value, mask=mask, **_ordering(op)), "to", dtype(op.result.type))


@handles("tt.atomic_cas")
def _cas(fn: Function, op: Any) -> Text:
    shape = shape_of(op.ptr)
    values = (_element(fn, op.cmp, shape), _element(fn, op.val, shape))
    return call("tl.atomic_cas", fn.typed(op.ptr), *values, **_ordering(op))


@handles("tt.atomic_load")
def _atomic_load(fn: Function, op: Any) -> Text:
    mask = _mask(fn, op.mask, shape_of(op.ptr))
    return call("tl.atomic_load", fn.typed(op.ptr), mask=mask, **_ordering(op))


@handles("tt.atomic_store")
def _atomic_store(fn: Function, op: Any) -> Text:
    shape = shape_of(op.ptr)
    value, mask = _element(fn, op.value, shape), _mask(fn, op.mask, shape)
    return call("tl.atomic_store", fn.typed(op.ptr), value, mask=mask, **_ordering(op))


@handles("tt.atomic_poll")
def _poll(fn: Function, op: Any) -> Text:
    timeout = None if op.timeout is None else fn.number_or_text(op.timeout)
    expected = _element(fn, op.expected, shape_of(op.ptr))
    return call("tl.atomic_poll", fn.typed(op.ptr), expected, **_ordering(op), timeout_ns=timeout)


# --- descriptors ------------------------------------------------------------------------------------------------------


def offsets(fn: Function, values: Any) -> str:
    """The coordinates of a block."""
    return listed(fn.number_or_text(value) for value in values)


@handles("tt.make_tensor_descriptor")
def _make_descriptor(fn: Function, op: Any) -> Text:
    base = fn.typed(op.base)
    if dtype(op.result.type.element_type).startswith("tl.u"):
        # Only a descriptor's integers have a sign, which they take from the pointer.
        base = method(base, "to", dtype(op.base.type, unsigned=True), bitcast=True)
    nan = prop(op, "padding") == PaddingOption.PAD_NAN
    return call(
        "tl.make_tensor_descriptor",
        base,
        shape=offsets(fn, op.shape),
        strides=offsets(fn, op.strides),
        block_shape=list(op.result.type.shape),
        padding_option='"nan"' if nan else None,
    )


@handles("tt.descriptor_load")
def _descriptor_load(fn: Function, op: Any) -> Text:
    text = _signless(method(fn.text(op.desc), "load", offsets(fn, op.indices)), op.desc, op)
    is_whole = tuple(op.desc.type.shape) == shape_of(op.result)
    return text if is_whole else call("tl.reshape", text, list(shape_of(op.result)))


def _signless(text: Text, descriptor: SSAValue, op: Any) -> Text:
    """The loaded block as signed integers, which all integers are here."""
    assert isinstance(descriptor.type, TensorDescType)
    unsigned = dtype(descriptor.type.element_type).startswith("tl.u")
    return method(text, "to", dtype(op.result.type)) if unsigned else text


def _stored(fn: Function, descriptor: SSAValue, value: SSAValue) -> Text:
    assert isinstance(descriptor.type, TensorDescType)
    target = dtype(descriptor.type.element_type)
    text = fn.typed(value)
    return method(text, "to", target) if target.startswith("tl.u") else text


def _boxed(fn: Function, descriptor: SSAValue, value: SSAValue) -> Text:
    """A stored block in the shape of the box: the IR leaves out dimensions of extent 1, which the language has."""
    assert isinstance(descriptor.type, TensorDescType)
    text, box = _stored(fn, descriptor, value), tuple(descriptor.type.shape)
    return text if box == shape_of(value) else call("tl.reshape", text, list(box))


@handles("tt.descriptor_store")
def _descriptor_store(fn: Function, op: Any) -> Text:
    return method(fn.text(op.desc), "store", offsets(fn, op.indices), _boxed(fn, op.desc, op.src))


@handles("tt.descriptor_reduce")
def _descriptor_reduce(fn: Function, op: Any) -> Text:
    kind = DescriptorReduceKind(prop(op, "kind")).keyword
    if kind in ("inc", "dec"):
        raise NotExpressible(f"a reducing store of the kind '{kind}'")
    return method(fn.text(op.desc), f"atomic_{kind}", offsets(fn, op.indices), _boxed(fn, op.desc, op.src))


@handles("tt.descriptor_gather")
def _descriptor_gather(fn: Function, op: Any) -> Text:
    rows, column = fn.typed(op.x_offsets), fn.number_or_text(op.y_offset)
    return _signless(method(fn.text(op.desc), "gather", rows, column), op.desc, op)


@handles("tt.descriptor_scatter")
def _descriptor_scatter(fn: Function, op: Any) -> Text:
    rows, column = fn.typed(op.x_offsets), fn.number_or_text(op.y_offset)
    return method(fn.text(op.desc), "scatter", _stored(fn, op.desc, op.src), rows, column)
