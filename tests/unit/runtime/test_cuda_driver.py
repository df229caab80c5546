"""The binding of the CUDA driver, against a driver of our own."""

import ctypes
import subprocess
import sys
import threading

import pytest

from tlx_xdsl.runtime.launch import cuda_driver
from tlx_xdsl.runtime.launch.cuda_driver import (
    CudaDriver,
    CudaDriverError,
    FunctionAttribute,
    LaunchAttribute,
    LaunchAttributeValue,
    LaunchConfig,
    TensorMapDataType,
)

# --- layouts: offsets and sizes as a C compiler gives them for cuda.h on x86-64 and aarch64 Linux ---------


def offsets(structure):
    return {name: getattr(structure, name).offset for name, *_ in structure._fields_}


def test_launch_config_layout():
    assert ctypes.sizeof(LaunchConfig) == 56
    assert offsets(LaunchConfig) == {
        "grid_x": 0,
        "grid_y": 4,
        "grid_z": 8,
        "block_x": 12,
        "block_y": 16,
        "block_z": 20,
        "shared_bytes": 24,
        "stream": 32,
        "attributes": 40,
        "attribute_count": 48,
    }


def test_launch_attribute_layout():
    assert ctypes.sizeof(LaunchAttributeValue) == 64
    assert ctypes.alignment(LaunchAttributeValue) == 8
    assert ctypes.sizeof(LaunchAttribute) == 72
    assert offsets(LaunchAttribute) == {"id": 0, "pad": 4, "value": 8}
    assert offsets(cuda_driver.ClusterDimension) == {"x": 0, "y": 4, "z": 8}


# --- loading and errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("major", "abi", "names"), [(12, 8, True), (12, 7, False), (13, 8, False), (None, 8, False)])
def test_a_binary_that_is_too_new_for_the_driver_is_named(make_cuda, monkeypatch, major, abi, names):
    """The number is that of files by ptxas 13.0 to 13.5; 12.8 and 12.9 write 7."""
    monkeypatch.setattr(cuda_driver, "cuda_major", lambda: major)
    driver = CudaDriver(make_cuda(failures={"cuModuleLoadData": 1}).library)
    with pytest.raises(CudaDriverError) as caught:
        driver.load_module(b"\x7fELF\x02\x01\x01\x41" + bytes([abi]))
    said = "made by a ptxas of CUDA 13, while the driver is of CUDA 12: compile with --ptxas 12"
    assert (said in str(caught.value)) == names


def test_error_carries_the_drivers_words(make_cuda):
    driver = CudaDriver(make_cuda(failures={"cuModuleLoadData": 1}).library)
    with pytest.raises(CudaDriverError) as caught:
        driver.load_module(b"not a cubin")
    assert str(caught.value) == (
        "cuModuleLoadData failed: CUDA_ERROR_INVALID_VALUE (1): invalid argument; loading a cubin of 11 bytes"
    )
    assert (caught.value.call, caught.value.code) == ("cuModuleLoadData", 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda driver: driver.version(),
        lambda driver: driver.ensure_context(),
        lambda driver: driver.compute_capability(),
        lambda driver: driver.get_function(0xD0, "kernel"),
        lambda driver: driver.synchronize(),
    ],
)
def test_every_call_reports_a_machine_without_gpu(make_cuda, call):
    driver = CudaDriver(make_cuda(failures={"cuInit": 100}).library)
    with pytest.raises(CudaDriverError, match=r"cuInit failed: .*no CUDA-capable device is detected"):
        call(driver)


def test_missing_library(monkeypatch):
    monkeypatch.setattr(cuda_driver, "LIBRARY_NAME", "libcuda-is-not-here.so.1")
    driver = CudaDriver()
    assert not driver.available()
    with pytest.raises(CudaDriverError, match="launching needs an NVIDIA GPU and its driver"):
        driver.ensure_context()


def test_function_missing_from_an_old_driver(make_cuda):
    driver = CudaDriver(make_cuda(missing=("cuLaunchKernelEx",)).library)
    with pytest.raises(CudaDriverError, match="the NVIDIA driver is too old"):
        driver.prepare_launch(LaunchConfig(), 0xF0, None, keep_alive=None, detail="")


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, True), ({"devices": 0}, False), ({"failures": {"cuInit": 100}}, False)],
)
def test_available(make_cuda, options, expected):
    assert CudaDriver(make_cuda(**options).library).available() is expected


