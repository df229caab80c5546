"""Parameter blocks, tensor maps and launch configurations, recorded by a fake driver."""

import gc
import math
import struct
import types
import weakref

import pytest

from tlx_xdsl.runtime import ArgumentSpec, CudaDriverError, Launcher, TensorDescriptor
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver

pytestmark = pytest.mark.quick

META = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [128, 64], "fp4_padded": False}
DESCRIPTOR = "tensordesc<fp16[128, 64]>"
MAP = b"\xff" * 128
NULL = bytes(8)


class Bench:
    """A launcher for one signature on a fake driver that knows the parameters' sizes."""

    def __init__(self, make_cuda, arguments, sizes, *, cuda_options=None, **options):
        self.cuda = make_cuda(parameter_sizes=[*sizes, 8, 8], **(cuda_options or {}))
        settings = {"name": "kernel", "num_warps": 4, "shared": 0, "driver": CudaDriver(self.cuda.library)}
        self.launcher = Launcher(b"\x7fELF\x00cubin", arguments=arguments, **(settings | options))

    def launch(self, *args, grid=(1,), **options):
        self.launcher(grid, *args, **options)
        return self.cuda.launches[-1]


@pytest.fixture
def bench(make_cuda):
    def make(arguments, sizes, **options):
        return Bench(make_cuda, arguments, sizes, **options)

    return make


def numbered(*types_):
    return [ArgumentSpec(f"arg{i}", type_) for i, type_ in enumerate(types_)]


# --- scratch memory ---------------------------------------------------------------------------------------


def scratch_address(launch):
    """The first of the two addresses after the arguments."""
    return struct.unpack("<Q", launch.parameters[-2])[0]


def test_every_cta_has_its_scratch_memory_and_launches_of_a_stream_share_it(bench):
    b = bench(numbered("i32"), [4], global_scratch_size=128)
    first = scratch_address(b.launch(1, grid=(3, 2)))
    assert b.cuda.memory == {first: 3 * 2 * 128}
    assert scratch_address(b.launch(1, grid=(2, 1))) == first
    other = scratch_address(b.launch(1, grid=(2, 1), stream=7))
    assert other != first
    assert b.cuda.memory == {first: 768, other: 256}
    assert b.cuda.launches[-1].parameters[-1] == NULL


def test_scratch_memory_grows_and_stays_for_bound_launches(bench):
    b = bench(numbered("i32"), [4], global_scratch_size=128)
    bound = b.launcher.bind(2, 1)
    (small,) = b.cuda.memory
    large = scratch_address(b.launch(1, grid=5))
    assert b.cuda.memory == {small: 256, large: 640}
    bound()
    assert scratch_address(b.cuda.launches[-1]) == small
    del bound
    gc.collect()
    assert b.cuda.memory == {large: 640}
    del b.launcher
    gc.collect()
    assert b.cuda.memory == {}


def test_kernels_without_scratch_memory_allocate_none(bench):
    b = bench(numbered("i32"), [4])
    assert scratch_address(b.launch(1)) == 0
    assert not b.cuda.memory


# --- the parameter block ----------------------------------------------------------------------------------


def test_pointers_numbers_and_the_two_scratch_addresses(bench, make_tensor):
    b = bench(numbered("*fp16", "i32", "fp32"), [8, 4, 4])
    launch = b.launch(make_tensor(address=0x1230), 7, 0.5)
    assert launch.parameters == [
        struct.pack("<Q", 0x1230),
        struct.pack("<i", 7),
        struct.pack("<f", 0.5),
        NULL,
        NULL,
    ]


def test_descriptor_becomes_map_shape_and_strides(bench, make_tensor):
    b = bench(numbered("i32", DESCRIPTOR, "i64"), [4, 128, 4, 4, 8, 8, 8], tensordesc_meta=[META])
    descriptor = TensorDescriptor.from_tensor(make_tensor(rows=512, columns=256), [128, 64])
    launch = b.launch(1, descriptor, 2)
    assert launch.parameters == [
        struct.pack("<i", 1),
        MAP,
        struct.pack("<i", 512),
        struct.pack("<i", 256),
        struct.pack("<q", 256),
        struct.pack("<q", 1),
        struct.pack("<q", 2),
        NULL,
        NULL,
    ]


