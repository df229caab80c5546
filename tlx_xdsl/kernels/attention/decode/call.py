"""Attention of 1 to 64 queries to a long cache of keys: `attention_decode(q, k, v, lengths=...)`.

    out = attention_decode(q, k, v)                                  # all keys of the cache
    out = attention_decode(q, k, v, lengths=lengths, causal=True)    # the queries are the last of each sequence

The keys of a head are split over the GPU's multiprocessors, and the parts merged by a second launch; `splits_for` says
how many there are. The kernels are in `device`. There is no gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tlx_xdsl.language.core import constexpr

from ...calls.launching import Launch, Launches, check_hopper, multiprocessors
from ...calls.operands import (
    UNIT,
    Operand,
    check_places,
    check_shape,
    check_types,
    empty,
    is_aligned,
    operand,
)
from ...calls.planned_function import PlannedFunction
from ...calls.plans import Prepared
from ...operators import attention as operators
from ..config import CONSUMER_ROWS, Pieces
from ..operands import (
    DTYPES,
    FP8_DTYPES,
    by_name,
    check_head_shapes,
    check_plain,
    check_rows,
    described_heads,
    factor_of,
    operands_of,
    prepared,
    scale_of,
    scale_strides,
)
from ..options import read_options
from .config import (
    FP8_REGISTERS,
    MAX_REGISTERS,
    Blocks,
    Tiling,
    blocks_for,
    columns_for,
    decode_pieces,
    fp8_blocks_for,
    fp8_pieces,
    splits_for,
)
from .device import attention_decode as decode_kernel, merge
from .rows import Work


def attention_decode(
    q: Any,
    k: Any,
    v: Any,
    *,
    lengths: Any = None,
    pages: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    scale: float | None = None,
    causal: bool = False,
    window: int | None = None,
    softcap: float | None = None,
    out: Any = None,
) -> Any:
    """Return softmax(scale q k^T) v, of (batch, heads, queries, dim of v).

    q: (batch, heads, queries, dim), 1 to 64 queries; k, v: (batch, heads of k and v, keys, dim) in any order of memory
    whose last dimension is contiguous, in fp16 or bf16. `lengths`: int32 (batch,), the keys of each sequence, read on
    the GPU; what is in the cache after them plays no part, and numbers beyond the cache are cut. With `causal` the last
    query stands at the last key of its sequence, and none sees keys after its own. `window`: how many keys before its
    own a query sees, where the last stands at the last key, too. Queries without keys give 0.

    With `pages`, int32 (batch, pages of a sequence) and contiguous, k and v are (pages, heads of k and v, rows of a
    page, dim), and the keys of a sequence lie in the pages that its row of the table names. The rows of a page are a
    power of two from 8 on. What the table says after the end of a sequence plays no part.

    k and v may be in e4m3, too, each element times a scale: `k_scale` and `v_scale` are f32 tensors of one element, of
    (heads of k and v,) or of (batch, heads of k and v), 1 where they are not given. The result is of q's type.

    Raises TypeError for other types, ValueError for shapes, strides and options that do not fit, RuntimeError for a GPU
    that is no Hopper.
    """
    # What they say is read when there is no plan for them yet.
    return ATTENTION_DECODE((q, k, v, out, lengths, pages, k_scale, v_scale), (bool(causal), window, softcap, scale))


def attention_decode_launch(
    q: Any, k: Any, v: Any, out: Any, *, lengths: Any = None, pages: Any = None, k_scale: Any = None,
    v_scale: Any = None, scale: float | None = None, causal: bool = False, window: int | None = None,
    softcap: float | None = None, splits: int | None = None, programs: int | None = None,
) -> Launches:  # fmt: skip
    """The launches of `attention_decode`, to be bound once and repeated; no extent may be 0.

    `programs` share the items, by default the GPU's multiprocessors; `splits` is by default `splits_for`. Raises as
    `attention_decode` does.
    """
    named = by_name(_TENSORS, (q, k, v, out, lengths, pages, k_scale, v_scale))
    return _launches(named, _asked(causal, window, softcap, scale, splits, programs))


_NAME = "attention_decode"
_TENSORS = ("q", "k", "v", "out", "lengths", "pages", "k_scale", "v_scale")


def _prepare(tensors: tuple[Any, ...], settings: tuple[Any, ...]) -> Prepared:
    named = by_name(_TENSORS, tensors)
    problem = _Problem.of(named)
    results = {"out": lambda: empty(problem.q, (*problem.q.shape[:3], problem.v.shape[3]))}
    return prepared(named, results, 0 in problem.q.shape, lambda named: _launches(named, _asked(*settings)))


ATTENTION_DECODE = PlannedFunction(_NAME, _prepare, results=3, operator=operators.ATTENTION_DECODE)


class _Problem(NamedTuple):
    """The inputs, checked; with pages, K and V have the shape that they are to the queries."""

    q: Operand
    k: Operand
    v: Operand
    k_scale: Operand | None
    v_scale: Operand | None

    @classmethod
    def of(cls, named: Mapping[str, Any]) -> _Problem:
        queries, *caches = operands_of(_NAME, **{name: named[name] for name in "qkv"})
        keys, values = paged(queries, caches, named["pages"])
        check_types((queries,), DTYPES)
        check_types((keys, values), (*DTYPES, *FP8_DTYPES))
        given = {name: named[name] for name in ("k_scale", "v_scale")}
        if keys.dtype in DTYPES:
            check_types((queries, keys), DTYPES)
            for name, scale in given.items():
                if scale is not None:
                    raise TypeError(f"{_NAME}: argument '{name}': expected None for a cache of {keys.value.dtype}")
        check_places((queries, keys))
        check_head_shapes(queries, keys, values)
        check_queries(queries, named["lengths"])
        return cls(queries, keys, values, *map(scale_of, (keys, values), given, given.values()))


def _asked(
    causal: bool, window: int | None, softcap: float | None, scale: float | None, splits: int | None = None,
    programs: int | None = None,
) -> Asked:  # fmt: skip
    sides = None if window is None else (window, None)
    options, _ = read_options(_NAME, causal, sides, "bottom-right", softcap)
    return Asked(scale, options.causal, options.window[0], options.softcap, splits, programs)


def _launches(named: Mapping[str, Any], asked: Asked) -> Launches:
    q, k, v, *scales = _Problem.of(named)
    kv_heads, keys, v_dim = v.shape[1:]
    _, heads, count, dim = q.shape
    if k.dtype in FP8_DTYPES:
        pieces, blocks = (fp8_pieces(dim), fp8_pieces(v_dim)), fp8_blocks_for(dim, v_dim)
        rows = columns_for(count * heads // kv_heads, v_dim)
        form = Form(decode_kernel, blocks, *pieces, FP8_REGISTERS, rows, True)
        return form.launches(q, named, (keys, v_dim), asked, tuple(map(scale_strides, scales)))
    pieces, blocks = (decode_pieces(dim), decode_pieces(v_dim)), blocks_for(dim, v_dim)
    form = Form(decode_kernel, blocks, *pieces, MAX_REGISTERS[blocks.resident])
    return form.launches(q, named, (keys, v_dim), asked, (None, None))


# --- operands ---------------------------------------------------------------------------------------------------------
#
# Operands of attention to a long cache: queries, pages, what threads load; and the launch that merges splits.


MAX_QUERIES = 64
"""Queries of a head; more are `attention_forward`'s."""

