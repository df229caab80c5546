"""CuTe's notation: what is printed is read back as the same function, and `tlx.layout` takes it."""

import itertools

import pytest
from random_layouts import FAMILIES, IN_REGISTERS, IN_SHARED_MEMORY, draw

from tests.unit.layouts.definitions import cute_offset, parse_cute_layout, shared_address
from tests.unit.volume import is_full
from tlx_xdsl.language import tlx
from tlx_xdsl.layouts.conversion import distributed_to_linear, to_linear_layout
from tlx_xdsl.layouts.cute import CuteLayout, Swizzle, cute_layout, describe_layout
from tlx_xdsl.layouts.distributed import wgmma_accumulator_layout
from tlx_xdsl.layouts.encodings import (
    BlockedLayout,
    DistributedLinearLayout,
    GenericLinearLayout,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLinearLayout,
    TensorMemoryLayout,
)
from tlx_xdsl.layouts.shared import default_nvmma_layout

COUNT = 300 if is_full() else 40
MOST = 1 << 11
"""Elements of the tensors that are looked at one by one."""


def row_major(element, shape):
    number = 0
    for coordinate, size in zip(element, shape, strict=True):
        number = number * size + coordinate
    return number


@pytest.mark.parametrize("family", IN_REGISTERS)
def test_registers_read_back(family):
    found = 0
    for layout, shape in draw(family, COUNT):
        cute = cute_layout(layout, shape)
        if cute is None:
            continue
        found += 1
        assert parse_cute_layout(str(cute)) == cute
        linear = distributed_to_linear(layout, shape)
        sizes = linear.in_sizes
        for register, lane, warp in itertools.product(*(range(min(sizes[n], 8)) for n in ("register", "lane", "warp"))):
            place = {"register": register, "lane": lane, "warp": warp, "block": 0}
            assert cute_offset(cute, warp * 32 + lane, register) == row_major(linear.apply(place).values(), shape)
        last = {name: size - 1 for name, size in sizes.items()}
        assert cute_offset(cute, last["warp"] * 32 + last["lane"], last["register"]) == row_major(
            linear.apply(last).values(), shape
        )
    assert found >= COUNT / 10


@pytest.mark.parametrize("family", IN_REGISTERS)
def test_a_requested_layout_takes_what_is_printed(family):
    """The steps of `tlx.layout` are the bases of the layout that was printed."""
    for layout, shape in draw(family, COUNT):
        if (cute := cute_layout(layout, shape)) is None:
            continue
        request, bases = tlx.layout(str(cute)), to_linear_layout(layout, shape).bases
        for modes, names in ((request.threads, ("lane", "warp")), (request.values, ("register",))):
            steps = [stride << bit for size, stride in modes for bit in range(size.bit_length() - 1)]
            assert steps == [row_major(basis, shape) for name in names for basis in bases[name]]


@pytest.mark.parametrize("family", IN_SHARED_MEMORY)
def test_shared_memory_reads_back(family):
    found = 0
    for layout, shape in draw(family, COUNT):
        cute = cute_layout(layout, shape)
        if cute is None:
            continue
        found += 1
        read = parse_cute_layout(str(cute))
        assert read == cute
        for element in itertools.islice(itertools.product(*map(range, shape)), MOST):
            # Bytes of elements of 8 bits are elements.
            assert cute_offset(read, *element) == shared_address(layout, shape, element, 8).byte
    assert found >= COUNT / 10 or family == "padded_shared"


def test_which_layouts_have_no_such_form():
    assert cute_layout(PaddedSharedLayout((4,), (2,), ((0, 1), (1, 0)), ()), (2, 2)) is None
    assert cute_layout(TensorMemoryLayout(128, 64, 1), (128, 64)) is None
    # Two CTAs.
    assert cute_layout(BlockedLayout((1,), (32,), (4,), (0,), ((1,),)), (256,)) is None
    # Lane 1 and warp 1 meet in one column: the sum would carry.
    lanes = ((0, 1), (1, 0), (2, 0), (4, 0), (8, 0))
    assert cute_layout(GenericLinearLayout((), lanes, ((0, 1),), ()), (16, 2)) is None
    # Rows are XORed with bits that no single swizzle moves.
    crossed = SharedLinearLayout(((0, 1), (0, 2), (1, 2), (2, 1)), alignment=16)
    assert cute_layout(crossed, (4, 4)) is None
    # What undoes a swizzle whose bits overlap is no swizzle.
    assert cute_layout(SharedLinearLayout(((1,), (3,), (6,), (8,)), alignment=16), (16,)) is None