@pytest.mark.parametrize(
    ("type_", "value", "data"),
    [
        ("i1", True, b"\x01"),
        ("u1", 0, b"\x00"),
        ("i8", -1, b"\xff"),
        ("u8", 255, b"\xff"),
        ("i16", -2, b"\xfe\xff"),
        ("u16", 65535, b"\xff\xff"),
        ("i32", -(2**31), b"\x00\x00\x00\x80"),
        ("u32", 2**32 - 1, b"\xff" * 4),
        ("i64", -1, b"\xff" * 8),
        ("u64", 2**64 - 1, b"\xff" * 8),
        ("fp16", 1.0, b"\x00\x3c"),
        ("bf16", 1.0, b"\x80\x3f"),
        ("bf16", 1 + 2**-8, b"\x80\x3f"),  # a tie goes to the even neighbour, below
        ("bf16", 1 + 3 * 2**-8, b"\x82\x3f"),  # and here above
        ("bf16", math.inf, b"\x80\x7f"),
        ("bf16", math.nan, b"\xc0\x7f"),
        ("fp32", 2, struct.pack("<f", 2.0)),
        ("f32", -math.inf, struct.pack("<f", -math.inf)),
        ("fp64", 0.1, struct.pack("<d", 0.1)),
        ("*i8", None, NULL),
        ("*i8", 0xFFFF_0000_0000_0000, struct.pack("<Q", 0xFFFF_0000_0000_0000)),
    ],
)
def test_one_argument(bench, type_, value, data):
    assert bench(numbered(type_), [len(data)]).launch(value).parameters[0] == data


@pytest.mark.parametrize(
    ("type_", "value"), [("*fp16:16", 0x1230), ("*fp16:16", None), ("i64:16", -32), ("*kfp16:2", 6)]
)
def test_multiples_that_the_kernel_was_compiled_for(bench, type_, value):
    assert bench(numbered(type_), [8]).launch(value).parameters[0] == struct.pack("<q", value or 0)


def test_pointer_to_constant_memory_and_empty_tensor(bench, make_tensor):
    b = bench(numbered("*kfp16"), [8], cuda_options={"host_addresses": {0}})
    assert b.launch(make_tensor(address=0)).parameters[0] == NULL


# --- tensor maps ------------------------------------------------------------------------------------------


def encode(bench, descriptor, type_=DESCRIPTOR, **meta):
    rank = type_.count(",") + 1
    b = bench(numbered(type_), [128, *[4] * rank, *[8] * rank], tensordesc_meta=[META | meta])
    b.launch(descriptor)
    return b.cuda.tensor_maps[0]


def test_tensor_map_of_a_row_major_matrix(bench, make_tensor):
    """Dimensions from the innermost out; the innermost stride is not passed; strides in bytes."""
    descriptor = TensorDescriptor.from_tensor(make_tensor(rows=512, columns=256), [128, 64])
    assert encode(bench, descriptor) == {
        "dtype": 6,  # FLOAT16
        "address": 0x7000_0000,
        "shape": [256, 512],
        "strides": [512],
        "box": [64, 128],
        "steps": [1, 1],
        "swizzle": 3,
        "fixed": (0, 2),
        "fill": 0,
    }


def test_tensor_map_of_rank_3_with_gaps(bench, make_tensor):
    descriptor = TensorDescriptor(make_tensor(), [4, 100, 60], [8192, 80, 1], [1, 64, 32])
    found = encode(bench, descriptor, "tensordesc<fp16[1, 64, 32]>", block_size=[1, 64, 32], swizzle=2)
    assert (found["shape"], found["strides"], found["box"]) == ([60, 100, 4], [160, 16384], [32, 64, 1])


def test_tensor_map_of_rank_1(bench, make_tensor):
    descriptor = TensorDescriptor(make_tensor(), [1000], [1], [256])
    found = encode(bench, descriptor, "tensordesc<fp16[256]>", block_size=[256], swizzle=0)
    assert (found["shape"], found["strides"], found["box"]) == ([1000], [], [256])


def test_box_is_the_compilers_not_the_block(bench, make_tensor):
    """A 64x128 fp16 tile is wider than the 128 B swizzle span: the compiler copies it in two boxes."""
    descriptor = TensorDescriptor.from_tensor(make_tensor(), [64, 128])
    assert encode(bench, descriptor, "tensordesc<fp16[64, 128]>", block_size=[64, 64])["box"] == [64, 64]


def test_nan_padding(bench, make_tensor):
    assert encode(bench, TensorDescriptor.from_tensor(make_tensor(), [128, 64], "nan"))["fill"] == 1


@pytest.mark.parametrize(("compiler", "driver"), [(0, 0), (7, 7), (8, 10), (9, 8), (10, 9), (11, 11), (15, 15)])
def test_element_type_numbers_differ_between_compiler_and_driver(bench, make_tensor, compiler, driver):
    descriptor = TensorDescriptor.from_tensor(make_tensor(), [128, 64])
    assert encode(bench, descriptor, elem_type=compiler)["dtype"] == driver


