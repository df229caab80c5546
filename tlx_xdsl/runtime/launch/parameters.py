"""The parameters of a kernel: what each argument becomes in the memory that the driver reads.

How Triton's NVIDIA backend lays out a kernel's parameters, which is what this file reproduces:

    (a: *fp16, d: tensordesc<fp16[128, 64]>, n: i32)

    a                    8 bytes, an address
    d                    128 bytes, a CUtensorMap by value
    d.shape[0..1]        two i32
    d.strides[0..1]      two i64, in elements
    n                    4 bytes
    global scratch       8 bytes, an address or null
    profile scratch      8 bytes, an address or null

Tensor maps are filled as stock Triton fills them (backends/nvidia/driver.py and driver.c of 3.6 and 3.9).
"""

from __future__ import annotations

import ctypes
import operator
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from tlx_xdsl.element_types import SCALARS, ElementType
from tlx_xdsl.errors import InputError

from .cuda_driver import (
    MAX_TENSOR_RANK,
    TENSOR_MAP_BYTES,
    CudaDriver,
    TensorMapDataType,
)
from .tensor_descriptor import dtype_name, element_size

MAX_BOX = 256
"""Elements along one dimension of a TMA box."""

WORD = 8
"""Bytes reserved for each parameter but tensor maps. The driver reads only as many as the kernel declares."""


class ArgumentSpec(NamedTuple):
    """One argument of a kernel: its name, and its type in Triton's spelling.

    Types: `*fp16` and the like (a tensor on the GPU, an address, or None), `i1`, `i8` to `i64`, `u1`, `u8` to
    `u64`, `fp16`, `bf16`, `fp32`, `fp64`, and `tensordesc<fp16[128, 64]>` (a TensorDescriptor). `*fp16:16` and
    `i32:16` are addresses and integers that are multiples of 16, as the kernel was compiled for; others are
    refused. Constants that were compiled into the kernel are not arguments.
    """

    name: str
    type: str


# --- what one argument becomes ----------------------------------------------------------------------------


class Parameter(Protocol):
    """An argument's part of the parameter block."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each kernel parameter that the argument becomes."""
        ...

    def write(self, value: Any, addresses: Sequence[int], where: str, driver: CudaDriver) -> None:
        """Write `value` to host memory, at one address per entry of `sizes`.

        `where` names the argument in errors.
        """
        ...

    def mover(self, addresses: Sequence[int], where: str, driver: CudaDriver) -> Callable[[int], None] | None:
        """Return what puts another address in the place of the one that `write` wrote; None for what has none."""
        ...


@dataclass(frozen=True)
class _Integer:
    """`i32` and the like. `code` is the struct module's letter."""

    name: str
    code: str
    minimum: int
    maximum: int
    divisor: int = 1
    """The divisor of every value that the kernel relies on."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return (struct.calcsize(self.code),)

    def write(self, value: Any, addresses: Sequence[int], where: str, driver: CudaDriver) -> None:
        if not hasattr(value, "__index__"):
            raise _wrong_type(where, f"an integer ({self.name})", value)
        number = operator.index(value)
        if not self.minimum <= number <= self.maximum:
            raise OverflowError(f"{where}: expected {self.minimum} to {self.maximum} ({self.name}), got {number}")
        _check_multiple(number, self.divisor, where, f"a number ({self.name})", str(number))
        store(addresses[0], struct.pack("<" + self.code, number))

    def mover(self, addresses: Sequence[int], where: str, driver: CudaDriver) -> None:
        return None


@dataclass(frozen=True)
class _Float:
    """`fp16`, `bf16`, `fp32` and `fp64`; Python numbers are rounded to nearest, ties to even."""

    name: str
    size: int
    pack: Callable[[float], bytes]

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.size,)

    def write(self, value: Any, addresses: Sequence[int], where: str, driver: CudaDriver) -> None:
        if not (hasattr(value, "__float__") or hasattr(value, "__index__")):  # so not a string
            raise _wrong_type(where, f"a number ({self.name})", value)
        try:
            data = self.pack(float(value))
        except OverflowError:
            raise OverflowError(f"{where}: expected a finite {self.name}, got {value}") from None
        store(addresses[0], data)

    def mover(self, addresses: Sequence[int], where: str, driver: CudaDriver) -> None:
        return None


@dataclass(frozen=True)
class _Pointer:
    """`*fp16` and the like."""

    name: str
    pointee: str | None
    divisor: int = 1
    """The divisor of every address that the kernel relies on, in bytes."""
    sizes = (WORD,)

    def write(self, value: Any, addresses: Sequence[int], where: str, driver: CudaDriver) -> None:
        address = self._address(value, where, driver)
        self._check(address, where)
        store(addresses[0], struct.pack("<Q", address))

    def mover(self, addresses: Sequence[int], where: str, driver: CudaDriver) -> Callable[[int], None]:
        cell = ctypes.c_uint64.from_address(addresses[0])

        def move(address: int) -> None:
            if address % self.divisor:
                self._check(address, where)
            cell.value = address

        return move

    def _check(self, address: int, where: str) -> None:
        _check_multiple(address, self.divisor, where, f"an address ({self.name})", f"{address:#x}")

    def _address(self, value: Any, where: str, driver: CudaDriver) -> int:
        if value is None:
            return 0
        if isinstance(value, int):
            return value
        if not hasattr(value, "data_ptr"):
            raise _wrong_type(where, f"a tensor, an address or None ({self.name})", value)
        _check_dtype(value, self.pointee, where)
        return _device_address(value, where, driver)


@dataclass(frozen=True)
class TensorMapFormat:
    """The compiler's choices for one descriptor: the entry of `tensordesc_meta`, checked."""

    data_type: TensorMapDataType
    element_bytes: int
    swizzle: int
    box: tuple[int, ...]
    fp4_padded: bool


