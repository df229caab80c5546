"""Operands of attention: heads in memory that TMA reads, and the logarithms of the denominators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

from ..calls.launching import Launches
from ..calls.operands import (
    TMA_ALIGNMENT,
    Operand,
    check_contiguous,
    check_places,
    check_shape,
    check_type,
    check_types,
    described_rows,
    operand,
    row_strides,
    torch_module,
)
from ..calls.plans import WORKSPACE, Prepared
from .config import DIM_STEP, MAX_HEAD_DIM

DTYPES = ("fp16", "bf16")
FP8_DTYPES = ("fp8e4nv",)

_MAX_ROWS = (1 << 31) - 1
"""Rows of all heads are counted in 32 bits."""


def operands_of(function: str, **values: Any) -> list[Operand]:
    """Arguments of a function by their names as operands."""
    return [operand(function, name, value) for name, value in values.items()]


def check_config(function: str, config: Any, expected: type, what: str) -> None:
    """Raise TypeError for a configuration that is not of the class for `what`."""
    if type(config) not in (type(None), expected):
        article = "an" if expected.__name__.startswith("A") else "a"
        raise TypeError(
            f"{function}: argument 'config': expected {article} {expected.__name__} for {what}, got {config!r}"
        )


def by_name(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Values by their names, which are as many."""
    return dict(zip(names, values, strict=True))


def prepared(
    named: dict[str, Any], results: Mapping[str, Any], is_empty: bool, launches: Callable[[dict[str, Any]], Launches]
) -> Prepared:
    """The tensors of a call by their names, with `results` in the places of None, and the launches on all of them.

    There is nothing to launch where a call `is_empty`.
    """
    named |= {name: made() for name, made in results.items() if named[name] is None}
    if is_empty:
        return Prepared(named)
    found = launches(named)
    return Prepared({**named, WORKSPACE: found.workspace}, found.parts)


def check_heads(
    q: Operand, k: Operand, v: Operand, *, dtypes: Sequence[str] = DTYPES, head_dims: Sequence[int] | None = None
) -> None:
    """Refuse what are no heads of queries, keys and values that fit.

    Where there are `head_dims`, heads have as many elements as one of them says, and those of `v` the same. Raises
    TypeError for other types, ValueError for shapes and places.
    """
    check_types((q, k, v), dtypes)
    check_head_shapes(q, k, v, head_dims)


def check_dimensions(*heads: Operand) -> None:
    """Refuse what are no heads of sequences. Raises ValueError."""
    for each in heads:
        if len(each.shape) != 4:
            raise ValueError(f"{each.what}: expected (batch, heads, length, head dim), got the shape {each.shape}")


def check_head_shapes(q: Operand, k: Operand, v: Operand, head_dims: Sequence[int] | None = None) -> None:
    """Check the shapes of heads, but not their types. Raises ValueError."""
    check_dimensions(q, k, v)
    batch, heads, _, dim = q.shape
    kv_heads, keys = k.shape[1:3]
    if head_dims is not None and dim not in head_dims:
        raise ValueError(f"{q.what}: expected heads of {' or '.join(map(str, head_dims))} elements, got {dim}")
    _check_dim(q)
    check_shape(k, (batch, kv_heads, keys, dim), "batch and head dim of 'q'")
    if head_dims is None:
        check_shape(v, (*k.shape[:3], v.shape[3]), "batch, heads and keys of 'k'")
        _check_dim(v)
    else:
        check_shape(v, k.shape, "that of 'k'")
    if not kv_heads or heads % kv_heads:
        raise ValueError(f"{k.what}: expected heads that divide the {heads} of 'q', got {kv_heads}")
    if not keys:
        raise ValueError(f"{k.what}: expected at least one key, got the shape {k.shape}")


def _check_dim(each: Operand) -> None:
    dim = each.shape[3]
    if dim % DIM_STEP or not 0 < dim <= MAX_HEAD_DIM:
        raise ValueError(
            f"{each.what}: expected heads of a multiple of {DIM_STEP} elements, up to {MAX_HEAD_DIM}, got {dim}"
        )


