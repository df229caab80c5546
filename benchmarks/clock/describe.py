"""Launches as JSON: enough to predict them where neither the GPU nor torch is."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.clock.arrays import SPAN


def described_arguments(work: Any, meta: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The arguments of a launch in order; `meta` is the compiler's word on its tensor maps."""
    entries, found = iter(meta), []
    for name, value in work.launch.arguments.items():
        if hasattr(value, "block_shape"):
            found.append(
                {
                    "name": name,
                    "kind": "map",
                    "base": _array(value.base),
                    "shape": [int(each) for each in value.shape],
                    "strides": [int(each) for each in value.strides],
                    "meta": dict(next(entries)),
                    "padding": value.padding,
                }
            )
        elif hasattr(value, "shape"):
            found.append({"name": name, "kind": "array", **_array(value)})
        else:
            found.append({"name": name, "kind": "number", "value": value})
    return found


def _array(value: Any) -> dict[str, Any]:
    if hasattr(value, "data_ptr"):
        start, strides = value.data_ptr(), value.stride()
        dtype = str(value.dtype).rsplit(".", 1)[-1]
    else:
        start, strides = value.ctypes.data, [each // value.itemsize for each in value.strides]
        dtype = str(value.dtype)
    said: dict[str, Any] = {"at": start, "shape": list(value.shape), "strides": list(strides), "dtype": dtype}
    if dtype in ("int32", "int64"):
        numbers = value.cpu().numpy() if hasattr(value, "cpu") else value
        if numbers.nbytes <= SPAN:
            said["values"] = base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()
    return said


def arguments_of(described: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The arguments as the PTX machine takes them, arrays with zeros but where values were kept."""
    from tlx_xdsl.ptx.memory.tensor_map import TensorMap
    from tlx_xdsl.runtime.launch.parameters import read_tensor_map_format

    arrays: dict[int, Any] = {}
    found: list[Any] = []
    for each in described:
        if each["kind"] == "number":
            found.append(each["value"])
        elif each["kind"] == "array":
            found.append(_made(each, arrays))
        else:
            form = read_tensor_map_format(each["meta"], each["name"])
            found.append(
                TensorMap(
                    _made(each["base"], arrays),
                    form.box,
                    form.swizzle,
                    tuple(each["shape"]),
                    tuple(each["strides"]),
                    fills_with_nan=each["padding"] == "nan",
                    element_type=int(each["meta"]["elem_type"]),
                    fp4_padded=form.fp4_padded,
                    name=each["name"],
                )
            )
    return found


def array_bytes(described: Sequence[Mapping[str, Any]]) -> list[int]:
    """The bytes of each array, once where several arguments are of one."""
    sizes: dict[int, int] = {}
    for each in described:
        if each["kind"] != "number":
            array = each["base"] if each["kind"] == "map" else each
            sizes[array["at"]] = max(sizes.get(array["at"], 0), _count(array) * _type(array["dtype"]).itemsize)
    return list(sizes.values())


def _count(array: Mapping[str, Any]) -> int:
    return 1 + sum((size - 1) * stride for size, stride in zip(array["shape"], array["strides"], strict=True))


def _type(name: str) -> Any:
    from tlx_xdsl.runtime.driver.host_values import numpy_dtype

    return numpy_dtype(name)


def _made(array: Mapping[str, Any], arrays: dict[int, Any]) -> Any:
    """An array of that shape and those strides, the same memory where one is at the same address."""
    import numpy as np
    from numpy.lib.stride_tricks import as_strided

    kind, count = _type(array["dtype"]), _count(array)
    flat = arrays.get(array["at"])
    if flat is None or flat.nbytes < count * kind.itemsize:
        flat = arrays[array["at"]] = np.zeros(count, kind)
    if "values" in array:
        flat[:count] = np.frombuffer(zlib.decompress(base64.b64decode(array["values"])), kind)
    typed = flat.view(kind)[:count]
    return as_strided(typed, array["shape"], [stride * kind.itemsize for stride in array["strides"]])
