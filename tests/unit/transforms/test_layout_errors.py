"""Layouts that contradict each other: both places are named, in the lines of the kernel."""

# covers: tlx-insert-require-layout, tlx-propagate-layout

import pytest

from tests.unit.frontend.kernels import HEADER, load
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text

FIRST_LINE = HEADER.count("\n") + 1


def error_of(tmp_path, body, target="sm_90a", **options):
    """Compile a kernel of a pointer with this body; return the error, and the lines that it names."""
    source = "@tlx_xdsl.jit\ndef kernel(ptr):\n" + "".join(f"    {line}\n" for line in body.strip().splitlines())
    kernel = load(tmp_path, source).kernel
    with pytest.raises(CompilationError) as caught:
        compile_text(source_of(kernel), Specialization({"ptr": "*fp16"}, target=target, **options))
    error = caught.value
    notes = [note.split(":")[1] for note in error.notes if ".py:" in note]
    lines = [error.location.line, *map(int, notes)]
    return str(error), [line - FIRST_LINE - 1 for line in lines]


def test_a_dot_against_the_layout_of_the_allocation(tmp_path):
    text, lines = error_of(
        tmp_path,
        """
a = tlx.local_alloc((64, 64), tl.float16, 1, layout=tlx.swizzled_layout(2, 3, 4))
b = tlx.local_alloc((64, 64), tl.float16, 1)
acc = tlx.async_dot(a[0], b[0])
""",
    )
    assert "a buffer can't have two layouts: operand A of a wgmma needs an nvmma_shared layout" in text
    assert "but elsewhere the user chose #ttg.swizzled_shared" in text
    assert lines == [3, 1, 1]


def test_two_required_layouts_for_one_buffer(tmp_path):
    text, lines = error_of(
        tmp_path,
        """
a = tlx.local_alloc((64, 64), tl.float16, 2)
x = tlx.require_layout(a[0], tlx.swizzled_layout(2, 3, 4))
y = tlx.require_layout(tlx.local_trans(a[1]), tlx.swizzled_layout(1, 3, 4))
""",
    )
    assert "a buffer can't have two layouts: this layout is asked for" in text
    assert lines == [3, 2, 1]


def test_a_layout_that_does_not_do_for_a_dot(tmp_path):
    text, lines = error_of(
        tmp_path,
        """
a = tlx.local_alloc((64, 64), tl.float16, 1)
x = tlx.require_layout(a[0], tlx.swizzled_layout(2, 3, 4))
acc = tlx.async_dot(a[0], a[0])
""",
    )
    assert "operand A of a wgmma needs an nvmma_shared layout, found #ttg.swizzled_shared" in text
    assert lines == [3, 2]


def test_products_of_one_cta_and_of_two_share_an_accumulator(tmp_path):
    text, lines = error_of(
        tmp_path,
        """
a = tlx.local_alloc((128, 64), tl.float16, 1)
b = tlx.local_alloc((64, 128), tl.float16, 1)
acc = tlx.local_alloc((128, 256), tl.float32, 1, tlx.storage_kind.tmem)
wide = tlx.local_alloc((64, 256), tl.float16, 1)
tlx.async_dot(a[0], b[0], acc[0], two_ctas=True)
tlx.async_dot(a[0], wide[0], acc[0])
""",
        target="sm_100a",
        cluster=(2, 1, 1),
    )
    assert "Expecting all dot ops to be 2cta together or 1cta together" in text
    assert lines == [6, 5]


def test_tensor_memory_that_nothing_explains(tmp_path):
    text, lines = error_of(
        tmp_path,
        """
x = 1
scales = tlx.local_alloc((128, 4), tl.uint8, 1, tlx.storage_kind.tmem)
""",
        target="sm_100a",
    )
    assert "DummyTMEMLayoutAttr was not resolved during layout propagation" in text
    assert lines == [2]


def test_padded_fp4_takes_its_bytes_in_shared_storage(tmp_path):
    """64 bytes of pairs a row take 128: the allocation is as large as the padded tile, and not half of it."""
    source = """
@tlx_xdsl.jit
def kernel(ptr):
    spec = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    pairs = tlx.local_alloc((128, 64), tl.uint8, 1, tlx.storage_kind.smem, spec)
    other = tlx.local_alloc((128, 32), tl.uint8, 1, tlx.storage_kind.smem, spec)
    spec.set_buffer_overlap(tlx.reuse_group(pairs, other))
    b = tlx.local_alloc((128, 128), tl.float8e4nv, 1)
    acc = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)
    scales = tlx.local_alloc((128, 4), tl.uint8, 1, tlx.storage_kind.tmem)
    tlx.async_dot_scaled(pairs[0], b[0], acc[0], scales[0], "e2m1", scales[0], "e4m3", use_acc=False)
"""
    kernel = load(tmp_path, source).kernel
    text = compile_text(source_of(kernel), Specialization({"ptr": "*fp16"}, target="sm_100a")).ttgir
    assert "ttg.local_alloc {alignment = 1024 : i32} : () -> !ttg.memdesc<16x1024xi8" in text