@dataclass(frozen=True)
class _Descriptor:
    """`tensordesc<fp16[128, 64]>`: a tensor map, the shape, the strides."""

    name: str
    element: str | None
    block: tuple[int, ...]
    format: TensorMapFormat

    @property
    def sizes(self) -> tuple[int, ...]:
        rank = len(self.block)
        return (TENSOR_MAP_BYTES, *[4] * rank, *[8] * rank)

    def write(self, value: Any, addresses: Sequence[int], where: str, driver: CudaDriver) -> None:
        self._check(value, where)
        self._encode(value, addresses[0], where, driver)
        rank = len(self.block)
        for address, extent in zip(addresses[1 : rank + 1], value.shape, strict=True):
            store(address, struct.pack("<i", extent))
        for address, stride in zip(addresses[rank + 1 :], value.strides, strict=True):
            store(address, struct.pack("<q", stride))

    def mover(self, addresses: Sequence[int], where: str, driver: CudaDriver) -> Callable[[int], None]:
        return driver.tensor_map_mover(addresses[0], where)

    def _check(self, value: Any, where: str) -> None:
        if not all(hasattr(value, field) for field in ("base", "shape", "strides", "block_shape")):
            raise _wrong_type(where, f"a TensorDescriptor ({self.name})", value)
        if tuple(value.block_shape) != self.block:
            raise TypeError(f"{where}: expected block_shape {list(self.block)}, got {list(value.block_shape)}")
        _check_dtype(value.base, self.element, where)
        size = element_size(value.base)
        if size != self.format.element_bytes:
            raise TypeError(f"{where}: expected elements of {self.format.element_bytes} bytes, got {size}")

    def _encode(self, value: Any, destination: int, where: str, driver: CudaDriver) -> None:
        map_format = self.format
        shape = list(value.shape)
        if map_format.fp4_padded:
            # Two 4-bit elements share a byte: the tensor counts bytes, the unit counts elements.
            shape[-1] *= 2
        # The unit counts dimensions from the innermost, whose stride is the element size and not passed.
        outer_strides = [stride * map_format.element_bytes for stride in value.strides[:-1]]
        # Triton's own class has no such field before 3.9.
        rounds = getattr(value, "round_f32_to_tf32", False)
        driver.encode_tiled(
            destination,
            data_type=TensorMapDataType.TFLOAT32 if rounds else map_format.data_type,
            element_bytes=map_format.element_bytes,
            address=_device_address(value.base, where, driver),
            shape=shape[::-1],
            strides=outer_strides[::-1],
            box=map_format.box[::-1],
            swizzle=map_format.swizzle,
            nan_fill=getattr(value, "padding", "zero") == "nan",
            what=where,
        )


def store(address: int, data: bytes) -> None:
    ctypes.memmove(address, data, len(data))


def _wrong_type(where: str, expected: str, value: object) -> TypeError:
    return TypeError(f"{where}: expected {expected}, got {type(value).__name__}")


