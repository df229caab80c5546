"""The C launcher of bundles gives the driver what the one in Python gives it, and refuses what that refuses."""

import ctypes
import functools
import struct

import pytest

from tests.unit.runtime.bundle.bundles import CUBIN, META, CProgram, cuda_include, has_c_compiler, manifest, sizes_of
from tlx_xdsl.runtime import BundleError, TensorDescriptor
from tlx_xdsl.runtime.bundle.c_launcher import CLauncher
from tlx_xdsl.runtime.bundle.c_text import c_names
from tlx_xdsl.runtime.bundle.load import load
from tlx_xdsl.runtime.bundle.write import write_files
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver

pytestmark = [
    pytest.mark.skipif(not has_c_compiler(), reason="there is no gcc and g++"),
    pytest.mark.skipif(cuda_include() is None, reason="there is no cuda.h: stock Triton's wheel carries one"),
]

MATRIX = "tensordesc<fp16[128, 64]>"
INVALID_VALUE, NOT_INITIALIZED, NO_BINARY, ILLEGAL_ADDRESS = 1, 3, 209, 700


@pytest.fixture
def both(make_cuda, tmp_path):
    """Return what makes both launchers of one bundle, each with a fake driver of its own."""

    def make(*arguments, language="c", cuda_options=None, **changes):
        described = manifest(*arguments, **changes)
        write_files(tmp_path / "sample", described, {"cubin": CUBIN})
        fakes = [
            make_cuda(parameter_sizes=sizes_of(described), context=0xC0, **(cuda_options or {}))
            for _ in ("Python", "C")
        ]
        for cuda in fakes:
            cuda._cuTensorMapEncodeTiled = functools.partial(encode_numbered, cuda)
        python = load(tmp_path, driver=CudaDriver(fakes[0].library))
        return Both(*fakes, python, CProgram(tmp_path / "sample", fakes[1], described, language=language))

    return make


def encode_numbered(cuda, destination, *arguments):
    """Encode a tensor map that begins with its number, so that one is not taken for another."""
    type(cuda)._cuTensorMapEncodeTiled(cuda, destination, *arguments)
    ctypes.memset(destination, len(cuda.tensor_maps), 1)


class Both:
    def __init__(self, python_cuda, c_cuda, python, c):
        self.python_cuda, self.c_cuda = python_cuda, c_cuda
        self.python, self.c = python, c

    def launch(self, grid, *args, stream=0):
        """Launch with both, compare all that the drivers received, and return the launch."""
        self.python(grid, *args, stream=stream)
        assert self.c.load() == 0
        assert self.c.launch((*grid, 1, 1)[:3], *args, stream=stream) == 0, self.c.message()
        for what in ("loaded", "function_attributes", "tensor_maps", "launches"):
            assert getattr(self.c_cuda, what) == getattr(self.python_cuda, what), what
        for call in ("cuFuncSetCacheConfig", "cuLaunchKernelEx", "cuModuleLoadData"):
            assert self.c_cuda.counts[call] == self.python_cuda.counts[call], call
        return self.c_cuda.launches[-1]


# --- equal to the launcher in Python ------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["c", "c++"])
def test_everything_at_once(both, make_tensor, language):
    launchers = both(
        ("a", MATRIX, META),
        ("x", "*fp32:16"),
        ("const", "*kfp16"),
        ("n", "i32:16"),
        ("b", "tensordesc<fp16[1, 64, 32]>", META | {"block_size": [1, 64, 32], "swizzle": 2}),
        ("scale", "fp32"),
        language=language,
        cluster=[2, 1, 1],
        shared=100_000,
        num_warps=12,
        launch_pdl=True,
    )
    a = TensorDescriptor.from_tensor(make_tensor(rows=512, columns=256, address=0x7000_0100), [128, 64])
    b = TensorDescriptor(make_tensor(address=0x8000_0000), [4, 100, 60], [8192, 80, 1], [1, 64, 32])
    float_tensor = make_tensor(dtype="torch.float32", itemsize=4, address=0x1230)
    launch = launchers.launch((6, 5), a, float_tensor, make_tensor(address=0x77), 48, b, 0.5, stream=0xBEEF)
    assert (launch.grid, launch.block, launch.shared, launch.stream) == ((6, 5, 1), (384, 1, 1), 100_000, 0xBEEF)
    assert launch.attributes[1] == (4, (2, 1, 1))
    assert launch.parameters[5:8] == [struct.pack("<Q", 0x1230), struct.pack("<Q", 0x77), struct.pack("<i", 48)]
    assert [each["shape"] for each in launchers.c_cuda.tensor_maps] == [[256, 512], [60, 100, 4]]


@pytest.mark.parametrize("number", [0, 1])
def test_scalars(both, number):
    types = ["i1", "u1", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "fp32", "f32", "fp64"]
    launchers = both(*((f"v{index}", type_) for index, type_ in enumerate(types)))
    extremes = [True, 0, -128, 255, -(2**15), 2**16 - 1, -(2**31), 2**32 - 1, -(2**63), 2**64 - 1, 1.5, -2.5, 0.1]
    launch = launchers.launch((1,), *([0] * len(types) if number == 0 else extremes))
    if number:
        assert launch.parameters[:2] == [b"\x01", b"\x00"]
        assert launch.parameters[9] == b"\xff" * 8


