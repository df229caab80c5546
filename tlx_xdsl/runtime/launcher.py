"""Launches a compiled kernel with nothing but the CUDA driver.

A `Launcher` is made from what the compiler leaves behind: the cubin and a few numbers. No Triton, torch or C
compiler is involved, so it also runs kernels that were compiled ahead of time on another machine.

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
import math
import operator
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from tlx_xdsl.runtime.cuda_driver import (
    MAX_TENSOR_RANK,
    TENSOR_MAP_BYTES,
    ClusterDimension,
    CudaDriver,
    CudaDriverError,
    FunctionAttribute,
    LaunchAttribute,
    LaunchAttributeId,
    LaunchAttributeValue,
    LaunchConfig,
    TensorMapDataType,
    default_driver,
)
from tlx_xdsl.runtime.scratch import DeviceMemory, Scratch
from tlx_xdsl.runtime.tensor_descriptor import dtype_name, element_size

WARP_SIZE = 32

MAX_WARPS = 32
"""Warps of the largest CTA: 1024 threads."""

DEFAULT_SHARED_LIMIT = 48 * 1024
"""Bytes of dynamic shared memory that a kernel may use without asking first."""

PORTABLE_CLUSTER_SIZE = 8
"""CTAs of the largest cluster that needs no opt-in."""

MAX_GRID = (2**31 - 1, 65535, 65535)
"""CTAs along x, y, z."""

MAX_BOX = 256
"""Elements along one dimension of a TMA box."""

_WORD = 8
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


class _Parameter(Protocol):
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


@dataclass(frozen=True)
class _Integer:
    """`i32` and the like. `code` is the struct module's letter."""

    name: str
    code: str
    minimum: int
    maximum: int
    divisor: int = 1
    """What the kernel takes every value to be a multiple of."""

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
        _store(addresses[0], struct.pack("<" + self.code, number))


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
        _store(addresses[0], data)


