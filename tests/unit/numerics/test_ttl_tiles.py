"""Tensors as the pages of a Tenstorrent device."""

import ml_dtypes
import numpy as np
import pytest

from tlx_xdsl.errors import InputError
from tlx_xdsl.ttl.tiles import INTERLEAVED, TILED, PageLayout, from_faces, from_pages, page_bytes, to_faces, to_pages

pytestmark = pytest.mark.quick

SHARDED = PageLayout("sharded", grid=(2, 3), tiles_per_shard=(2, 1))


@pytest.mark.parametrize("layout", [TILED, INTERLEAVED, SHARDED], ids=lambda layout: layout.kind)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "i32"])
@pytest.mark.parametrize("shape", [(32, 32), (64, 96), (1, 1), (33, 70)])
def test_round_trip(layout: PageLayout, dtype: str, shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).integers(-100, 100, shape).astype(np.float32)
    pages = to_pages(matrix, dtype, layout)
    assert pages.dtype == np.uint8
    assert pages.shape == (layout.page_count(shape), page_bytes(shape, dtype, layout))
    np.testing.assert_array_equal(from_pages(pages, shape, dtype, layout), matrix)


def test_a_tile_is_four_faces() -> None:
    tile = np.arange(1024).reshape(32, 32)
    elements = to_faces(tile)
    # Element 16 of the first row opens the second face, row 16 the third.
    assert elements[0] == 0
    assert elements[16] == 32
    assert elements[256] == 16
    assert elements[512] == 16 * 32
    assert elements[768] == 16 * 32 + 16
    np.testing.assert_array_equal(from_faces(elements), tile)


def test_pages_of_shards_lie_together() -> None:
    tiles = np.arange(4 * 3).reshape(4, 3)
    pages = to_pages(np.kron(tiles, np.ones((32, 32))), "i32", SHARDED)
    # Shard (0, 0) holds the tiles of rows 0 and 1 in column 0; the next is one column to the right.
    assert pages.view(np.int32)[:, 0].tolist() == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]


def test_padding_is_zero() -> None:
    pages = to_pages(np.ones((33, 32), np.float32), "f32")
    second = from_faces(pages[1].view(np.float32))
    assert second[0].tolist() == [1] * 32
    assert not second[1:].any()


def test_bf16_is_rounded_to_even() -> None:
    values = np.array([[1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20]], np.float32)
    assert from_pages(to_pages(values, "bf16", INTERLEAVED), (1, 3), "bf16", INTERLEAVED).tolist() == [
        [1, 1 + 2**-6, 1 + 2**-7]
    ]


def test_bit_patterns_of_bf16() -> None:
    values = np.array([[1, -2, 0.5]], ml_dtypes.bfloat16)
    pages = to_pages(values.view(np.uint16), "bf16", INTERLEAVED)
    np.testing.assert_array_equal(pages, to_pages(values, "bf16", INTERLEAVED))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: to_pages(np.zeros(3), "f32"), "expected an array of at least two dimensions, found 1"),
        (lambda: to_pages(np.zeros((1, 1)), "f64"), "expected one of the types f32, .*, found 'f64'"),
        (lambda: to_pages(np.zeros((160, 32)), "f32", SHARDED), "5x1 tiles does not fit into shards of 4x3 tiles"),
        (lambda: from_pages(np.zeros(8, np.uint8), (1, 3), "f32", INTERLEAVED), "expected 3 elements .* found 2"),
    ],
)
def test_errors(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
