"""Copies between tensors, circular buffers and cores, run on the checking machine: what arrives is what was sent.

Each kernel moves a tensor through circular buffers to another one, so a wrong page or address shows in the result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.ttl.interpreter.ttkernel.plan import run
from tlx_xdsl.ttl.transforms.manifest import manifest

PASSES = (
    "ttl-infer-pipe-semaphores",
    "ttl-insert-synchronization",
    "ttl-bufferize",
    "ttl-allocate-circular-buffers",
    "ttl-expand-threads",
    "ttl-lower-data-movement",
    "ttl-lower-synchronization",
    "ttl-lower-affine",
)


def lowered(text: str) -> ModuleOp:
    context = make_context()
    module = Parser(context, text).parse_module()
    verify_module(module)
    for name in PASSES:
        pass_class(name)().apply(context, module)
        verify_module(module)
    return module


def numbered(shape: tuple[int, int], dtype: str = "f32") -> NDArray[np.float32]:
    """Elements that all differ; those of bf16 have 8 bits, so they differ from tile to tile only."""
    size = shape[0] * shape[1]
    if dtype == "f32":
        return np.arange(size, dtype=np.float32).reshape(shape)
    rows, columns = np.indices(shape) // 32
    return (rows * 16 + columns).astype(np.float32)


def tensor_type(shape: tuple[int, int], layout: str, dtype: str = "f32", space: str = "DRAM") -> str:
    return f"tensor<{shape[0]}x{shape[1]}x{dtype}, #ttl.tensor_encoding<{space}, #ttl.layout<{layout}>>>"


class Mover:
    """The text of a kernel that moves blocks from tensor `a` to tensor `b`."""

    def __init__(self, source: str, target: str, block: tuple[int, int], *, grid: str = "1x1", factor: int = 2):
        self.types = {"a": source, "b": target}
        dtype = "bf16" if "bf16" in source else "f32"
        self.element = dtype if "interleaved" in source else f"!ttcore.tile<32x32, {dtype}>"
        self.block = block
        self.grid = grid
        self.factor = factor

    @property
    def view(self) -> str:
        return f"tensor<{self.block[0]}x{self.block[1]}x{self.element}>"

    @property
    def cb(self) -> str:
        return f"!ttl.cb<[{self.block[0]}, {self.block[1]}], {self.element}, {self.factor}>"

    def accessor(self, name: str) -> str:
        return f"!ttl.tensor_accessor<{self.types[name]}>"

    def read(self, place: str, view: str = "%view", handle: str = "%in") -> str:
        types = f"{self.accessor('a')}, {self.view} -> !ttl.transfer_handle<read>"
        return f"""
      {handle} = ttl.copy %a_acc[{place}], {view} : {types}
      ttl.wait {handle}"""

    def write(self, place: str, view: str = "%view", handle: str = "%out") -> str:
        types = f"{self.view}, {self.accessor('b')} -> !ttl.transfer_handle<write>"
        return f"""
      {handle} = ttl.copy {view}, %b_acc[{place}] : {types}
      ttl.wait {handle}"""

    def kernel(self, reader: str, writer: str, resources: str = "") -> str:
        rows, columns = self.block
        return f"""