def _check_dtype(tensor: Any, expected: str | None, where: str) -> None:
    """Refuse a tensor whose elements are known to be of another type than the kernel was compiled for."""
    found = dtype_name(getattr(tensor, "dtype", None))
    if expected is not None and found is not None and found != expected:
        raise TypeError(f"{where}: expected elements of type {expected}, got {found}")


def _check_multiple(value: int, divisor: int, where: str, what: str, found: str) -> None:
    """Refuse what the kernel would misread: its vector accesses rest on what its signature says of the arguments."""
    if value % divisor:
        raise InputError(
            f"{where}: the kernel was compiled for {what} that is a multiple of {divisor}, got {found}, "
            f"{value % divisor} past one"
        )


def _device_address(tensor: Any, where: str, driver: CudaDriver) -> int:
    """Return where kernels find `tensor`.

    Raises TypeError for host memory: a kernel that touches it would kill the CUDA context.
    """
    address = int(tensor.data_ptr())
    if not address:  # an empty tensor
        return 0
    reachable = driver.device_address(address)
    if reachable is None:
        device = getattr(tensor, "device", "the host")
        raise TypeError(f"{where}: expected a tensor in GPU memory, got one on {device}")
    return reachable


def _pack_bf16(value: float) -> bytes:
    """Round to bfloat16, the upper half of a float32."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if value != value:
        # Rounding a NaN up could carry into infinity.
        return struct.pack("<H", (bits >> 16) | 0x40)
    ties_to_even = 0x7FFF + ((bits >> 16) & 1)
    return struct.pack("<H", (bits + ties_to_even) >> 16)


def _scalar(name: str, element: ElementType) -> Parameter:
    """A number as a parameter. One-bit integers take a byte that holds 0 or 1."""
    if element.kind == "f":
        packer = None if element.letter is None else struct.Struct("<" + element.letter)
        return _Float(name, element.bytes, _pack_bf16 if packer is None else packer.pack)
    if element.bits == 1:
        return _Integer(name, "B", 0, 1)
    lowest = -(1 << (element.bits - 1)) if element.kind == "i" else 0
    assert element.letter is not None, "integers have one"
    return _Integer(name, element.letter, lowest, lowest + (1 << element.bits) - 1)


_SCALARS = {name: _scalar(name, element) for name, element in SCALARS.items()}


# --- reading the signature --------------------------------------------------------------------------------

_DIVISIBILITY = re.compile(r"(?P<type>.*?)(?::(?P<divisor>[1-9]\d*))?", re.DOTALL)

# Gluon adds the shared-memory layout after the shape; it does not matter here.
_DESCRIPTOR_TYPE = re.compile(r"tensordesc<(?P<element>\w+)\[(?P<block>[\d,\s]+)\].*>")

# The compiler numbers element types as PTX's tensormap.replace does (u8, u16, u32, s32, u64, s64, f16, f32,
# f32.ftz, f64, bf16, tf32, ...); the driver's numbers differ in these three.
_ELEMENT_TYPES = {number: TensorMapDataType(number) for number in range(16)} | {
    8: TensorMapDataType.FLOAT32_FTZ,
    9: TensorMapDataType.FLOAT64,
    10: TensorMapDataType.BFLOAT16,
}


def split_type(text: str) -> tuple[str, int]:
    """The type of an argument, and what its values are multiples of: `*fp16:16` is `*fp16` and 16."""
    match = _DIVISIBILITY.fullmatch(text)
    assert match is not None, "it matches any text"
    return match["type"], int(match["divisor"] or 1)


def read_arguments(
    kernel: str, arguments: Sequence[ArgumentSpec], tensordesc_meta: Sequence[Mapping[str, Any]]
) -> list[Parameter]:
    """Turn the signature into parameters.

    Raises ValueError for a type or metadata that cannot be launched.
    """
    descriptors = sum(spec.type.startswith("tensordesc") for spec in arguments)
    if descriptors != len(tensordesc_meta):
        raise InputError(
            f"kernel {kernel!r}: expected tensordesc_meta for its {descriptors} tensor descriptors, "
            f"got {len(tensordesc_meta)} entries"
        )
    entries = iter(tensordesc_meta)
    parameters: list[Parameter] = []
    for index, spec in enumerate(arguments):
        where = argument_name(kernel, index, spec)
        plain, divisor = split_type(spec.type)
        if plain.startswith("tensordesc"):
            parameters.append(_read_descriptor(plain, next(entries), where))
        elif plain.startswith("*"):
            # Triton writes a pointer to constant memory as `*kfp16`.
            parameters.append(_Pointer(plain, dtype_name(plain[1:].removeprefix("k")), divisor))
        elif plain in _SCALARS:
            scalar = _SCALARS[plain]
            parameters.append(replace(scalar, divisor=divisor) if isinstance(scalar, _Integer) else scalar)
        else:
            raise InputError(
                f"{where}: expected the type *..., tensordesc<...> or one of {', '.join(_SCALARS)}; got {spec.type!r}"
            )
    return parameters


def _read_descriptor(type_text: str, meta: Mapping[str, Any], where: str) -> _Descriptor:
    match = _DESCRIPTOR_TYPE.fullmatch(type_text)
    if match is None:
        raise InputError(f"{where}: expected a type like tensordesc<fp16[128, 64]>, got {type_text!r}")
    block = tuple(int(extent) for extent in match["block"].split(","))
    map_format = read_tensor_map_format(meta, where)
    if not 1 <= len(block) <= MAX_TENSOR_RANK or len(block) != len(map_format.box):
        raise InputError(
            f"{where}: expected 1 to {MAX_TENSOR_RANK} dimensions, as many as in block_size "
            f"{list(map_format.box)}, got {type_text!r}"
        )
    return _Descriptor(type_text, dtype_name(match["element"]), block, map_format)


def read_tensor_map_format(meta: Mapping[str, Any], where: str) -> TensorMapFormat:
    """Check an entry of `tensordesc_meta`.

    Raises ValueError, which starts with `where`, for what no tensor map has.
    """
    missing = [key for key in ("swizzle", "elem_size", "elem_type", "block_size", "fp4_padded") if key not in meta]
    if missing:
        raise InputError(f"{where}: tensordesc_meta lacks {', '.join(missing)}")
    if meta.get("is_im2col", False):
        raise InputError(f"{where}: im2col descriptors are not supported, only tiled ones")
    if meta["elem_type"] not in _ELEMENT_TYPES:
        raise InputError(f"{where}: expected elem_type 0 to 15, got {meta['elem_type']}")
    if meta["swizzle"] not in range(4):
        raise InputError(f"{where}: expected swizzle 0 (none), 1, 2 or 3 (32, 64, 128 B), got {meta['swizzle']}")
    box = tuple(int(extent) for extent in meta["block_size"])
    if not all(1 <= extent <= MAX_BOX for extent in box):
        raise InputError(f"{where}: expected block_size entries of 1 to {MAX_BOX}, got {list(box)}")
    return TensorMapFormat(
        _ELEMENT_TYPES[meta["elem_type"]],
        int(meta["elem_size"]),
        meta["swizzle"],
        box,
        bool(meta["fp4_padded"]),
    )


def argument_name(kernel: str, index: int, spec: ArgumentSpec) -> str:
    return f"argument {index + 1}, {spec.name!r} of kernel {kernel!r}"


# --- the parameter block ----------------------------------------------------------------------------------


class ParameterBlock:
    """Host memory for the parameters of one launch, zeroed, and the list of their addresses.

    addresses: one per kernel parameter; tensor maps are 128-byte aligned.
    pointers:  the same as the C array that cuLaunchKernelEx takes.
    """

    def __init__(self, offsets: Sequence[int]):
        # The last parameter is a word. ctypes aligns to 16 bytes at best, so there are bytes to start later.
        self._memory = ctypes.create_string_buffer(offsets[-1] + WORD + TENSOR_MAP_BYTES)
        start = ctypes.addressof(self._memory)
        start += -start % TENSOR_MAP_BYTES
        self.addresses = [start + offset for offset in offsets]
        self.pointers = (ctypes.c_void_p * len(offsets))(*self.addresses)


def offsets_of(sizes: Sequence[int]) -> list[int]:
    """Place parameters of these sizes one after the other: tensor maps 128-byte aligned, others in a word."""
    offsets: list[int] = []
    end = 0
    for size in sizes:
        slot = TENSOR_MAP_BYTES if size == TENSOR_MAP_BYTES else WORD
        offset = -(-end // slot) * slot
        offsets.append(offset)
        end = offset + slot
    return offsets
