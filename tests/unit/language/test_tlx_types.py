"""The classes of tlx outside of a kernel: read-only properties, and plain exceptions with their words."""

import re

import pytest

import tlx_xdsl.language as tl
from tlx_xdsl.language import tlx
from tlx_xdsl.language.tlx import reuse_group, reuse_group_type, storage_alias_spec, storage_kind

pytestmark = pytest.mark.quick


def buffer(shape=(64, 64), dtype=tl.float32, num=2, storage=storage_kind.smem):
    return tlx.buffered_tensor(None, dtype, shape, num, storage)


# --- storage_alias_spec ---------------------------------------------------------------------------------------------


def test_a_spec_without_a_size():
    spec = storage_alias_spec()
    assert (spec.storage, spec.buffer_size_bytes) == (storage_kind.smem, None)
    assert spec.type == tlx.storage_alias_spec_type(storage_kind.smem)


@pytest.mark.parametrize("size", [16384, tl.constexpr(16384)])
def test_a_spec_with_a_size(size):
    spec = storage_alias_spec(storage=storage_kind.tmem, buffer_size_bytes=size)
    assert (spec.storage, spec.buffer_size_bytes) == (storage_kind.tmem, 16384)
    assert repr(spec) == "storage_alias_spec(storage=tmem, size=16384)"
    assert repr(spec.type) == "storage_alias_spec<tmem, 16384>"