MIN_PAGE = 8
"""Rows of the smallest page: the swizzle of shared memory repeats after so many."""

MERGED = 2048
"""Sums that a warp merges at once: 64 for each thread."""


def check_queries(queries: Operand, lengths: Any) -> None:
    """Refuse more queries than there may be, and other `lengths` than int32 ones of each sequence, or None.

    Raises TypeError or ValueError.
    """
    if queries.shape[2] > MAX_QUERIES:
        raise ValueError(f"{queries.what}: expected at most {MAX_QUERIES} queries, got {queries.shape[2]}")
    if lengths is not None:
        each = operand(queries.function, "lengths", lengths)
        check_plain(queries, each, ("i32",), queries.shape[:1], "batch of 'q'")


def paged(queries: Operand, caches: list[Operand], pages: Any) -> list[Operand]:
    """Caches in pages as sequences of all keys that a table has room for. Raises TypeError or ValueError."""
    if pages is None:
        return caches
    for each in caches:
        if len(each.shape) != 4:
            raise ValueError(f"{each.what}: expected (pages, heads, rows of a page, head dim), got {each.shape}")
    first, *others = caches
    count, _, rows, _ = first.shape
    if rows < MIN_PAGE or rows & (rows - 1):
        raise ValueError(f"{first.what}: expected pages of a power of two of rows, {MIN_PAGE} or more, got {rows}")
    for each in others:
        if each.shape[0] != count:
            raise ValueError(f"{each.what}: expected {count} pages, as '{first.name}' has, got {each.shape[0]}")
    table = operand(queries.function, "pages", pages)
    if len(table.shape) != 2 or table.shape[:1] != queries.shape[:1] or not table.shape[1]:
        raise ValueError(f"{table.what}: expected (batch of 'q', pages of a sequence), got the shape {table.shape}")
    check_plain(queries, table, ("i32",), table.shape, "its own")
    batch, count = table.shape
    return [replace(each, shape=(batch, each.shape[1], count * each.shape[2], each.shape[3])) for each in caches]


def check_columns(*operands: Operand) -> None:
    """Refuse rows that are not contiguous. Raises ValueError."""
    for each in operands:
        if each.strides[3] != 1:
            raise ValueError(f"{each.what}: expected a contiguous last dimension, got the strides {each.strides}")


def unit_of_rows(queries: Operand, result: Operand) -> int:
    """UNIT where all rows of both are multiples of it long and apart, and begin at multiples of 16 bytes; else 1."""
    numbers = (*queries.strides[:3], *result.strides[:3], queries.shape[3], result.shape[3])
    return UNIT if all(each % UNIT == 0 for each in numbers) and is_aligned(queries) and is_aligned(result) else 1