@dataclass(frozen=True)
class _Pointer:
    """`*fp16` and the like."""

    name: str
    pointee: str | None
    divisor: int = 1
    """What the kernel takes every address to be a multiple of, in bytes."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return (_WORD,)

    def write(self, value: Any, addresses: Sequence[int], where: str, driver: CudaDriver) -> None:
        address = self._address(value, where, driver)
        _check_multiple(address, self.divisor, where, f"an address ({self.name})", f"{address:#x}")
        _store(addresses[0], struct.pack("<Q", address))

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
    """What the compiler decided about one descriptor: the entry of `tensordesc_meta`, checked."""

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
            _store(address, struct.pack("<i", extent))
        for address, stride in zip(addresses[rank + 1 :], value.strides, strict=True):
            _store(address, struct.pack("<q", stride))

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


def _store(address: int, data: bytes) -> None:
    ctypes.memmove(address, data, len(data))


def _wrong_type(where: str, expected: str, value: object) -> TypeError:
    return TypeError(f"{where}: expected {expected}, got {type(value).__name__}")


def _check_dtype(tensor: Any, expected: str | None, where: str) -> None:
    """Refuse a tensor whose elements are known to be of another type than the kernel was compiled for."""
    found = dtype_name(getattr(tensor, "dtype", None))
    if expected is not None and found is not None and found != expected:
        raise TypeError(f"{where}: expected elements of type {expected}, got {found}")


def _check_multiple(value: int, divisor: int, where: str, what: str, found: str) -> None:
    """Refuse what the kernel would misread: its vector accesses rest on what it was told of its arguments."""
    if value % divisor:
        raise ValueError(
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


def _integers() -> dict[str, _Integer]:
    """Return the integer types. One-bit integers take a byte that holds 0 or 1."""
    types = {name: _Integer(name, "B", 0, 1) for name in ("i1", "u1")}
    for width, code in ((8, "b"), (16, "h"), (32, "i"), (64, "q")):
        half = 1 << (width - 1)
        types[f"i{width}"] = _Integer(f"i{width}", code, -half, half - 1)
        types[f"u{width}"] = _Integer(f"u{width}", code.upper(), 0, 2 * half - 1)
    return types


_SCALARS: dict[str, _Parameter] = {
    **_integers(),
    "fp16": _Float("fp16", 2, lambda value: struct.pack("<e", value)),
    "bf16": _Float("bf16", 2, _pack_bf16),
    "fp32": _Float("fp32", 4, lambda value: struct.pack("<f", value)),
    "f32": _Float("f32", 4, lambda value: struct.pack("<f", value)),
    "fp64": _Float("fp64", 8, lambda value: struct.pack("<d", value)),
}


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


def _read_arguments(
    kernel: str, arguments: Sequence[ArgumentSpec], tensordesc_meta: Sequence[Mapping[str, Any]]
) -> list[_Parameter]:
    """Turn the signature into parameters.

    Raises ValueError for a type or metadata that cannot be launched.
    """
    descriptors = sum(spec.type.startswith("tensordesc") for spec in arguments)
    if descriptors != len(tensordesc_meta):
        raise ValueError(
            f"kernel {kernel!r}: expected tensordesc_meta for its {descriptors} tensor descriptors, "
            f"got {len(tensordesc_meta)} entries"
        )
    entries = iter(tensordesc_meta)
    parameters: list[_Parameter] = []
    for index, spec in enumerate(arguments):
        where = _where(kernel, index, spec)
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
            raise ValueError(
                f"{where}: expected the type *..., tensordesc<...> or one of {', '.join(_SCALARS)}; got {spec.type!r}"
            )
    return parameters


def _read_descriptor(type_text: str, meta: Mapping[str, Any], where: str) -> _Descriptor:
    match = _DESCRIPTOR_TYPE.fullmatch(type_text)
    if match is None:
        raise ValueError(f"{where}: expected a type like tensordesc<fp16[128, 64]>, got {type_text!r}")
    block = tuple(int(extent) for extent in match["block"].split(","))
    map_format = read_tensor_map_format(meta, where)
    if not 1 <= len(block) <= MAX_TENSOR_RANK or len(block) != len(map_format.box):
        raise ValueError(
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
        raise ValueError(f"{where}: tensordesc_meta lacks {', '.join(missing)}")
    if meta.get("is_im2col", False):
        raise ValueError(f"{where}: im2col descriptors are not supported, only tiled ones")
    if meta["elem_type"] not in _ELEMENT_TYPES:
        raise ValueError(f"{where}: expected elem_type 0 to 15, got {meta['elem_type']}")
    if meta["swizzle"] not in range(4):
        raise ValueError(f"{where}: expected swizzle 0 (none), 1, 2 or 3 (32, 64, 128 B), got {meta['swizzle']}")
    box = tuple(int(extent) for extent in meta["block_size"])
    if not all(1 <= extent <= MAX_BOX for extent in box):
        raise ValueError(f"{where}: expected block_size entries of 1 to {MAX_BOX}, got {list(box)}")
    return TensorMapFormat(
        _ELEMENT_TYPES[meta["elem_type"]],
        int(meta["elem_size"]),
        meta["swizzle"],
        box,
        bool(meta["fp4_padded"]),
    )


def _where(kernel: str, index: int, spec: ArgumentSpec) -> str:
    return f"argument {index + 1}, {spec.name!r} of kernel {kernel!r}"


# --- the parameter block ----------------------------------------------------------------------------------


class _ParameterBlock:
    """Host memory for the parameters of one launch, zeroed, and the list of their addresses.

    addresses: one per kernel parameter; tensor maps are 128-byte aligned.
    pointers:  the same as the C array that cuLaunchKernelEx takes.
    """

    def __init__(self, offsets: Sequence[int]):
        # The last parameter is a word. ctypes aligns to 16 bytes at best, so there is room to start later.
        self._memory = ctypes.create_string_buffer(offsets[-1] + _WORD + TENSOR_MAP_BYTES)
        start = ctypes.addressof(self._memory)
        start += -start % TENSOR_MAP_BYTES
        self.addresses = [start + offset for offset in offsets]
        self.pointers = (ctypes.c_void_p * len(offsets))(*self.addresses)


def _offsets(sizes: Sequence[int]) -> list[int]:
    """Place parameters of these sizes one after the other: tensor maps 128-byte aligned, others in a word."""
    offsets: list[int] = []
    end = 0
    for size in sizes:
        slot = TENSOR_MAP_BYTES if size == TENSOR_MAP_BYTES else _WORD
        offset = -(-end // slot) * slot
        offsets.append(offset)
        end = offset + slot
    return offsets


# --- the launcher -----------------------------------------------------------------------------------------


class Launcher:
    """A compiled kernel, ready to be launched on the current GPU.

    cubin:            the kernel's code.
    name:             its entry point.
    arguments:        its arguments in order; plain (name, type) pairs will do.
    num_warps:        warps per CTA in total, those of warp-specialised partitions included.
    shared:           dynamic shared memory per CTA, in bytes.
    tensordesc_meta:  for each tensordesc argument what Triton's metadata says of it: `swizzle`, `elem_size`
                      (bytes), `elem_type`, `block_size` (the TMA box, already clamped), `fp4_padded`.
    cluster:          CTAs per cluster along x, y, z. Grids count CTAs, so they must be multiples of it.
    global_scratch_size: bytes of scratch memory per CTA, allocated at the first launch of a stream (`Scratch`).
    profile_scratch_size: bytes of Triton's profiler per CTA; only 0 is supported.
    launch_pdl:       the kernel may start before its predecessor in the stream has finished.
    launch_cooperative_grid: all CTAs must be resident at once.
    driver:           replaces the process's CUDA driver; for tests.

    Making a Launcher needs no GPU: the cubin is loaded at the first launch in a CUDA context, once per
    context.

    Raises ValueError for a signature or a number that no launch could satisfy, NotImplementedError for the
    profiler's memory, and for scratch memory with launch_pdl: two launches would use it at once.
    """

    def __init__(
        self,
        cubin: bytes,
        *,
        name: str,
        arguments: Sequence[ArgumentSpec] | Sequence[tuple[str, str]],
        num_warps: int,
        shared: int,
        tensordesc_meta: Sequence[Mapping[str, Any]] = (),
        cluster: Sequence[int] = (1, 1, 1),
        global_scratch_size: int = 0,
        profile_scratch_size: int = 0,
        launch_pdl: bool = False,
        launch_cooperative_grid: bool = False,
        driver: CudaDriver | None = None,
    ):
        self.cubin = cubin
        self.name = name
        self.arguments = tuple(ArgumentSpec(*argument) for argument in arguments)
        self.num_warps = num_warps
        self.shared = shared
        self.cluster = tuple(cluster)
        self._check_resources(global_scratch_size, profile_scratch_size, launch_pdl)
        # What to do with each argument: its parameter, where that stands in the block, its name in errors.
        self._plan: list[tuple[_Parameter, slice, str]] = []
        self._sizes: list[int] = []
        parameters = _read_arguments(name, self.arguments, tensordesc_meta)
        for index, (spec, parameter) in enumerate(zip(self.arguments, parameters, strict=True)):
            first = len(self._sizes)
            self._sizes.extend(parameter.sizes)
            self._plan.append((parameter, slice(first, len(self._sizes)), _where(name, index, spec)))
        self._sizes.extend((_WORD, _WORD))  # global and profile scratch
        self._offsets = _offsets(self._sizes)
        self._attributes = _launch_attributes(self.cluster, launch_pdl, launch_cooperative_grid)
        self._driver = driver if driver is not None else default_driver()
        self._scratch = Scratch(self._driver, global_scratch_size)
        self._functions: dict[int, int] = {}

    def __call__(self, grid: int | Sequence[int], *args: Any, stream: Any = None) -> None:
        """Enqueue the kernel on a grid of `grid` CTAs (one to three numbers); return without waiting for it.

        Reading the arguments takes some ten microseconds per descriptor: use `bind` for launches that repeat.

        stream: a CUstream as an integer, an object with `cuda_stream` such as torch's, or None for the legacy
        default stream, which is the one torch works on unless told otherwise.

        A grid with a zero in it launches nothing, as in Triton.

        Raises TypeError for a wrong number or type of arguments, OverflowError for a number that its type
        cannot hold, ValueError for an impossible grid, CudaDriverError if the driver refuses the kernel or
        the launch.
        """
        self.bind(grid, *args, stream=stream)()

    def bind(self, grid: int | Sequence[int], *args: Any, stream: Any = None) -> Callable[[], None]:
        """Prepare a launch and return a callable that repeats it with almost no host work.

        The arguments are read now: tensors by address, descriptors by their tensor map, numbers by value. The
        callable keeps them alive, and must be called in the CUDA context that is current now. Raises as a
        call does.
        """
        dims = self._check_grid(grid)
        self._check_count(args)
        if 0 in dims:
            return _launch_nothing
        # A tensor map cannot be encoded, nor an address looked up, before there is a context.
        context = self._driver.ensure_context()
        function = self._function(context)
        scratch = self._scratch.memory(dims, context, _stream_handle(stream))
        block = self._fill(args, scratch)
        config = self._config(dims, stream)
        return self._driver.prepare_launch(
            config,
            function,
            block.pointers,
            keep_alive=(block, args, stream, scratch),
            detail=f"kernel {self.name!r}, grid {dims}, cluster {self.cluster}, "
            f"{self.num_warps} warps, {self.shared} bytes of shared memory",
        )

    def _check_resources(self, global_scratch_size: int, profile_scratch_size: int, launch_pdl: bool) -> None:
        kernel = f"kernel {self.name!r}"
        if not 1 <= self.num_warps <= MAX_WARPS:
            raise ValueError(f"{kernel}: expected num_warps of 1 to {MAX_WARPS}, got {self.num_warps}")
        if self.shared < 0:
            raise ValueError(f"{kernel}: expected shared of 0 bytes or more, got {self.shared}")
        if len(self.cluster) != 3 or min(self.cluster) < 1:
            raise ValueError(f"{kernel}: expected cluster as three positive numbers, got {self.cluster}")
        if global_scratch_size < 0:
            raise ValueError(f"{kernel}: expected global_scratch_size of 0 bytes or more, got {global_scratch_size}")
        if profile_scratch_size > 0:
            raise NotImplementedError(f"{kernel} needs {profile_scratch_size} bytes of profile scratch memory per CTA")
        if global_scratch_size and launch_pdl:
            raise NotImplementedError(
                f"{kernel} needs scratch memory, which a launch that starts early would share with its predecessor"
            )

    def _check_grid(self, grid: int | Sequence[int]) -> tuple[int, int, int]:
        given = (grid,) if isinstance(grid, int) else tuple(grid)
        if not 1 <= len(given) <= 3:
            raise ValueError(f"kernel {self.name!r}: expected a grid of 1 to 3 numbers, got {given}")
        x, y, z = (*(operator.index(extent) for extent in given), *[1] * (3 - len(given)))
        dims = (x, y, z)
        for axis, extent, limit, cluster in zip("xyz", dims, MAX_GRID, self.cluster, strict=True):
            if not 0 <= extent <= limit:
                raise ValueError(f"kernel {self.name!r}: expected a grid of 0 to {limit} in {axis}, got {extent}")
            if extent % cluster:
                raise ValueError(
                    f"kernel {self.name!r}: expected a grid that is a multiple of the cluster's "
                    f"{cluster} CTAs in {axis}, got {extent}"
                )
        return dims

    def _check_count(self, args: Sequence[Any]) -> None:
        if len(args) != len(self.arguments):
            names = ", ".join(spec.name for spec in self.arguments)
            raise TypeError(
                f"kernel {self.name!r}: expected {len(self.arguments)} arguments ({names}), got {len(args)}"
            )

    def _function(self, context: int) -> int:
        """Return the kernel's handle in `context`, loading it there the first time."""
        function = self._functions.get(context)
        if function is None:
            function = self._functions[context] = self._load()
        return function

    def _load(self) -> int:
        driver = self._driver
        available = driver.max_shared_memory()
        if self.shared > available:
            raise CudaDriverError(
                f"loading kernel {self.name!r}",
                f"it needs {self.shared} bytes of shared memory per CTA, this GPU offers {available}",
            )
        function = driver.get_function(driver.load_module(self.cubin), self.name)
        self._check_signature(function)
        if self.shared > DEFAULT_SHARED_LIMIT:
            driver.prefer_shared_memory(function)
            driver.set_function_attribute(function, FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, self.shared)
        if math.prod(self.cluster) > PORTABLE_CLUSTER_SIZE:
            driver.set_function_attribute(function, FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
        return function

    def _check_signature(self, function: int) -> None:
        """Compare the parameters with what the cubin declares.

        The driver reads as many parameters as the kernel has: with a list too short it would run past the
        end.
        """
        declared = self._driver.parameter_sizes(function, len(self._sizes) + 1)
        if declared is not None and declared != self._sizes:
            names = ", ".join(f"{spec.name}: {spec.type}" for spec in self.arguments)
            raise ValueError(
                f"kernel {self.name!r}: the signature ({names}) makes parameters of {self._sizes} bytes, "
                f"the cubin declares {declared}"
            )

    def _fill(self, args: Sequence[Any], scratch: DeviceMemory | None) -> _ParameterBlock:
        block = _ParameterBlock(self._offsets)
        for (parameter, slots, where), value in zip(self._plan, args, strict=True):
            parameter.write(value, block.addresses[slots], where, self._driver)
        # The two addresses that follow are null where a kernel needs no such memory.
        if scratch is not None:
            _store(block.addresses[-2], struct.pack("<Q", scratch.address))
        return block

    def _config(self, dims: tuple[int, int, int], stream: Any) -> LaunchConfig:
        config = LaunchConfig()
        config.grid_x, config.grid_y, config.grid_z = dims
        config.block_x, config.block_y, config.block_z = WARP_SIZE * self.num_warps, 1, 1
        config.shared_bytes = self.shared
        config.stream = _stream_handle(stream)
        if self._attributes:
            # ctypes keeps the array alive with the structure.
            config.attributes = (LaunchAttribute * len(self._attributes))(*self._attributes)
            config.attribute_count = len(self._attributes)
        return config


def _launch_attributes(
    cluster: Sequence[int], launch_pdl: bool, launch_cooperative_grid: bool
) -> list[LaunchAttribute]:
    attributes: list[LaunchAttribute] = []
    if launch_pdl:
        attributes.append(
            LaunchAttribute(id=LaunchAttributeId.PROGRAMMATIC_STREAM_SERIALIZATION, value=LaunchAttributeValue(flag=1))
        )
    if launch_cooperative_grid:
        attributes.append(LaunchAttribute(id=LaunchAttributeId.COOPERATIVE, value=LaunchAttributeValue(flag=1)))
    if math.prod(cluster) > 1:
        dimension = ClusterDimension(*cluster)
        attributes.append(
            LaunchAttribute(
                id=LaunchAttributeId.CLUSTER_DIMENSION,
                value=LaunchAttributeValue(cluster_dimension=dimension),
            )
        )
    return attributes


def _stream_handle(stream: Any) -> int:
    if stream is None:
        return 0
    handle = getattr(stream, "cuda_stream", stream)
    if not isinstance(handle, int):
        raise TypeError(f"stream: expected an integer, an object with cuda_stream or None, got {stream!r}")
    return handle


def _launch_nothing() -> None:
    """Stand in for the launch of an empty grid, which the driver would refuse."""