@pytest.mark.parametrize("name", ["storage", "buffer_size_bytes", "handle"])
def test_a_spec_is_immutable(name):
    spec = storage_alias_spec()
    with pytest.raises(AttributeError):
        setattr(spec, name, None)
    if name != "handle":
        with pytest.raises(AttributeError):
            setattr(spec.type, name, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"storage": storage_kind.smemCluster}, "smemCluster storage is not supported for storage_alias_spec"),
        ({"storage": "smem"}, "storage must be a tlx.storage_kind, got str"),
        ({"buffer_size_bytes": 0}, "buffer_size_bytes must be positive, got 0"),
        ({"buffer_size_bytes": tl.constexpr(-100)}, "buffer_size_bytes must be positive, got -100"),
        ({"buffer_size_bytes": 1.5}, "buffer_size_bytes must be a compile-time constant"),
    ],
)
def test_a_spec_refuses(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        storage_alias_spec(**arguments)
    with pytest.raises(ValueError, match=re.escape(message)):
        tlx.storage_alias_spec_type_class(None, **arguments)


def test_an_overlap_is_a_group():
    with pytest.raises(TypeError, match="overlap_def must be a reuse_group, got int"):
        storage_alias_spec().set_buffer_overlap(3)
    with pytest.raises(RuntimeError, match="only inside a kernel"):
        storage_alias_spec().set_buffer_overlap(reuse_group(buffer()))


def test_types_of_specs_are_equal_by_storage_and_size():
    kinds = [(storage_kind.smem, None), (storage_kind.smem, 64), (storage_kind.tmem, None), (storage_kind.tmem, 64)]
    types = [tlx.storage_alias_spec_type(*kind) for kind in kinds]
    assert len({type_.mangle() for type_ in types}) == len(set(types)) == 4
    assert types[1] == tlx.storage_alias_spec_type(*kinds[1])


# --- reuse_group ----------------------------------------------------------------------------------------------------


def test_a_group_is_shared_and_of_size_one_by_default():
    a, b = buffer(), buffer(dtype=tl.float16)
    group = reuse_group(a, b)
    assert group.args == (a, b)
    assert (group.group_type, group.group_size) == (reuse_group_type.shared, 1)


def test_groups_nest_with_any_kinds():
    a, b, c = buffer(), buffer(), buffer()
    # The subtiling of the design: a group of one in a group of the same kind.
    inner = reuse_group(reuse_group(a, group_size=2), b, group_type=reuse_group_type.distinct)
    outer = reuse_group(c, inner, group_type=tl.constexpr(reuse_group_type.shared), group_size=tl.constexpr(1))
    assert outer.args[1].args[0].group_size == 2
    assert inner.group_type is reuse_group_type.distinct


@pytest.mark.parametrize("name", ["args", "group_type", "group_size"])
def test_a_group_is_immutable(name):
    with pytest.raises(AttributeError):
        setattr(reuse_group(buffer()), name, None)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ([], {}, ValueError, "reuse_group requires at least one element"),
        ([buffer()], {"group_size": 0}, ValueError, "group_size must be a positive integer, got 0"),
        ([buffer()], {"group_size": 1.5}, ValueError, "group_size must be a positive integer, got 1.5"),
        ([buffer(), 3], {}, TypeError, "reuse_group elements must be buffered_tensor or reuse_group, got int"),
        ([buffer()], {"group_type": "shared"}, TypeError, "group_type must be a reuse_group_type, got str"),
    ],
)
def test_a_group_refuses(arguments, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        reuse_group(*arguments, **options)


def test_types_of_groups():
    shared, distinct = (tlx.reuse_group_ir_type(kind) for kind in reuse_group_type)
    assert shared != distinct
    assert shared == tlx.reuse_group_ir_type(reuse_group_type.shared)
    assert repr(distinct) == "reuse_group<distinct>"
    with pytest.raises(AttributeError):
        shared.group_kind = reuse_group_type.distinct
    with pytest.raises(TypeError, match="group_kind must be a reuse_group_type, got str"):
        tlx.reuse_group_ir_type("shared")


def test_the_kinds_are_those_of_the_design():
    assert {kind.value for kind in reuse_group_type} == {"shared", "distinct"}
    assert {kind.value for kind in storage_kind} == {"smem", "tmem", "smemCluster"}


def test_buffers_have_a_type():
    one, other = buffer(), buffer(num=3)
    assert (one.dtype, one.shape, one.type.num) == (tl.float32, (64, 64), 2)
    assert one.type == buffer().type
    assert one.type != other.type
    with pytest.raises(AttributeError):
        one.dtype = tl.float16


# --- layouts --------------------------------------------------------------------------------------------------------


def test_layouts_compare_by_their_numbers():
    one = tlx.swizzled_shared_layout_encoding.make_default(2)
    assert one == tlx.swizzled_shared_layout_encoding(1, 1, 1, [1, 0])
    assert one != tlx.swizzled_shared_layout_encoding(2, 1, 1, [1, 0])
    assert len({one, tlx.swizzled_shared_layout_encoding.make_default(2)}) == 1


def test_a_cute_layout_is_text_or_tuples():
    text = tlx.layout("((4, 8), (2, 2)) : ((2, 16), (1, 8))")
    assert text == tlx.layout(shape=((4, 8), (2, 2)), stride=((2, 16), (1, 8)))
    assert text.threads == ((4, 2), (8, 16))
    assert text.values == ((2, 1), (2, 8))


def test_padding_is_spelled_out():
    layout = tlx.padded_shared_layout_encoding.with_identity_for([(32, 4)], (2, 4), (1, 0))
    assert layout == tlx.padded_shared_layout_encoding.with_bases([(32, 4)], [(0, 1), (0, 2), (1, 0)], (2, 4))


def test_numbers_of_layouts_stand_in_lists_as_in_metas_tlx():
    layout = tlx.padded_shared_layout_encoding.with_bases([(32, 4)], [(0, 1), (0, 2), (1, 0)], (2, 4))
    assert (layout.intervals, layout.paddings, layout.order, layout.shape) == ([32], [4], [1, 0], [2, 4])
    assert (layout.offset_bases, layout.block_bases) == ([[0, 1], [0, 2], [1, 0]], [])
    assert len({layout, tlx.padded_shared_layout_encoding.with_identity_for([[32, 4]], [2, 4])}) == 1


def test_a_layout_of_a_swizzle_is_that_of_a_buffer():
    plain = tlx.layout(tlx.swizzled_layout.make_default(2))
    assert plain == tlx.swizzled_shared_layout_encoding.make_default(2)
    assert plain.order == [1, 0]
    assert tlx.layout(tlx.swizzled_layout(2, 3, 4)) == tlx.swizzled_layout(2, 3, 4)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tlx.layout(tlx.swizzled_layout(2), shape=(4, 8)), ValueError, "either a spec or shape and stride"),
        (
            lambda: tlx.padded_shared_layout_encoding.with_bases([(32, 4)], [(0, 1, 1)], (2, 4)),
            ValueError,
            "offset_bases must hold vectors of 2 integers",
        ),
        (lambda: tlx.layout("(4,8)"), ValueError, "expected a layout such as"),
        (lambda: tlx.layout("(4,8):(1,(2,3))"), ValueError, "must be nested alike"),
        (lambda: tlx.layout("(4,x):(1,2)"), ValueError, "expected a number or '(' at position 3 of '(4,x)'"),
        (lambda: tlx.layout("(4,8):(1,2))"), ValueError, "unexpected ')' after '(1,2)'"),
        (lambda: tlx.layout("(3,8):(1,2)"), ValueError, "a size must be a power of two, got 3"),
        (lambda: tlx.layout(), ValueError, "must be pairs, for the threads and for the values"),
        (lambda: tlx.layout("(4,8):(1,2)", shape=(4, 8)), ValueError, "either a spec or shape and stride"),
        (lambda: tlx.swizzled_layout(-1), ValueError, "bits must be an integer of at least 0, got -1"),
        (lambda: tlx.swizzled_shared_layout_encoding(1, 1, 1, (1, 2)), ValueError, "a permutation of the dimensions"),
        (
            lambda: tlx.swizzled_shared_layout_encoding(1, 1, 1, (1, 0), numCTAsPerCGA=(2, 1)),
            ValueError,
            "numCTAsPerCGA must be 1 along every dimension",
        ),
        (lambda: tlx.nv_mma_shared_layout_encoding((64,), (0,), tl.float16), ValueError, "of at least 2"),
        (lambda: tlx.nv_mma_shared_layout_encoding((64, 64), (1, 0), 16), TypeError, "elemType must be an element"),
        (lambda: tlx.tensor_memory_layout_encoding(32, 64), ValueError, "blockM must be 64 or 128, got 32"),
        (lambda: tlx.tensor_memory_layout_encoding(64, 64, 8), ValueError, "colStride must be 1, 2 or 4, got 8"),
        (lambda: tlx.tensor_memory_layout_encoding(64, 64, 1, 0), TypeError, "ctaMode must be a TMemCTAMode"),
        (lambda: tlx.shared_linear_layout_encoding([("a",)]), TypeError, "offset_bases must hold integers, got str"),
        (lambda: tlx.padded_shared_layout_encoding([], []), ValueError, "pairs of an interval and a padding"),
        (lambda: tlx.DummyRegisterLayoutEncoding((64,), 3), TypeError, "element_type must be an element type"),
    ],
)  # fmt: skip
def test_layouts_refuse(make, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make()


def test_types_of_opaque_values_have_names_of_their_own():
    names = [
        each.mangle()
        for num in (0, 1, 2)
        for each in (
            tlx.clc_response_type(num),
            tlx.mbarrier_type(num),
            tlx.mbarrier_type(num, is_warp_barrier=True),
            tlx.buffered_tensor_type(tl.int64, [1], num, tlx.storage_kind.smem),
            tlx.tensor_descriptor_ptr_type(num),
        )
    ]
    assert len(set(names)) == len(names)
    assert tlx.async_token_type() == tlx.async_token_type(3)
    assert tlx.tensor_descriptor_ptr_type(2) != tlx.tensor_descriptor_ptr_type(2, 64)


def test_a_task_outside_of_a_kernel_holds_what_it_is_given():
    task = tlx.async_task("default", registers=128, warp_group_start_id=1)
    assert (task.is_default, task.num_regs, task.warp_group_start_id) == (True, 128, 1)
    assert not tlx.async_task(num_warps=4).is_default
    with pytest.raises(ValueError, match="'num_regs' must be divisible by 8, found 25"):
        tlx.async_task(num_warps=1, num_regs=25)
    with pytest.raises(ValueError, match="mean the same"):
        tlx.async_task(num_warps=1, num_regs=24, registers=24)


def test_architectures_have_numbers():
    assert [tlx.cuda_parse_arch(name) for name in ("sm90", "sm_90a", "sm100")] == [90, 90, 100]
    assert not tlx.is_hip()
    with pytest.raises(ValueError, match="such as sm90, got 'gfx950'"):
        tlx.cuda_parse_arch("gfx950")
