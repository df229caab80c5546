"""Storage aliasing from a kernel to IR: the behaviour that the design of `storage_alias_spec` describes."""

# covers: tlx.memory, tlx.storage_alias

import re

import pytest

from tests.unit.frontend.kernels import compile_source, load
from tlx_xdsl import CompilationError
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.text.diagnostics import collected_diagnostics

pytestmark = pytest.mark.quick


def kernel(*lines: str) -> str:
    return "@tlx_xdsl.jit\ndef kernel(n, BLOCK: tl.constexpr = 64):\n" + "".join(f"    {line}\n" for line in lines)


def ttir(tmp_path, *lines, **constexprs):
    return compile_source(tmp_path, kernel(*lines), {"n": "i32"}, **constexprs)


def lowered(tmp_path, *lines) -> str:
    """The kernel after all passes."""
    return compile_text(load(tmp_path, kernel(*lines)).kernel.source, Specialization({"n": "i32"})).ttgir


SPEC = "spec = tlx.storage_alias_spec()"
F32 = "a = tlx.local_alloc((64, 64), tl.float32, 2, tlx.storage_kind.smem, reuse=spec)"
BF16 = "b = tlx.local_alloc((64, 64), tl.bfloat16, 2, tlx.storage_kind.smem, reuse=spec)"


def test_the_size_is_that_of_the_largest_allocation(tmp_path):
    # 2 * 64 * 64 * 4 bytes and half of that.
    text = lowered(tmp_path, SPEC, F32, BF16, "tlx.local_store(b[0], tlx.local_load(a[0]).to(tl.bfloat16))")
    allocations = re.findall(r"ttg\.local_alloc.*?: \(\) -> !ttg\.memdesc<([0-9x]+)x(i8|f32|bf16)", text)
    ((shape, element),) = allocations
    size = {"i8": 1, "f32": 4, "bf16": 2}[element]
    for extent in shape.split("x"):
        size *= int(extent)
    assert size == 32768


def test_an_explicit_size_that_is_too_small_is_refused(tmp_path):
    with pytest.raises(CompilationError, match=r"buffer_size_bytes 16384 is too small.*requires at least 32768 bytes"):
        lowered(tmp_path, "spec = tlx.storage_alias_spec(buffer_size_bytes=16384)", F32, "tlx.local_load(a[0])")


def test_an_explicit_size_may_be_larger(tmp_path):
    text = ttir(tmp_path, "spec = tlx.storage_alias_spec(buffer_size_bytes=65536)", F32)
    assert "tlx.storage_alias_spec storage = smem, size = 65536 : !tlx.storage_alias_spec<smem, 65536>" in text
    lowered(tmp_path, "spec = tlx.storage_alias_spec(buffer_size_bytes=65536)", F32, "tlx.local_load(a[0])")


def test_a_constexpr_is_a_size(tmp_path):
    text = ttir(tmp_path, "spec = tlx.storage_alias_spec(buffer_size_bytes=tl.constexpr(BLOCK * 128))", BLOCK=64)
    assert "size = 8192" in text


@pytest.mark.parametrize("name", ["storage", "buffer_size_bytes"])
def test_properties_are_read_only(tmp_path, name):
    with pytest.raises(CompilationError, match="the attributes of a storage_alias_spec can't be assigned") as error:
        ttir(tmp_path, SPEC, f"spec.{name} = 1024")
    assert error.value.location.line == 8


def test_a_spec_has_no_buffers_to_index(tmp_path):
    with pytest.raises(CompilationError, match="a storage_alias_spec can't be indexed"):
        ttir(tmp_path, SPEC, "spec[0]")


def test_all_allocations_of_a_spec_are_peers(tmp_path):
    text = ttir(tmp_path, SPEC, BF16, F32)
    assert len(re.findall(r"tlx\.storage_alias_local_alloc %spec", text)) == 2
    assert "local_alias" not in text


def test_reuse_of_an_allocation_still_works(tmp_path):
    with collected_diagnostics() as found:
        text = ttir(
            tmp_path,
            "a = tlx.local_alloc((64, 64), tl.float32, 2)",
            "b = tlx.local_alloc((64, 64), tl.bfloat16, 4, reuse=a)",
        )
    assert re.search(r"%b = tlx\.local_alias %a : .*2x64x64xf32.* -> .*4x64x64xbf16", text)
    assert [(d.severity, d.location.line) for d in found] == [("remark", 8)]


def test_the_kinds_of_a_tree_need_not_alternate(tmp_path):
    text = ttir(tmp_path, SPEC, F32, "tlx.reuse_group(tlx.reuse_group(a, group_size=2))")
    assert text.count("group_kind = shared") == 2