def test_rounding_to_tf32(bench, make_tensor):
    tensor = make_tensor(dtype="torch.float32", itemsize=4)
    descriptor = TensorDescriptor.from_tensor(tensor, [128, 32], round_f32_to_tf32=True)
    type_ = "tensordesc<fp32[128, 32]>"
    assert encode(bench, descriptor, type_, elem_type=7, elem_size=4, block_size=[128, 32])["dtype"] == 11


def test_packed_fp4_counts_elements_in_the_map_but_bytes_in_the_arguments(bench, make_tensor):
    tensor = make_tensor(dtype="torch.uint8", itemsize=1)
    b = bench(
        numbered("tensordesc<u8[128, 64]>"),
        [128, 4, 4, 8, 8],
        tensordesc_meta=[META | {"elem_type": 14, "elem_size": 1, "fp4_padded": True}],
    )
    launch = b.launch(TensorDescriptor.from_tensor(tensor, [128, 64]))
    assert b.cuda.tensor_maps[0]["shape"] == [512, 512]
    assert launch.parameters[2] == struct.pack("<i", 256)


def test_tritons_descriptor_is_accepted(bench, make_tensor):
    """Triton 3.6's class has neither our type nor `round_f32_to_tf32`; only the attributes count."""
    tensor = make_tensor()
    descriptor = types.SimpleNamespace(
        base=tensor, shape=tensor.shape, strides=tensor.stride(), block_shape=[128, 64], padding="zero"
    )
    assert encode(bench, descriptor)["shape"] == [256, 512]


# --- the launch -------------------------------------------------------------------------------------------


def test_grid_block_shared_and_stream(bench):
    b = bench([], [], num_warps=12, shared=40_000)
    launch = b.launch(grid=(6, 5), stream=0xBEEF)
    assert (launch.grid, launch.block, launch.shared) == ((6, 5, 1), (384, 1, 1), 40_000)
    assert (launch.stream, launch.attributes, launch.function) == (0xBEEF, [], 0xF0)


def test_stream_defaults_to_the_legacy_one_and_may_be_torchs(bench):
    b = bench([], [])
    assert b.launch(grid=3).stream is None
    assert b.launch(stream=types.SimpleNamespace(cuda_stream=0x51)).stream == 0x51
    with pytest.raises(TypeError, match="stream: expected an integer"):
        b.launch(stream="0")


def test_cluster_attribute(bench):
    b = bench([], [], cluster=(2, 1, 1))
    assert b.launch(grid=(132,)).attributes == [(4, (2, 1, 1))]
    assert b.cuda.function_attributes == []


def test_large_cluster_is_opted_in(bench):
    b = bench([], [], cluster=[4, 4, 1])
    b.launch(grid=(4, 4))
    assert b.cuda.function_attributes == [(14, 1)]


def test_dependent_and_cooperative_launch(bench):
    b = bench([], [], launch_pdl=True, launch_cooperative_grid=True)
    assert [(id_, value[0]) for id_, value in b.launch().attributes] == [(6, 1), (2, 1)]


@pytest.mark.parametrize(("shared", "attributes"), [(48 * 1024, []), (48 * 1024 + 16, [(8, 48 * 1024 + 16)])])
def test_shared_memory_above_48_kib_is_asked_for(bench, shared, attributes):
    b = bench([], [], shared=shared)
    b.launch()
    assert b.cuda.function_attributes == attributes
    assert b.cuda.counts["cuFuncSetCacheConfig"] == len(attributes)


def test_shared_memory_beyond_the_device(bench):
    b = bench([], [], shared=262144)
    with pytest.raises(CudaDriverError, match=r"needs 262144 bytes of shared memory per CTA, this GPU offers 232448"):
        b.launch()


def test_loaded_once_per_context(bench):
    b = bench([], [])
    b.launch()
    b.launch()
    assert len(b.cuda.loaded) == 1
    b.cuda.context = 0xAAA  # torch switched to another GPU
    b.launch()
    assert len(b.cuda.loaded) == 2


def test_making_a_launcher_touches_no_driver(bench):
    assert not bench([], []).cuda.counts


def test_empty_grid_launches_nothing(bench):
    b = bench([], [])
    b.launcher((4, 0))
    b.launcher.bind(0)()
    assert not b.cuda.counts


def test_failed_launch_says_which_kernel(bench):
    b = bench([], [], cuda_options={"failures": {"cuLaunchKernelEx": 700}})
    with pytest.raises(CudaDriverError, match=r"cuLaunchKernelEx failed: .*kernel 'kernel', grid \(2, 1, 1\)"):
        b.launcher((2,))