def test_sixteen_bit_floats_are_passed_as_their_bits(both):
    launchers = both(("half", "fp16"), ("brain", "bf16"))
    launchers.c.load()
    launchers.python((1,), 1.0, 1.0)
    assert launchers.c.launch((1, 1, 1), 0x3C00, 0x3F80) == 0
    assert launchers.c_cuda.launches == launchers.python_cuda.launches


@pytest.mark.parametrize("version", [13010, 13020])
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (1024, 64), (1025, 64)])  # 128 KiB is the limit
def test_small_tensors_with_older_drivers(both, make_tensor, version, rows, columns):
    launchers = both(("a", MATRIX, META), cuda_options={"version": version})
    descriptor = TensorDescriptor.from_tensor(make_tensor(rows=rows, columns=columns), [128, 64])
    cleared = launchers.launch((1,), descriptor).parameters[0][1:] != b"\xff" * 127
    assert cleared == (version <= 13010 and rows <= 1024)


@pytest.mark.parametrize("elem_type", [8, 9, 10, 13, 15])
def test_element_types_have_other_numbers_in_the_driver(both, make_tensor, elem_type):
    launchers = both(("a", MATRIX, META | {"elem_type": elem_type, "swizzle": 1}))
    launchers.launch((1,), TensorDescriptor.from_tensor(make_tensor(), [128, 64]))


def test_packed_elements_and_one_dimension(both, make_tensor):
    meta = META | {"elem_type": 14, "elem_size": 1, "fp4_padded": True}
    line = META | {"block_size": [256], "swizzle": 0}
    launchers = both(("a", "tensordesc<u8[128, 64]>", meta), ("b", "tensordesc<fp16[256]>", line))
    packed = TensorDescriptor.from_tensor(make_tensor(dtype="torch.uint8", itemsize=1), [128, 64])
    launchers.launch((1,), packed, TensorDescriptor(make_tensor(), [1000], [1], [256]))
    assert [each["shape"] for each in launchers.c_cuda.tensor_maps] == [[512, 512], [1000]]


def test_wide_clusters_and_cooperative_grids(both):
    launchers = both(cluster=[4, 4, 1], launch_cooperative_grid=True)
    launch = launchers.launch((8, 4))
    assert [identifier for identifier, _ in launch.attributes] == [2, 4]
    assert launchers.c_cuda.function_attributes == [(14, 1)]


def test_ctas_that_share_a_tile_stand_along_x(both):
    launch = both(num_ctas=2, cluster=[2, 1, 1]).launch((3, 2))
    assert launch.grid == (6, 2, 1)
    assert launch.attributes == [(4, (2, 1, 1))]


def test_scratch_memory_is_allocated_in_the_stream(both, make_cuda):
    launchers = both(("n", "i32"), global_scratch_size=128)
    cuda, calls = launchers.c_cuda, []

    def allocate(out, size, stream):
        calls.append(("allocate", size, stream))
        out[0] = 0x5000_0000

    cuda._cuMemAllocAsync = allocate
    cuda._cuMemFreeAsync = lambda address, stream: calls.append(("free", address, stream))
    launchers.c.load()
    assert launchers.c.launch((3, 2, 1), 7, stream=0xBEEF) == 0
    assert calls == [("allocate", 3 * 2 * 128, 0xBEEF), ("free", 0x5000_0000, 0xBEEF)]
    assert cuda.launches[0].parameters[1:] == [struct.pack("<Q", 0x5000_0000), bytes(8)]
    launchers.python((3, 2), 7)
    assert launchers.python_cuda.memory == {
        launchers.python_cuda.counts["cuMemAlloc_v2"] * 0x10_0000 + 0x5000_0000: 768
    }


def test_an_empty_grid_launches_nothing(both):
    launchers = both(("n", "i32"))
    launchers.c.load()
    assert launchers.c.launch((4, 0, 1), 1) == 0
    assert not launchers.c_cuda.launches


# --- refusals -----------------------------------------------------------------------------------------------------


def refused(launchers, *args, grid=(1, 1, 1)):
    """The message of a launch that C and Python refuse, without a launch."""
    launchers.c.load()
    assert launchers.c.launch(grid, *args) == INVALID_VALUE
    with pytest.raises(BundleError, match=r"expected|compiled for"):
        launchers.python(grid, *args)
    assert not launchers.c_cuda.launches
    assert not launchers.python_cuda.launches
    return launchers.c.message()


def test_misaligned_address(both, make_tensor):
    launchers = both(("x", "*fp16:16"))
    assert "'x': the kernel was compiled for multiples of 16" in refused(launchers, make_tensor(address=0x1238))


@pytest.mark.parametrize("value", [17, -8])
def test_number_that_is_no_multiple(both, value):
    assert "multiples of 16" in refused(both(("n", "i32:16")), value)


def test_grid_that_is_no_multiple_of_the_cluster(both):
    message = refused(both(cluster=[1, 2, 1]), grid=(1, 3, 1))
    assert message == "gridY must be a multiple of the cluster's 2 CTAs"


