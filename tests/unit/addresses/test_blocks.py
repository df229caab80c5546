"""Claims about the blocks of tensors and descriptors."""

from __future__ import annotations

import pytest

from tests.unit.addresses.test_claims import accesses
from tlx_xdsl.addresses import DescriptorFacts, LaunchFacts

pytestmark = pytest.mark.quick

TILE = """
%r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
%k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
%r1 = tt.expand_dims %r {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
%k1 = tt.expand_dims %k {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
%by = tt.splat STRIDE : i32 -> tensor<8x1xi32>
%r2 = arith.muli %r1, %by : tensor<8x1xi32>
%r3 = tt.broadcast %r2 : tensor<8x1xi32> -> tensor<8x64xi32>
%k3 = tt.broadcast %k1 : tensor<1x64xi32> -> tensor<8x64xi32>
%o = arith.addi %r3, %k3 : tensor<8x64xi32>
%b = tt.splat %p : !tt.ptr<f32> -> tensor<8x64x!tt.ptr<f32>>
%q = tt.addptr %b, %o : tensor<8x64x!tt.ptr<f32>>, tensor<8x64xi32>
%n1 = tt.splat %n : i32 -> tensor<8x1xi32>
%m = arith.cmpi slt, %r1, %n1 : tensor<8x1xi32>
%m1 = tt.broadcast %m : tensor<8x1xi1> -> tensor<8x64xi1>
%v = tt.load %q, %m1 : tensor<8x64x!tt.ptr<f32>>
"""


def test_tile() -> None:
    (found,) = accesses(TILE.replace("STRIDE", "%s"))
    rows, columns = found.dimensions
    assert (str(rows.stride), str(columns.stride)) == ("4*%s", "4")
    assert (columns.contiguity, columns.divisibility) == (64, 16)
    assert rows.contiguity == 1
    assert found.block_size is None
    assert found.is_coalesced
    assert [str(guard) for guard in found.guards] == ["i0 < %n"]
    assert found.guards_exact


def test_tile_without_gaps() -> None:
    (found,) = accesses(TILE.replace("STRIDE", "%c64"))
    assert found.block_size == 512


def test_turned_block() -> None:
    (found,) = accesses(
        "%r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>\n"
        "%k = tt.reshape %r : tensor<64xi32> -> tensor<2x4x8xi32>\n"
        "%o = tt.trans %k {order = array<i32: 2, 0, 1>} : tensor<2x4x8xi32> -> tensor<8x2x4xi32>\n"
        "%b = tt.splat %p : !tt.ptr<f32> -> tensor<8x2x4x!tt.ptr<f32>>\n"
        "%q = tt.addptr %b, %o : tensor<8x2x4x!tt.ptr<f32>>, tensor<8x2x4xi32>\n"
        "%v = tt.load %q : tensor<8x2x4x!tt.ptr<f32>>"
    )
    assert str(found.offset) == "4*i0 + 128*i1 + 32*i2"
    assert found.block_size == 64


def test_descriptor() -> None:
    (found,) = accesses(
        "%i = arith.muli %x, %c8 : i32\n"
        "%v = tt.descriptor_load %d[%i, %c64] : !tt.tensordesc<8x64xf16> -> tensor<8x64xf16>",
        LaunchFacts(grid=(4, 1, 1), arguments={"d": DescriptorFacts((100, 200), (256, 1))}),
        arguments="%d: !tt.tensordesc<8x64xf16>",
    )
    assert str(found.offset) == "4096*pid_x + 512*i0 + 2*i1 + 128"
    assert [str(guard) for guard in found.guards if guard.predicate == "<"] == ["8*pid_x + i0 < 100", "i1 + 64 < 200"]


@pytest.mark.parametrize(
    ("made", "types"),
    [("tt.make_tensor_descriptor %p", "<f32>"), ("tlx.make_tensor_descriptor %p, %p", "<f32>, <f32>")],
)
def test_descriptor_that_the_kernel_makes(made: str, types: str) -> None:
    (found,) = accesses(
        "%w = arith.constant 1 : i64\n%e = arith.extsi %s : i32 to i64\n"
        f"%d = {made}, [%n, %s], [%e, %w] : {types}, <8x64xf32>\n"
        "%v = tt.descriptor_load %d[%x, %c64] : !tt.tensordesc<8x64xf32> -> tensor<8x64xf32>"
    )
    assert str(found.offset) == "4*%s*pid_x + 4*%s*i0 + 4*i1 + 256"
    assert found.base_name == "p"
