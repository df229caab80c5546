"""The part of `tl` that the random programs use, on numpy: each function as its documentation says, on whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

Array = Any


@dataclass(frozen=True)
class Pointer:
    """Places in an array."""

    array: Array
    index: Any = 0

    def __add__(self, index: Any) -> Pointer:
        return Pointer(self.array, self.index + np.asarray(index).astype(np.int64))


def run(text: str, arrays: dict[str, Array], n: int) -> None:
    """Run the `kernel` of a program on arrays, which it writes."""
    body = text.partition("import tlx_xdsl.language as tl\n")[2].replace("@tlx_xdsl.jit\n", "")
    names: dict[str, Any] = {"tl": LANGUAGE}
    exec(compile(body, "<program>", "exec"), names)
    names |= {"tdiv": truncated_division, "trem": truncated_remainder}
    with np.errstate(all="ignore"):
        names["kernel"](*map(Pointer, arrays.values()), np.int32(n))


def truncated_division(a: Array, b: Array) -> Array:
    quotient = a // b
    return np.where((a < 0) & (quotient * b != a), quotient + 1, quotient).astype(a.dtype)


def truncated_remainder(a: Array, b: Array) -> Array:
    return (a - truncated_division(a, b) * b).astype(a.dtype)


def _load(pointer: Pointer, mask: Array = None, other: Any = 0) -> Array:
    loaded = pointer.array[pointer.index]
    return loaded if mask is None else np.where(mask, loaded, np.asarray(other).astype(loaded.dtype))


def _store(pointer: Pointer, value: Array) -> None:
    pointer.array[pointer.index] = value


def _cast(value: Any, dtype: Any) -> Array:
    return np.asarray(value).astype(dtype)[()]


def _atomic(combine: Callable[[Array, Array], Array]) -> Callable[[Pointer, Array], Array]:
    def atomic(pointer: Pointer, value: Array) -> Array:
        old = pointer.array[pointer.index].copy()
        pointer.array[pointer.index] = combine(old, value)
        return old

    return atomic


def _compare_and_swap(pointer: Pointer, expected: Array, new: Array) -> Array:
    return _atomic(lambda old, _: np.where(old == expected, new, old))(pointer, new)


def _dot(a: Array, b: Array, input_precision: str = "", out_dtype: Any = np.float32) -> Array:
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(out_dtype)


def _scaled(elements: Array, scale: Array, form: str) -> Array:
    """The numbers of a row-major left side: two e2m1 in a byte, the low one first; a power of two for each 32."""
    if form == "e2m1":
        bits = np.stack([elements & 15, elements >> 4], -1).reshape(len(elements), -1)
        elements = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])[bits & 7] * np.where(bits & 8, -1, 1)
    return elements.astype(np.float64) * np.repeat(2.0 ** (scale.astype(np.int64) - 127), 32, 1)


def _dot_scaled(a: Array, a_scale: Array, a_form: str, b: Array, b_scale: Array, b_form: str) -> Array:
    return (_scaled(a, a_scale, a_form) @ _scaled(b.T, b_scale, b_form).T).astype(np.float32)


LANGUAGE = SimpleNamespace(
    **{name: getattr(np, name) for name in ("where", "reshape", "broadcast_to", "expand_dims", "floor", "ceil")},
    **{f"{kind}{bits}": np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    bfloat16=ml_dtypes.bfloat16, float8e5=ml_dtypes.float8_e5m2, float8e4nv=ml_dtypes.float8_e4m3fn,
    arange=lambda low, high: np.arange(low, high, dtype=np.int32),
    load=_load, store=_store, cast=_cast, dot=_dot, dot_scaled=_dot_scaled, abs=np.abs,
    static_range=range, range=range,
    # Where one is NaN, the other.
    minimum=lambda a, b: np.fmin(a, b) if a.dtype.kind == "f" else np.minimum(a, b),
    maximum=lambda a, b: np.fmax(a, b) if a.dtype.kind == "f" else np.maximum(a, b),
    div_rn=lambda a, b: (a / b).astype(a.dtype), sqrt_rn=np.sqrt,
    sum=lambda a, axis: a.sum(axis, dtype=a.dtype), cumsum=lambda a, axis: a.cumsum(axis, dtype=a.dtype),
    max=lambda a, axis=None: a.max(axis), min=lambda a, axis=None: a.min(axis),
    argmax=lambda a, axis: a.argmax(axis).astype(np.int32),
    xor_sum=lambda a, axis: np.bitwise_xor.reduce(a, axis),
    trans=np.transpose, gather=np.take_along_axis, flip=np.flip, sort=np.sort,
    interleave=lambda a, b: np.stack([a, b], -1).ravel(),
    topk=lambda a, k: np.sort(a)[::-1][:k],
    histogram=lambda a, bins: np.bincount(a, minlength=bins).astype(np.int32),
    cat=lambda a, b, can_reorder: np.concatenate([a, b]),
    atomic_add=_atomic(lambda a, b: a + b), atomic_max=_atomic(np.maximum), atomic_min=_atomic(np.minimum),
    atomic_and=_atomic(np.bitwise_and), atomic_or=_atomic(np.bitwise_or), atomic_xor=_atomic(np.bitwise_xor),
    atomic_xchg=_atomic(lambda _, b: b), atomic_cas=_compare_and_swap,
)  # fmt: skip