# --- binding ----------------------------------------------------------------------------------------------


def test_bound_launch_repeats_without_further_calls(bench, make_tensor):
    b = bench(numbered(DESCRIPTOR, "i32"), [128, 4, 4, 8, 8, 4], tensordesc_meta=[META], cluster=(2, 1, 1))
    run = b.launcher.bind((4,), TensorDescriptor.from_tensor(make_tensor(), [128, 64]), 5)
    assert not b.cuda.launches
    before = dict(b.cuda.counts)
    gc.collect()
    run()
    run()
    assert b.cuda.launches[0] == b.cuda.launches[1]
    assert b.cuda.launches[0].attributes == [(4, (2, 1, 1))]
    assert b.cuda.launches[0].parameters[0] == MAP
    assert b.cuda.counts - type(b.cuda.counts)(before) == {"cuLaunchKernelEx": 2}


def test_bound_launch_keeps_its_tensors_alive(bench, make_tensor):
    b = bench(numbered("*fp16"), [8])
    tensor = make_tensor()
    alive = weakref.ref(tensor)
    run = b.launcher.bind((1,), tensor)
    del tensor
    gc.collect()
    assert alive() is not None
    del run
    gc.collect()
    assert alive() is None


def test_two_bound_launches_do_not_share_memory(bench):
    b = bench(numbered("i32"), [4])
    first, second = b.launcher.bind(1, 10), b.launcher.bind(1, 20)
    first()
    second()
    first()
    assert [launch.parameters[0][0] for launch in b.cuda.launches] == [10, 20, 10]


# --- errors -----------------------------------------------------------------------------------------------


def test_wrong_number_of_arguments(bench):
    with pytest.raises(TypeError, match=r"kernel 'kernel': expected 2 arguments \(arg0, arg1\), got 1"):
        bench(numbered("i32", "i32"), [4, 4]).launch(1)


@pytest.mark.parametrize(
    ("type_", "value", "error", "message"),
    [
        (
            "i32",
            1.5,
            TypeError,
            "argument 1, 'arg0' of kernel 'kernel': expected an integer (i32), got float",
        ),
        ("i32", 2**31, OverflowError, "expected -2147483648 to 2147483647 (i32), got 2147483648"),
        ("u8", -1, OverflowError, "expected 0 to 255 (u8), got -1"),
        ("i1", 2, OverflowError, "expected 0 to 1 (i1), got 2"),
        ("fp32", "1", TypeError, "expected a number (fp32), got str"),
        ("fp16", 1e6, OverflowError, "expected a finite fp16, got 1000000.0"),
        ("bf16", 1e300, OverflowError, "expected a finite bf16, got 1e+300"),
        ("*fp16", "x", TypeError, "expected a tensor, an address or None (*fp16), got str"),
        (
            "*fp16:16",
            0x1238,
            ValueError,
            "compiled for an address (*fp16) that is a multiple of 16, got 0x1238, 8 past",
        ),
        ("i32:8", -4, ValueError, "compiled for a number (i32) that is a multiple of 8, got -4, 4 past one"),
    ],
)
def test_wrong_value(bench, type_, value, error, message):
    with pytest.raises(error) as caught:
        bench(numbered(type_), SIZES[type_]).launch(value)
    assert message in str(caught.value)


SIZES = {
    "i32:8": [4],
    "*fp16:16": [8],
    "i32": [4],
    "u8": [1],
    "i1": [1],
    "fp32": [4],
    "fp16": [2],
    "bf16": [2],
    "*fp16": [8],
}


def test_tensor_of_another_type(bench, make_tensor):
    with pytest.raises(TypeError, match="expected elements of type fp16, got bf16"):
        bench(numbered("*fp16"), [8]).launch(make_tensor(dtype="torch.bfloat16"))


def test_tensor_in_host_memory(bench, make_tensor):
    b = bench(numbered("*fp16"), [8], cuda_options={"host_addresses": {0x7000_0000}})
    with pytest.raises(TypeError, match=r"'arg0' .*expected a tensor in GPU memory, got one on cpu"):
        b.launch(make_tensor(device="cpu"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda t: t(), "expected a TensorDescriptor .*, got FakeTensor2D"),
        (lambda t: describe(t(), [64, 64]), r"expected block_shape \[128, 64\], got \[64, 64\]"),
        (lambda t: describe(t(dtype="torch.bfloat16")), "expected elements of type fp16, got bf16"),
        (lambda t: describe(t(dtype="unheard of", itemsize=4)), "expected elements of 2 bytes, got 4"),
    ],
)
def test_wrong_descriptor(bench, make_tensor, value, message):
    b = bench(numbered(DESCRIPTOR), [128, 4, 4, 8, 8], tensordesc_meta=[META])
    with pytest.raises(TypeError, match=message):
        b.launch(value(make_tensor))


