"""Multi-head latent attention to a long cache, whose values are the first columns of its keys: `mla`.

    out = attention_mla(q, cache, scale=192**-0.5)                # (batch, 128, 1, 576) and (batch, 1, keys, 576)

That is decoding in DeepSeek's models once the projections of keys and values are multiplied into those of queries and
results. The kernel is in `mla_device`; splits and their merge are those of `attention_decode`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...calls.launching import Launches
from ...calls.operands import Operand, check_shape, check_types, empty
from ...calls.planned_function import PlannedFunction
from ...calls.plans import Prepared
from ...operators import attention as operators
from ..config import CONSUMER_ROWS, SHARED_BYTES, Pieces, pieces_of
from ..operands import DTYPES, by_name, check_dimensions, operands_of, prepared
from .call import Asked, Form, check_queries, paged
from .config import PIECE, Blocks
from .mla_device import attention_mla as mla_kernel

MAX_DIM, MAX_V_DIM = 576, 512
"""Elements of a row of the cache at most, and of its values: two warp groups have the sums of 256 columns each."""

DIM_STEP, V_DIM_STEP = 8, 2 * PIECE
"""What they are multiples of: 16 bytes, and a piece for each warp group."""

KEYS = 32
"""Those of a block. Two blocks of 64 leave no room for what the results go through; three of 32 do."""


def attention_mla(
    q: Any,
    cache: Any,
    *,
    scale: float,
    v_dim: int = MAX_V_DIM,
    lengths: Any = None,
    pages: Any = None,
    causal: bool = False,
    out: Any = None,
) -> Any:
    """Return softmax(scale q cache^T) cache[..., :v_dim], of (batch, heads, queries, v_dim).

    q: (batch, heads, queries, dim), 1 to 64 queries; cache: (batch, 1, keys, dim), in any order of memory whose last
    dimension is contiguous, in fp16 or bf16; dim is a multiple of 8 up to 576, v_dim one of 128 up to 512. `scale` has
    no default: it is that of the heads before they were projected, 192 ** -0.5 for heads of 128 and 64 elements.
    `lengths`, `pages` with a cache of (pages, 1, rows of a page, dim), and `causal` are those of `attention_decode`.

    Raises TypeError for other types, ValueError for shapes, strides and options that do not fit, RuntimeError for a GPU
    that is no Hopper.
    """
    return ATTENTION_MLA((q, cache, out, lengths, pages), (v_dim, scale, bool(causal)))


def attention_mla_launch(
    q: Any, cache: Any, out: Any, *, scale: float, lengths: Any = None, pages: Any = None, causal: bool = False,
    splits: int | None = None, programs: int | None = None,
) -> Launches:  # fmt: skip
    """The launches of `mla`, to be bound once and repeated; no extent may be 0. Raises as it does.

    `programs` share the items, by default the GPU's multiprocessors; `splits` is by default `splits_for`.
    """
    named = by_name(_TENSORS, (q, cache, out, lengths, pages))
    return _launches(named, int(out.shape[-1]), Asked(scale, causal, splits=splits, programs=programs))


def blocks_for(dim: int) -> Blocks:
    """Blocks of KEYS rows, and as many as fit beside the queries, the probabilities, and the sums on their way."""
    width = -(-dim // PIECE) * PIECE
    sums = 2 * CONSUMER_ROWS * PIECE * 4
    free = SHARED_BYTES - CONSUMER_ROWS * (width * 2 + KEYS * 2 + 4) - sums
    return Blocks(KEYS, min(free // (KEYS * width * 2), 6), 1)


_NAME = "attention_mla"
_TENSORS = ("q", "cache", "out", "lengths", "pages")


class _Problem(NamedTuple):
    """The inputs, checked; with pages, the cache has the shape that it is to the queries."""

    q: Operand
    cache: Operand
    v_dim: int

    @classmethod
    def of(cls, named: Mapping[str, Any], v_dim: int) -> _Problem:
        queries, *caches = operands_of(_NAME, q=named["q"], cache=named["cache"])
        (rows,) = paged(queries, caches, named["pages"])
        check_types((queries, rows), DTYPES)
        check_dimensions(queries, rows)
        batch, _, _, dim = queries.shape
        if dim % DIM_STEP or not 0 < dim <= MAX_DIM:
            raise ValueError(
                f"{queries.what}: expected rows of a multiple of {DIM_STEP} elements, up to {MAX_DIM}, got {dim}"
            )
        check_shape(rows, (batch, 1, rows.shape[2], dim), "batch and dim of 'q', and one head")
        if not rows.shape[2]:
            raise ValueError(f"{rows.what}: expected at least one key, got the shape {rows.shape}")
        most = min(dim, MAX_V_DIM)
        if v_dim % V_DIM_STEP or not 0 < v_dim <= most:
            raise ValueError(
                f"{_NAME}: argument 'v_dim': expected a multiple of {V_DIM_STEP}, up to {most}, got {v_dim}"
            )
        check_queries(queries, named["lengths"])
        return cls(queries, rows, v_dim)


def _prepare(tensors: tuple[Any, ...], settings: tuple[Any, ...]) -> Prepared:
    v_dim, scale, causal = settings
    named = by_name(_TENSORS, tensors)
    q = _Problem.of(named, v_dim).q
    results = {"out": lambda: empty(q, (*q.shape[:3], v_dim))}
    return prepared(named, results, 0 in q.shape, lambda named: _launches(named, v_dim, Asked(scale, causal)))


ATTENTION_MLA = PlannedFunction(_NAME, _prepare, results=2, operator=operators.ATTENTION_MLA)


def _launches(named: Mapping[str, Any], v_dim: int, asked: Asked) -> Launches:
    q, cache, _ = _Problem.of(named, v_dim)
    dim, keys = q.shape[3], cache.shape[2]
    form = Form(mla_kernel, blocks_for(dim), pieces_of(dim, PIECE), Pieces(PIECE, v_dim // V_DIM_STEP))
    return form.launches(q, named, (keys, v_dim), asked, ())
