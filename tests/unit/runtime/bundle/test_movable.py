"""Launches whose tensors move: what the driver is given then."""

import struct

import pytest

from tlx_xdsl.runtime import ArgumentSpec, CudaDriverError, Launcher, TensorDescriptor
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver

META = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [128, 64], "fp4_padded": False}
DESCRIPTOR = "tensordesc<fp16[128, 64]>"
SIZES = [128, 4, 4, 8, 8, 8, 4, 8, 8]
ARGUMENTS = [ArgumentSpec("desc", DESCRIPTOR), ArgumentSpec("ptr", "*fp16:16"), ArgumentSpec("n", "i32")]


@pytest.fixture
def make(make_cuda, make_tensor):
    """Makes a launch of a descriptor, a pointer and a number on a fake driver; `columns` are those of both tensors."""

    def make(*, columns=256, version=13020, **options):
        cuda = make_cuda(parameter_sizes=SIZES, version=version)
        settings = {"name": "kernel", "num_warps": 4, "shared": 0, "driver": CudaDriver(cuda.library)}
        launcher = Launcher(b"\x7fELF\x00cubin", arguments=ARGUMENTS, tensordesc_meta=[META], **(settings | options))
        descriptor = TensorDescriptor.from_tensor(make_tensor(columns=columns), [128, 64])
        return launcher.movable((4, 2), descriptor, make_tensor(address=0x1000), 7), cuda

    return make


def addresses(launch):
    """Return the addresses of the tensor map (once moved) and of the pointer."""
    return struct.unpack("<Q", launch.parameters[0][:8])[0], struct.unpack("<Q", launch.parameters[5])[0]


def test_only_addresses_change(make):
    launch, cuda = make()
    launch(0)
    launch.mover("ptr")(0x2000)
    launch.mover("desc")(0x8000)
    launch(5)
    first, second = cuda.launches
    assert addresses(first)[1] == 0x1000
    assert addresses(second) == (0x8000, 0x2000)
    assert first.parameters[1:5] == second.parameters[1:5]
    assert first.parameters[6] == second.parameters[6] == struct.pack("<i", 7)
    assert (first.grid, first.stream, second.stream) == ((4, 2, 1), None, 5)
    assert len(cuda.tensor_maps) == 1


def flags(cuda):
    (word,) = struct.unpack("<Q", cuda.launches[-1].parameters[0][8:16])
    return word


def test_the_flag_of_large_tensors_stays_as_it_was_written(make):
    """Bit 85, which older drivers set for small tensors, too (`encode_tiled`)."""
    for columns, version, expected in ((64, 13000, 0), (64, 13020, 1), (256, 13000, 1)):
        launch, cuda = make(columns=columns, version=version)
        launch(0)
        assert flags(cuda) >> 21 & 1 == expected
        launch.mover("desc")(0x8000)
        launch(0)
        assert flags(cuda) >> 21 & 1 == expected


def test_scratch_memory_is_the_caller_s(make):
    launch, cuda = make(global_scratch_size=256)
    assert launch.scratch_bytes == 8 * 256
    assert not cuda.memory
    launch.move_scratch(0x9000)
    launch(0)
    assert cuda.launches[0].parameters[-2:] == [struct.pack("<Q", 0x9000), bytes(8)]


def test_a_thread_without_a_context_gets_that_of_the_launch(make):
    launch, cuda = make()
    context, enqueued = cuda.context, cuda._cuLaunchKernelEx
    cuda.context = 0
    cuda._cuLaunchKernelEx = lambda *arguments: enqueued(*arguments) if cuda.context else 201
    launch(0)
    assert cuda.context == context
    assert len(cuda.launches) == 1


def test_a_descriptor_moves_in_a_thread_without_a_context(make):
    launch, cuda = make()
    moved = cuda._cuTensorMapReplaceAddress
    cuda.context = 0
    cuda._cuTensorMapReplaceAddress = lambda *arguments: moved(*arguments) if cuda.context else 201
    launch.mover("desc")(0x8000)
    assert cuda.context
    assert cuda.moved_maps[-1] == 0x8000


def test_what_the_driver_refuses_is_an_error(make):
    launch, cuda = make()
    cuda.failures["cuLaunchKernelEx"] = 700
    with pytest.raises(CudaDriverError, match=r"illegal memory access .* kernel 'kernel', grid \(4, 2, 1\)"):
        launch(0)
    cuda.failures["cuTensorMapReplaceAddress"] = 1
    with pytest.raises(CudaDriverError, match="invalid argument; argument 1, 'desc' of kernel 'kernel': tensor at 0x8"):
        launch.mover("desc")(0x8)


def test_addresses_are_aligned_as_the_kernel_was_compiled_for(make):
    launch, _ = make()
    with pytest.raises(ValueError, match=r"argument 2, 'ptr' .*: the kernel was compiled for an address"):
        launch.mover("ptr")(0x1008)


def test_numbers_do_not_move(make):
    launch, _ = make()
    with pytest.raises(ValueError, match="expected one of the tensors desc, ptr, got 'n'"):
        launch.mover("n")


def test_an_empty_grid_is_refused(make_cuda):
    cuda = make_cuda(parameter_sizes=[8, 8])
    launcher = Launcher(b"", name="kernel", arguments=[], num_warps=4, shared=0, driver=CudaDriver(cuda.library))
    with pytest.raises(ValueError, match=r"expected a grid with programs, got \(0, 1, 1\)"):
        launcher.movable(0)


def test_a_kernel_is_loaded_once_in_a_context(make_cuda):
    cuda = make_cuda(parameter_sizes=[8, 8])
    launcher = Launcher(b"\x7fELF\x00cubin", name="kernel", arguments=[], num_warps=4, shared=0,
                        driver=CudaDriver(cuda.library))  # fmt: skip
    assert not launcher.is_loaded()
    launcher.movable(1)
    assert launcher.is_loaded()
    cuda.context = 0xC7
    assert not launcher.is_loaded()
