"""Our linear layouts beside those that stock Triton computes, for layouts and shapes drawn at random.

Where stock lets us ask, the bases must be equal. Elsewhere it is asked to compare: a transposition that moves nothing
must verify with the layout that we spell out, and must not with two of its bases exchanged. What stock cannot answer at
all is checked in `test_conversion` against the PTX ISA.
"""

import os
from dataclasses import replace
from typing import Any

import pytest
from random_layouts import IN_REGISTERS, IN_SHARED_MEMORY, Case, draw
from stock_layouts import (
    Aborted,
    allocation_text,
    ask,
    same_buffer,
    same_tensor,
    shared_bytes_of,
    tmem_columns_of,
)

from tests.unit.layouts.definitions import identity_order
from tests.versions import RELEASE
from tlx_xdsl.layouts.address import shared_bytes, tmem_columns
from tlx_xdsl.layouts.conversion import to_linear_layout
from tlx_xdsl.layouts.encodings import (
    DistributedLinearLayout,
    GenericLinearLayout,
    Ints,
    Layout,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SliceLayout,
    TensorMemoryLayout,
)
from tlx_xdsl.layouts.linear_layout import LinearLayout
from tlx_xdsl.layouts.shared import required_alignment

pytestmark = pytest.mark.backend

COUNT = 30 if os.environ.get("TLX_TEST_VOLUME") == "full" else 5
"""Cases per family: in full volume more than 200 are compared in every version of Triton."""


