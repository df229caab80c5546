"""Bytes that the transfers of a kernel touch, for all layouts and ways to write an index."""

from __future__ import annotations

import pytest

from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.ttl.analysis.transfers import dependences_of
from tlx_xdsl.ttl.dialects.ttl import KernelOp

TILE = "!ttcore.tile<32x32, f32>"
LAYOUTS = {
    "tiled": ("#ttl.layout<tiled>", (1, 1), TILE),
    "sharded": ("#ttl.layout<sharded, grid=[2, 2], tiles_per_shard=[2, 2]>", (2, 2), TILE),
    "interleaved": ("#ttl.layout<interleaved>", (4, 128), "f32"),
}


def found(body: str, layout: str = "tiled"):
    """The dependences of a thread that writes blocks of %acc from the view %v."""
    encoding, (rows, columns), element = LAYOUTS[layout]
    tensor = f"tensor<128x128xf32, #ttl.tensor_encoding<DRAM, {encoding}>>"
    cb, view = f"!ttl.cb<[{rows}, {columns}], {element}, 2>", f"tensor<{rows}x{columns}x{element}>"
    types = f"{view}, !ttl.tensor_accessor<{tensor}> -> !ttl.transfer_handle<write>"
    text = f"""
    ttl.kernel @k(%a: {tensor}) attributes {{grid = #ttcore.grid<4x2>}} {{
      %cb = ttl.create_cb shape=[{rows}, {columns}], element_type={element}, buffer_factor=2 : {cb}
      %acc = ttl.tensor_accessor %a : {tensor} -> !ttl.tensor_accessor<{tensor}>
      %x, %y = ttl.core(dims = 2) : index, index
      %id = ttl.get_shard_id() : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      ttl.datamovement_thread {{
        %v = ttl.cb_wait %cb : {cb} -> {view}
        {body.replace("COPY", "ttl.copy %v, %acc").replace("TYPES", types)}
        ttl.dma_barrier write
        ttl.cb_pop %cb
        ttl.thread_return
      }}
      ttl.kernel_return
    }}
    """
    module = parse_module(text, filename="kernel.mlir")
    return dependences_of(next(op for op in module.walk() if isinstance(op, KernelOp)))


PAIR = "%s = COPY[{}] : TYPES\n %t = COPY[{}] : TYPES"


@pytest.mark.parametrize(
    ("layout", "first", "second", "conflict"),
    [
        pytest.param("tiled", "%c1, %c2", "%c1, %c2", True, id="one tile"),
        pytest.param("tiled", "%c1, %c2", "%c2, %c1", False, id="two tiles"),
        pytest.param("tiled", "%c4", "%c1, %c0", True, id="the number of a tile: row by row, 4 in each"),
        pytest.param("tiled", "%c4", "%c1, %c1", False, id="the number of another tile"),
        pytest.param("tiled", "%c2", "%c2", True, id="numbers of tiles"),
        pytest.param("sharded", "%c1", "%c2", False, id="two shards"),
        pytest.param("sharded", "%c1", "%c1, %c3", True, id="a shard and a block of tiles that overlap"),
        pytest.param("sharded", "%c1", "%c2, %c2", False, id="a shard and the block of tiles below"),
        pytest.param("interleaved", "%c1", "%c4", True, id="four rows each, which overlap"),
        pytest.param("interleaved", "%c0, %c0", "%c4", False, id="the next four rows"),
        pytest.param("tiled", "%x, %y", "%y, %x", True, id="coordinates that may be equal"),
        pytest.param("tiled", "%id", "%id", True, id="the number of the core"),
    ],
)
def test_places(layout, first, second, conflict):
    assert bool(found(PAIR.format(first, second), layout)) is conflict


def test_the_number_of_a_core_is_that_of_its_coordinates():
    number = "%n = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 4 + {})> (%x, %y)\n"
    assert found(number.format(0) + PAIR.format("%n", "%id"))
    assert not found(number.format(1) + PAIR.format("%n", "%id"))


LOOPS = {
    "affine": ("affine.for %i = 0 to 3 {", ""),
    "scf": ("scf.for %i = %c0 to %c3 step %c1 {", ""),
    "unknown length": ("scf.for %i = %c0 to %n step %c1 {", "%n = arith.minsi %id, %c3 : index"),
}


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize(
    ("index", "carried"),
    [
        ("%p = arith.addi %i, %c1 : index", False),
        ("%p = arith.muli %i, %c2 : index", False),
        ("%p = arith.subi %c3, %i : index", False),
        ("%p = arith.divsi %i, %c2 : index", True),
        ("%p = affine.apply affine_map<(d0) -> (d0 ceildiv 2)> (%i)", True),
        ("%p = arith.muli %i, %i : index", True),
        ("%p = arith.minsi %x, %c1 : index", True),
    ],
)
def test_indices_of_loops(kind, index, carried):
    begin, before = LOOPS[kind]
    dependences = found(f"{before}\n{begin}\n{index}\n%s = COPY[%p, %c0] : TYPES\n}}")
    assert any(each.conflicts.carried(0) for each in dependences) is carried


def test_remainders_of_numbers_that_may_be_negative_are_unknown():
    shifted = "%q = arith.subi %i, %c1 : index\n%p = arith.remsi %q, %c4 : index\n"
    assert found(f"affine.for %i = 0 to 3 {{\n{shifted}%s = COPY[%p, %c0] : TYPES\n}}")
    plain = "%p = arith.remsi %i, %c4 : index\n"
    assert not found(f"affine.for %i = 0 to 3 {{\n{plain}%s = COPY[%p, %c0] : TYPES\n}}")