@pytest.mark.parametrize("block", [64, 128])
def test_the_tree_may_depend_on_a_constexpr(tmp_path, block):
    text = ttir(
        tmp_path,
        SPEC,
        "a = tlx.local_alloc((BLOCK, 64), tl.float32, 2, reuse=spec)",
        "kind: tl.constexpr = tlx.reuse_group_type.shared if BLOCK >= 128 else tlx.reuse_group_type.distinct",
        "spec.set_buffer_overlap(tlx.reuse_group(a, group_type=kind))",
        BLOCK=block,
    )
    assert f"group_kind = {'shared' if block == 128 else 'distinct'}" in text


def test_a_group_of_another_spec_is_refused(tmp_path):
    with pytest.raises(
        CompilationError, match="all allocations in the reuse_group must reference the same storage_alias_spec"
    ) as error:
        ttir(tmp_path, SPEC, F32, "other = tlx.storage_alias_spec()", "other.set_buffer_overlap(tlx.reuse_group(a))")
    assert error.value.location.line == 10
    assert isinstance(error.value.__cause__, ValueError)


def test_a_second_overlap_is_refused(tmp_path):
    overlap = "spec.set_buffer_overlap(tlx.reuse_group(a))"
    with pytest.raises(CompilationError, match="each spec can only have one overlap definition"):
        lowered(tmp_path, SPEC, F32, overlap, overlap)


def test_an_unused_spec_warns_and_disappears(tmp_path):
    with collected_diagnostics() as found:
        text = lowered(tmp_path, SPEC)
    assert "storage_alias" not in text
    assert [d.severity for d in found] == ["warning"]
    assert "no referencing storage_alias_local_alloc" in found[0].message


def test_specs_and_groups_pass_through_helpers_and_tasks(tmp_path):
    source = """
@tlx_xdsl.jit
def overlap(spec, a, b):
    spec.set_buffer_overlap(tlx.reuse_group(a, b))


@tlx_xdsl.jit
def kernel(n):
    spec = tlx.storage_alias_spec()
    a = tlx.local_alloc((64, 64), tl.float32, 2, reuse=spec)
    b = tlx.local_alloc((64, 64), tl.float16, 2, reuse=spec)
    overlap(spec, a, b)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.local_store(a[n], tl.zeros((64, 64), tl.float32))
        with tlx.async_task(num_warps=4):
            tlx.local_store(b[n], tl.zeros((64, 64), tl.float16))
"""
    text = compile_source(tmp_path, source, {"n": "i32"})
    assert "tlx.set_buffer_overlap(%spec, " in text
    assert re.search(r"ttg\.warp_specialize\(%\w+, %\w+\)", text)


def test_values_have_the_classes_of_the_language(tmp_path):
    checks = [
        ("tlx.local_alloc((64,), tl.float32, 1)", "tlx.buffered_tensor"),
        ("tlx.alloc_barriers(1)", "tlx.mbarrier"),
        ("tlx.allocate_tensor_descriptor(1)", "tlx.tensor_descriptor_ptr"),
        ("tlx.async_load_commit_group()", "tlx.async_token"),
        ("tlx.storage_alias_spec()", "tlx.storage_alias_spec_type_class"),
    ]
    lines = [f"tl.static_assert(isinstance({make}, {cls}))" for make, cls in checks]
    ttir(tmp_path, *lines, "tl.static_assert(not isinstance(n, tlx.mbarrier))")


def test_values_pass_through_loops_and_calls(tmp_path):
    source = """
@tlx_xdsl.jit(noinline=True)
def release(bars, index):
    tlx.barrier_arrive(bars[index])


@tlx_xdsl.jit
def kernel(ptr, n):
    bufs = tlx.local_alloc((64,), tl.float32, 2)
    bars = tlx.alloc_warp_barrier(2)
    room = tlx.allocate_tensor_descriptor(2)
    token = tlx.async_load_commit_group()
    desc = tlx.make_tensor_descriptor(room[0], ptr, [n], [1], [64])
    bar = bars[0]
    for i in range(n):
        copied = tlx.async_load(ptr + tl.arange(0, 64), bufs[i % 2])
        token = tlx.async_load_commit_group([copied])
        desc = tlx.make_tensor_descriptor(room[i % 2], ptr, [n], [1], [64])
        bar = bars[i % 2]
        release(bars, i % 2)
    tlx.barrier_arrive(bar)
    x = tlx.local_load(bufs[0], tlx.async_load_wait_group(0, [token]))
    tlx.async_descriptor_store(desc, bufs[1], [0])
"""
    text = compile_source(tmp_path, source, {"ptr": "*fp32", "n": "i32"})
    assert re.search(r"iter_args\(.*\) -> \(.*!ttg\.async\.token.*\)", text)
    # Each thread still arrives for itself: after the loop, and in the function.
    assert text.count("tlx.arrive_per_thread") == 2
