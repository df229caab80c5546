"""Launches of a product: descriptors, divisors, constants and workspace.

A `Problem` is in the orientation of the kernels. Memory that is needed only while they run is one contiguous piece: the
copies of operands that TMA can't read, then the f32 sums of a stream-K product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..calls.launching import Launch
from ..calls.operands import Operand, describe, described, transposed
from .cooperative import Stream, gemm_cooperative
from .device import Sizes, divisor, sizes_of
from .division import Choice
from .epilogues import Epilogue
from .pingpong import gemm_pingpong
from .reduce import gemm_reduce
from .split import gemm_split
from .tiles import Form, GemmConfig, fit_output, for_split, for_sums
from .unaligned import WORKSPACE, float32_of

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
        config, choice = self._config(), self.choice
        (m, k), n = self.left.shape, self.target.shape[1]
        tile_n = config.block_n if self.finish.epilogue.paired else config.tile_n
        tiles_m, tiles_n = -(-m // config.shared_m), -(-n // tile_n)
        values, form = self._operands(config)
        values["sizes"] = sizes_of((m, n, k), (tiles_m, tiles_n), config.group_m)
        if config.schedule == "pingpong":
            return (self._launch(gemm_pingpong, (choice.ctas,), values, {"FORM": form}),)
        tail = described(self.right, (config.block_k, config.tail_n))[0] if config.tail_n else None
        product = {**values, "tail_desc": tail}
        if choice.split > 1:
            product["SHARE"] = choice.share
            launch = self._launch(gemm_split, (choice.ctas,), product, {"FORM": form, "SPLIT": choice.split})
            return (replace(launch, cluster=(choice.split, 1, 1)),)
        tiles, num_k = tiles_m * tiles_n, -(-k // config.block_k)
        steps = choice.steps(tiles, num_k) if choice.streamed else num_k
        product["stream"] = Stream(divisor(steps), choice.full_rounds, choice.share, steps)
        product["w_desc"], sums = None, None
        if choice.streamed:
            sums = workspace[at : at + workspace_bytes(choice)].view(float32_of(workspace)).reshape(-1, config.tile_n)
            width = config.part_n * self.target.element_bytes // 4
            product["w_desc"] = describe(sums, sums.shape, (config.tile_n, 1), (config.rows, width))
        launch = self._launch(gemm_cooperative, (choice.ctas,), product, {"FORM": form})
        launch = replace(launch, cluster=(config.cluster, 1, 1))
        if sums is None:
            return (launch,)
        return launch, self._reduce(form, values["sizes"], steps, sums, choice.rest(tiles))

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
            "w": sums,
            "c": self.target.value,
            **self._vectors(),
            "matrix": None if matrix is None else matrix.value,
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
        return replace(self._launch(gemm_reduce, grid, values, constants), aligned=("w",), launch_pdl=True)

    @property
    def _by_columns(self) -> bool:
        """Return whether C lies by columns, in any memory."""
        return self.target.strides[1] != 1 and self.target.shape[1] != 1

    def _operands(self, config: GemmConfig) -> tuple[dict[str, Any], Form]:
        """Return what all products have: descriptors and vectors, and the form."""
        a_desc, a_columns = described(self.left, (config.rows, config.block_k))
        b_desc, b_columns = described(self.right, (config.block_k, config.block_n))
        values: dict[str, Any] = {"a_desc": a_desc, "b_desc": b_desc, **self._vectors()}
        values |= dict.fromkeys(("c_desc", "c_ptr", "c_row", "c_column", "matrix_desc"))
        if self.by_pointer:
            c_columns = self._by_columns
            values["c_ptr"] = self.target.value
            values["c_row"], values["c_column"] = self.target.strides
        else:
            values["c_desc"], c_columns = described(self.target, (config.rows, config.part_n))
        if self.finish.matrix is not None:
            values["matrix_desc"], columns = described(self.finish.matrix, (config.rows, config.part_n))
            if columns != c_columns:
                raise ValueError(f"{self.finish.matrix.what}: expected it by rows or by columns as the result is")
        ending = (self.turned, self.finish.epilogue.paired, self.finish.function, "add" if self.finish.adds else "")
        return values, Form(config, a_columns, b_columns, c_columns, *ending)

    def _vectors(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, vectors in (("row", self.finish.rows), ("column", self.finish.columns)):
            for index in range(VECTORS):
                values[f"{name}{index}"] = vectors[index].value if index < len(vectors) else None
        return values

    def _sources(self) -> dict[str, str]:
        """Return whose memory each argument is, by the names of the function's arguments."""
        found = {"a_desc": self.left.name, "b_desc": self.right.name, "tail_desc": self.right.name}
        found |= dict.fromkeys(("c_desc", "c_ptr", "c"), self.target.name)
        found |= dict.fromkeys(("w_desc", "w"), WORKSPACE)
        for name, vectors in (("row", self.finish.rows), ("column", self.finish.columns)):
            found |= {f"{name}{index}": each.name for index, each in enumerate(vectors)}
        if self.finish.matrix is not None:
            found |= dict.fromkeys(("matrix_desc", "matrix"), self.finish.matrix.name)
        return found

    def _launch(
        self, kernel: Any, grid: tuple[int, ...], values: Mapping[str, Any], constants: Mapping[str, Any]
    ) -> Launch:
        return Launch.of(kernel, grid, values, constants, self.left.device, self._sources())
