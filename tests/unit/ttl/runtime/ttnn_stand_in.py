"""A module like `ttnn` 0.81.1 that records programs and runs none; types, names and defaults are those of the wheel."""

import enum
from dataclasses import dataclass, field, fields
from types import ModuleType
from typing import Any, get_type_hints

import numpy as np


def checked(cls: type) -> type:
    """Make a class of keywords whose values have the types that it declares, as those of a binding do."""
    made = dataclass(kw_only=True)(cls)
    hints = get_type_hints(cls)
    outer = made.__init__

    def __init__(self: Any, **given: Any) -> None:
        outer(self, **given)
        for each in fields(made):
            value, kind = getattr(self, each.name), hints[each.name]
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise TypeError(f"{cls.__name__}: {each.name} is {kind}, found {value!r}")

    made.__init__ = __init__
    return made


class DataType(enum.Enum):
    BFLOAT16, FLOAT32, UINT32, BFLOAT8_B, BFLOAT4_B, UINT8, UINT16, INT32 = range(8)


class Layout(enum.Enum):
    ROW_MAJOR, TILE = range(2)


class BufferType(enum.Enum):
    DRAM, L1 = range(2)


class TensorMemoryLayout(enum.Enum):
    INTERLEAVED, HEIGHT_SHARDED, WIDTH_SHARDED, BLOCK_SHARDED, ND_SHARDED = 0, 2, 3, 4, 5


class DataMovementProcessor(enum.Enum):
    RISCV_0, RISCV_1 = range(2)


class NOC(enum.Enum):
    RISCV_0_default, RISCV_1_default = range(2)


class UnpackToDestMode(enum.Enum):
    UnpackToDestFp32, Default = range(2)


class Arch(enum.Enum):
    WORMHOLE_B0, BLACKHOLE = range(2)

    def __str__(self) -> str:
        return f"Arch.{self.name}"


@dataclass(frozen=True)
class CoreCoord:
    x: int
    y: int


@dataclass(frozen=True)
class CoreRange:
    start: CoreCoord
    end: CoreCoord


@dataclass(frozen=True)
class CoreRangeSet:
    ranges: list[CoreRange]


@dataclass
class ShardSpec:
    shape: list[int]


@dataclass
class NdShardSpec:
    shard_shape: list[int]
    grid: CoreRangeSet


class MemoryConfig:
    def __init__(self, *given: Any, buffer_type: Any = None) -> None:
        self.memory_layout, self.buffer_type, self.shard_spec, self.nd_shard_spec = None, buffer_type, None, None
        for each in given:
            match each:
                case TensorMemoryLayout():
                    self.memory_layout = each
                case BufferType():
                    self.buffer_type = each
                case ShardSpec():
                    self.shard_spec = each
                case NdShardSpec():
                    self.nd_shard_spec, self.memory_layout = each, TensorMemoryLayout.ND_SHARDED
        self.memory_layout = self.memory_layout or TensorMemoryLayout.INTERLEAVED
        self.buffer_type = self.buffer_type or BufferType.DRAM


@checked
class ComputeConfigDescriptor:
    math_approx_mode: bool = False
    fp32_dest_acc_en: bool = False
    dst_full_sync_en: bool = False
    unpack_to_dest_mode: list = field(default_factory=list)


@checked
class DataMovementConfigDescriptor:
    processor: DataMovementProcessor = DataMovementProcessor.RISCV_0
    noc: NOC = NOC.RISCV_0_default


@checked
class KernelDescriptor:
    class SourceType(enum.Enum):
        FILE_PATH, SOURCE_CODE = range(2)

    kernel_source: str
    source_type: SourceType = SourceType.FILE_PATH
    core_ranges: CoreRangeSet
    compile_time_args: list = field(default_factory=list)
    common_runtime_args: list = field(default_factory=list)
    config: ComputeConfigDescriptor | DataMovementConfigDescriptor


@checked
class CBFormatDescriptor:
    buffer_index: int
    data_format: DataType
    page_size: int


@checked
class CBDescriptor:
    total_size: int
    core_ranges: CoreRangeSet
    format_descriptors: list


@checked
class SemaphoreDescriptor:
    id: int
    core_ranges: CoreRangeSet
    initial_value: int


@checked
class ProgramDescriptor:
    kernels: list = field(default_factory=list)
    semaphores: list = field(default_factory=list)
    cbs: list = field(default_factory=list)


@dataclass
class Device:
    number: int = 0
    chip: Arch = Arch.WORMHOLE_B0
    is_open: bool = True

    def id(self) -> int:
        return self.number

    def arch(self) -> Arch:
        return self.chip

    def dram_grid_size(self) -> CoreCoord:
        return CoreCoord(12, 1)

    def compute_with_storage_grid_size(self) -> CoreCoord:
        return CoreCoord(8, 9) if self.chip is Arch.WORMHOLE_B0 else CoreCoord(13, 10)


PAGE = {DataType.FLOAT32: 4, DataType.BFLOAT16: 2, DataType.INT32: 4}


class Tensor:
    def __init__(self, array: np.ndarray, dtype: DataType, device: Any = None, layout: Any = None, memory: Any = None):
        self.array = np.array(array)
        self.shape, self.dtype, self.layout = array.shape, dtype, layout or Layout.TILE
        self._device, self._memory = device, memory or MemoryConfig()

    def device(self) -> Device | None:
        return self._device

    def memory_config(self) -> MemoryConfig:
        return self._memory

    def buffer_address(self) -> int:
        return 0x1000 + id(self) % 0xFFF

    def to_list(self) -> list:
        return self.array.tolist()


class TensorAccessorArgs:
    def __init__(self, tensor: Tensor) -> None:
        memory = tensor.memory_config()
        sharded = memory.memory_layout is not TensorMemoryLayout.INTERLEAVED
        bits = sharded | 2 * (memory.buffer_type is BufferType.DRAM)
        rows = 1 if tensor.layout is Layout.ROW_MAJOR else 32
        self.words = [bits, PAGE[tensor.dtype] * rows * (32 if rows == 32 else tensor.shape[1])]
        if sharded:
            self.words += [2, 4, 2, 2, 1, 1, 0, 0]

    def get_compile_time_args(self) -> list[int]:
        return self.words


def module(compute: Any = None) -> Any:
    """The module; `generic_op` keeps what it is given in `programs`, and calls `compute` with the tensors."""
    made: Any = ModuleType("ttnn")
    made.__file__ = __file__
    made.__dict__.update({name: value for name, value in globals().items() if isinstance(value, type)})
    made.float32, made.bfloat16, made.int32 = DataType.FLOAT32, DataType.BFLOAT16, DataType.INT32
    made.TILE_LAYOUT, made.ROW_MAJOR_LAYOUT = Layout.TILE, Layout.ROW_MAJOR
    made.DRAM_MEMORY_CONFIG, made.L1_MEMORY_CONFIG = MemoryConfig(), MemoryConfig(buffer_type=BufferType.L1)
    made.programs, made.devices = [], []

    def generic_op(io_tensors: list[Tensor], program_descriptor: Any) -> Tensor:
        assert len(io_tensors) >= 2
        assert isinstance(program_descriptor, ProgramDescriptor)
        made.programs.append((io_tensors, program_descriptor))
        if compute is not None:
            compute(*(each.array for each in io_tensors))
        return io_tensors[-1]

    def open_device(device_id: int) -> Device:
        made.devices.append(Device(device_id))
        return made.devices[-1]

    def close_device(device: Device) -> None:
        device.is_open = False

    made.generic_op, made.open_device, made.close_device = generic_op, open_device, close_device
    made.from_device = lambda tensor: tensor
    return made
