"""Arguments of a kernel in the interpreter: the type of each value, and its memory as a numpy array.

No compiler is loaded for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.element_types import BY_SPELLING
from tlx_xdsl.errors import InputOverflowError, InputTypeError
from tlx_xdsl.frontend.python.source import Fixed, KernelSource, Parameter, Signature
from tlx_xdsl.frontend.python.suggestions import did_you_mean
from tlx_xdsl.language.core import constexpr, dtype
from tlx_xdsl.numerics.arrays import numpy_type
from tlx_xdsl.numerics.host_arrays import skew_of
from tlx_xdsl.numerics.uninitialized import UninitializedArray

from ..launch.tensor_descriptor import TensorDescriptor, dtype_name, element_size


def numpy_dtype(name: object) -> np.dtype[Any] | None:
    """The numpy type for a name of Triton's, numpy's or torch's, such as `fp16`, `float16` or `torch.float16`."""
    short = dtype_name(name)
    return None if short is None else numpy_type(BY_SPELLING[short])


def is_descriptor(value: object) -> bool:
    """Return whether a value is a tensor descriptor, ours or Triton's."""
    return hasattr(value, "block_shape")


def is_constant(value: object) -> bool:
    """Return whether a value that is passed to a kernel is a part of it: None, a constexpr, a type or a function."""
    return value is None or isinstance(value, constexpr | dtype) or callable(value)


def signature_of(name: str, value: Any) -> Signature:
    """The type, in Triton's spelling, of the argument `name` that has this value.

    An int is an i32 where that holds it, a float is an fp32, an array a pointer to its elements. What a tuple holds
    beside values is fixed. Raises TypeError for a value that no argument can have, OverflowError for an integer that
    has more than 64 bits.
    """
    if is_constant(value):
        return Fixed(value)
    if isinstance(value, tuple):
        items = [signature_of(f"{name}[{at}]", item) for at, item in enumerate(cast(tuple[Any, ...], value))]
        return _like(cast(tuple[Any, ...], value), items)
    if isinstance(value, bool | np.bool_):
        return "i1"
    if isinstance(value, float):
        return "fp32"
    if isinstance(value, int):
        return _integer(name, value)
    if is_descriptor(value):
        block = ", ".join(str(int(size)) for size in value.block_shape)
        return f"tensordesc<{_element(name, value.base)}[{block}]>"
    if isinstance(value, np.generic):
        return _element(name, value)
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        raise InputTypeError(
            f"'{name}' must be an array, a TensorDescriptor, a number or a tuple of them, found {type(value).__name__}"
        )
    return f"*{_element(name, value)}"


ALIGNED = 16
"""The divisor of pointers (in bytes) and integers that a kernel is compiled for."""


def constant_ones(value: Any) -> Any:
    """An integer that is 1 as a constant, in tuples, too: Triton compiles kernels for that, and strides are 1 by it."""
    if isinstance(value, tuple):
        given = cast("tuple[Any, ...]", value)
        return _like(given, list(map(constant_ones, given)))
    return constexpr(1) if type(value) is int and value == 1 else value


def specialized(name: str, type_: Signature, value: Any) -> Signature:
    """The type of the argument `name` with what a launch promises of its value: that it is a multiple of 16.

    How many elements are loaded at a time rests on that, and so what is a vector and what `cp.async` can copy.
    """
    if isinstance(value, tuple) and isinstance(type_, tuple):
        given = cast(tuple[Any, ...], value)
        return _like(given, [specialized(name, *each) for each in zip(cast(Any, type_), given, strict=True)])
    if not isinstance(type_, str):
        return type_
    number = 1
    if type_.startswith("*"):
        number = skew_of(_array(name, value))
    elif isinstance(value, int) and not isinstance(value, bool) and type_[0] in "iu" and type_ != "i1":
        number = value
    return type_ if number % ALIGNED else f"{type_}:{ALIGNED}"