def test_tensor_that_no_map_describes(both, make_tensor):
    launchers = both(("a", MATRIX, META))
    launchers.c.load()
    descriptor = TensorDescriptor.from_tensor(make_tensor(), [128, 64])
    descriptor.strides = [1, 512]
    assert launchers.c.launch((1, 1, 1), descriptor) == INVALID_VALUE
    assert "'a': the last dimension must be contiguous" in launchers.c.message()
    descriptor.strides, descriptor.shape = [256, 1], [512, 0]
    assert launchers.c.launch((1, 1, 1), descriptor) == INVALID_VALUE
    assert not launchers.c_cuda.launches


def test_a_launch_needs_a_load_in_its_context(both):
    launchers = both()
    assert launchers.c.launch((1, 1, 1)) == NOT_INITIALIZED
    assert launchers.c.message() == "sample_load was not called in the current CUDA context"
    assert launchers.c.load() == launchers.c.load() == 0
    assert len(launchers.c_cuda.loaded) == 1
    assert launchers.c.launch((1, 1, 1)) == 0
    launchers.c_cuda.context = 0xAAA
    assert launchers.c.launch((1, 1, 1)) == NOT_INITIALIZED
    assert launchers.c.load() == launchers.c.launch((1, 1, 1)) == 0
    assert launchers.c.unload() == launchers.c.unload() == 0
    assert launchers.c_cuda.counts["cuModuleUnload"] == 1
    assert launchers.c.launch((1, 1, 1)) == NOT_INITIALIZED
    launchers.c_cuda.context = 0xC0
    assert launchers.c.launch((1, 1, 1)) == 0


@pytest.mark.parametrize(("target", "fits"), [("sm_90a", True), ("sm_80", False), ("sm_100a", False)])
def test_another_gpu(both, tmp_path, make_cuda, target, fits):
    described = manifest(target=target)
    write_files(tmp_path / "sample", described, {"cubin": CUBIN})
    program = CProgram(tmp_path / "sample", make_cuda(context=0xC0), described)
    assert program.load() == (0 if fits else NO_BINARY)
    assert fits or program.message() == f"the kernel was compiled for {target}, which this GPU does not run"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("cuCtxGetDevice", "cuCtxGetDevice failed: is a CUDA context current in this thread?"),
        ("cuModuleLoadData", "cuModuleLoadData failed"),
        ("cuModuleGetFunction", "cuModuleGetFunction failed: kernel"),
        ("cuFuncSetAttribute", "the GPU refused 99999 bytes of shared memory for a CTA"),
        ("cuLaunchKernelEx", "cuLaunchKernelEx failed"),
        ("cuTensorMapEncodeTiled", "'a': cuTensorMapEncodeTiled refused the tensor"),
    ],
)
def test_what_the_driver_refuses_is_reported(both, make_tensor, call, said):
    launchers = both(("a", MATRIX, META), shared=99_999)
    launchers.c_cuda.failures[call] = ILLEGAL_ADDRESS
    status = launchers.c.load()
    if call in ("cuLaunchKernelEx", "cuTensorMapEncodeTiled"):
        assert status == 0
        status = launchers.c.launch((1, 1, 1), TensorDescriptor.from_tensor(make_tensor(), [128, 64]))
    else:
        assert launchers.c.launch((1, 1, 1), TensorDescriptor.from_tensor(make_tensor(), [128, 64])) == NOT_INITIALIZED
        launchers.c.load()
        loads = launchers.c_cuda.counts["cuModuleLoadData"]
        succeeded = 0 if call == "cuModuleLoadData" else loads
        assert launchers.c_cuda.counts["cuModuleUnload"] == succeeded
    assert (status, launchers.c.message()) == (ILLEGAL_ADDRESS, said)


# --- names --------------------------------------------------------------------------------------------------------

AWKWARD = ["register", "stream", "n", "n_shape", "new", "größe", "_X", "int32_t", "cuLaunchKernelEx", "fail", "NULL"]


@pytest.mark.parametrize("language", ["c", "c++"])
def test_awkward_names_compile(both, language):
    arguments = [(name, "i32") for name in AWKWARD]
    arguments[2] = ("n", "tensordesc<fp16[256]>", META | {"block_size": [256], "swizzle": 0})
    assert both(*arguments, language=language).c.load() == 0


def test_names_are_kept_where_they_can_be():
    assert c_names(["x", "out", "n_rows"]) == ["x", "out", "n_rows"]
    names = c_names([*AWKWARD, "arg_new"])
    assert len(set(names)) == len(names)
    assert names[4] == "arg_new"
    assert names[-1] == "arg_new_"


def test_the_header_says_what_to_pass():
    described = manifest(("größe", "fp16"), ("x", "*fp32:16"), constants={"NOTE": "*/ int"})
    header = CLauncher(described, CUBIN).header()
    assert " *   argument0: fp16 (größe in Python), as its bits" in header
    assert " *   x: *fp32:16, an address that is a multiple of 16" in header
    assert "NOTE = * / int" in header
