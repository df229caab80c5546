"""Kernels on a card: a kernel's C++ and manifest as a program of `ttnn`, which `ttnn.generic_op` runs.

`ttnn` compiles the C++ for the card, puts circular buffers and semaphores into the cores' memory and starts the
threads. What the C++ is told of a tensor comes from the tensor itself: its address, and words about its layout.
Circular buffers lie one after another there; those that share memory in the manifest do not.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from tlx_xdsl.errors import InputError

from ..dialects.ttcore import ARCHITECTURES
from ..language.kernel import Kernel
from ..language.tensors import TILE, TensorSpec
from .compilation import CompiledKernel, Options, compile_kernel
from .specs import Spec, parameters, specs_of

_DTYPES = {
    "Float32": "float32",
    "Float16_b": "bfloat16",
    "Bfp8_b": "bfloat8_b",
    "Bfp4_b": "bfloat4_b",
    "Int32": "int32",
    "UInt32": "uint32",
    "UInt16": "uint16",
    "UInt8": "uint8",
}
"""Names in `ttnn` of data formats."""
_NOCS = {"NOC_0": "RISCV_0_default", "NOC_1": "RISCV_1_default"}
"""Names in `ttnn` of the networks on chip."""
_MODES = 64
"""Circular buffers for which `ttnn` wants to know how they are unpacked: as many as any card has."""


def launch_ttnn(kernel: Kernel, *arguments: Any, options: Options | None = None) -> Any:
    """Run a kernel on the card on which its tensors lie, which the kernel reads and writes; returns the last one.

    `arguments` are tensors of `ttnn` on one device, in the order of the kernel's parameters, and numbers. The kernel is
    compiled for the device's chip and grid when it is called with such arguments for the first time.

    Raises CompilationError for an error in the kernel; InputError for tensors that are not on one device, and where
    `ttnn` is not installed.
    """
    ttnn = _ttnn()
    named = dict(zip(parameters(kernel), arguments, strict=False))
    tensors = {name: each for name, each in named.items() if not isinstance(each, bool | int | float)}
    specs = specs_of(kernel, arguments)
    chosen = for_device(_device(tensors), options)
    compiled = _compiled(kernel, specs, tuple(map(type, specs)), chosen)
    # At least an input and an output are wanted.
    given = [*tensors.values()] * (2 if len(tensors) == 1 else 1)
    return ttnn.generic_op(given, program_descriptor(compiled, [*tensors.values()]))


def launch_arrays(kernel: Kernel, arguments: Sequence[Any], options: Options | None = None, *, device: int = 0) -> None:
    """Run a kernel on the card with this number on copies of arrays of numpy, which it reads and writes in place.

    Raises InputError as `to_device` and `launch_ttnn` do.
    """
    ttnn = _ttnn()
    specs = specs_of(kernel, arguments)
    opened = ttnn.open_device(device_id=device)
    try:
        given = [to_device(opened, *each) for each in zip(parameters(kernel), arguments, specs, strict=True)]
        launch_ttnn(kernel, *given, options=options)
        for array, tensor in zip(arguments, given, strict=True):
            if tensor is not array:
                array[...] = np.array(ttnn.from_device(tensor).to_list()).reshape(array.shape)
    finally:
        ttnn.close_device(opened)


def to_device(device: Any, name: str, array: Any, spec: Spec) -> Any:
    """A tensor of `ttnn` on a device with what an array holds, where its spec says; a number stays one.

    Raises InputError for elements that `ttnn` has no type for.
    """
    ttnn = _ttnn()
    if not isinstance(spec, TensorSpec):
        return array
    layout = ttnn.ROW_MAJOR_LAYOUT if spec.layout.kind == "interleaved" else ttnn.TILE_LAYOUT
    plain = array if array.dtype.kind in "iu" else array.astype(np.float32)
    return ttnn.Tensor(plain, _dtype(ttnn, name, spec.dtype.data_format), device, layout, _memory(ttnn, device, spec))


def _memory(ttnn: Any, device: Any, spec: TensorSpec) -> Any:
    grid, tiles = spec.layout.grid, spec.layout.tiles_per_shard
    in_dram = spec.memory_space == "DRAM"
    if grid is None or tiles is None:
        return ttnn.DRAM_MEMORY_CONFIG if in_dram else ttnn.L1_MEMORY_CONFIG
    banks = device.dram_grid_size() if in_dram else ttnn.CoreCoord(grid[1], grid[0])
    shards = ttnn.NdShardSpec([size * TILE for size in tiles], _cores(ttnn, banks.x, banks.y))
    return ttnn.MemoryConfig(ttnn.BufferType.DRAM if in_dram else ttnn.BufferType.L1, shards)


def _cores(ttnn: Any, columns: int, rows: int) -> Any:
    corners = ttnn.CoreCoord(0, 0), ttnn.CoreCoord(columns - 1, rows - 1)
    return ttnn.CoreRangeSet([ttnn.CoreRange(*corners)])


def _ttnn() -> Any:
    try:
        return importlib.import_module("ttnn")
    except ImportError as error:
        raise InputError("a launch on a card needs the package ttnn, which is not installed (docs/ttl.md)") from error


@lru_cache(maxsize=64)
def _compiled(kernel: Kernel, specs: tuple[Spec, ...], types: tuple[type, ...], options: Options) -> CompiledKernel:
    return compile_kernel(kernel, specs, options)


def _device(tensors: dict[str, Any]) -> Any:
    devices = {name: each.device() for name, each in tensors.items()}
    for name, device in devices.items():
        if device is None:
            raise InputError(f"'{name}' is on the host: a launch needs tensors on a device (ttnn.to_device)")
    if not devices:
        raise InputError("a launch needs a tensor, whose device runs the kernel")
    (first, device), *others = devices.items()
    for name, other in others:
        if other.id() != device.id():
            raise InputError(f"'{first}' and '{name}' are on different devices")
    return device


def for_device(device: Any, options: Options | None = None) -> Options:
    """The options with the chip and the cores of a device of `ttnn`.

    Raises InputError for a chip that is not known.
    """
    name = str(device.arch()).rsplit(".", 1)[-1].lower().removesuffix("_b0")
    if name not in ARCHITECTURES:
        raise InputError(f"expected a device with a chip of {', '.join(ARCHITECTURES)}, found {device.arch()}")
    chip, size = ARCHITECTURES[name], device.compute_with_storage_grid_size()
    chosen = Options() if options is None else options
    return replace(chosen, arch=name, grid=(min(size.x, chip.columns), min(size.y, chip.rows)))


def program_descriptor(compiled: CompiledKernel, tensors: Sequence[Any]) -> Any:
    """The `ttnn.ProgramDescriptor` of a kernel for tensors on a device, in the kernel's order."""
    ttnn, manifest = _ttnn(), compiled.manifest
    cores = _cores(ttnn, *manifest["grid"])
    return ttnn.ProgramDescriptor(
        kernels=[_kernel(ttnn, compiled, thread, tensors, cores) for thread in manifest["threads"]],
        semaphores=[
            ttnn.SemaphoreDescriptor(id=each["index"], core_ranges=cores, initial_value=each["initial"])
            for each in manifest["semaphores"]
        ],
        cbs=[_buffer(ttnn, each, cores) for each in manifest["cbs"]],
    )


