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
from .cooperative import gemm_cooperative
from .device import divisor, order_of_tiles
from .division import Choice
from .epilogues import Epilogue
from .pingpong import gemm_pingpong
from .reduce import gemm_reduce
from .split import gemm_split
from .tiles import GemmConfig, fit_output, for_split, for_sums
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
        config = self._config()
        (m, k), n = self.left.shape, self.target.shape[1]
        tile_n = config.block_n if self.finish.epilogue.paired else config.tile_n
        tiles_m, tiles_n = -(-m // config.shared_m), -(-n // tile_n)
        sizes = {"M": m, "N": n, "K": k, **order_of_tiles(tiles_m, tiles_n, config.group_m)}
        if config.schedule == "pingpong":
            return (self._pingpong(config, sizes),)
        if self.choice.split > 1:
            return (self._split(config, sizes),)
        tiles, num_k = tiles_m * tiles_n, -(-k // config.block_k)
        steps = self.choice.steps(tiles, num_k) if self.choice.streamed else num_k
        sizes |= {"FULL_ROUNDS": self.choice.full_rounds, "SHARE": self.choice.share, "STEPS": steps}
        sizes["STEPS_FACTOR"], sizes["STEPS_SHIFT"] = divisor(steps)
        if not self.choice.streamed:
            return (self._cooperative(config, sizes, None),)
        count = workspace_bytes(self.choice)
        sums = workspace[at : at + count].view(float32_of(workspace)).reshape(-1, config.tile_n)
        return self._cooperative(config, sizes, sums), self._reduce(config, sizes, sums, self.choice.rest(tiles))

    def _config(self) -> GemmConfig:
        """The configuration with what its division and the type of C leave of shared memory."""
        config, element_bytes = self.choice.config, self.target.element_bytes
        if self.choice.split > 1:
            config = for_split(config, self.choice.split, element_bytes)
            assert config is not None, "`covers` has seen to that"
            return config
        config = fit_output(config, element_bytes)
        return for_sums(config) if self.choice.streamed else config

    def _pingpong(self, config: GemmConfig, sizes: Mapping[str, int]) -> Launch:
        values, constants = self._tiles(config)
        return self._launch(gemm_pingpong, (self.choice.programs,), {**values, **sizes}, constants)

    def _split(self, config: GemmConfig, sizes: Mapping[str, int]) -> Launch:
        values, constants = self._strips(config)
        values |= {**sizes, "SHARE": self.choice.share}
        constants["SPLIT"] = self.choice.split
        launch = self._launch(gemm_split, (self.choice.ctas,), values, constants)
        return replace(launch, cluster=(self.choice.split, 1, 1))

    def _cooperative(self, config: GemmConfig, sizes: Mapping[str, int], sums: Any) -> Launch:
        values, constants = self._strips(config)
        values |= {**sizes, "w_desc": None}
        if sums is not None:
            width = config.part_n * self.target.element_bytes // 4
            values["w_desc"] = describe(sums, sums.shape, (config.tile_n, 1), (config.rows, width))
        constants |= {
            "PAIRED": self.finish.epilogue.paired,
            "STREAM": sums is not None,
            "CLUSTER": config.cluster,
            "REDUCE": "add" if self.finish.adds else "",
        }
        launch = self._launch(gemm_cooperative, (self.choice.ctas,), values, constants)
        return replace(launch, cluster=(config.cluster, 1, 1))

    def _reduce(self, config: GemmConfig, sizes: Mapping[str, int], sums: Any, tiles: int) -> Launch:
        # A tile whose parts do not end with it can begin and end within one.
        pieces = -(-sizes["STEPS"] // self.choice.share) + (sizes["STEPS"] % self.choice.share > 0)
        pieces = min(pieces, MOST_PIECES)
        columns = min(REDUCED_COLUMNS, config.block_n, config.tail_n or config.block_n)
        by_columns = self.target.strides[1] != 1 and self.target.shape[1] != 1
        near = 1 if by_columns else 0
        names = ("M", "N", "GROUP_FACTOR", "GROUP_SHIFT", "REST_FACTOR", "REST_SHIFT", "STEPS")
        values = {"w": sums, "c": self.target.value, **self._vectors(), "matrix": None, "matrix_stride": 0}
        values |= {name: sizes[name] for name in names}
        values["c_stride"] = self.target.strides[near]
        if (matrix := self.finish.matrix) is not None:
            values["matrix"], values["matrix_stride"] = matrix.value, matrix.strides[near]
        values["FIRST_TILE"] = self.choice.full_rounds * self.choice.programs
        values["SHARE_FACTOR"], values["SHARE_SHIFT"] = divisor(self.choice.share)
        constants = {
            "BLOCK_M": config.shared_m,
            "TILE_N": config.tile_n,
            "GROUP_M": config.group_m,
            "PIECES": 1 << (pieces - 1).bit_length(),
            "ROWS": REDUCED_ROWS,
            "COLUMNS": columns,
            "C_COLUMNS": by_columns,
            "TURNED": self.turned,
            "EPILOGUE": self.finish.function,
        }
        grid = (tiles, config.shared_m // REDUCED_ROWS, config.tile_n // columns)
        return replace(self._launch(gemm_reduce, grid, values, constants), aligned=("w",), launch_pdl=True)

    def _strips(self, config: GemmConfig) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the kernels with one or two strips of columns have."""
        values, constants = self._tiles(config)
        values["tail_desc"] = described(self.right, (config.block_k, config.tail_n))[0] if config.tail_n else None
        return values, {**constants, "TAIL_N": config.tail_n, "CONSUMERS": config.consumers}

    def _tiles(self, config: GemmConfig) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what all products have: descriptors and vectors, and constants."""
        a_desc, a_columns = described(self.left, (config.rows, config.block_k))
        b_desc, b_columns = described(self.right, (config.block_k, config.block_n))
        values: dict[str, Any] = {"a_desc": a_desc, "b_desc": b_desc, **self._vectors()}
        values |= dict.fromkeys(("c_desc", "c_ptr", "c_row", "c_column", "matrix_desc"))
        if self.by_pointer:
            c_columns = self.target.strides[1] != 1 and self.target.shape[1] != 1
            values["c_ptr"] = self.target.value
            values["c_row"], values["c_column"] = self.target.strides
        else:
            values["c_desc"], c_columns = described(self.target, (config.rows, config.part_n))
        if self.finish.matrix is not None:
            values["matrix_desc"], columns = described(self.finish.matrix, (config.rows, config.part_n))
            if columns != c_columns:
                raise ValueError(f"{self.finish.matrix.what}: expected it by rows or by columns as the result is")
        constants = {
            "BLOCK_M": config.block_m,
            "BLOCK_N": config.block_n,
            "BLOCK_K": config.block_k,
            "NUM_STAGES": config.stages,
            "PART_N": config.part_n,
            "BUFFERS": config.buffers,
            "GROUP_M": config.group_m,
            "A_COLUMNS": a_columns,
            "B_COLUMNS": b_columns,
            "C_COLUMNS": c_columns,
            "TURNED": self.turned,
            "EPILOGUE": self.finish.function,
        }
        return values, constants

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
