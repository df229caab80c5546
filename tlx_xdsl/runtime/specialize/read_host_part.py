"""The host's part of a launch, read from the module that the passes have made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

from tlx_xdsl.decompile.host import cluster_of, element_of, split_of
from tlx_xdsl.dialects.tt.func import FuncOp
from tlx_xdsl.dialects.tt.types import TensorDescType
from tlx_xdsl.text.diagnostics import error_at

from .host_part import Computed, Described, Given, HostPart, Memory, Part

DESCRIPTOR, VALUE, CONDITIONS = "tlx.host_descriptor", "tlx.host_value", "tlx.launch_conditions"
MEMORY = "tlx.host_memory"
"""The attributes of arguments and of the function that say what the host does."""


def host_part_of(module: ModuleOp) -> HostPart:
    """Return what a launch of a module's kernel is made of."""
    function = kernel_function(module)
    given = function.arg_attrs
    attributes: list[Mapping[str, Attribute]] = [] if given is None else [each.data for each in given.data]
    args = list(function.body.blocks[0].args)
    parts: list[Part] = []
    computed: list[str] = []
    at = 0
    while at < len(args):
        arg = args[at]
        known: Mapping[str, Attribute] = attributes[at] if at < len(attributes) else {}
        type_ = arg.type
        at += 1
        if isinstance(value := known.get(VALUE), StringAttr):
            computed.append(value.data)
            parts.append(Computed(value.data))
            continue
        if isinstance(held := known.get(MEMORY), DictionaryAttr):
            parts.append(_memory(held, type_))
            continue
        block = tuple(type_.shape) if isinstance(type_, TensorDescType) else None
        if isinstance(type_, TensorDescType):
            # The extents of a descriptor follow it, and belong to it.
            rank = len(type_.shape)
            kinds = ["i32"] * rank + ["i64"] * rank
            at += 2 * rank if [str(each.type) for each in args[at : at + 2 * rank]] == kinds else 0
        if isinstance(described := known.get(DESCRIPTOR), DictionaryAttr):
            assert block is not None
            parts.append(_described(described, block))
        elif arg.name_hint is None:
            raise error_at(arg, "an argument that the passes have made does not say where its value comes from")
        else:
            parts.append(Given(arg.name_hint, block))
    conditions = _texts(function.attributes.get(CONDITIONS))
    persistent = any(each.startswith("grid[") for each in computed)
    return HostPart(tuple(parts), conditions, persistent, cluster_of(function), split_of(function))


def kernel_function(module: ModuleOp) -> FuncOp:
    """The function of a module that is launched."""
    return next(op for op in module.walk() if isinstance(op, FuncOp) and op.is_kernel)


def _described(known: DictionaryAttr, block: tuple[int, ...]) -> Described:
    entries = known.data
    padding = entries.get("padding")
    return Described(
        _text(entries["pointer"]), _texts(entries["shape"]), _texts(entries["strides"]), block,
        padding.data if isinstance(padding, StringAttr) else "zero",
    )  # fmt: skip


def _memory(held: DictionaryAttr, type_: Attribute) -> Memory:
    return Memory(_text(held.data["count"]), element_of(type_), held.data["zero"] == BoolAttr.from_bool(True))


def _texts(attribute: Attribute | None) -> tuple[str, ...]:
    if attribute is None:
        return ()
    return tuple(_text(each) for each in cast("ArrayAttr[Attribute]", attribute).data)


def _text(attribute: Attribute) -> str:
    if isinstance(attribute, IntegerAttr):
        return str(attribute.value.data)
    return cast(StringAttr, attribute).data
