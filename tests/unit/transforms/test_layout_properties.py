"""Random chains of views with one requirement: after propagation all types hold together, and no element moved.

The chains are made with the types that views have under an unswizzled layout. After the pass the verifier must be
content, and every element of a view must lie, by the layout in the view's own type, where the allocation's puts it:
which element of the allocation it is, is tracked with numpy beside the chain.
"""

from __future__ import annotations

from math import prod
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.unit.volume import is_full
from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendError, BackendOptions, compile_ttgir
from tlx_xdsl.dialects.base.layouts import bare, layout_attr
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.dialects.tlx import RequireLayoutOp
from tlx_xdsl.dialects.ttg import MemDescIndexOp, MemDescReshapeOp, MemDescSubsliceOp, MemDescTransOp
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.layouts.address import shared_addresses
from tlx_xdsl.layouts.buffer_views import reshaped_buffer_layout, transposed_buffer_layout
from tlx_xdsl.layouts.encodings import SwizzledSharedLayout
from tlx_xdsl.layouts.shared import default_nvmma_layout, unswizzled_layout
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.layout import propagate_layout
from tlx_xdsl.transforms.layout.propagate_layout import PropagateLayoutPass

BITS = 16
OPTIONS = BackendOptions(target="sm_90a")
HEAD = (
    'builtin.module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, ttg.target = "cuda:90", '
    '"ttg.threads-per-warp" = 32 : i32} {\n'
)


def spelled(layout):
    return str(layout_attr(layout))


def memdesc(shape, layout, alloc=None):
    text = f"!ttg.memdesc<{'x'.join(map(str, shape))}xf16, {spelled(layout)}, #ttg.shared_memory, mutable"
    return text + (">" if alloc is None or alloc == shape else f", {'x'.join(map(str, alloc))}>")


@st.composite
def chains(draw):
    """The text of a function, the layout that is required of a value, its name, and the elements of each value.

    Of each element there are two numbers: that in the buffer of the allocation, and that in what the value's type calls
    its allocation, both row-major.
    """
    shape = tuple(draw(st.sampled_from([8, 16, 32, 64])) for _ in range(2))
    layout = unswizzled_layout(2)
    count = draw(st.sampled_from([None, 2, 3]))
    lines, elements = [], {}
    whole = shape if count is None else (count, *shape)
    lines.append(f"%v0 = ttg.local_alloc : () -> {memdesc(whole, layout)}")
    elements["v0"] = (np.arange(prod(whole)).reshape(whole),) * 2
    value, current, alloc = "v0", shape, shape
    if count is not None:
        number = draw(st.integers(0, count - 1))
        lines.append(f"%i = arith.constant {number} : i32")
        lines.append(f"%v1 = ttg.memdesc_index %v0[%i] : {memdesc(whole, layout)} -> {memdesc(shape, layout)}")
        elements["v1"], value = (np.arange(prod(shape)).reshape(shape),) * 2, "v1"
    for step in range(draw(st.integers(0, 4))):
        name = f"w{step}"
        source, (origin, own) = memdesc(current, layout, alloc), elements[value]
        kind = draw(st.sampled_from(["trans", "reshape", "subslice"]))
        if kind == "trans":
            order = draw(st.permutations(range(len(current))))
            new = tuple(current[dim] for dim in order)
            layout = transposed_buffer_layout(layout, tuple(order))
            coordinates = np.unravel_index(own, alloc)
            alloc = tuple(alloc[dim] for dim in order)
            own = np.ravel_multi_index([coordinates[dim] for dim in order], alloc)
            lines.append(
                f"%{name} = ttg.memdesc_trans %{value} {{order = array<i32: {', '.join(map(str, order))}>}} : "
                f"{source} -> {memdesc(new, layout, alloc)}"
            )
            elements[name] = origin.transpose(order), own.transpose(order)
        elif kind == "reshape":
            if alloc != current:
                continue
            new = draw(st.sampled_from(shapes_of(prod(current))))
            layout = reshaped_buffer_layout(layout, current, BITS, new)
            alloc = new
            lines.append(f"%{name} = ttg.memdesc_reshape %{value} : {source} -> {memdesc(new, layout)}")
            elements[name] = origin.reshape(new), own.reshape(new)
        else:
            dim = draw(st.integers(0, len(current) - 1))
            if current[dim] < 2:
                continue
            half = current[dim] // 2
            offset = half * draw(st.integers(0, 1))
            new = (*current[:dim], half, *current[dim + 1 :])
            offsets = [offset if at == dim else 0 for at in range(len(current))]
            lines.append(
                f"%{name} = ttg.memdesc_subslice %{value}[{', '.join(map(str, offsets))}] : {source} -> "
                f"{memdesc(new, layout, alloc)}"
            )
            part = tuple(slice(first, first + size) for first, size in zip(offsets, new, strict=True))
            elements[name] = origin[part], own[part]
        value, current = name, new
    wanted = draw(st.sampled_from(candidates(alloc)))
    lines.append(
        f"%r = tlx.require_layout %{value} {{pin}} : {memdesc(current, layout, alloc)} -> "
        f"{memdesc(current, wanted, alloc)}"
    )
    lines.append("tt.return")
    return "tt.func @f() {\n  " + "\n  ".join(lines) + "\n}", elements, wanted, value


