"""Launches of `linear_cross_entropy`: the losses alone, and losses with gradients, chunk by chunk of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

from ..calls.launching import Launch, multiprocessors
from ..calls.operands import Operand, described_rows, empty, operand, transposed
from ..gemm.config import CONFIGS, LARGE, choose
from ..gemm.dense import matrix_of
from ..gemm.device import sizes_of
from ..gemm.division import whole
from ..gemm.launches import ADDED, PLAIN, Finish, Problem, workspace_bytes
from ..gemm.model import Reading
from ..gemm.tiles import Form, GemmConfig
from ..rows.cross_entropy import cross_entropy_backward_launch
from .device import linear_sums
from .rows import combine_tiles, gradients_of_logits, rounded, scale_of_rows, scaled, sum_of_losses

WIDTH = 8
"""Elements of 16 bytes, in which TMA begins: rows of logits in memory are a multiple of them long."""

_TILE = GemmConfig("pingpong", 128, 128, 64, stages=6, subtiles=1)
"""Tiles of the losses alone, whose ring has 192 KiB: there is nothing else in shared memory."""

_CHUNK_ROWS = 128
"""Chunks have a multiple of these rows: those of a tile of the products."""

_THREADS, _BLOCK = 1024, 8192
"""Threads of a program that makes gradients of logits, and elements that it has at a time. With few programs on a
multiprocessor their rows stay in the L2 cache until they are read for the second time."""

_SUM_BLOCK = 4096
"""Rows that the one program takes at a time that adds up losses, or counts rows."""

_COMBINE_BLOCK, _DOT_BLOCK = 512, 1024
"""Tiles of a row, and elements of a row of x, that a program takes at a time for a loss."""

_ROUND_BLOCK = 4096
"""Elements that a program rounds, or multiplies by a factor, at a time."""

_SCALE_PROGRAMS = 16
"""Programs on a multiprocessor that multiply elements by a factor."""

ADDING = {"fp32": CONFIGS["large by 2"], "bf16": LARGE}
"""Tiles of the products that are added to sums of a type: with twice the bytes to be added, halves of B are read once
by two programs (H200, 128256 x 4096 x 2048: fp32 3.10 ms, 3.44 without clusters; bf16 2.79 and 2.78)."""


@dataclass(frozen=True)
class Layer:
    """A linear layer and its classes: x (T, H), w (V, H), target (T,), checked."""

    x: Operand
    w: Operand
    target: Operand
    ignore_index: int
    smoothing: float
    logits_bytes: int

    @property
    def tokens(self) -> int:
        """Rows of x."""
        return self.x.shape[0]

    @property
    def classes(self) -> int:
        """Rows of w."""
        return self.w.shape[0]

    @property
    def pitch(self) -> int:
        """Elements from one row of logits in memory to the next."""
        return -(-self.classes // WIDTH) * WIDTH

    @cached_property
    def chunk(self) -> int:
        """Rows of the logits that are in memory, of `logits_bytes` at most where that has a tile's rows."""
        most = max(self.logits_bytes // (self.pitch * self.x.element_bytes) // _CHUNK_ROWS, 1) * _CHUNK_ROWS
        chunks = -(-self.tokens // most)
        return min(self.tokens, -(-self.tokens // chunks // _CHUNK_ROWS) * _CHUNK_ROWS)

    def chunks(self) -> Iterator[slice]:
        """The rows of each chunk."""
        for first in range(0, self.tokens, self.chunk):
            yield slice(first, min(first + self.chunk, self.tokens))

    def vector(self, name: str, value: Any, rows: slice) -> Operand:
        """A part of a vector with an element for each row."""
        return operand(self.x.function, name, value[rows])

    def matrix(self, name: str, value: Any, rows: slice) -> Operand:
        """A part of x, or of its gradient."""
        return operand(self.x.function, name, value.reshape(-1, self.x.shape[1])[rows])

    @property
    def at_most_one_chunk(self) -> bool:
        """Return whether gradients of w need no sums of chunks."""
        return self.chunk >= self.tokens

    def named(self, name: str, value: Any) -> Operand | None:
        """A tensor of the call, by its name in the plan; None for none."""
        return None if value is None else operand(self.x.function, name, value)


# --- losses ---------------------------------------------------------------------------------------------------------


def tiles_of(classes: int) -> int:
    """Tiles of a row of logits whose sums are in memory."""
    return -(-classes // _TILE.block_n)


def loss_launches(layer: Layer, sums: Any, losses: Any, lse: Any, name: str) -> tuple[Launch, ...]:
    """The losses of rows, whose logits are nowhere, to the tensor of this name.

    `sums` are (2 or, with smoothing, 3, tiles, T).
    """
    (tokens, depth), classes = layer.x.shape, layer.classes
    tiles = -(-tokens // _TILE.block_m), tiles_of(classes)
    top, total, *rest = (layer.named("sums", each) for each in sums)
    plain = rest[0] if rest else None
    values: dict[str, Any] = {
        "x_desc": described_rows(layer.x, (_TILE.block_m, _TILE.block_k)),
        "w_desc": described_rows(layer.w, (_TILE.block_n, _TILE.block_k)),
        "top_ptr": top,
        "total_ptr": total,
        "plain_ptr": plain,
        "sizes": sizes_of((tokens, classes, depth), tiles, _TILE.group_m),
    }
    constants: dict[str, Any] = {"FORM": Form(_TILE, b_columns=True), "EVEN": classes % _TILE.block_n == 0}
    programs = min(multiprocessors(layer.x), prod(tiles))
    product = Launch.of(linear_sums, (programs,), values, constants, layer.x.device)
    values = {
        "x_ptr": layer.x, "w_ptr": layer.w, "target_ptr": layer.target, "top_ptr": top, "total_ptr": total,
        "plain_ptr": plain, "loss_ptr": layer.named(name, losses), "lse_ptr": layer.named("lse", lse),
        "x_stride": layer.x.strides[0],
        "w_stride": layer.w.strides[0], "extents": (tokens, classes, depth, tiles[1]),
        "ignore_index": layer.ignore_index, "smoothing": layer.smoothing,
    }  # fmt: skip
    constants = {"BLOCK": _COMBINE_BLOCK, "BLOCK_K": _DOT_BLOCK}
    return product, Launch.of(combine_tiles, (tokens,), values, constants, layer.x.device)


def scale_launch(layer: Layer, scale: Any) -> Launch:
    """1 over the rows that count."""
    values = {
        "target_ptr": layer.target, "scale_ptr": layer.named("scale", scale), "ROWS": layer.tokens,
        "ignore_index": layer.ignore_index,
    }  # fmt: skip
    return Launch.of(scale_of_rows, (1,), values, {"BLOCK": _SUM_BLOCK}, layer.x.device, num_warps=8)


def total_launch(layer: Layer, losses: Any, scale: Any, total: Any) -> Launch:
    """The sum of losses, times `scale` where it is given."""
    values = {
        "losses_ptr": layer.named("losses", losses), "scale_ptr": layer.named("scale", scale),
        "total_ptr": layer.named("loss", total), "ROWS": layer.tokens,
    }  # fmt: skip
    return Launch.of(sum_of_losses, (1,), values, {"BLOCK": _SUM_BLOCK}, layer.x.device, num_warps=8)


# --- gradients ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gradients:
    """Memory for the gradients of a layer, and what they are made of.

    `dx` or `dw` may be None. `sums` are of the shape of dw, which is rounded from them; None where dw itself has the
    sums of chunks. Where the gradients of losses (`dloss`) are given, `lse` is, too; or else gradients are those of
    `scale` times the sum of all `losses`, which are found on the way.
    """

    logits: Any
    dx: Any
    dw: Any
    sums: Any
    losses: Any = None
    scale: Any = None
    dloss: Any = None
    lse: Any = None


def gradient_launches(layer: Layer, to: Gradients) -> tuple[tuple[Launch, ...], Any]:
    """The launches for the gradients, and their workspace (None for none)."""
    steps: list[Launch | Problem] = []
    for rows in layer.chunks():
        count = rows.stop - rows.start
        x = layer.matrix("x", layer.x.value, rows)
        padded = operand(x.function, "logits", to.logits[:count])
        logits = operand(x.function, "logits", to.logits[:count, : layer.classes])
        steps.append(_product(x, transposed(layer.w), padded))
        steps.append(_gradients_of_rows(layer, to, rows, logits))
        if to.dx is not None:
            steps.append(_product(logits, layer.w, layer.matrix("dx", to.dx, rows)))
        if to.dw is not None:
            name, value = ("dw", to.dw) if to.sums is None else ("sums", to.sums)
            # One choice for all chunks, whose tiles are whole: TMA adds them to what is there.
            target = operand(x.function, name, value)
            config = None if layer.at_most_one_chunk else ADDING[str(target.dtype)]
            steps.append(_product(transposed(logits), x, target, PLAIN if rows.start == 0 else ADDED, config))
    if to.sums is not None:
        count = layer.classes * layer.x.shape[1]
        values = {"sums_ptr": layer.named("sums", to.sums), "out_ptr": layer.named("dw", to.dw)}
        launch = Launch.of(
            rounded, (-(-count // _ROUND_BLOCK),), {**values, "VECTORS": count // WIDTH}, {"BLOCK": _ROUND_BLOCK},
            layer.x.device, aligned=tuple(values), num_warps=8,
        )  # fmt: skip
        steps.append(launch)
    size = max(workspace_bytes(each.choice) for each in steps if isinstance(each, Problem))
    workspace = empty(layer.x, (size,), "u8") if size else None
    return tuple(launch for each in steps for launch in _launches(each, workspace)), workspace


def scaling_launch(gradient: Operand, factor: Any) -> Launch:
    """The launch that multiplies a gradient by `factor`, the gradient of the loss, in its place."""
    count = prod(gradient.shape)
    factor = operand(gradient.function, "dloss", factor)
    values = {"x_ptr": gradient, "factor_ptr": factor, "VECTORS": count // WIDTH}
    programs = min(-(-count // _ROUND_BLOCK), _SCALE_PROGRAMS * multiprocessors(gradient))
    constants = {"BLOCK": _ROUND_BLOCK}
    return Launch.of(scaled, (programs,), values, constants, gradient.device, aligned=("x_ptr",), num_warps=8)


def _launches(step: Launch | Problem, workspace: Any) -> Sequence[Launch]:
    return step.launches(workspace, 0) if isinstance(step, Problem) else (step,)


def _product(
    left: Operand, right: Operand, target: Operand, finish: Finish = PLAIN, config: Any = None
) -> Problem:  # fmt: skip
    """The product of what TMA reads and writes; columns that the target has more become zeros."""
    (m, k), n = left.shape, target.shape[1]
    processors = multiprocessors(left)
    if config is None:
        choice = choose(m, n, k, processors, Reading(matrix_of(left, 1), matrix_of(right, 0)))
    else:
        choice = whole(config, m, n, processors)
    if choice.swapped:
        left, right, target, finish = transposed(right), transposed(left), transposed(target), finish.turned()
    return Problem(left, right, target, finish, choice, choice.swapped)


def _gradients_of_rows(layer: Layer, to: Gradients, rows: slice, logits: Operand) -> Launch:
    """The launch that writes the gradient of each logit over it."""
    target = layer.vector("target", layer.target.value, rows)
    if to.dloss is not None:
        dloss, lse = to.dloss[rows], to.lse[rows]
        launch = cross_entropy_backward_launch(
            dloss, logits.value, target.value, lse, None, logits.value,
            ignore_index=layer.ignore_index, smoothing=layer.smoothing,
        )  # fmt: skip
        return replace(launch, sources={**launch.sources, "x_ptr": "logits", "dx_ptr": "logits"})
    vectors, rest = divmod(layer.classes, WIDTH)
    threads = min(_THREADS, max(32, 1 << max(vectors - 1, 0).bit_length()))
    values = {
        "x_ptr": logits, "target_ptr": target, "loss_ptr": layer.named("losses", to.losses[rows]),
        "scale_ptr": layer.named("scale", to.scale),
        "x_stride": layer.pitch // WIDTH, "VECTORS": vectors, "REST": rest, "ignore_index": layer.ignore_index,
        "smoothing": layer.smoothing,
    }  # fmt: skip
    constants = {
        "THREADS": threads, "BLOCK": min(_BLOCK, threads * WIDTH), "HAS_REST": rest > 0,
        "IS_SMOOTHED": layer.smoothing > 0,
    }  # fmt: skip
    return Launch.of(
        gradients_of_logits, (target.shape[0],), values, constants, layer.x.device, aligned=("x_ptr",),
        num_warps=threads // 32,
    )  # fmt: skip
