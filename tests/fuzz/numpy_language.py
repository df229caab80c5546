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
    """Places in one of several arrays of one type: the number of the array, and the index there."""

    arrays: tuple[Array, ...]
    index: Any = 0
    which: Any = 0

    def __add__(self, index: Any) -> Pointer:
        return Pointer(self.arrays, self.index + np.asarray(index).astype(np.int64), self.which)

    def read(self, mask: Any = True) -> Array:
        """The elements; 0 where the mask is off."""
        index, which, wanted = np.broadcast_arrays(self.index, self.which, mask)
        found = np.zeros(index.shape, self.arrays[0].dtype)
        for number, array in enumerate(self.arrays):
            here = wanted & (which == number)
            found[here] = array[index[here]]
        return found[()]

    def write(self, value: Any, mask: Any = True) -> None:
        """Replace the elements where the mask is on."""
        index, which, wanted, value = np.broadcast_arrays(self.index, self.which, mask, value)
        for number, array in enumerate(self.arrays):
            here = wanted & (which == number)
            array[index[here]] = value[here]


def run(text: str, arrays: dict[str, Array], n: int) -> None:
    """Run the `kernel` of a program on arrays, which it writes."""
    body = text.partition("import tlx_xdsl.language as tl\n")[2].replace("@tlx_xdsl.jit\n", "")
    names: dict[str, Any] = {"tl": LANGUAGE}
    exec(compile(body, "<program>", "exec"), names)
    names |= {"tdiv": truncated_division, "trem": truncated_remainder}
    with np.errstate(all="ignore"):
        names["kernel"](*(Pointer((each,)) for each in arrays.values()), np.int32(n))


def truncated_division(a: Array, b: Array) -> Array:
    quotient = a // b
    return np.where((a < 0) & (quotient * b != a), quotient + 1, quotient).astype(a.dtype)


def truncated_remainder(a: Array, b: Array) -> Array:
    return (a - truncated_division(a, b) * b).astype(a.dtype)


def _load(pointer: Pointer, mask: Array = True, other: Any = None) -> Array:
    loaded = pointer.read(mask)
    return loaded if other is None else np.where(mask, loaded, np.asarray(other).astype(loaded.dtype))


def _where(condition: Array, yes: Any, no: Any) -> Any:
    if not isinstance(yes, Pointer):
        return np.where(condition, yes, no)
    which = np.where(condition, yes.which, no.which + len(yes.arrays))
    return Pointer(yes.arrays + no.arrays, np.where(condition, yes.index, no.index), which)


def _cast(value: Any, dtype: Any) -> Array:
    return np.asarray(value).astype(dtype)[()]


def _atomic(combine: Callable[[Array, Array], Array]) -> Callable[[Pointer, Array], Array]:
    def atomic(pointer: Pointer, value: Array) -> Array:
        old = pointer.read()
        pointer.write(combine(old, value))
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
    **{name: getattr(np, name) for name in ("reshape", "broadcast_to", "expand_dims", "floor", "ceil")},
    **{f"{kind}{bits}": np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    bfloat16=ml_dtypes.bfloat16, float8e5=ml_dtypes.float8_e5m2, float8e4nv=ml_dtypes.float8_e4m3fn, int1=np.bool_,
    arange=lambda low, high: np.arange(low, high, dtype=np.int32),
    load=_load, store=Pointer.write, where=_where, cast=_cast, dot=_dot, dot_scaled=_dot_scaled, abs=np.abs,
    static_range=range, range=range,
    # Where one is NaN, the other.
    minimum=lambda a, b: np.minimum(a, b) if a.dtype.kind in "iu" else np.fmin(a, b),
    maximum=lambda a, b: np.maximum(a, b) if a.dtype.kind in "iu" else np.fmax(a, b),
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
