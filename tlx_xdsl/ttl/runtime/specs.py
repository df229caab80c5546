"""Specifications of a kernel's tensors, from the arrays that it is called with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tlx_xdsl.annotations import annotated_signature
from tlx_xdsl.errors import CompilationError, InputError, InputTypeError
from tlx_xdsl.frontend.python.source import KernelSource

from ..language.kernel import Kernel
from ..language.tensors import TensorSpec, as_dtype, interleaved, tiled
from .memory_config import place_of

Spec: TypeAlias = TensorSpec | float
"""What is known of an argument when a kernel is compiled: a tensor, or a number."""


def parameters(kernel: Kernel) -> tuple[str, ...]:
    """The names of a kernel's parameters."""
    return tuple(annotated_signature(kernel.fn).parameters)


def annotated(kernel: Kernel) -> Mapping[str, TensorSpec]:
    """The tensors that the kernel's own annotations describe, such as `a: ttl.tensor((64, 96), layout=ttl.tiled)`.

    Type checkers refuse a call there: `a: Annotated[Any, ttl.tensor((64, 96))]` says the same.
    """
    try:
        found = inspect.get_annotations(kernel.fn, eval_str=True)
    except (NameError, SyntaxError, AttributeError):
        # An annotation for another tool, such as a type checker.
        return {}
    said = {name: (value, *getattr(value, "__metadata__", ())) for name, value in found.items()}
    return {name: each for name, values in said.items() for each in values if isinstance(each, TensorSpec)}


def _at_parameter(kernel: Kernel, name: str, message: str) -> CompilationError:
    """The error of a value for a parameter, at the parameter."""
    source = KernelSource(kernel.fn)
    node = next(each.node for each in source.parameters if each.name == name)
    return source.error(node, f"'{name}': {message}")


def specs_of(kernel: Kernel, arrays: Sequence[Any]) -> tuple[Spec, ...]:
    """Return specifications of a kernel's arguments: shapes and types of arrays, layouts of the annotations; numbers.

    An annotation also says where a tensor's elements are block floats.

    Without an annotation a tensor of `ttnn` lies where it says, another one is tiled, or interleaved in a kernel with
    `tiled=False`. A number is a part of the kernel that is compiled.

    Raises InputTypeError for too few or too many arrays, and CompilationError at the parameter for elements that no
    tile holds, and for a shape that is not two positive integers or more.
    """
    names = parameters(kernel)
    if len(arrays) != len(names):
        raise InputTypeError(f"'{kernel.name}' takes {len(names)} arguments ({', '.join(names)}), found {len(arrays)}")
    known = annotated(kernel)
    default = tiled if kernel.tiled else interleaved
    found: list[Spec] = []
    for name, array in zip(names, arrays, strict=True):
        if isinstance(array, bool | int | float):
            found.append(array)
            continue
        if not hasattr(array, "shape") or not hasattr(array, "dtype"):
            raise InputTypeError(
                f"'{name}' of '{kernel.name}' must be an array or a number, found {type(array).__name__}"
            )
        spec = known.get(name)
        layout, space = (default, "DRAM") if spec is None else (spec.layout, spec.memory_space)
        if spec is None and hasattr(array, "memory_config"):
            try:
                layout, space = place_of(name, array)
            except InputError as error:
                raise _at_parameter(kernel, name, str(error)) from error
        shape = tuple(int(size) for size in array.shape)
        # NumPy has no block floats: an annotation alone says that elements are packed as such.
        try:
            dtype = spec.dtype if spec is not None and spec.dtype.is_block_float else as_dtype(array.dtype)
            found.append(TensorSpec(shape, dtype, layout, space))
        except (InputError, InputTypeError) as error:
            raise _at_parameter(kernel, name, str(error)) from error
    return tuple(found)