def shapes_of(count):
    """Shapes of one to three dimensions with so many elements."""
    powers = [1 << bit for bit in range(count.bit_length()) if count % (1 << bit) == 0]
    return [
        (count,),
        *((a, count // a) for a in powers if 1 < a < count),
        *((2, a, count // a // 2) for a in powers if 1 < a < count // 2),
    ]


def candidates(shape):
    rank = len(shape)
    found = [unswizzled_layout(rank)]
    if rank == 2:
        found += [SwizzledSharedLayout(4, 1, 4, (1, 0)), SwizzledSharedLayout(8, 2, 4, (0, 1))]
        for transposed in (False, True):
            tile = default_nvmma_layout(shape, BITS, transposed=transposed)
            if tile.swizzling_byte_width:
                found.append(tile)
    return found


@settings(deadline=None, max_examples=5000 if is_full() else 150)
@given(chains())
def test_views_follow_the_requirement(chain):
    text, elements, wanted, last = chain
    module = parse_module(text)
    try:
        PropagateLayoutPass().apply(make_context(), module)
    except CompilationError as error:
        # The one thing that is refused: `test_stock_triton_takes_the_same_views` knows that it is right.
        if "split the swizzle" in str(error):
            return
        raise
    verify_module(module)
    types = {}
    for op in module.walk():
        assert not isinstance(op, RequireLayoutOp)
        for result in op.results:
            if result.name_hint in elements:
                types[result.name_hint] = result.type
        if isinstance(op, MemDescIndexOp | MemDescSubsliceOp):
            assert op.result.type.encoding == op.src.type.encoding
    assert bare(types[last].encoding).data == wanted
    array = types["v0"]
    buffer = addresses(array.encoding, array.shape[-2:])
    for name, (origin, own) in elements.items():
        if name == "v0":
            continue
        type_ = types[name]
        assert (addresses(type_.encoding, type_.alloc_shape)[own] == buffer[origin]).all(), name


@pytest.mark.backend
def test_stock_triton_takes_the_same_views():
    """The pass infers for views, and takes of parts, what stock Triton does."""
    profile = profile_for(INSTALLED)

    @settings(deadline=None, max_examples=1000 if is_full() else 100, database=None, derandomize=True)
    @given(chains())
    def compare(chain):
        text = HEAD + chain[0].replace("tt.func @f", "tt.func public @f") + "\n}"
        module = parse_module(text)
        try:
            PropagateLayoutPass().apply(make_context(), module)
        except CompilationError as error:
            if "split the swizzle" not in str(error):
                raise
            module = parse_module(text)
            with mock.patch.object(propagate_layout, "_check_part"):
                PropagateLayoutPass().apply(make_context(), module)
            with pytest.raises(BackendError, match="splitting along the swizzling pattern"):
                compile_ttgir(print_module(module, profile=profile), OPTIONS, stages="ttgir")
            return
        compile_ttgir(print_module(module, profile=profile), OPTIONS, stages="ttgir")

    compare()


def addresses(encoding, shape):
    """The byte of each element of a buffer, by its row-major number."""
    return np.broadcast_to(shared_addresses(bare(encoding).data, shape, BITS), shape).ravel()


def test_the_chains_have_every_view():
    """The strategy is worth its time only if all kinds of views come up."""
    seen = set()

    @settings(deadline=None, max_examples=60, database=None)
    @given(chains())
    def collect(chain):
        seen.update(type(op) for op in parse_module(chain[0]).walk())

    collect()
    assert {MemDescIndexOp, MemDescReshapeOp, MemDescSubsliceOp, MemDescTransOp} <= seen
