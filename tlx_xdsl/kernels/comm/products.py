"""Products with what ranks share: `all_gather_gemm`, `gemm_reduce_scatter`, `gemm_all_reduce`, for tensor parallelism.

fp16 and bf16 on Hopper. What is summed where, and rounded when, is said for each; all are deterministic. The kernels
are in `gather_gemm` and `gemm_scatter`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tlx_xdsl.runtime.ranks.engine import Ranks

from ..calls.launching import Launch, multiprocessors
from ..calls.operands import Operand, check_contiguous, check_product, check_types, describe, described, empty
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from ..gemm.dense import gemm
from ..gemm.device import divisor, sizes_of
from ..gemm.tiles import Form
from ..operators import comm as operators
from .collectives import all_gather, all_reduce, gather_launch
from .config import ProductConfig
from .gather_gemm import COPIED, all_gather_gemm as gather_kernel
from .gemm_scatter import SLOTS, gemm_reduce_scatter as scatter_kernel
from .launches import call, here, launch_on, local, memory, operands_of, pads_of, results, values_of

DTYPES = ("fp16", "bf16")


SCATTER = (ProductConfig(), ProductConfig(block_n=128, stages=4, buffers=2, pingpong=True))
"""Of `gemm_reduce_scatter`: that for wide results of many steps, and that for others."""

_FEW_STEPS = 2560
"""Columns of A of a rank up to which a consumer's work on a result takes long beside its products."""

GATHER = (ProductConfig(stages=4, buffers=1), ProductConfig(block_n=128, stages=5, buffers=1))
"""Of `all_gather_gemm`: that for wide results, and that for others."""

_BALANCED = 2016
"""Products of a received element that take as long as its way to a rank: 750 TFLOP/s and 372 GB/s, of H200s."""

_HURRIED = 0.5
"""The share of a product's time that the ways to other ranks take, from which on programs copy with more warps.

These hold up a product, by some percent, and fewer warps store no more than 220 GB/s.
"""

_LEAST_CHUNK = 256
"""Columns of a piece, at least; else a piece has whole rows."""

_FEW_ROWS = 64
"""Rows of a rank below which most of a tile would be other ranks' rows."""


def all_gather_gemm(a: Any, b: Any, ranks: Ranks, out: Any = None, *, config: ProductConfig | None = None) -> Any:
    """Return the rows of `a` of all ranks, in their order, times `b`: (M, K) on each rank, (K, N): (world * M, N).

    Sums in f32, rounded once: the bits of a product of what `all_gather` gives. One kernel where M is a multiple of the
    tile's rows and `a` is contiguous, else two. Memory on each rank: world * M * K elements.

    Raises TypeError for other types than fp16 and bf16, ValueError for shapes and strides that don't fit.
    """
    rows = _first(a, ranks).shape[0]
    if rows % (config or GATHER[0]).block_m or rows == 0:
        gathered = all_gather(a, ranks)
        if ranks.rank is not None:
            return gemm(gathered, b, out)
        outs = [None] * ranks.world_size if out is None else out
        return [gemm(*each) for each in zip(gathered, b, outs, strict=True)]
    return call(ALL_GATHER_GEMM, ranks, (a, b, out), (config,))


def gemm_reduce_scatter(a: Any, b: Any, ranks: Ranks, out: Any = None, *, config: ProductConfig | None = None) -> Any:
    """Return rows r, on rank r, of the sum over ranks of a @ b: (M, K) times (K, N) on each rank: (M / world, N).

    Products of other ranks travel rounded to the type of `a`; the sum is in f32 in the order of ranks, the rank's own
    product unrounded, and is rounded once. Memory on each rank: M * N elements, each tile a whole one.

    Raises as `all_gather_gemm`, and ValueError where the ranks don't divide M.
    """
    return call(GEMM_REDUCE_SCATTER, ranks, (a, b, out), (config,))


def gemm_all_reduce(a: Any, b: Any, ranks: Ranks, out: Any = None) -> Any:
    """Return the sum over ranks of a @ b, (M, N), on each rank.

    `gemm_reduce_scatter` and `all_gather`, in two launches; `gemm` and `all_reduce` where a rank would have less than
    64 rows, or the ranks don't divide M. Then each rank's product is rounded before it is summed in f32; in any case
    all ranks have the same bits. Memory and errors: those of its parts.
    """
    rows = _first(a, ranks).shape[0]
    if rows % ranks.world_size or rows < _FEW_ROWS * ranks.world_size:
        own = gemm(a, b) if ranks.rank is not None else [gemm(*each) for each in zip(a, b, strict=True)]
        return all_reduce(own, ranks, own if out is None else out)
    return call(GEMM_ALL_REDUCE, ranks, (a, b, out), (None,))


def _first(given: Any, ranks: Ranks) -> Any:
    """The tensor of a rank that is here."""
    return values_of(ranks, "comm", "a", given)[0]