def strides_of(each: Operand, unit: int) -> tuple[int, ...]:
    """Strides of batches, heads and rows in units."""
    return tuple([stride // unit for stride in each.strides[:3]])


class Asked(NamedTuple):
    """The settings of a call: a factor of scores, a mask, a window and a cap; and how many splits and programs."""

    scale: float | None
    causal: bool
    left: int | None = None
    softcap: float | None = None
    splits: int | None = None
    programs: int | None = None


class Form(NamedTuple):
    """A kernel for a long cache, and how it takes the cache and the queries (`Tiling`)."""

    kernel: Any
    blocks: Blocks
    qk: Pieces
    v: Pieces
    registers: int | None = None
    """Those of a thread at the launch."""
    rows: int = CONSUMER_ROWS
    in_8_bits: bool = False

    def launches(
        self,
        q: Operand,
        named: Mapping[str, Any],
        extents: tuple[int, int],
        asked: Asked,
        strides: tuple[Any, ...] = (),
    ) -> Launches:
        """The launches of a call: the kernel, and the one that merges splits if there are several.

        `named` are its tensors, `extents` the keys of a sequence and the columns of results. A single cache serves all
        heads, as keys and as values. `strides` are further items of the kernel's strides.
        """
        given = {name: None if value is None else operand(q.function, name, value) for name, value in named.items()}
        caches = [each for name in ("k", "v", "cache") if (each := given.get(name)) is not None]
        batch, heads, count, dim = q.shape
        keys, v_dim = extents
        kv_heads, page = caches[0].shape[1:3]
        result = operand(q.function, "out", named["out"])
        check_types((q, result), DTYPES)
        check_shape(result, (batch, heads, count, v_dim), "that of 'q', with the columns of the values")
        check_rows(q, count)
        check_columns(q, result)
        factor = factor_of(q.function, asked.scale, dim)
        check_hopper(q.function, q)

        block = self.blocks.keys
        page = block if named["pages"] is None else page
        part = min(page, block)
        group = heads // kv_heads
        tiles = -(-count * group // self.rows)
        programs = asked.programs or multiprocessors(q) * self.blocks.resident
        splits = asked.splits or splits_for(batch * kv_heads * tiles, -(-keys // block), programs)
        items, rows = batch * kv_heads * tiles * splits, batch * heads * count
        sums = empty(q, (splits * rows * (v_dim + 2),), "fp32") if splits > 1 else None
        unit = unit_of_rows(q, result)
        described = zip(("k_desc", "v_desc"), caches, (self.qk, self.v), strict=False)
        arguments = {
            "q_ptr": q,
            "out_ptr": result,
            "lengths_ptr": given["lengths"],
            "table_ptr": given["pages"],
            **{f"{name}_ptr": given[name] for name in ("k_scale", "v_scale") if name in given},
            **{name: described_heads(each, part, pieces.elements) for name, each, pieces in described},
            "sums_ptr": sums,
            "sm_scale": factor,
            "strides": (strides_of(q, unit), strides_of(result, unit), *strides),
            "work": Work(
                items, tiles, splits, kv_heads if len(caches) > 1 else constexpr(1), group, count, keys, rows,
                dim // unit, v_dim // unit, asked.left, asked.softcap,
            ),
        }  # fmt: skip
        tiling = Tiling(
            block, self.blocks.stages, self.qk, self.v, asked.causal, splits == 1, page, part, unit, self.rows,
            self.in_8_bits,
        )  # fmt: skip
        first = Launch.of(
            self.kernel, (min(items, programs),), arguments, {"T": tiling}, q.device,
            aligned=("q_ptr", "out_ptr", "sums_ptr") if unit > 1 else (), maxnreg=self.registers,
        )  # fmt: skip
        if sums is None:
            return Launches((first,))
        return Launches((first, merged(q, result, sums, splits, unit)), sums)


def merged(queries: Operand, result: Operand, sums: Any, splits: int, unit: int) -> Launch:
    """The launch that merges the parts of all rows in `sums`; it may start while the parts are written."""
    _, heads, count, v_dim = result.shape
    rows = result.shape[0] * heads * count
    arguments = {
        "sums_ptr": sums,
        "out_ptr": result,
        "SPLITS": splits,
        "TOTAL_ROWS": rows,
        "HEADS": heads,
        "QUERIES": count,
        "V_DIM": v_dim // unit,
        "strides": strides_of(result, unit),
    }
    parts, width = 1 << (splits - 1).bit_length(), 1 << (v_dim - 1).bit_length()
    return Launch.of(
        merge, (rows,), arguments, {"COUNT": parts, "WIDTH": width, "UNIT": unit}, queries.device,
        num_warps=min(32, max(4, parts * width // MERGED)), launch_pdl=True,
        aligned=("out_ptr", "sums_ptr") if unit > 1 else (),
    )  # fmt: skip
