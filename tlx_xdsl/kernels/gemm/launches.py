"""Launches of a product: descriptors, divisors, constants and workspace.

A `Problem` is in the orientation of the kernels. Memory that is needed only while they run is one contiguous piece: the
copies of operands that TMA can't read, then the f32 sums of a stream-K product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..calls.launching import WORKSPACE, Launch
from ..calls.operands import Operand, describe, described, transposed
from .device import Sizes, divisor, sizes_of
from .division import Choice
from .epilogue import Target
from .epilogues import Epilogue
from .persistent import Stream, gemm_persistent
from .reduce import gemm_reduce
from .split import gemm_split
from .tiles import Form, GemmConfig, fit_output, for_split, for_sums
from .unaligned import float32_of

VECTORS = 2
"""Vectors of each kind that an epilogue can have."""

REDUCED_ROWS, REDUCED_COLUMNS, MOST_PIECES = 8, 64, 16
"""The block of C that one program of `reduce` adds up, and the pieces that it loads together, at most."""


@dataclass(frozen=True)
class Finish:
    """An epilogue with its operands. With `adds` C is added to what its memory holds, by TMA in whole tiles."""

    epilogue: Epilogue
    rows: tuple[Operand, ...] = ()
    columns: tuple[Operand, ...] = ()
    matrix: Operand | None = None
    adds: bool = False

    @property
    def function(self) -> Any:
        """The function of the sums; None where they are stored as they are."""
        return self.epilogue.function

    def turned(self) -> Finish:
        """The same for the transposed result."""
        matrix = None if self.matrix is None else transposed(self.matrix)
        return replace(self, rows=self.columns, columns=self.rows, matrix=matrix)


PLAIN = Finish(Epilogue(None))
ADDED = Finish(Epilogue(None), adds=True)


def workspace_bytes(choice: Choice) -> int:
    """Bytes of f32 sums of pieces of tiles."""
    config = choice.config
    return 2 * choice.programs * config.shared_m * config.tile_n * 4 if choice.streamed else 0


@dataclass(frozen=True)
class Problem:
    """A product in the kernels' orientation: C may be what the caller knows as its transpose (`turned`).

    `by_pointer` says that TMA can't write C, or not without what lies between its rows; then C lies by rows or by
    columns, from any element on.
    """

    left: Operand
    right: Operand
    target: Operand
    finish: Finish
    choice: Choice
    turned: bool
    by_pointer: bool = False

    def launches(self, workspace: Any, at: int) -> tuple[Launch, ...]:
        """The product, and the sums of pieces where there are any, in the workspace from the byte `at` on."""
        config, choice, epilogue = self._config(), self.choice, self.finish.epilogue
        (m, k), n = self.left.shape, self.target.shape[1]
        tile_n = config.block_n if epilogue.paired else config.tile_n
        tiles = -(-m // config.shared_m), -(-n // tile_n)
        a_desc, a_columns = described(self.left, (config.rows, config.block_k))
        strips = [described(self.right, (config.block_k, columns)) for columns in config.strips]
        target, c_columns = self._target(config)
        ending = (self.turned, epilogue.paired, epilogue.function, "add" if self.finish.adds else "")
        form = Form(config, a_columns, strips[0][1], c_columns, *ending)
        values: dict[str, Any] = {"a_desc": a_desc, "b_descs": tuple(desc for desc, _ in strips), "target": target}
        values["sizes"] = sizes_of((m, n, k), tiles, config.group_m)
        if choice.split > 1:
            values["SHARE"] = choice.share
            constants = {"FORM": form, "SPLIT": choice.split}
            return (self._launch(gemm_split, (choice.ctas,), values, constants, cluster=(choice.split, 1, 1)),)
        values["stream"], reduced = None, ()
        if choice.streamed:
            count = tiles[0] * tiles[1]
            steps = choice.steps(count, -(-k // config.block_k))
            sums = workspace[at : at + workspace_bytes(choice)].view(float32_of(workspace)).reshape(-1, config.tile_n)
            width = config.part_n * self.target.element_bytes // 4
            desc = describe(sums, sums.shape, (config.tile_n, 1), (config.rows, width))
            values["stream"] = Stream(divisor(steps), choice.full_rounds, choice.share, steps, desc)
            reduced = (self._reduce(form, values["sizes"], steps, sums, choice.rest(count)),)
        cluster = (config.cluster, 1, 1)
        return self._launch(gemm_persistent, (choice.ctas,), values, {"FORM": form}, cluster=cluster), *reduced

    def _config(self) -> GemmConfig:
        """The configuration with what its division and the type of C leave of shared memory."""
        config, element_bytes = self.choice.config, self.target.element_bytes
        if self.choice.split > 1:
            config = for_split(config, self.choice.split, element_bytes)
            assert config is not None, "`covers` has seen to that"
            return config
        config = fit_output(config, element_bytes)
        return for_sums(config) if self.choice.streamed else config

    def _reduce(self, form: Form, sizes: Sizes, steps: int, sums: Any, tiles: int) -> Launch:
        # A tile whose parts do not end with it can begin and end within one.
        pieces = -(-steps // self.choice.share) + (steps % self.choice.share > 0)
        pieces = min(pieces, MOST_PIECES)
        config = form.tile
        columns = min(REDUCED_COLUMNS, *config.strips)
        near = 1 if self._by_columns else 0
        matrix = self.finish.matrix
        values = {
            "w": replace(self.target, name=WORKSPACE, value=sums),
            "target": Target(None, self.target, rows=self.finish.rows, columns=self.finish.columns, matrix=matrix),
            "matrix_stride": 0 if matrix is None else matrix.strides[near],
            "c_stride": self.target.strides[near],
            "sizes": sizes,
            "by_share": divisor(self.choice.share),
            "STEPS": steps,
            "FIRST_TILE": self.choice.full_rounds * self.choice.programs,
        }
        constants = {
            # How A and B lie is no matter.
            "FORM": replace(form, a_columns=False, b_columns=False, c_columns=self._by_columns),
            "PIECES": 1 << (pieces - 1).bit_length(),
            "ROWS": REDUCED_ROWS,
            "COLUMNS": columns,
        }
        grid = (tiles, config.shared_m // REDUCED_ROWS, config.tile_n // columns)
        return self._launch(gemm_reduce, grid, values, constants, aligned=("w",), launch_pdl=True)

    @property
    def _by_columns(self) -> bool:
        """Return whether C lies by columns, in any memory."""
        return self.target.strides[1] != 1 and self.target.shape[1] != 1

    def _target(self, config: GemmConfig) -> tuple[Target, bool]:
        """Return C with the epilogue's operands, and whether it lies by columns."""
        finish, block = self.finish, (config.rows, config.part_n)
        if self.by_pointer:
            row, column = self.target.strides
            target, by_columns = Target(None, self.target, row, column), self._by_columns
        else:
            desc, by_columns = described(self.target, block)
            target = Target(desc)
        matrix = None
        if finish.matrix is not None:
            matrix, columns = described(finish.matrix, block)
            if columns != by_columns:
                raise ValueError(f"{finish.matrix.what}: expected it by rows or by columns as the result is")
        return target._replace(rows=finish.rows, columns=finish.columns, matrix=matrix), by_columns

    def _launch(
        self, kernel: Any, grid: tuple[int, ...], values: Mapping[str, Any], constants: Mapping[str, Any], **more: Any
    ) -> Launch:
        return Launch.of(kernel, grid, values, constants, self.left.device, **more)