def _integer(name: str, value: int) -> str:
    if -(1 << 31) <= value < 1 << 31:
        return "i32"
    if -(1 << 63) <= value < 1 << 64:
        return "i64" if value < 1 << 63 else "u64"
    from tlx_xdsl.frontend.values import shown

    # As Python's own conversions to C integers, and so Triton's launches, raise it.
    raise InputOverflowError(f"'{name}' is {shown(value)}, which no integer of 64 bits can hold")


def _element(name: str, value: Any) -> str:
    short = dtype_name(value.dtype)
    if short is None:
        raise InputTypeError(f"'{name}' has elements of the type {value.dtype}, which kernels do not have")
    return short


def _like(value: tuple[Any, ...], items: Sequence[Any]) -> Any:
    """A tuple of `items`, with the names of `value` where that has names."""
    cls = cast(Any, type(value))
    return cls(*items) if hasattr(cls, "_fields") else tuple(items)


def flattened(name: str, value: Any) -> list[tuple[str, Any]]:
    """The arguments of the function that a value is passed as: each item of a tuple is one of its own."""
    if isinstance(value, tuple):
        items = enumerate(cast(tuple[Any, ...], value))
        return [
            argument for at, item in items if not is_constant(item) for argument in flattened(f"{name}[{at}]", item)
        ]
    return [(name, on_host(name, value))]


def on_host(name: str, value: Any) -> Any:
    """A value with numpy arrays in the place of other libraries' tensors; they share their memory.

    Raises TypeError for a tensor that is not in the memory of this process.
    """
    if is_descriptor(value):
        if isinstance(value.base, np.ndarray):
            return value
        padding, rounds = getattr(value, "padding", "zero"), bool(getattr(value, "round_f32_to_tf32", False))
        base = _array(name, value.base)
        return TensorDescriptor(
            base, list(value.shape), list(value.strides), list(value.block_shape), padding, rounds
        )  # fmt: skip
    if isinstance(value, bool | int | float | np.generic | np.ndarray):
        return cast(Any, value)
    return _array(name, value)


@dataclass(frozen=True, eq=False)
class _Memory:
    """Memory of another library, as numpy asks for it (NumPy, "The array interface protocol"); kept alive by it."""

    owner: Any
    __array_interface__: dict[str, Any]


def _array(name: str, tensor: Any) -> NDArray[Any]:
    """The memory of a tensor that answers like torch's; numpy's own conversion knows no bf16."""
    device = getattr(tensor, "device", None)
    if getattr(device, "type", "cpu") != "cpu":
        raise InputTypeError(f"'{name}' is on the device {device}: the interpreter takes what is in the CPU's memory")
    if not callable(getattr(tensor, "data_ptr", None)):
        return np.asarray(tensor)
    dtype, size = numpy_dtype(tensor.dtype), element_size(tensor)
    if dtype is None:
        raise InputTypeError(f"'{name}' has elements of the type {tensor.dtype}, which kernels do not have")
    interface: dict[str, Any] = {
        "version": 3,
        "data": (int(tensor.data_ptr()), False),
        "shape": tuple(int(extent) for extent in tensor.shape),
        "strides": tuple(int(stride) * size for stride in tensor.stride()),
        "typestr": "|u1" if size == 1 else f"<u{size}",
    }
    array: NDArray[Any] = np.asarray(_Memory(tensor, interface)).view(dtype)
    if not array.size or not callable(getattr(tensor, "untyped_storage", None)):
        return array
    # A view's array is one of the whole memory: TMA may write what follows the view (`numerics/host_arrays.py`).
    storage = tensor.untyped_storage()
    start, count = int(storage.data_ptr()), int(storage.nbytes())
    flat: dict[str, Any] = {"version": 3, "data": (start, False), "shape": (count,), "typestr": "|u1"}
    whole = np.asarray(_Memory(tensor, flat))
    return np.ndarray(array.shape, dtype, whole, array.ctypes.data - start, array.strides)