def describe(tensor, block_shape=(128, 64)):
    return TensorDescriptor.from_tensor(tensor, block_shape)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ((), r"kernel 'kernel': expected a grid of one to three numbers of programs, .*found \(\)"),
        ((1, 1, 1, 1), r"expected a grid .*found \(1, 1, 1, 1\)"),
        ((2, 65536), r"each from 0 to 2,147,483,647 \(along y and z to 65,535\), found \(2, 65536\)"),
        ((-2,), r"expected a grid .*found \(-2,\)"),
        ((3,), "multiple of the cluster's 2 CTAs in x, got 3"),
    ],
)
def test_wrong_grid(bench, grid, message):
    with pytest.raises(ValueError, match=message):
        bench([], [], cluster=(2, 1, 1)).launch(grid=grid)


def test_signature_that_is_not_the_cubins(bench):
    """The driver would read past the end of our list with too few parameters."""
    b = bench(numbered("i32"), [4, 4])
    with pytest.raises(ValueError, match=r"makes parameters of \[4, 8, 8\] bytes, the cubin declares \[4, 4, 8"):
        b.launch(1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_warps": 0}, ValueError, "num_warps of 1 to 32, got 0"),
        ({"num_warps": 33}, ValueError, "num_warps of 1 to 32, got 33"),
        ({"shared": -1}, ValueError, "shared of 0 bytes or more"),
        ({"cluster": (2, 1)}, ValueError, "cluster as three positive numbers"),
        ({"cluster": (0, 1, 1)}, ValueError, "cluster as three positive numbers"),
        ({"global_scratch_size": 128, "launch_pdl": True}, NotImplementedError, "share with its predecessor"),
        ({"global_scratch_size": -1}, ValueError, "global_scratch_size of 0 bytes or more, got -1"),
        ({"profile_scratch_size": 64}, NotImplementedError, "64 bytes of profile scratch"),
        ({"arguments": numbered("constexpr")}, ValueError, "argument 1, 'arg0' .*got 'constexpr'"),
        ({"arguments": numbered(DESCRIPTOR)}, ValueError, "its 1 tensor descriptors, got 0 entries"),
        ({"tensordesc_meta": [META]}, ValueError, "its 0 tensor descriptors, got 1 entries"),
    ],
)
def test_launchers_that_cannot_work(options, error, message):
    settings = {"name": "kernel", "arguments": [], "num_warps": 4, "shared": 0}
    with pytest.raises(error, match=message):
        Launcher(b"", **(settings | options))


@pytest.mark.parametrize(
    ("type_", "meta", "message"),
    [
        ("tensordesc<fp16>", {}, r"a type like tensordesc<fp16\[128, 64\]>"),
        ("tensordesc<fp16[128]>", {}, "as many as in block_size"),
        (DESCRIPTOR, {"is_im2col": True}, "im2col descriptors are not supported"),
        (DESCRIPTOR, {"elem_type": 16}, "elem_type 0 to 15, got 16"),
        (DESCRIPTOR, {"swizzle": 4}, "swizzle 0 .*got 4"),
        (DESCRIPTOR, {"block_size": [512, 64]}, r"block_size entries of 1 to 256, got \[512, 64\]"),
    ],
)
def test_wrong_descriptor_metadata(type_, meta, message):
    with pytest.raises(ValueError, match=message):
        Launcher(b"", name="k", arguments=[("d", type_)], num_warps=4, shared=0, tensordesc_meta=[META | meta])


def test_missing_descriptor_metadata():
    meta = {key: META[key] for key in ("elem_size", "elem_type", "block_size")}
    with pytest.raises(ValueError, match="tensordesc_meta lacks swizzle, fp4_padded"):
        Launcher(b"", name="k", arguments=[("d", DESCRIPTOR)], num_warps=4, shared=0, tensordesc_meta=[meta])


def test_layout_of_a_gluon_descriptor_type_is_passed_over(bench, make_tensor):
    type_ = "tensordesc<fp16[128, 64],NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)>"
    b = bench(numbered(type_), [128, 4, 4, 8, 8], tensordesc_meta=[META])
    b.launch(describe(make_tensor()))
    assert b.cuda.tensor_maps[0]["box"] == [64, 128]