def _factors(function: str, tensors: tuple[Any, ...], ranks: Ranks) -> tuple[list[Operand], list[Operand]]:
    if ranks.world_size < 2:
        raise ValueError(f"{function}: argument 'ranks': expected at least 2 ranks, got {ranks.world_size}")
    left, right = operands_of(ranks, function, "a", tensors[0]), operands_of(ranks, function, "b", tensors[1])
    check_types((*left, *right), DTYPES)
    check_product(left[0], right[0])
    if 0 in (*left[0].shape, *right[0].shape):
        raise ValueError(f"{function}: expected matrices with elements, got {left[0].shape} and {right[0].shape}")
    return left, right


def _sizes(m: int, n: int, k: int, world: int, tile: ProductConfig) -> tuple[dict[str, Any], int, int]:
    """The numbers of a launch for M rows of each rank, the tiles of these rows, and those of all."""
    tiles = -(-m // tile.block_m), -(-n // tile.block_n)
    owned = tiles[0] * tiles[1]
    return {"sizes": sizes_of((m, n, k), tiles, tile.group_m), "by_owner": divisor(owned)}, owned, owned * world


def _described(operands: Sequence[Operand], block: tuple[int, int]) -> tuple[list[Any], bool]:
    found = [described(each, block) for each in operands]
    return [each for each, _ in found], found[0][1]


def _by_rows(operands: Sequence[Operand], block: tuple[int, int]) -> list[Any]:
    found, by_columns = _described(operands, block)
    if by_columns:
        raise ValueError(f"{operands[0].what}: expected a matrix by rows, got the strides {operands[0].strides}")
    return found


# --- GEMM + reduce-scatter --------------------------------------------------------------------------------------------


def _prepare_scatter(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    ranks, config = options
    left, right = _factors("gemm_reduce_scatter", tensors, ranks)
    out = results(left, tensors[2], ranks, (_rows(left[0], ranks), right[0].shape[1]))
    found = {"a": tensors[0], "b": tensors[1], "out": here(ranks, [each.value for each in out])}
    launch, found["outgoing"] = _scatter(ranks, left, right, out, config)
    return Prepared(found, (launch,))


def _rows(left: Operand, ranks: Ranks) -> int:
    rows = left.shape[0]
    if rows % ranks.world_size:
        raise ValueError(f"{left.what}: expected a multiple of {ranks.world_size} rows, some for each rank, got {rows}")
    return rows // ranks.world_size


def _scatter(
    ranks: Ranks, left: Sequence[Operand], right: Sequence[Operand], out: Sequence[Operand],
    config: ProductConfig | None,
) -> tuple[Launch, list[Any]]:  # fmt: skip
    m, (k, n), world = _rows(left[0], ranks), right[0].shape, ranks.world_size
    wide, other = SCATTER
    tile = config or (wide if n > other.block_n and k > _FEW_STEPS else other)
    sizes, owned, tiles = _sizes(m, n, k, world, tile)
    rows = tile.tile.rows
    a_descs, a_columns = _described(left, (rows, tile.block_k))
    b_descs, b_columns = _described(right, (tile.block_k, tile.block_n))
    dtype = left[0].value.dtype

    programs = min(tiles, multiprocessors(left[0]))
    tile_elements = tile.block_m * tile.block_n

    def make() -> Any:
        staging = ranks.allocate(tiles * tile_elements, dtype)
        pads = pads_of(ranks, "gemm_reduce_scatter", world + owned, lambda each: each if each < world else -1)
        return staging, [empty(each, (programs * SLOTS.value * tile_elements,)) for each in left], pads

    staging, outgoing, pads = memory(ranks, ("gemm_reduce_scatter", m, n, k, str(dtype), tile), make)
    launch = launch_on(
        ranks, scatter_kernel, programs,
        {
            "a_desc": a_descs, "b_desc": b_descs, "out_desc": _by_rows(out, (rows, tile.part_n)),
            "outgoing": outgoing,
        },
        {"staging": staging, "pads": pads, **sizes},
        {"FORM": Form(tile.tile, a_columns, b_columns), "COPY_WARPS": 2 if _way(world, k) > _HURRIED else 1}, left[0],
        {"outgoing": "outgoing"}, aligned=("outgoing",),
    )  # fmt: skip
    return launch, here(ranks, outgoing)


# --- GEMM + all-reduce ------------------------------------------------------------------------------------------------


def _prepare_all_reduce(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    ranks, config = options
    left, right = _factors("gemm_all_reduce", tensors, ranks)
    shape = (left[0].shape[0], right[0].shape[1])
    out = results(left, tensors[2], ranks, shape)
    check_contiguous(out[0])
    dtype = left[0].value.dtype
    kept = memory(
        ranks,
        ("gemm_all_reduce", *shape, str(dtype)),
        lambda: results(left, None, ranks, (_rows(left[0], ranks), shape[1])),
    )
    found = {"a": tensors[0], "b": tensors[1], "out": here(ranks, [each.value for each in out])}
    found["own"] = here(ranks, [each.value for each in kept])
    own = [replace(each, name="own") for each in kept]
    first, found["outgoing"] = _scatter(ranks, left, right, own, config)
    return Prepared(found, (first, gather_launch(ranks, own, out, own[0].shape[0] * shape[1])))


# --- all-gather + GEMM ------------------------------------------------------------------------------------------------


def _way(world: int, products: int) -> float:
    """The time of the ways to other ranks beside that of the product, where an element that comes is in `products`.

    >>> round(_way(2, 4096), 2), round(_way(4, 1024), 2)
    (0.25, 1.48)
    """
    return (world - 1) / world * _BALANCED / products


def _pieces(tile: ProductConfig, way: float, k: int, *, together: bool) -> tuple[int, int, int]:
    """The warps that copy, and the rows and columns of K of a piece, 0 for all of them.

    A tile waits for its first columns alone, and a signal costs as much as some KiB. Where all tiles are multiplied
    `together`, most wait from the start; where the way takes longer than the product, tiles wait for rows in any case.
    """
    if together:
        copiers, pieces, chunk = 3, 64, 512
    elif way > _HURRIED:
        copiers, pieces, chunk = 3, 16, 2048 if way > 1 else 1024
    else:
        copiers, pieces, chunk = 1, 16, 0
    chunk = min(k & -k, tile.chunk or chunk)
    if chunk < min(_LEAST_CHUNK, tile.chunk or _LEAST_CHUNK):
        pieces, chunk = 16, 0
    return copiers, tile.block_m // (tile.pieces or pieces), chunk


def _prepare_gather(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    ranks, config = options
    left, right = _factors("all_gather_gemm", tensors, ranks)
    check_contiguous(left[0])
    (m, k), n, world = left[0].shape, right[0].shape[1], ranks.world_size
    wide, narrow = GATHER
    tile = config or (wide if n > narrow.block_n else narrow)
    if m % tile.block_m:
        raise ValueError(f"{left[0].what}: expected a multiple of {tile.block_m} rows for this kernel, got {m}")
    out = results(left, tensors[2], ranks, (m * world, n))
    sizes, _, tiles = _sizes(m, n, k, world, tile)
    rows = tile.block_m // tile.consumers
    dtype = left[0].value.dtype

    programs = min(tiles, multiprocessors(left[0]))
    together = tiles <= programs
    copiers, piece, chunk = _pieces(tile, _way(world, n), k, together=together)
    # The largest power of two that divides a piece.
    copied = min(COPIED.value, (piece * (chunk or k)) & -(piece * (chunk or k)))
    blocks, chunks = m // tile.block_m, k // chunk if chunk else 1
    # Rows whose tiles are multiplied at once.
    band = max(1, programs // -(-n // tile.block_n)) * tile.block_m

    def make() -> Any:
        def source_of(signal: int) -> int:
            return signal if signal < world else (signal - world) // (blocks * chunks)

        gathered = ranks.allocate((m * world, k), dtype)
        return gathered, pads_of(ranks, "all_gather_gemm", world + world * blocks * chunks, source_of)

    gathered, pads = memory(ranks, ("all_gather_gemm", m, n, k, str(dtype), tile), make)
    b_descs, b_columns = _described(right, (tile.block_k, tile.block_n))
    values = local(ranks, gathered)
    found = {"a": tensors[0], "b": tensors[1], "out": here(ranks, [each.value for each in out])}
    launch = launch_on(
        ranks, gather_kernel, programs,
        {
            "a": left, "a_desc": _by_rows(left, (rows, tile.block_k)), "b_desc": b_descs,
            "gathered_desc": [
                describe(each, (m * world, k), (k, 1), (rows, tile.block_k), "gathered") for each in values
            ],
            "c_desc": _by_rows(out, (rows, tile.part_n)),
        },
        {"gathered": gathered, "pads": pads, **sizes, "BAND": band},
        {
            "FORM": Form(tile.tile, b_columns=b_columns), "PIECE": piece, "CHUNK": chunk, "COPIED": copied,
            "TOGETHER": together, "COPIERS": copiers,
        }, left[0], aligned=("a",),
    )  # fmt: skip
    return Prepared({**found, "gathered": here(ranks, values)}, (launch,))


ALL_GATHER_GEMM = PlannedFunction("all_gather_gemm", _prepare_gather, results=2, operator=operators.ALL_GATHER_GEMM)
GEMM_REDUCE_SCATTER = PlannedFunction(
    "gemm_reduce_scatter", _prepare_scatter, results=2, operator=operators.GEMM_REDUCE_SCATTER
)
GEMM_ALL_REDUCE = PlannedFunction("gemm_all_reduce", _prepare_all_reduce, results=2, operator=operators.GEMM_ALL_REDUCE)