def _dtype(ttnn: Any, name: str, data_format: str) -> Any:
    if data_format not in _DTYPES:
        raise InputError(f"'{name}' has the data format {data_format}, which ttnn has no type for")
    return getattr(ttnn, _DTYPES[data_format])


def _buffer(ttnn: Any, cb: dict[str, Any], cores: Any) -> Any:
    dtype = _dtype(ttnn, cb["name"], cb["data_format"])
    pages = ttnn.CBFormatDescriptor(buffer_index=cb["index"], data_format=dtype, page_size=cb["page_bytes"])
    return ttnn.CBDescriptor(total_size=cb["bytes"], core_ranges=cores, format_descriptors=[pages])


def _kernel(ttnn: Any, compiled: CompiledKernel, thread: dict[str, Any], tensors: Sequence[Any], cores: Any) -> Any:
    manifest = compiled.manifest
    addresses = {each["name"]: tensor for each, tensor in zip(manifest["tensors"], tensors, strict=True)}
    words = [each["index"] for each in manifest["cbs"]]
    if thread["kind"] == "compute":
        config = _compute(ttnn, manifest)
    else:
        # How many words a tensor has is a matter of its layout; the C++ asks the headers where each begins.
        words += [word for each in tensors for word in ttnn.TensorAccessorArgs(each).get_compile_time_args()]
        config = ttnn.DataMovementConfigDescriptor(
            processor=getattr(ttnn.DataMovementProcessor, thread["processor"]),
            noc=getattr(ttnn.NOC, _NOCS[thread["noc"]]),
        )
    return ttnn.KernelDescriptor(
        kernel_source=compiled.sources[thread["file"]],
        source_type=ttnn.KernelDescriptor.SourceType.SOURCE_CODE,
        core_ranges=cores,
        compile_time_args=words,
        common_runtime_args=[addresses[name].buffer_address() for name in thread["common_runtime_args"]],
        config=config,
    )


def _compute(ttnn: Any, manifest: Any) -> Any:
    options = manifest["options"]
    config = ttnn.ComputeConfigDescriptor(
        fp32_dest_acc_en=options["fp32_dest_acc_en"], dst_full_sync_en=options["dst_full_sync_en"]
    )
    whole = {each["index"] for each in manifest["cbs"] if each["unpack_to_dest"]}
    modes = ttnn.UnpackToDestMode
    for number in range(_MODES if whole else 0):
        config.unpack_to_dest_mode.append(modes.UnpackToDestFp32 if number in whole else modes.Default)
    return config
