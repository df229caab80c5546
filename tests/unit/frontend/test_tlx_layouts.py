"""Layouts that kernels ask for: what they mean, element by element."""

from itertools import product
from math import prod
from types import SimpleNamespace

import pytest

from tests.unit.frontend.kernels import compile_source
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.lower.tlx_encodings import register_type, shared_encoding
from tlx_xdsl.language import float16, float32, tlx
from tlx_xdsl.layouts.buffer_views import reshaped_buffer_layout, transposed_buffer_layout
from tlx_xdsl.layouts.conversion import to_linear_layout
from tlx_xdsl.layouts.encodings import (
    DistributedLinearLayout,
    NvmmaSharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
)
from tlx_xdsl.layouts.shared import default_nvmma_layout, unswizzled_layout


def elements(layout, shape):
    """The coordinates of the element at each offset of a buffer."""
    linear = to_linear_layout(layout, shape)
    sizes = linear.in_sizes
    inputs = [dict(zip(sizes, place, strict=True)) for place in product(*(range(size) for size in sizes.values()))]
    return [tuple(linear.apply(place)[f"dim{dim}"] for dim in range(len(shape))) for place in inputs]


def number(coordinates, shape):
    """The row-major number of an element."""
    result = 0
    for coordinate, size in zip(coordinates, shape, strict=True):
        result = result * size + coordinate
    return result


@pytest.mark.parametrize(
    ("layout", "shape", "new", "kind"),
    [
        (default_nvmma_layout((64, 32), 32), (64, 32), (2, 32, 32), NvmmaSharedLayout),
        (default_nvmma_layout((64, 64), 32), (64, 64), (32, 128), SharedLinearLayout),
        (default_nvmma_layout((64, 64), 16), (64, 64), (4096,), SharedLinearLayout),
        (unswizzled_layout(2), (16, 32), (8, 2, 32), SwizzledSharedLayout),
        (SwizzledSharedLayout(4, 1, 8, (1, 0)), (16, 32), (8, 64), SharedLinearLayout),
        (SwizzledSharedLayout(1, 1, 1, (0, 1)), (16, 32), (8, 64), SharedLinearLayout),
    ],
)
def test_a_reshape_moves_no_element(layout, shape, new, kind):
    reshaped = reshaped_buffer_layout(layout, shape, 32, new)
    assert isinstance(reshaped, kind)
    before, after = elements(layout, shape), elements(reshaped, new)
    assert len(before) == len(after) == prod(shape)
    assert [number(c, shape) for c in before] == [number(c, new) for c in after]


@pytest.mark.parametrize(
    ("layout", "shape", "order"),
    [
        (default_nvmma_layout((64, 32), 32), (64, 32), (1, 0)),
        (SwizzledSharedLayout(4, 1, 8, (1, 0)), (16, 32), (1, 0)),
        (unswizzled_layout(3), (4, 8, 16), (2, 0, 1)),
        (SharedLinearLayout(((0, 1), (1, 0), (0, 2)), alignment=16), (2, 4), (1, 0)),
    ],
)
def test_a_transposition_moves_no_element(layout, shape, order):
    turned = transposed_buffer_layout(layout, order)
    new = tuple(shape[dim] for dim in order)
    expected = [tuple(place[dim] for dim in order) for place in elements(layout, shape)]
    assert elements(turned, new) == expected


@pytest.mark.parametrize(("order", "shape"), [([1, 0], (128, 256)), ([0, 1], (256, 64)), ([1, 0], (8, 64))])
def test_tiles_follow_each_other(order, shape):
    """The order of the tile says along which dimension first."""
    tile = (8, 64) if order == [1, 0] else (64, 8)
    atom = tlx.nv_mma_shared_layout_encoding(tile, order, float16, [1, 1], [1, 1], [1, 1], False, True)
    asked = atom.make_shared_linear() if shape == tile else atom.tile_to_shape(shape)
    call = SimpleNamespace(given=lambda _: True, known=lambda *_: asked)
    layout = shared_encoding(call, "layout", shape, float16).data
    one = elements(default_nvmma_layout(tile, 16, transposed=order == [0, 1]), tile)
    starts = [range(0, shape[dim], tile[dim]) for dim in order]
    expected = []
    for outer, inner in product(starts[1], starts[0]):
        start = (outer, inner) if order == [1, 0] else (inner, outer)
        expected += [(start[0] + row, start[1] + column) for row, column in one]
    assert elements(layout, shape) == expected


def layout_of(asked, shape, num_warps=4):
    call = SimpleNamespace(visitor=SimpleNamespace(unit=SimpleNamespace(num_warps=num_warps)))
    return register_type(call, asked, shape, float32).encoding.data


def test_a_cute_layout_maps_threads_and_values_to_elements():
    # Thread (i, j) of 8 x 4 holds two elements of row i that follow each other, from column 2 * j on.
    asked = tlx.layout(shape=((4, 8), 2), stride=((2, 8), 1))
    layout = layout_of(asked, (8, 8), num_warps=1)
    assert isinstance(layout, DistributedLinearLayout)
    linear = to_linear_layout(layout, (8, 8))
    for lane, register in product(range(32), range(2)):
        place = linear.apply({"register": register, "lane": lane, "warp": 0, "block": 0})
        assert place == {"dim0": lane // 4, "dim1": lane % 4 * 2 + register}


def test_a_step_of_several_bits_leaves_elements_out(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(n):
    x = tl.full((2, 2), n, tl.int32)
    y = tlx.require_layout(x, tlx.layout(shape=((32, 4), 1), stride=((0, 1), 0)))
    z = tlx.require_layout(x, tlx.layout(shape=((32, 2, 2), 1), stride=((0, 3, 0), 0)))
"""
    with pytest.raises(CompilationError, match="the stride 3 is no power of two: a layout") as error:
        compile_source(tmp_path, source, {"n": "i32"})
    assert error.value.location.line == 10


def test_a_layout_is_for_the_warps_of_the_task(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(n):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            pass
        with tlx.async_task(num_warps=1):
            x = tl.full((32,), n, tl.int32)
            y = tlx.require_layout(x, tlx.layout("(32,1):(1,0)"))
"""
    text = compile_source(tmp_path, source, {"n": "i32"})
    assert "lane = [[1], [2], [4], [8], [16]], warp = []" in text