def test_import_loads_no_driver_and_nothing_heavy():
    """A fresh process: this one may have imported torch for other tests."""
    code = (
        "import sys, tlx_xdsl.runtime; from tlx_xdsl.runtime.launch.cuda_driver import default_driver; "
        "assert default_driver()._library is None; "
        "assert not {'torch', 'triton', 'xdsl', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- contexts and devices ---------------------------------------------------------------------------------


def test_current_context_is_used(make_cuda):
    cuda = make_cuda(context=0xABC)
    assert CudaDriver(cuda.library).ensure_context() == 0xABC
    assert cuda.counts["cuDevicePrimaryCtxRetain"] == 0


def test_without_a_context_the_primary_one_is_retained_once(cuda, driver):
    assert driver.ensure_context() == 0xC0
    cuda.context = 0  # another thread, which starts without a context
    assert driver.ensure_context() == 0xC0
    assert cuda.context == 0xC0
    assert cuda.counts["cuDevicePrimaryCtxRetain"] == 1


def test_initialised_once_from_many_threads(cuda, driver):
    threads = [threading.Thread(target=driver.version) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cuda.counts["cuInit"] == 1


def test_device_facts(driver):
    assert driver.compute_capability() == (9, 0)
    assert driver.multiprocessor_count() == 132
    assert driver.max_shared_memory() == 232448


def test_the_gpus_here_are_asked_without_a_context(make_cuda):
    cuda = make_cuda()
    assert CudaDriver(cuda.library).capabilities() == [(9, 0)]
    assert not cuda.context
    assert CudaDriver(make_cuda(devices=0).library).capabilities() == []
    assert CudaDriver(make_cuda(failures={"cuInit": 100}).library).capabilities() == []


def test_device_address(make_cuda):
    driver = CudaDriver(make_cuda(host_addresses={0x1000}).library)
    assert driver.device_address(0x7000_0000) == 0x7000_0000
    assert driver.device_address(0x1000) is None


def test_synchronize_waits_for_the_stream_or_for_all(cuda, driver):
    driver.synchronize(0)
    assert (cuda.counts["cuStreamSynchronize"], cuda.counts["cuCtxSynchronize"]) == (1, 0)
    driver.synchronize()
    assert cuda.counts["cuCtxSynchronize"] == 1


# --- kernels ----------------------------------------------------------------------------------------------


def test_module_function_and_attribute(cuda, driver, cubin):
    function = driver.get_function(driver.load_module(cubin), "kernel")
    assert cuda.loaded == [cubin]
    driver.set_function_attribute(function, FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, 100_000)
    assert cuda.function_attributes == [(8, 100_000)]


def test_parameter_sizes_stop_at_the_last_parameter(make_cuda):
    driver = CudaDriver(make_cuda(parameter_sizes=[128, 4, 8]).library)
    assert driver.parameter_sizes(0xF0, 9) == [128, 4, 8]
    assert driver.parameter_sizes(0xF0, 2) == [128, 4]


def test_parameter_sizes_are_unknown_to_an_old_driver(make_cuda):
    assert CudaDriver(make_cuda(missing=("cuFuncGetParamInfo",)).library).parameter_sizes(0xF0, 9) is None


def encode(driver, **changes):
    """Encode a map of a 512x256 fp16 tensor (256 KiB) and return its second 64-bit word."""
    memory = ctypes.create_string_buffer(256)
    destination = ctypes.addressof(memory) + (-ctypes.addressof(memory) % 128)
    arguments = {
        "data_type": TensorMapDataType.FLOAT16,
        "element_bytes": 2,
        "address": 0x7000_0000,
        "shape": [256, 512],
        "strides": [512],
        "box": [64, 128],
        "swizzle": 3,
        "nan_fill": False,
        "what": "argument 1",
    }
    driver.encode_tiled(destination, **(arguments | changes))
    return ctypes.c_uint64.from_address(destination + 8).value


def test_tensor_map_arguments(cuda, driver):
    encode(driver, nan_fill=True)
    assert cuda.tensor_maps == [
        {
            "dtype": 6,
            "address": 0x7000_0000,
            "shape": [256, 512],
            "strides": [512],
            "box": [64, 128],
            "steps": [1, 1],
            "swizzle": 3,
            "fixed": (0, 2),  # no interleaving, 128 B promotion
            "fill": 1,
        }
    ]


def test_tensor_map_error_names_the_tensor(make_cuda):
    driver = CudaDriver(make_cuda(failures={"cuTensorMapEncodeTiled": 1}).library)
    with pytest.raises(CudaDriverError, match=r"argument 1: FLOAT16 .*shape \[256, 512\].*box \[64, 128\]"):
        encode(driver)


LARGE_TENSOR_BIT = 1 << 21


@pytest.mark.parametrize(
    ("version", "rows", "cleared"),
    [
        (13000, 256, True),  # 128 KiB less 1 element: the last element starts below the limit
        (13000, 257, False),
        (13010, 8, True),
        (13020, 8, False),  # fixed in this driver
    ],
)
def test_small_tensor_bit_is_cleared_for_drivers_that_get_it_wrong(make_cuda, version, rows, cleared):
    word = encode(CudaDriver(make_cuda(version=version).library), shape=[256, rows])
    assert word == 2**64 - 1 - (LARGE_TENSOR_BIT if cleared else 0)