@pytest.mark.parametrize(
    ("layout", "shape", "printed"),
    [
        (BlockedLayout((1, 4), (4, 8), (4, 1), (1, 0)), (16, 64), "((_8,_4,_4),(_4,_2)):((_4,_64,_256),(_1,_32))"),
        (BlockedLayout((1,), (32,), (4,), (0,)), (128,), "((_32,_4),_1):((_1,_32),_0)"),
        # Four lanes share a row; a thread holds two neighbours in rows 8 apart, and the same 8 columns further.
        (wgmma_accumulator_layout((64, 64), 16, 4), (64, 64), "((_4,_8,_4),(_2,_2,_8)):((_2,_64,_1024),(_1,_512,_8))"),
        (default_nvmma_layout((64, 64), 16), (64, 64), "Swizzle<3,3,3> o (_64,_64):(_64,_1)"),
        (default_nvmma_layout((64, 64), 16), (3, 64, 64), "Swizzle<3,3,3> o (_3,_64,_64):(_4096,_64,_1)"),
        (default_nvmma_layout((64, 32), 16), (64, 32), "Swizzle<2,3,3> o (_64,_32):(_32,_1)"),
        (NvmmaSharedLayout(128, False, 32), (16, 32), "Swizzle<3,2,3> o (_16,_32):(_32,_1)"),
        (NvmmaSharedLayout(128, True, 16), (64, 64), "Swizzle<3,3,3> o (_64,_64):(_1,_64)"),
        (DistributedLinearLayout((), ((1,), (2,), (4,), (8,), (16,)), (), ()), (32,), "(_32,_1):(_1,_0)"),
    ],
)
def test_known_layouts(layout, shape, printed):
    assert str(cute_layout(layout, shape)) == printed
    assert describe_layout(layout, shape) == [f"cute: {printed}"]


def test_a_layout_without_a_cute_form_is_spelled_out():
    padded = PaddedSharedLayout((4,), (2,), ((0, 1), (1, 0)), ())
    assert describe_layout(padded, (2, 2)) == [
        "linear layout:",
        "  offset: (0, 1) (1, 0)",
        "  block:",
        "  -> dim0: 2, dim1: 2",
        "  2 more elements after every 4",
    ]
    tiles = describe_layout(TensorMemoryLayout(128, 64, 1), (2, 128, 64))
    assert tiles[0] == "linear layout:"
    assert tiles[-1] == "  2 such tiles, one after the other"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4,8", "expected a layout such as"),
        ("Swizzle<3,3> o 4:1", "expected a layout such as"),
        ("(4,8):4", r"nested alike, found \(4,8\) and 4"),
        ("(4,8):(1,4,2)", "nested alike"),
        ("(4,8:(1,4)", r"nested tuples of numbers, found '\(4,8'"),
        ("4)):1", r"nested tuples of numbers, found '4\)\)'"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_cute_layout(text)


def test_coordinates_and_integers():
    layout = CuteLayout(((4, 8), 2), ((2, 8), 1))
    assert cute_offset(layout, 5, 1) == 2 + 8 + 1
    assert cute_offset(layout, 5 + 32) == cute_offset(layout, 5, 1)
    assert cute_offset(CuteLayout(8, 1, Swizzle(1, 0, 2)), 4) == 5
    with pytest.raises(ValueError, match="a coordinate for each mode"):
        cute_offset(layout, 1, 1, 1)


def test_every_family_is_looked_at():
    assert {*IN_REGISTERS, *IN_SHARED_MEMORY} == {name for name in FAMILIES if "memory" not in name}