ttl.kernel @move(%a: {self.types["a"]}, %b: {self.types["b"]}) attributes {{grid = #ttcore.grid<{self.grid}>}} {{
  %cb = ttl.create_cb shape=[{rows}, {columns}], element_type={self.element}, buffer_factor={self.factor} : {self.cb}
  %a_acc = ttl.tensor_accessor %a : {self.types["a"]} -> !ttl.tensor_accessor<{self.types["a"]}>
  %b_acc = ttl.tensor_accessor %b : {self.types["b"]} -> !ttl.tensor_accessor<{self.types["b"]}>
  %id = ttl.get_shard_id() : index
  %x, %y = ttl.core(dims = 2) : index, index
  {resources}
  ttl.datamovement_thread @read {{
    {reader}
    ttl.thread_return
  }}
  ttl.datamovement_thread @write {{
    {writer}
    ttl.thread_return
  }}
  ttl.kernel_return
}}
"""

    def loops(self, rows: int, columns: int, place: str) -> str:
        """A kernel on one core that moves blocks row by row; `place` is made of `%r` and `%c`."""
        start = f"affine.for %i = 0 to {rows} {{ affine.for %j = 0 to {columns} {{ {_places(self.block)}"
        reader = f"""{start}
      %view = ttl.cb_reserve %cb : {self.cb} -> {self.view}{self.read(place)}
      ttl.cb_push %cb }} }}"""
        writer = f"""{start}
      %view = ttl.cb_wait %cb : {self.cb} -> {self.view}{self.write(place)}
      ttl.cb_pop %cb }} }}"""
        return self.kernel(reader, writer)


def _places(block: tuple[int, int]) -> str:
    return f"""
      %r = affine.apply affine_map<(d0) -> (d0 * {block[0]})> (%i)
      %c = affine.apply affine_map<(d0) -> (d0 * {block[1]})> (%j)"""


def moved(text: str, shape: tuple[int, int], dtype: str = "f32", **options: object) -> None:
    """Run a kernel that shall move all of a tensor."""
    source, target = numbered(shape, dtype), np.full(shape, -1, np.float32)
    run(lowered(text), [source, target], **options)  # pyright: ignore
    np.testing.assert_array_equal(target, source)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("block", [(1, 1), (1, 3), (2, 3), (4, 1), (4, 6)])
def test_blocks_of_tiles(block: tuple[int, int], dtype: str):
    type_ = tensor_type((128, 192), "tiled", dtype)
    text = Mover(type_, type_, block).loops(4 // block[0], 6 // block[1], "%r, %c")
    moved(text, (128, 192), dtype)


def test_a_tensor_that_ends_within_a_tile():
    type_ = tensor_type((50, 70), "tiled")
    moved(Mover(type_, type_, (2, 1)).loops(1, 3, "%r, %c"), (50, 70))


def test_tiles_by_number_on_a_grid():
    type_ = tensor_type((64, 96), "tiled")
    mover = Mover(type_, type_, (1, 1), grid="3x2")
    reader = f"%view = ttl.cb_reserve %cb : {mover.cb} -> {mover.view}{mover.read('%id')}\n ttl.cb_push %cb"
    writer = f"%view = ttl.cb_wait %cb : {mover.cb} -> {mover.view}{mover.write('%id')}\n ttl.cb_pop %cb"
    moved(mover.kernel(reader, writer), (64, 96), schedule="random", seed=3)


@pytest.mark.parametrize("rows", [1, 2, 8])
def test_rows(rows: int):
    type_ = tensor_type((16, 40), "interleaved")
    moved(Mover(type_, type_, (rows, 40)).loops(16 // rows, 1, "%r"), (16, 40))


@pytest.mark.parametrize("space", ["DRAM", "L1"])
def test_shards_by_place_and_tiles(space: str):
    """Reads shards by the place of their first tile, and writes the same blocks as tiles."""
    source = tensor_type((128, 192), "sharded, grid=[2, 3], tiles_per_shard=[2, 2]", space=space)
    target = tensor_type((128, 192), "tiled")
    moved(Mover(source, target, (2, 2)).loops(2, 3, "%r, %c"), (128, 192))


def test_shards_by_number():
    type_ = tensor_type((64, 64), "sharded, grid=[2, 2], tiles_per_shard=[1, 1]", space="L1")
    mover = Mover(type_, type_, (1, 1), grid="2x2")
    reader = f"%view = ttl.cb_reserve %cb : {mover.cb} -> {mover.view}{mover.read('%id')}\n ttl.cb_push %cb"
    writer = f"%view = ttl.cb_wait %cb : {mover.cb} -> {mover.view}{mover.write('%id')}\n ttl.cb_pop %cb"
    moved(mover.kernel(reader, writer), (64, 64))


def test_blocks_of_several():
    """Two blocks at a time, in the other order."""
    type_ = tensor_type((128, 64), "tiled")
    mover = Mover(type_, type_, (1, 2))
    two = f"tensor<2x1x2x{mover.element}>"

    def body(step: str, copy: Callable[[str, str, str], str], end: str) -> str:
        pieces = "".join(
            f"""
      %v{number} = ttl.block %views, %c{number} : {two} -> {mover.view}
      %r{number} = affine.apply affine_map<(d0) -> (d0 + {1 - number})> (%i)
      {copy(f"%r{number}, %c0", f"%v{number}", f"%xf{number}")}"""
            for number in (0, 1)
        )
        return f"""%c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    affine.for %i = 0 to 4 step 2 {{
      %views = ttl.{step} %cb {{blocks = 2 : i64}} : {mover.cb} -> {two}{pieces}
      ttl.{end} %cb {{blocks = 2 : i64}}
    }}"""

    moved(mover.kernel(body("cb_reserve", mover.read, "cb_push"), body("cb_wait", mover.write, "cb_pop")), (128, 64))


@pytest.mark.parametrize(
    ("grid", "src", "dst", "receivers"),
    [
        ("4x1", (0, 0), ((1, 0), (3, 0)), 3),  # a row to the right of the source
        ("3x3", (1, 1), ((0, 0), (2, 0)), 3),  # a row above it
        ("2x2", (1, 1), ((0, 1), (0, 1)), 1),  # one core
        ("3x3", (2, 0), ((0, 1), (1, 2)), 4),  # a square
    ],
)
def test_pipes(grid: str, src: tuple[int, int], dst: tuple[tuple[int, int], tuple[int, int]], receivers: int):
    """The source reads tiles, and receivers write them: each to a row of the result that is its own."""
    columns, rows = map(int, grid.split("x"))
    cores, tiles = columns * rows, 3
    source, target = tensor_type((32, 32 * tiles), "tiled"), tensor_type((32 * cores, 32 * tiles), "tiled")
    mover = Mover(source, target, (1, 1), grid=grid)
    pipe = f"%p = ttl.create_pipe src={list(src)} dst_range=[{list(dst[0])}, {list(dst[1])}] : !ttl.pipe"
    reader = f"""%zero = arith.constant 0 : index
    ttl.if_src %p {{ affine.for %i = 0 to {tiles} {{
      %view = ttl.cb_reserve %cb : {mover.cb} -> {mover.view}{mover.read("%zero, %i")}
      %send = ttl.copy %view, %p : {mover.view}, !ttl.pipe -> !ttl.transfer_handle<write>
      ttl.wait %send
      ttl.cb_push %cb
    }} }}
    ttl.if_dst %p {{ affine.for %i = 0 to {tiles} {{
      %view = ttl.cb_reserve %cb : {mover.cb} -> {mover.view}
      %get = ttl.copy %p, %view : !ttl.pipe, {mover.view} -> !ttl.transfer_handle<read>
      ttl.wait %get
      ttl.cb_push %cb
    }} }}"""
    drain = f"""affine.for %i = 0 to {tiles} {{
      %view = ttl.cb_wait %cb : {mover.cb} -> {mover.view}{mover.write("%id, %i")}
      ttl.cb_pop %cb
    }}"""
    writer = f"ttl.if_src %p {{ {drain} }}\n ttl.if_dst %p {{ {drain} }}"
    module = lowered(mover.kernel(reader, writer, pipe))
    expected = numbered((32, 32 * tiles))
    for schedule, seed in (("round-robin", 0), ("random", 1), ("random", 2)):
        result = np.full((32 * cores, 32 * tiles), -1, np.float32)
        run(module, [expected.copy(), result], schedule=schedule, seed=seed)
        members = {src, *((x, y) for x in range(dst[0][0], dst[1][0] + 1) for y in range(dst[0][1], dst[1][1] + 1))}
        assert len(members) == receivers + 1
        for y in range(rows):
            for x in range(columns):
                rows_of = result[32 * (x + y * columns) :][:32]
                np.testing.assert_array_equal(rows_of, expected if (x, y) in members else np.full_like(expected, -1))


def test_a_source_that_is_a_receiver():
    """One thread sends from its own buffer; the other one of every core, the source among them, receives in another."""
    source, target = tensor_type((32, 96), "tiled"), tensor_type((128, 96), "tiled")
    mover = Mover(source, target, (1, 1), grid="2x2", factor=1)
    resources = f"""%p = ttl.create_pipe src=[1, 0] dst_range=[[0, 0], [1, 1]] : !ttl.pipe
  %to = ttl.create_cb shape=[1, 1], element_type={mover.element}, buffer_factor=1 : {mover.cb}"""
    reader = f"""%zero = arith.constant 0 : index
    ttl.if_src %p {{ affine.for %i = 0 to 3 {{
      %place = ttl.cb_reserve %cb : {mover.cb} -> {mover.view}{mover.read("%zero, %i", "%place")}
      ttl.cb_push %cb
      %view = ttl.cb_wait %cb : {mover.cb} -> {mover.view}
      %send = ttl.copy %view, %p : {mover.view}, !ttl.pipe -> !ttl.transfer_handle<write>
      ttl.wait %send
      ttl.cb_pop %cb
    }} }}"""
    writer = f"""ttl.if_dst %p {{ affine.for %i = 0 to 3 {{
      %place = ttl.cb_reserve %to : {mover.cb} -> {mover.view}
      %get = ttl.copy %p, %place : !ttl.pipe, {mover.view} -> !ttl.transfer_handle<read>
      ttl.wait %get
      ttl.cb_push %to
      %view = ttl.cb_wait %to : {mover.cb} -> {mover.view}{mover.write("%id, %i")}
      ttl.cb_pop %to
    }} }}"""
    module = lowered(mover.kernel(reader, writer, resources))
    assert any(op.name == "ttkernel.noc_async_write_multicast_loopback_src" for op in module.walk())
    assert [each["noc"] for each in manifest(module)["threads"]] == ["NOC_0", "NOC_1"]
    expected = numbered((32, 96))
    for seed in range(3):
        result = np.full((128, 96), -1, np.float32)
        run(module, [expected.copy(), result], schedule="random", seed=seed)
        np.testing.assert_array_equal(result, np.tile(expected, (4, 1)))