def check_plain(of: Operand, each: Operand, dtypes: Sequence[str], shape: tuple[int, ...], why: str) -> None:
    """Refuse other types, places and shapes, and elements that do not follow each other.

    Raises TypeError or ValueError.
    """
    check_type(each, dtypes, " or ".join(dtypes).replace("i32", "int32"))
    check_places((of, each))
    check_shape(each, shape, why)
    check_contiguous(each)


def check_lse(q: Operand, lse: Operand) -> None:
    """Refuse other logarithms than those of `q`, in f32 and contiguous. Raises TypeError or ValueError."""
    check_plain(q, lse, ("fp32",), q.shape[:3], "batch, heads and queries of 'q'")


def check_rows(q: Operand, length: int) -> None:
    """Refuse no queries, and more rows than a kernel counts, of `length` for each head. Raises ValueError."""
    batch, heads, queries, _ = q.shape
    if 0 in q.shape:
        raise ValueError(f"{q.what}: expected queries, got the shape {q.shape}")
    if batch * heads * length > _MAX_ROWS:
        raise ValueError(f"{q.what}: expected at most {_MAX_ROWS} rows in all, got {batch * heads * queries}")


def factor_of(function: str, scale: float | None, dim: int) -> float:
    """The factor of the scores: `scale`, or dim ** -0.5. Raises ValueError for one that is not positive."""
    factor = dim**-0.5 if scale is None else float(scale)
    if not (factor > 0 and math.isfinite(factor)):
        raise ValueError(f"{function}: argument 'scale': expected a positive number, got {scale}")
    return factor


def readable_heads(value: Any) -> Any:
    """Heads of 16-bit elements as TMA reads them: a tensor of torch's that lies in another way is copied.

    Such are gradients: that of a sum is one element, repeated.
    """
    if not callable(getattr(value, "stride", None)):
        return value
    strides = value.stride()
    if len(strides) != 4:
        return value
    try:
        address = value.data_ptr()
    except RuntimeError:
        return value  # torch's transformations have such tensors: they go to an operator first
    batch, head, row, element = strides
    are_multiples = not ((batch | head | row) * 2 | address) % TMA_ALIGNMENT
    if are_multiples and element == 1 and batch > 0 and head > 0 and row > 0:
        return value
    return value.clone(memory_format=torch_module().contiguous_format)


def described_heads(each: Operand, rows: int, width: int | None = None) -> TensorDescriptor:
    """A descriptor for blocks of so many rows of a head, and of `width` columns: by default its elements.

    After those TMA reads zeros, and writes nothing. Raises ValueError for memory that TMA can't read.
    """
    found = described_rows(each, (1, 1, rows, width or each.shape[3]))
    if found is None:
        raise ValueError(
            f"{each.what}: expected heads that are contiguous and start at multiples of {TMA_ALIGNMENT} bytes "
            f"({TMA_ALIGNMENT // each.element_bytes} elements), got the strides {each.strides}"
        )
    return found


def strides_in_units(each: Operand) -> tuple[int, ...]:
    """Strides of batches, heads and rows in units of 16 bytes, of heads that `described_heads` takes."""
    strides = row_strides(each)
    assert strides is not None
    unit = TMA_ALIGNMENT // each.element_bytes
    return tuple([stride // unit for stride in strides[:3]])


def scale_of(of: Operand, name: str, value: Any) -> Operand | None:
    """A tensor of scales for the heads of an operand, None for none. Raises TypeError or ValueError."""
    if value is None:
        return None
    found = operand(of.function, name, value)
    if found.dtype != "fp32" or not hasattr(value, "__setitem__"):
        # A number of numpy's has a type and a shape, but no memory that a kernel could read.
        raise TypeError(f"{found.what}: expected a tensor of type fp32, got {type(value).__name__} of {value.dtype}")
    check_places((of, found))
    batch, heads = of.shape[:2]
    if found.shape not in ((), (1,), (1, 1), (heads,), (batch, heads)):
        raise ValueError(
            f"{found.what}: expected one element, the shape {(heads,)} or {(batch, heads)}, got {found.shape}"
        )
    return found


def scale_strides(scale: Operand | None) -> tuple[int, ...]:
    """Elements between the scales of neighbours, along batches and heads."""
    if scale is None or all(extent == 1 for extent in scale.shape):
        return 0, 0
    return (0, *scale.strides) if len(scale.shape) == 1 else scale.strides