def since(version: tuple[int, int], what: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(version > RELEASE, reason=f"Triton {version[0]}.{version[1]} is the first that {what}")


def ours(layout: Layout, shape: Ints) -> LinearLayout:
    return to_linear_layout(layout, shape, RELEASE)


def cases(family: str) -> list[Case]:
    """Cases to which this version of stock has an answer."""
    return [case for case in draw(family, COUNT) if not stock_is_no_guide(*case)]


def stock_is_no_guide(layout: Layout, shape: Ints) -> bool:
    """Return whether the version at hand ends the process, or (3.7, CTA pairs) mixes up rows and columns."""
    parent = layout
    while isinstance(parent, SliceLayout):
        parent = parent.parent
    match parent:
        case DistributedLinearLayout(block=block) if isinstance(layout, SliceLayout):
            return RELEASE < (3, 7) and bool(block)
        case TensorMemoryLayout(block_m=64, two_ctas=True, block_n=width):
            return RELEASE < (3, 8) and (shape[0] > 128 or (RELEASE == (3, 7) and shape[1] > width))
        case _:
            return False


def lists(bases: Any) -> Any:
    return [list(basis) for basis in bases]


def compare(found: list[tuple[Case, Any, Any]]) -> None:
    """Every case's answer is the expected one; says which are not."""
    wrong = [
        f"{case}\n  stock: {answer}\n  ours:  {expected}" for case, answer, expected in found if answer != expected
    ]
    assert not wrong, f"{len(wrong)} of {len(found)} differ:\n" + "\n".join(wrong[:5])


@pytest.mark.parametrize("family", [name for name in IN_REGISTERS if name != "generic_linear"])
def test_bases_of_register_layouts(family: str):
    drawn = cases(family)
    answers = ask([("bases", *case) for case in drawn])
    expected = [{name: lists(bases) for name, bases in ours(*case).bases.items()} for case in drawn]
    compare(list(zip(drawn, answers, expected, strict=True)))


@since((3, 7), "reports the linear layout of a buffer")
@pytest.mark.parametrize("family", [name for name in IN_SHARED_MEMORY if name != "padded_shared"])
def test_bases_of_shared_memory_layouts(family: str):
    drawn = cases(family)
    answers = ask([("bases", *case) for case in drawn])
    expected = [{name: lists(bases) for name, bases in ours(*case).bases.items()} for case in drawn]
    compare(list(zip(drawn, answers, expected, strict=True)))


@since((3, 8), "reports the linear layout of tensor memory")
@pytest.mark.parametrize("family", ["tensor_memory", "tensor_memory_scales"])
def test_bases_of_tensor_memory_layouts(family: str):
    """Stock's answer has no `block`; `test_registers_of_tensor_memory_loads` sees it."""
    drawn = cases(family)
    answers = ask([("bases", *case) for case in drawn])
    expected = [{name: lists(ours(*case).bases_of(name)) for name in ("row", "col")} for case in drawn]
    compare(list(zip(drawn, answers, expected, strict=True)))


def test_registers_of_tensor_memory_loads():
    """Warp w of a warp group reads lanes 32w to 32w + 31, a register per column (PTX ISA, "tcgen05.ld", .32x32b).

    Where a block of 64 rows leaves the upper 16 lanes of a warp empty, stock reads the other half of the columns there
    (.16x32bx2).
    """
    drawn = [
        (layout, shape)
        for layout, shape in cases("tensor_memory")
        if isinstance(layout, TensorMemoryLayout) and layout.col_stride < 4 and not layout.fp4_padded
    ]
    found: list[tuple[Case, Any, Any]] = []
    for case, answer in zip(drawn, ask([("tmem registers", *case) for case in drawn]), strict=True):
        if isinstance(answer, str) and "must be at least" in answer:
            continue  # fewer columns than an instruction has
        layout = ours(*case)
        lanes = lists(layout.bases_of("row"))
        columns = [list(basis) for basis in layout.bases_of("col") if any(basis)]
        if not any(lanes[4]):
            lanes[4] = columns.pop()
        block = lists(layout.bases_of("block"))
        found.append((case, answer, {"register": columns, "lane": lanes[:5], "warp": lanes[5:], "block": block}))
    assert found
    compare(found)


def spelled_out(layout: SharedLayout, shape: Ints, exchanged: bool = False) -> SharedLinearLayout | None:
    """Our answer as a layout; with two different bases exchanged, None if there are no two."""
    linear = ours(layout, shape)
    offset = list(linear.bases_of("offset"))
    if exchanged:
        other = next((at for at, basis in enumerate(offset) if any(basis) and basis != offset[-1]), None)
        if other is None:
            return None
        offset[other], offset[-1] = offset[-1], offset[other]
    alignment = required_alignment(layout, element_bits(layout))
    return SharedLinearLayout(tuple(offset), linear.bases_of("block"), alignment=alignment)


def element_bits(layout: SharedLayout) -> int:
    return layout.element_bit_width if isinstance(layout, NvmmaSharedLayout) else 16


@pytest.mark.parametrize("exchanged", [False, True], ids=["ours", "two bases exchanged"])
@pytest.mark.parametrize("family", [name for name in IN_SHARED_MEMORY if name != "padded_shared"])
def test_stock_takes_a_buffer_for_one_of_ours(family: str, exchanged: bool):
    drawn: list[Case] = []
    questions: list[Any] = []
    for layout, shape in cases(family):
        assert isinstance(layout, SharedLayout)
        if (other := spelled_out(layout, shape, exchanged)) is not None:
            drawn.append((layout, shape))
            questions.append(same_buffer(layout, shape, f"i{element_bits(layout)}", other))
    compare([(case, answer, not exchanged) for case, answer in zip(drawn, ask(questions), strict=True)])


@since((3, 8), "has generic_linear")
@pytest.mark.parametrize("exchanged", [False, True], ids=["ours", "two bases exchanged"])
def test_stock_takes_a_generic_linear_tensor_for_one_of_ours(exchanged: bool):
    drawn: list[Case] = []
    questions: list[Any] = []
    for index, (layout, shape) in enumerate(draw("generic_linear", COUNT)):
        assert isinstance(layout, GenericLinearLayout)
        larger = (shape[0] << index % 3, shape[1])
        linear = ours(layout, larger)
        lane = linear.bases_of("lane")
        if exchanged:
            if lane[0] == lane[1]:
                continue
            lane = (lane[1], lane[0], *lane[2:])
        other = GenericLinearLayout(linear.bases_of("register"), lane, linear.bases_of("warp"), ())
        drawn.append((layout, larger))
        questions.append(same_tensor(layout, larger, other, 1 << len(layout.warp)))
    compare([(case, answer, not exchanged) for case, answer in zip(drawn, ask(questions), strict=True)])


@since((3, 7), "reports the alignment of a buffer")
@pytest.mark.parametrize("family", [name for name in IN_SHARED_MEMORY if name != "padded_shared"])
def test_alignment(family: str):
    drawn = cases(family)
    answers = ask([("alignment", *case) for case in drawn])
    expected = [required_alignment(layout, element_bits(layout)) for layout, _ in drawn]
    compare(list(zip(drawn, answers, expected, strict=True)))


@pytest.mark.parametrize("family", IN_SHARED_MEMORY)
def test_shared_memory_that_a_buffer_takes(family: str):
    """Pipelined buffers, which have one dimension more than their layout, are among them."""
    drawn: list[Case] = []
    for index, (layout, shape) in enumerate(cases(family)):
        drawn.append((layout, (3, *shape) if index % 3 == 0 else shape))
    questions = [shared_bytes_of(layout, shape, f"i{element_bits(layout)}") for layout, shape in drawn]
    expected = [shared_bytes(layout, shape, element_bits(layout), RELEASE) for layout, shape in drawn]
    compare(list(zip(drawn, ask(questions), expected, strict=True)))


def test_tensor_memory_that_a_buffer_takes():
    """Stock allocates a power of two of at least 32 columns."""
    drawn: list[Case] = []
    for index, (layout, shape) in enumerate(draw("tensor_memory", COUNT)):
        assert isinstance(layout, TensorMemoryLayout)
        if layout.col_stride < 4 and shape[1] >= layout.block_n:
            plain = replace(layout, cga_layout=(), two_ctas=False, fp4_padded=False)
            drawn.append((plain, (3, *shape) if index % 3 == 0 else shape))
    bits = [32 // layout.col_stride for layout, _ in drawn]
    questions = [tmem_columns_of(layout, shape, f"i{b}") for (layout, shape), b in zip(drawn, bits, strict=True)]
    columns = [tmem_columns(layout, shape, b, RELEASE) for (layout, shape), b in zip(drawn, bits, strict=True)]
    allocated = [max(32, 1 << (count - 1).bit_length()) for count in columns]
    found = list(zip(drawn, ask(questions), allocated, strict=True))
    compare([item for item in found if item[2] <= 512])


def test_padded_layouts_are_printed_by_order_if_nothing_is_permuted():
    drawn = [
        *draw("padded_shared", COUNT),
        (PaddedSharedLayout((4,), (2,), ((0, 1), (0, 2), (1, 0)), ()), (2, 4)),
        (PaddedSharedLayout((4,), (2,), ((2, 0, 0), (1, 0, 0), (0, 0, 1)), ()), (4, 1, 2)),
        (PaddedSharedLayout((4, 8), (2, 1), ((1, 0, 0), (2, 0, 0), (0, 0, 1)), ()), (4, 1, 2)),
        (PaddedSharedLayout((4,), (2,), ((1,), (2,)), ()), (4,)),
    ]
    for (layout, shape), answer in zip(
        drawn, ask([("prints", allocation_text(layout, shape, "i16")) for layout, shape in drawn]), strict=True
    ):
        assert isinstance(layout, PaddedSharedLayout)
        assert not isinstance(answer, Aborted), (layout, shape, answer)
        order = identity_order(layout, len(shape))
        expected = "offset = " if order is None else f"{{order = {list(order)}, shape = {list(shape)}}}"
        assert expected in answer, (layout, shape)
