"""The host's part of a specialised kernel: the function that makes its arguments of the plain kernel's.

The passes say in the module what it does (`runtime/specialize/read_host_part.py` reads the same): `tlx.host_descriptor`
and `tlx.host_value` of arguments, and the function's `tlx.launch_conditions`. All are Python over the plain kernel's
parameters, in which a pointer's name is its address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, f32
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.utils.hints import isa

from tlx_xdsl.analysis.module_attrs import cluster_dims
from tlx_xdsl.dialects.tt.func import FuncOp
from tlx_xdsl.dialects.tt.types import PointerType, TensorDescType
from tlx_xdsl.transforms.warp_specialize.accesses.arguments import (
    CONDITIONS,
    HOST_MEMORY,
    HOST_VALUE,
    SPLIT,
    descriptors_of,
)
from tlx_xdsl.transforms.warp_specialize.host_descriptors import DESCRIPTOR

from .types import Text, call, listed, tupled
from .wrapping import wrapped

PROGRAMS = 132
"""Programs that a GPU of unknown size runs at a time: one for each multiprocessor of an H200."""

_ADDRESS = '''\
def address(array):
    """Return where an array of torch or numpy begins."""
    return array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data
'''
_ELEMENTS = '''\
def elements(array):
    """Return the elements from the first one of an array of torch or numpy to the end of its memory."""
    if hasattr(array, "untyped_storage"):
        return array.untyped_storage().nbytes() // array.element_size() - array.storage_offset()
    return array.size
'''
_MEMORY = '''\
def memory(array, kind, count, dtype):
    """Return memory for this launch alone, where an array of torch or numpy is."""
    if hasattr(array, "data_ptr"):
        import torch as library

        more = {"device": array.device}
    else:
        import numpy as library

        more = {}
    return getattr(library, kind)(count, dtype=getattr(library, dtype), **more)
'''


@dataclass(frozen=True)
class PlainKernel:
    """Facts about the kernel that was specialised, which the written file repeats."""

    parameters: Sequence[str] = ()
    """Its parameters, in order."""
    constants: Mapping[str, object] = field(default_factory=dict[str, object])
    """Values of those that are known when it is compiled."""


def host_part(function: FuncOp, name: str, plain: PlainKernel) -> list[str]:
    """Return the functions of the file that run on the host, as text."""
    arguments = list(_arguments(function))
    conditions = _texts(function.attributes.get(CONDITIONS))
    parameters = list(plain.parameters) or [argument.name_hint or "" for argument, known in arguments if not known]
    made, values, pointers, memory = list[str](), list[str](), set[str](), list[tuple[str, str]]()
    for argument, known in arguments:
        own = argument.name_hint or f"arg{argument.index}"
        if isinstance(held := known.get(HOST_MEMORY), DictionaryAttr):
            new = "zeros" if held.data["zero"] == BoolAttr.from_bool(True) else "empty"
            kind = {"fp32": "float32", "i32": "int32"}[element_of(argument.type)]
            memory.append((own, f'"{new}", {_text(held.data["count"])}, "{kind}"'))
        elif isinstance(argument.type, PointerType):
            pointers.add(own)
        elif isinstance(described := known.get(DESCRIPTOR), DictionaryAttr):
            pointers.add(_text(described.data["pointer"]))
            made.append(f"{own} = {_descriptor(described, argument)}")
        elif isinstance(argument.type, TensorDescType):
            box = list(argument.type.shape)
            made.append(f"{own} = {call('tlx_xdsl.TensorDescriptor', *_parts_of(own), box, f'{own}.padding')}")
        values.append(value.data if isinstance(value := known.get(HOST_VALUE), StringAttr) else own)
    split = split_of(function)
    is_persistent = any(_mentions(text, "grid") for text in values)
    beside = next((name for name in parameters if name in pointers), f"{values[0]}.base")
    made += [f"{own} = memory({beside}, {what})" for own, what in memory]
    lines: list[str] = []
    if split > 1 or is_persistent or any(_mentions(text, "grid") for text in conditions):
        lines.append("grid = (*grid, 1, 1)[:3]")
    lines += _checks(name, conditions, sorted(pointers)) if conditions else []
    grid = "(min(grid[0] * grid[1] * grid[2], programs),)" if is_persistent else "grid"
    if is_persistent and (cluster := cluster_of(function)) > 1:
        tiles = f"(grid[0] * grid[1] * grid[2] + {cluster - 1})"
        grid = f"({cluster} * min({tiles} // {cluster}, programs // {cluster}),)"
    if split > 1:
        grid = f"({split} * grid[0], grid[1], grid[2])"
    lines += [*made, f"return {grid}, {tupled(values)}"]
    head = f"def launch_arguments({', '.join(['grid', *_defaults(parameters, plain.constants, is_persistent)])}):"
    doc = '"""Return the grid and the arguments for a launch of the plain kernel with these."""'
    body = [part for line in [doc, *lines] for part in wrapped(f"    {line}")]
    text = "\n".join([*wrapped(head), *body]) + "\n"
    helpers = {"address(": _ADDRESS, "elements(": _ELEMENTS, "memory(": _MEMORY}
    return [*(helper for called, helper in helpers.items() if called in text), text]


def cluster_of(function: FuncOp) -> int:
    """Return the CTAs of a cluster along x."""
    dims = cluster_dims(module) if isinstance(module := function.parent_op(), ModuleOp) else None
    return 1 if dims is None else dims[0]


def split_of(function: FuncOp) -> int:
    """Return the programs that share the work of one of the plain launch."""
    found = function.attributes.get(SPLIT)
    return found.value.data if isinstance(found, IntegerAttr) else 1


def element_of(pointer: Attribute) -> str:
    """The type of the elements that an argument leads to, by its name in signatures."""
    assert isinstance(pointer, PointerType)
    return "fp32" if pointer.pointee == f32 else "i32"


def shape_names(function: FuncOp) -> dict[SSAValue, list[str]]:
    """The extents of the tensor of each descriptor that the host makes, as Python."""
    found: dict[SSAValue, list[str]] = {}
    for argument, known in _arguments(function):
        if isinstance(described := known.get(DESCRIPTOR), DictionaryAttr):
            found[argument] = _texts(described.data["shape"])
    return found


def _arguments(function: FuncOp) -> Iterator[tuple[BlockArgument, Mapping[str, Attribute]]]:
    """Yield the arguments that a launch gives, with what the passes say of each; extents belong to descriptors."""
    given = function.arg_attrs
    attributes: list[Mapping[str, Attribute]] = [] if given is None else [each.data for each in given.data]
    extents = {extent for each in descriptors_of(function) for extent in each.extents}
    for argument in function.body.blocks[0].args:
        if argument not in extents:
            known = attributes[argument.index : argument.index + 1]
            held = [(name, value) for each in known for name, value in each.items()]
            yield argument, {name: value for name, value in held if name in (DESCRIPTOR, HOST_MEMORY, HOST_VALUE)}


def _descriptor(known: DictionaryAttr, argument: BlockArgument) -> Text:
    entries = known.data
    assert isinstance(argument.type, TensorDescType)
    padding = entries.get("padding")
    return call(
        "tlx_xdsl.TensorDescriptor",
        _text(entries["pointer"]),
        listed(_texts(entries["shape"])),
        listed(_texts(entries["strides"])),
        list(argument.type.shape),
        f'"{padding.data}"' if isinstance(padding, StringAttr) else None,
    )


def _parts_of(descriptor: str) -> list[str]:
    return [f"{descriptor}.{part}" for part in ("base", "shape", "strides")]


def _checks(name: str, conditions: Sequence[str], pointers: Sequence[str]) -> list[str]:
    """The lines that refuse a launch for which the kernel is not made."""
    lines = ["needed = {"]
    for text in conditions:
        python = text
        for pointer in pointers:
            python = re.sub(rf"(?<!elements\()\b{pointer}\b", f"address({pointer})", python)
        lines.append(f'    "{text}": {python},')
    return [
        *lines,
        "}",
        "for condition, holds in needed.items():",
        "    if not holds:",
        f'        raise ValueError(f"{name} is not for this launch: {{condition}} does not hold")',
    ]


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def _defaults(parameters: Sequence[str], constants: Mapping[str, object], is_persistent: bool) -> list[str]:
    """The parameters; the constants at the end have their values, so that a launch need not repeat them."""
    tail = len(parameters)
    while tail and parameters[tail - 1] in constants:
        tail -= 1
    found = [*parameters[:tail], *(f"{name}={constants[name]!r}" for name in parameters[tail:])]
    return [*found, f"programs={PROGRAMS}"] if is_persistent else found


def _text(attribute: Attribute) -> str:
    assert isinstance(attribute, StringAttr)
    return attribute.data


def _texts(attribute: Attribute | None) -> list[str]:
    return [each.data for each in attribute.data] if isa(attribute, ArrayAttr[StringAttr]) else []
