"""Hints about what kernels refuse but numpy, torch and Python have."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from tlx_xdsl import language
from tlx_xdsl.language.extra import libdevice

from .values import Constexpr, Tensor, TupleValue, Value

_LISTS = (
    "lists are tuples in a kernel, which never change: l = l + (value,) is a longer one, and so is "
    "[f(i) for i in range(n)]"
)
_OF_TUPLES: Mapping[str, str] = dict.fromkeys(
    ("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"), _LISTS
)

_OF_TENSORS: Mapping[str, str] = {
    "astype": "a value is converted by .to(dtype), as in v.to(tl.float32)",
    "float": "a value is converted by .to(tl.float32)",
    "half": "a value is converted by .to(tl.float16)",
    "bfloat16": "a value is converted by .to(tl.bfloat16)",
    "int": "a value is converted by .to(tl.int32)",
    "long": "a value is converted by .to(tl.int64)",
    "mean": "tl.sum(v, axis) / n is the mean",
    "item": "a block of one element becomes a number by tl.sum(v, axis=0)",
    "size": "its sizes are in .shape",
    "copy": "values never change: there is nothing to copy",
    "clone": "values never change: there is nothing to copy",
    "flatten": "tl.ravel(v), or .reshape(sizes)",
    "view": "tl.reshape(v, sizes), or .to(dtype, bitcast=True) for other types of the same bits",
    "unsqueeze": "tl.expand_dims(v, axis), or v[:, None]",
    "matmul": "tl.dot(a, b) is the product",
    "mm": "tl.dot(a, b) is the product",
}
"""Attributes that arrays of numpy and tensors of torch have."""

_RENAMED = {
    "power": "libdevice.pow", "amax": "tl.max", "amin": "tl.min", "arctan": "libdevice.atan", "arange": "tl.arange",
    "matmul": "tl.dot", "concatenate": "tl.cat", "mean": "tl.sum", "transpose": "tl.trans", "square": "v * v",
    "relu": "tl.maximum(v, 0)", "absolute": "tl.abs", "rint": "libdevice.rint", "einsum": "tl.dot",
}  # fmt: skip
"""Functions of numpy, torch and Python's math whose counterpart has another name."""


def attribute_hint(value: Value, name: str) -> str:
    """Return what stands for an attribute that a value in a kernel does not have; nothing where no habit is known."""
    is_tuple = isinstance(value, TupleValue) or (isinstance(value, Constexpr) and isinstance(value.value, tuple | list))
    nothing: Mapping[str, str] = {}
    known = _OF_TUPLES if is_tuple else _OF_TENSORS if isinstance(value, Tensor) else nothing
    return f": {known[name]}" if name in known else ""


def function_hint(function: Any) -> str:
    """The function of the language that stands for one of another library; nothing where there is none."""
    name = getattr(function, "__name__", "")
    if name == "replace" and getattr(function, "__module__", "") in ("copy", "dataclasses"):
        return "; use tl.aggregate_replace(value, field=...)"
    if inspect.isfunction(function) and not (function.__module__ or "").startswith(("numpy", "torch")):
        # The user's own.
        return ""
    if name in _RENAMED:
        return f"; use {_RENAMED[name]}"
    if callable(getattr(language, name, None)):
        return f"; use tl.{name}"
    return f"; use libdevice.{name}" if callable(getattr(libdevice, name, None)) else ""
