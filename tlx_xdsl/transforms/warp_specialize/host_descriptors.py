"""`tlx-ws-host-descriptors`: descriptors of tensors that the arguments describe become arguments themselves.

A descriptor that the kernel makes costs every program a tensor map in memory, and a wait for it. What the host can make
at a launch becomes an argument, with its extents and strides after it, as the frontend gives a descriptor: the
attribute `tlx.host_descriptor` says of what, as Python over the names of the arguments. Descriptors that are equal in
all become one. Arguments that nothing uses any more go.

Before:
```mlir
tt.func public @f(%a_ptr: !tt.ptr<f16>, %M: i32, %K: i32, %stride: i32) {
  %s = arith.extsi %stride : i32 to i64
  %a_desc = tt.make_tensor_descriptor %a_ptr, [%M, %K], [%s, %c1] : <f16>, <64x64xf16>
```
After:
```mlir
tt.func public @f(%a_desc: !tt.tensordesc<64x64xf16> {tlx.host_descriptor = {pointer = "a_ptr", shape = ["M", "K"],
  strides = ["stride", "1"]}}, %a_desc.shape.0: i32, %a_desc.shape.1: i32, %a_desc.stride.0: i64, ...) {
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, i32, i64
from xdsl.ir import Attribute, BlockArgument
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.structure.places import Places
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.tt.enums import PaddingOption
from tlx_xdsl.transforms.drop_unused import drop_unused
from tlx_xdsl.transforms.rewriting import Pass, ops_of

from .accesses.arguments import add_argument, add_conditions, descriptor_name, drop_unused_arguments, new_name
from .accesses.facts import Facts, name_of

DESCRIPTOR = "tlx.host_descriptor"
"""Attribute of an argument: the tensor of which the host makes the descriptor."""


class HostDescriptorsPass(Pass):
    """Let the host make the descriptors of all kernels of a module."""

    name = "tlx-ws-host-descriptors"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in ops_of(op, tt.FuncOp):
            made = ops_of(function, tt.MakeTensorDescOp)
            if function.is_kernel and made:
                _hoist(function, made)


@dataclass(frozen=True)
class _Tensor:
    """The tensor of a descriptor, as Python over the names of the arguments."""

    pointer: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]
    type_: tt.TensorDescType
    padding: str
    conditions: tuple[str, ...]

    @property
    def attribute(self) -> DictionaryAttr:
        """Return what the argument says of itself."""
        entries: dict[str, Attribute] = {
            "pointer": StringAttr(self.pointer),
            "shape": _strings(self.shape),
            "strides": _strings(self.strides),
        }
        if self.padding != "zero":
            entries["padding"] = StringAttr(self.padding)
        return DictionaryAttr({DESCRIPTOR: DictionaryAttr(entries)})


def _hoist(function: tt.FuncOp, made: Sequence[tt.MakeTensorDescOp]) -> None:
    places = Places(function)
    facts = Facts(function, places.sums)
    arguments: dict[_Tensor, BlockArgument] = {}
    # Names of arguments stand for the plain kernel's, also where one of them goes.
    found = [(op, tensor) for op in made if (tensor := _tensor_of(op, places, facts)) is not None]
    for op, tensor in found:
        if tensor not in arguments:
            arguments[tensor] = _add(function, tensor, op)
            add_conditions(function, tensor.conditions)
        op.result.replace_all_uses_with(arguments[tensor])
        Rewriter.erase_op(op)
    if found:
        drop_unused(function)
        drop_unused_arguments(function)


def _tensor_of(op: tt.MakeTensorDescOp, places: Places, facts: Facts) -> _Tensor | None:
    """Return what a descriptor is of; None where the host can't know it."""
    place = places.of(op.base)
    if place is None or place.offset.base.terms or not facts.value_is_of_launch(place.root):
        return None
    pointer = name_of(place.root)
    numbers = [places.sums.of(operand) for operand in (*op.shape, *op.strides)]
    texts = [facts.text(number) if facts.is_of_launch(number) else None for number in numbers]
    rank = len(op.result.type.shape)
    if pointer is None or None in texts or len(op.shape) != rank:
        return None
    said = [text for text in texts if text is not None]
    conditions = [each for number in numbers for each in facts.said_if(number)]
    # The host makes a descriptor of something only, also where the kernel would not use one.
    conditions += [f"{text} > 0" for number, text in zip(numbers[:rank], texts, strict=False) if number.number is None]
    padding = "nan" if op.padding == PaddingOption.PAD_NAN.attr else "zero"
    return _Tensor(pointer, tuple(said[:rank]), tuple(said[rank:]), op.result.type, padding, tuple(conditions))


def _add(function: tt.FuncOp, tensor: _Tensor, op: tt.MakeTensorDescOp) -> BlockArgument:
    """Add the descriptor with its extents before its pointer."""
    entry = function.body.blocks[0]
    at = next(argument.index for argument in entry.args if argument.name_hint == tensor.pointer)
    name = new_name(function, op.result.name_hint or descriptor_name(tensor.pointer))
    rank = range(len(tensor.shape))
    parts: list[tuple[str, Attribute]] = [(f"{name}.shape.{dim}", i32) for dim in rank]
    parts += [(f"{name}.stride.{dim}", i64) for dim in rank]
    argument = add_argument(function, at, name, tensor.type_, tensor.attribute, op.location)
    for number, (part, type_) in enumerate(parts):
        add_argument(function, at + 1 + number, part, type_, DictionaryAttr({}), op.location)
    return argument


def _strings(texts: Sequence[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(each) for each in texts])