def uninitialized(shape: int | Sequence[int], dtype: Any = "fp32") -> NDArray[Any]:
    """An array in whose memory nothing has been written, as `torch.empty` makes them.

    In the interpreter a read of what neither a kernel nor `array[...] = value` has written is a fault. `dtype` is an
    element type by Triton's, numpy's or torch's name. Raises TypeError for one that kernels do not have.
    """
    found = numpy_dtype(np.dtype(dtype) if isinstance(dtype, type) else dtype)
    if found is None:
        raise InputTypeError(f"expected an element type such as fp16, bf16, float32 or i32, found {dtype!r}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return UninitializedArray.of(tuple(index(size) for size in sizes), found)


def type_of(parameter: Parameter, value: Any) -> Signature:
    """The type that a value has as the argument of a parameter, whose annotation may say that of numbers.

    Raises as `signature_of` does.
    """
    is_number = isinstance(value, bool | int | float | np.generic)
    return parameter.number_type if parameter.number_type and is_number else signature_of(parameter.name, value)


@dataclass(frozen=True)
class Typed:
    """Arguments, apart by what the compiler makes of them."""

    signature: dict[str, Signature]
    """The type of each argument that a launch passes."""
    constexprs: dict[str, Any]
    """The value of each that is a part of the kernel."""
    values: list[tuple[str, Any]]
    """What is passed, by name and in order; tuples item by item."""


def typed(source: KernelSource, arguments: Mapping[str, Any], types: Mapping[str, Signature] | None = None) -> Typed:
    """The types of arguments by name, as a launch with these values has them.

    An integer that is 1 is a constant, and what is a multiple of 16 says so, where the parameter does not say otherwise
    (`do_not_specialize`, an annotation). `types` has those that are not to be derived from values.

    Raises TypeError for a value that no argument can have, OverflowError for an integer of more than 64 bits.
    """
    found = Typed({}, {}, [])
    for parameter in source.parameters:
        name = parameter.name
        if name not in arguments:
            continue
        value, type_ = arguments[name], (types or {}).get(name)
        if type_ is None and parameter.takes_ones:
            value = constant_ones(value)
        if parameter.is_constexpr or is_constant(value):
            found.constexprs[name] = arguments[name]
            continue
        if type_ is None:
            type_ = type_of(parameter, value)
            type_ = specialized(name, type_, value) if parameter.takes_alignment else type_
        found.signature[name] = type_
        found.values.extend(flattened(name, value))
    return found


def defaults_of(source: KernelSource) -> dict[str, Any]:
    """The values of parameters that the definition of a kernel gives."""
    return {each.name: each.default for each in source.parameters if each.default is not inspect.Parameter.empty}


def split_options(
    source: KernelSource, named: Mapping[str, Any], options: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a call names, apart: arguments of the kernel, and options, which a parameter of the same name hides.

    Raises TypeError for a name that is neither.
    """
    parameters = source.signature.parameters
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    for name in named:
        if name not in parameters and name not in options and not takes_any:
            raise InputTypeError(f"'{source.name}' has no parameter '{name}'{_meant(name, parameters, named, options)}")
    chosen = {name: value for name, value in named.items() if name in options and name not in parameters}
    return {name: value for name, value in named.items() if name not in chosen}, chosen


def _meant(name: str, parameters: Collection[str], named: Mapping[str, Any], options: Collection[str]) -> str:
    """Return what a name that is not known may stand for, and what else there is."""
    similar = did_you_mean(name, [*(each for each in parameters if each not in named), *options])
    if not similar:
        # `BLOCK` for `B`: difflib finds them different, an eye does not.
        alike = [each for each in parameters if each not in named and name.lower().startswith(each.lower())]
        similar = f", did you mean '{alike[0]}'?" if len(alike) == 1 else ""
    have = f"ts parameters are {', '.join(parameters) or 'none'}"
    return f"{similar} I{have}" if similar else f", i{have}"


def bound(source: KernelSource, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name. Raises TypeError for those that do not fit."""
    try:
        return dict(source.signature.bind(*args, **named).arguments)
    except TypeError as error:
        have = ", ".join(source.signature.parameters)
        raise InputTypeError(f"{source.name}: {error}, its parameters are {have}") from error
