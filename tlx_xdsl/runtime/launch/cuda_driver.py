"""The part of the CUDA driver that launching a kernel needs, through ctypes.

Why ctypes: it is in the standard library and needs no compiler, so a compiled kernel can be launched on a
machine that has nothing but Python and NVIDIA's driver. The cost is about 5 microseconds of host time per
launch with the arguments prepared, no more than stock Triton's C launcher.

Names, numbers and layouts are those of NVIDIA's public header `cuda.h` (CUDA 12.8 to 13.1, which agree on
everything here) and of the "CUDA Driver API" manual. 64-bit Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import functools
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, cast

LIBRARY_NAME = "libcuda.so.1"

TENSOR_MAP_BYTES = 128
"""Size of a CUtensorMap, and the alignment of its destination that suits every version (12.x asks for 64)."""

MAX_TENSOR_RANK = 5

_ABI_VERSION_AT, _ABI_OF_CUDA_13 = 8, b"\x08"  # of ELF; that of ptxas 12 is 7
_ERROR_INVALID_VALUE = 1  # CUDA_ERROR_INVALID_VALUE
ERROR_OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
ERROR_INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT: among others, none is current in the thread
_STREAM_CAPTURE_MODE_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_STREAM_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_POINTER_ATTRIBUTE_DEVICE_POINTER = 3  # CU_POINTER_ATTRIBUTE_DEVICE_POINTER
_FUNC_CACHE_PREFER_SHARED = 1  # CU_FUNC_CACHE_PREFER_SHARED
_TENSOR_MAP_INTERLEAVE_NONE = 0  # CU_TENSOR_MAP_INTERLEAVE_NONE
_TENSOR_MAP_L2_PROMOTION_128B = 2  # CU_TENSOR_MAP_L2_PROMOTION_L2_128B
_TENSOR_MAP_OOB_FILL_NONE = 0  # CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, which reads zero
_TENSOR_MAP_OOB_FILL_NAN = 1  # CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA

# Bit 85 of a tensor map says that the tensor spans at least 128 KiB. Drivers before CUDA 13.2 set it for
# smaller ones too, which makes addresses past the tensor's end go wrong on Blackwell; on Hopper the bit is
# reserved. CUTLASS (cute/atom/copy_traits_sm90_im2col.hpp) and Triton 3.9 (backends/nvidia/driver.c) clear
# it, with these numbers.
_LAST_DRIVER_WITH_SMALL_TENSOR_BUG = 13010
_SMALL_TENSOR_BYTES = 128 * 1024
_LARGE_TENSOR_BIT = 1 << (85 - 64)  # of the map's second 64-bit word


class DeviceAttribute(enum.IntEnum):
    """CUdevice_attribute."""

    MULTIPROCESSOR_COUNT = 16
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97


class FunctionAttribute(enum.IntEnum):
    """CUfunction_attribute."""

    MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
    NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14


class LaunchAttributeId(enum.IntEnum):
    """CUlaunchAttributeID."""

    COOPERATIVE = 2
    CLUSTER_DIMENSION = 4
    PROGRAMMATIC_STREAM_SERIALIZATION = 6


class TensorMapDataType(enum.IntEnum):
    """CUtensorMapDataType."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12
    PACKED_16U4_ALIGN8B = 13
    PACKED_16U4_ALIGN16B = 14
    PACKED_16U6_ALIGN16B = 15


class ClusterDimension(ctypes.Structure):
    """The `clusterDim` member of CUlaunchAttributeValue: CTAs per cluster along each axis."""

    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class LaunchAttributeValue(ctypes.Union):
    """CUlaunchAttributeValue: 64 bytes, 8-byte aligned. `flag` stands for its `int` members."""

    _fields_ = [
        ("pad", ctypes.c_uint64 * 8),
        ("cluster_dimension", ClusterDimension),
        ("flag", ctypes.c_int),
    ]


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: 72 bytes."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", LaunchAttributeValue)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig: 56 bytes. Grid in CTAs, block in threads, shared memory in bytes."""

    _fields_ = [
        ("grid_x", ctypes.c_uint),
        ("grid_y", ctypes.c_uint),
        ("grid_z", ctypes.c_uint),
        ("block_x", ctypes.c_uint),
        ("block_y", ctypes.c_uint),
        ("block_z", ctypes.c_uint),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", ctypes.c_uint),
    ]


class KernelNodeParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS, version 2: 72 bytes. Grid in CTAs, block in threads, shared memory in bytes."""

    _fields_ = [
        ("function", ctypes.c_void_p),
        ("grid_x", ctypes.c_uint),
        ("grid_y", ctypes.c_uint),
        ("grid_z", ctypes.c_uint),
        ("block_x", ctypes.c_uint),
        ("block_y", ctypes.c_uint),
        ("block_z", ctypes.c_uint),
        ("shared_bytes", ctypes.c_uint),
        ("parameters", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    ]


# Handles (CUcontext, CUmodule, CUfunction, CUstream) are opaque pointers; CUdevice and the enumerations are
# int; CUdeviceptr is 64 bits. None of these symbols has a versioned (`_v2`) name; `cuLaunchKernelEx` and
# `cuStreamSynchronize` without `_ptsz` take stream 0 as the legacy default stream, which is also torch's.
_HANDLE = ctypes.c_void_p
_OUT_HANDLE = ctypes.POINTER(ctypes.c_void_p)
_OUT_INT = ctypes.POINTER(ctypes.c_int)
_OUT_SIZE = ctypes.POINTER(ctypes.c_size_t)
_OUT_TEXT = ctypes.POINTER(ctypes.c_char_p)
_U32S = ctypes.POINTER(ctypes.c_uint32)
_U64S = ctypes.POINTER(ctypes.c_uint64)

_FiveInts = ctypes.c_uint32 * MAX_TENSOR_RANK
_FiveLongs = ctypes.c_uint64 * MAX_TENSOR_RANK

SIGNATURES: dict[str, tuple[type[Any], ...]] = {
    "cuInit": (ctypes.c_uint,),
    "cuDriverGetVersion": (_OUT_INT,),
    "cuGetErrorName": (ctypes.c_int, _OUT_TEXT),
    "cuGetErrorString": (ctypes.c_int, _OUT_TEXT),
    "cuDeviceGetCount": (_OUT_INT,),
    "cuDeviceGet": (_OUT_INT, ctypes.c_int),
    "cuDeviceGetAttribute": (_OUT_INT, ctypes.c_int, ctypes.c_int),
    "cuDeviceGetName": (ctypes.c_char_p, ctypes.c_int, ctypes.c_int),
    "cuDevicePrimaryCtxRetain": (_OUT_HANDLE, ctypes.c_int),
    "cuCtxGetCurrent": (_OUT_HANDLE,),
    "cuCtxSetCurrent": (_HANDLE,),
    "cuCtxGetDevice": (_OUT_INT,),
    "cuCtxSynchronize": (),
    "cuStreamSynchronize": (_HANDLE,),
    "cuModuleLoadData": (_OUT_HANDLE, ctypes.c_void_p),
    "cuModuleGetFunction": (_OUT_HANDLE, _HANDLE, ctypes.c_char_p),
    "cuFuncSetAttribute": (_HANDLE, ctypes.c_int, ctypes.c_int),
    "cuFuncSetCacheConfig": (_HANDLE, ctypes.c_int),
    "cuFuncGetParamInfo": (_HANDLE, ctypes.c_size_t, _OUT_SIZE, _OUT_SIZE),
    "cuMemAlloc_v2": (ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t),
    "cuMemFree_v2": (ctypes.c_uint64,),
    "cuThreadExchangeStreamCaptureMode": (_OUT_INT,),
    "cuMemAllocAsync": (ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t, _HANDLE),
    "cuMemFreeAsync": (ctypes.c_uint64, _HANDLE),
    "cuMemsetD8Async": (ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, _HANDLE),
    "cuStreamCreate": (_OUT_HANDLE, ctypes.c_uint),
    "cuStreamDestroy_v2": (_HANDLE,),
    "cuStreamBeginCapture_v2": (_HANDLE, ctypes.c_int),
    "cuStreamEndCapture": (_HANDLE, _OUT_HANDLE),
    "cuGraphGetNodes": (_HANDLE, _OUT_HANDLE, _OUT_SIZE),
    "cuGraphKernelNodeGetParams_v2": (_HANDLE, ctypes.POINTER(KernelNodeParams)),
    "cuGraphInstantiateWithFlags": (_OUT_HANDLE, _HANDLE, ctypes.c_ulonglong),
    "cuGraphDestroy": (_HANDLE,),
    "cuGraphExecDestroy": (_HANDLE,),
    "cuGraphExecKernelNodeSetParams_v2": (_HANDLE, _HANDLE, ctypes.POINTER(KernelNodeParams)),
    "cuGraphLaunch": (_HANDLE, _HANDLE),
    "cuPointerGetAttribute": (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64),
    "cuTensorMapEncodeTiled": (
        ctypes.c_void_p,  # tensorMap
        ctypes.c_int,  # tensorDataType
        ctypes.c_uint32,  # tensorRank
        ctypes.c_void_p,  # globalAddress
        _U64S,  # globalDim
        _U64S,  # globalStrides
        _U32S,  # boxDim
        _U32S,  # elementStrides
        ctypes.c_int,  # interleave
        ctypes.c_int,  # swizzle
        ctypes.c_int,  # l2Promotion
        ctypes.c_int,  # oobFill
    ),
    "cuTensorMapReplaceAddress": (ctypes.c_void_p, ctypes.c_void_p),
    "cuLaunchKernelEx": (
        ctypes.POINTER(LaunchConfig),
        _HANDLE,
        ctypes.POINTER(ctypes.c_void_p),  # kernelParams: one address per parameter
        ctypes.POINTER(ctypes.c_void_p),  # extra: not used
    ),
}
"""Parameter types of every function used here; all return a CUresult."""


class CudaDriverError(RuntimeError):
    """A driver call failed, or there is no driver to call.

    call: the function that failed, such as `cuModuleLoadData`.
    code: its CUresult, None when the function could not be called at all.
    """

    def __init__(self, call: str, reason: str, *, code: int | None = None):
        self.call = call
        self.code = code
        super().__init__(f"{call} failed: {reason}")


@dataclass(frozen=True, eq=False, slots=True)
class PreparedLaunch:
    """One kernel launch with everything in place: calling it enqueues the kernel, nothing more.

    It holds the memory that the driver reads at each launch, so it can be called any number of times. The
    calling thread must have the context current in which the launch was prepared.
    """

    _enqueue: Callable[[], int]
    _describe_failure: Callable[[int], CudaDriverError]
    _keep_alive: object

    def __call__(self) -> None:
        """Enqueue the kernel; return without waiting for it.

        Raises CudaDriverError if the driver refuses the launch, or reports the failure of an earlier kernel
        here.
        """
        code = self._enqueue()
        if code:
            raise self._describe_failure(code)


class CudaDriver:
    """The driver, loaded and initialised at the first call that needs it.

    Handles are plain integers. Every method raises CudaDriverError when the driver is missing or refuses.

    library: an object to use in place of libcuda, with the functions of SIGNATURES; for tests.
    """

    def __init__(self, library: Any = None):
        self._library = library
        self._initialised = False
        self._entries: dict[str, Callable[..., int]] = {}
        self._primary_contexts: dict[int, int] = {}
        self._lock = threading.RLock()

    # --- the library --------------------------------------------------------------------------------------

    def available(self) -> bool:
        """Return whether the driver works and sees at least one GPU. Never raises."""
        try:
            return self._get(ctypes.c_int, "cuDeviceGetCount") > 0
        except CudaDriverError:
            return False

    def capabilities(self) -> list[tuple[int, int]]:
        """Return (major, minor) of every GPU here; none where there is no driver. No context is made."""
        if not self.available():
            return []
        ordinals = range(self._get(ctypes.c_int, "cuDeviceGetCount"))
        return [self._capability_of(self._get(ctypes.c_int, "cuDeviceGet", ordinal)) for ordinal in ordinals]

    def _capability_of(self, device: int) -> tuple[int, int]:
        major = self._attribute_of(device, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR)
        return major, self._attribute_of(device, DeviceAttribute.COMPUTE_CAPABILITY_MINOR)

    def _attribute_of(self, device: int, attribute: DeviceAttribute) -> int:
        return self._get(ctypes.c_int, "cuDeviceGetAttribute", int(attribute), device)

    def device_name(self, ordinal: int) -> str:
        """Return the name of a GPU by its number, such as `NVIDIA H200`."""
        text = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", text, len(text), self._get(ctypes.c_int, "cuDeviceGet", ordinal))
        return text.value.decode()

    def version(self) -> int:
        """Return the CUDA version the driver supports: 13000 means 13.0."""
        return self._get(ctypes.c_int, "cuDriverGetVersion")

    def _initialise(self) -> None:
        if self._initialised:
            return
        with self._lock:
            if self._initialised:
                # Another thread was faster.
                return
            if self._library is None:
                self._library = _load_library()
            self._check("cuInit", self._entry("cuInit")(0))
            self._initialised = True

    def _entry(self, name: str) -> Callable[..., int]:
        """Return the C function `name` with its parameter types declared."""
        entry = self._entries.get(name)
        if entry is None:
            try:
                function = getattr(self._library, name)
            except AttributeError:
                raise CudaDriverError(
                    name,
                    f"{LIBRARY_NAME} has no such function; the NVIDIA driver is too old for this launcher",
                ) from None
            function.argtypes = SIGNATURES[name]
            function.restype = ctypes.c_int
            entry = self._entries[name] = function
        return entry

    def _call(self, name: str, *arguments: Any, detail: str = "") -> None:
        self._initialise()
        self._check(name, self._entry(name)(*arguments), detail)

    def _get(self, type_: type[Any], name: str, *arguments: Any, detail: str = "") -> int:
        """Return what a function writes to its first argument, which points to a `type_`; 0 for a null pointer."""
        result = type_()
        self._call(name, ctypes.byref(result), *arguments, detail=detail)
        return result.value or 0

    def _check(self, name: str, code: int, detail: str = "") -> None:
        if code:
            raise self._error(name, code, detail)

    def _error(self, name: str, code: int, detail: str = "") -> CudaDriverError:
        """Describe `code` in the driver's own words; `detail` says what the call was about."""
        symbol, text = ctypes.c_char_p(), ctypes.c_char_p()
        self._entry("cuGetErrorName")(code, ctypes.byref(symbol))
        self._entry("cuGetErrorString")(code, ctypes.byref(text))
        reason = f"{(symbol.value or b'unknown error').decode()} ({code}): {(text.value or b'no text').decode()}"
        return CudaDriverError(name, f"{reason}; {detail}" if detail else reason, code=code)

    # --- context and device -------------------------------------------------------------------------------

    def ensure_context(self, ordinal: int = 0) -> int:
        """Return this thread's current context, making one current if there is none.

        torch and other CUDA users leave their device's primary context current, and it is shared with them.
        In a thread without one, the primary context of a device, by its number, is retained for the life of the
        process.
        """
        if current := self._get(ctypes.c_void_p, "cuCtxGetCurrent"):
            return current
        context = self._retain_primary_context(ordinal)
        self.set_context(context)
        return context

    def set_context(self, context: int) -> None:
        """Make a context current in this thread."""
        self._call("cuCtxSetCurrent", context)

    def _retain_primary_context(self, ordinal: int) -> int:
        with self._lock:
            if ordinal not in self._primary_contexts:
                device = self._get(ctypes.c_int, "cuDeviceGet", ordinal)
                self._primary_contexts[ordinal] = self._get(ctypes.c_void_p, "cuDevicePrimaryCtxRetain", device)
            return self._primary_contexts[ordinal]

    def device_attribute(self, attribute: DeviceAttribute) -> int:
        """Return an attribute of the current context's device."""
        self.ensure_context()
        return self._attribute_of(self._get(ctypes.c_int, "cuCtxGetDevice"), attribute)

    def compute_capability(self) -> tuple[int, int]:
        """Return (major, minor): (9, 0) on Hopper, (10, 0) on Blackwell data-centre parts."""
        return (
            self.device_attribute(DeviceAttribute.COMPUTE_CAPABILITY_MAJOR),
            self.device_attribute(DeviceAttribute.COMPUTE_CAPABILITY_MINOR),
        )

    def multiprocessor_count(self) -> int:
        """Return the number of SMs."""
        return self.device_attribute(DeviceAttribute.MULTIPROCESSOR_COUNT)

    def max_shared_memory(self) -> int:
        """Return the largest shared memory that one CTA can ask for, in bytes."""
        return self.device_attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)

    def device_address(self, address: int) -> int | None:
        """Return the address by which kernels reach `address`; None for ordinary host memory."""
        self._initialise()
        result = ctypes.c_uint64()
        code = self._entry("cuPointerGetAttribute")(ctypes.byref(result), _POINTER_ATTRIBUTE_DEVICE_POINTER, address)
        if code == _ERROR_INVALID_VALUE:
            return None
        self._check("cuPointerGetAttribute", code)
        return result.value

    def allocate(self, size: int) -> int:
        """Return the address of `size` bytes of memory in the current context."""
        return self._get(ctypes.c_uint64, "cuMemAlloc_v2", size, detail=f"{size} bytes")

    def allocate_in_order(self, size: int, stream: int) -> int:
        """Return the address of `size` bytes for what is enqueued in a stream of the current context from now on.

        The stream is not being captured: that would make the allocation a part of the graph.
        """
        return self._get(ctypes.c_uint64, "cuMemAllocAsync", size, stream, detail=f"{size} bytes")

    def free_in_order(self, address: int, stream: int) -> None:
        """Give back what `allocate_in_order` returned, once what the stream has been given so far has ended."""
        self._call("cuMemFreeAsync", address, stream)

    def clear_in_order(self, address: int, size: int, stream: int) -> None:
        """Write zeros to memory, in the order of a stream."""
        self._call("cuMemsetD8Async", address, 0, size, stream, detail=f"{size} bytes")

    @contextlib.contextmanager
    def beside_captures(self) -> Generator[None]:
        """Let this thread allocate while another one captures a CUDA graph, which that could break otherwise.

        The memory is not for the graph.
        """
        mode = ctypes.c_int(_STREAM_CAPTURE_MODE_RELAXED)
        self._call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        try:
            yield
        finally:
            self._call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))

    def free(self, address: int) -> None:
        """Give back what `allocate` returned, when the kernels that use it have ended.

        For memory of `allocate_in_order` nothing is waited for: its kernels must have ended.
        """
        # It may be called from anywhere, also in a thread without a context.
        self.ensure_context()
        self._call("cuMemFree_v2", address)

    def synchronize(self, stream: int | None = None) -> None:
        """Wait for `stream`, or for everything in the current context when None.

        A kernel that failed while running is reported here, at the earliest.
        """
        if stream is None:
            self._call("cuCtxSynchronize")
        else:
            self._call("cuStreamSynchronize", stream)

    # --- kernels ------------------------------------------------------------------------------------------

    def load_module(self, image: bytes) -> int:
        """Load a cubin into the current context."""
        detail = f"loading a cubin of {len(image)} bytes"
        if image[_ABI_VERSION_AT : _ABI_VERSION_AT + 1] == _ABI_OF_CUDA_13 and (cuda := cuda_major() or 13) < 13:
            detail += f", made by a ptxas of CUDA 13, while the driver is of CUDA {cuda}: compile with --ptxas {cuda}"
        return self._get(ctypes.c_void_p, "cuModuleLoadData", image, detail=detail)

    def get_function(self, module: int, name: str) -> int:
        """Return the kernel `name` of a loaded module."""
        detail = f"kernel {name!r}"
        return self._get(ctypes.c_void_p, "cuModuleGetFunction", module, name.encode(), detail=detail)

    def set_function_attribute(self, function: int, attribute: FunctionAttribute, value: int) -> None:
        """Set an attribute of a kernel."""
        detail = f"{attribute.name} = {value}"
        self._call("cuFuncSetAttribute", function, int(attribute), value, detail=detail)

    def prefer_shared_memory(self, function: int) -> None:
        """Ask for as much of the L1 as possible to serve as shared memory for this kernel."""
        self._call("cuFuncSetCacheConfig", function, _FUNC_CACHE_PREFER_SHARED)

    def parameter_sizes(self, function: int, limit: int) -> list[int] | None:
        """Return the sizes in bytes of a kernel's first `limit` parameters; fewer if it has fewer.

        None when this driver does not say (before CUDA 12.4).
        """
        try:
            self._initialise()
            query = self._entry("cuFuncGetParamInfo")
        except CudaDriverError as error:
            if error.code is None and error.call == "cuFuncGetParamInfo":
                return None
            raise
        sizes: list[int] = []
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        for index in range(limit):
            code = query(function, index, ctypes.byref(offset), ctypes.byref(size))
            if code == _ERROR_INVALID_VALUE:  # past the last parameter
                break
            self._check("cuFuncGetParamInfo", code)
            sizes.append(size.value)
        return sizes

    def encode_tiled(
        self,
        destination: int,
        *,
        data_type: TensorMapDataType,
        element_bytes: int,
        address: int,
        shape: Sequence[int],
        strides: Sequence[int],
        box: Sequence[int],
        swizzle: int,
        nan_fill: bool,
        what: str,
    ) -> None:
        """Write a CUtensorMap for tiled copies to the host address `destination` (128-byte aligned).

        shape:    extents in elements, INNERMOST first, like `strides` and `box`.
        strides:  distances in bytes of all dimensions but the innermost: one entry less than `shape`.
        box:      elements of one copy, at most 256 per dimension.
        swizzle:  CUtensorMapSwizzle: 0 none, 1, 2, 3 for spans of 32, 64, 128 bytes.
        nan_fill: elements outside the tensor read as NaN instead of zero.
        what:     names the tensor in errors.
        """
        self._initialise()
        rank = len(shape)
        code = self._entry("cuTensorMapEncodeTiled")(
            destination,
            data_type,
            rank,
            address,
            _FiveLongs(*shape),
            _FiveLongs(*strides),
            _FiveInts(*box),
            _FiveInts(1, 1, 1, 1, 1),
            _TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            _TENSOR_MAP_L2_PROMOTION_128B,
            _TENSOR_MAP_OOB_FILL_NAN if nan_fill else _TENSOR_MAP_OOB_FILL_NONE,
        )
        if code:
            detail = (
                f"{what}: {data_type.name} tensor at {address:#x}; innermost first: shape {list(shape)}, "
                f"byte strides {list(strides)}, box {list(box)}; swizzle {swizzle}"
            )
            raise self._error("cuTensorMapEncodeTiled", code, detail)
        spans = zip(shape, [element_bytes, *strides], strict=True)
        last_element = sum((extent - 1) * stride for extent, stride in spans)
        if last_element + 1 < _SMALL_TENSOR_BYTES and self.version() <= _LAST_DRIVER_WITH_SMALL_TENSOR_BUG:
            ctypes.c_uint64.from_address(destination + 8).value &= ~_LARGE_TENSOR_BIT

    def tensor_map_mover(self, destination: int, what: str) -> Callable[[int], None]:
        """Return a function that gives the tensor map at the host address `destination` another global address.

        The map is one of `encode_tiled`'s; `what` names the tensor in errors. The function raises CudaDriverError for
        an address that is no multiple of 16.
        """
        replace, tensor_map = self._untyped("cuTensorMapReplaceAddress"), _passed(destination)
        flags = ctypes.c_uint64.from_address(destination + 8)
        # Whether the driver sets the bit again is not said.
        is_cleared = not flags.value & _LARGE_TENSOR_BIT

        def move(address: int) -> None:
            code = replace(tensor_map, _passed(address))
            if code == ERROR_INVALID_CONTEXT:
                # A thread that has made no call to CUDA yet.
                self.ensure_context()
                code = replace(tensor_map, _passed(address))
            if code:
                raise self._error("cuTensorMapReplaceAddress", code, f"{what}: tensor at {address:#x}")
            if is_cleared:
                flags.value &= ~_LARGE_TENSOR_BIT

        return move

    def enqueuer(self, config: LaunchConfig, function: int, parameters: Any) -> Callable[[], int]:
        """Return what enqueues a kernel and returns the driver's code, 0 for success: see `prepare_launch`.

        The memory that `parameters` points to must live as long.
        """
        entry = self._untyped("cuLaunchKernelEx")
        return functools.partial(entry, ctypes.byref(config), _passed(function), ctypes.byref(parameters), None)

    def _untyped(self, name: str) -> Callable[..., int]:
        """A function without the types of its parameters, which ctypes would compare at each call for half of its time.

        It takes what `_passed` and `ctypes.byref` return, and None.
        """
        self._initialise()
        declared = ctypes.cast(cast(Any, self._entry(name)), ctypes.c_void_p)
        return ctypes.CFUNCTYPE(ctypes.c_int)(declared.value or 0)

    def failure(self, call: str, code: int, detail: str) -> CudaDriverError:
        """Return what to raise for a code of an `enqueuer` and the like, which call such a function."""
        return self._error(call, code, detail)

    def prepare_launch(
        self, config: LaunchConfig, function: int, parameters: Any, *, keep_alive: object, detail: str
    ) -> PreparedLaunch:
        """Return a callable that launches `function`.

        parameters: ctypes array of the addresses of the parameters, as many as the kernel has.
        keep_alive: whatever must live as long as the callable: the memory of `parameters`, the tensors.
        detail:     says in errors what was launched.
        """
        return PreparedLaunch(
            self.enqueuer(config, function, parameters),
            lambda code: self.failure("cuLaunchKernelEx", code, detail),
            (config, keep_alive),
        )

    # --- graphs -------------------------------------------------------------------------------------------

    def captured_graph(self, enqueue: Callable[[int], None]) -> int:
        """Return the handle of a graph of what `enqueue` puts into the stream that it is called with.

        What other threads capture is not disturbed.
        """
        with self.beside_captures():
            stream = self._get(ctypes.c_void_p, "cuStreamCreate", _STREAM_NON_BLOCKING)
            graph = ctypes.c_void_p()
            try:
                self._call("cuStreamBeginCapture_v2", stream, _STREAM_CAPTURE_MODE_RELAXED)
                try:
                    enqueue(stream)
                finally:
                    self._call("cuStreamEndCapture", stream, ctypes.byref(graph))
            except CudaDriverError:
                if graph:
                    self._call("cuGraphDestroy", graph)
                raise
            finally:
                self._call("cuStreamDestroy_v2", stream)
        return graph.value or 0

    def instantiated(self, graph: int) -> int:
        """Return the handle of an executable graph; what other threads capture is not disturbed."""
        with self.beside_captures():
            return self._get(ctypes.c_void_p, "cuGraphInstantiateWithFlags", graph, 0)

    def kernel_nodes(self, graph: int) -> dict[int, tuple[int, KernelNodeParams]]:
        """Return the nodes of a graph of kernels, each with what it has of its launch, by their functions."""
        count = ctypes.c_size_t()
        self._call("cuGraphGetNodes", graph, None, ctypes.byref(count))
        nodes = (ctypes.c_void_p * count.value)()
        self._call("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
        found: dict[int, tuple[int, KernelNodeParams]] = {}
        for node in nodes:
            launched = KernelNodeParams()
            self._call("cuGraphKernelNodeGetParams_v2", node, ctypes.byref(launched))
            found[launched.function or 0] = node or 0, launched
        return found

    def destroy_graph(self, graph: int, executable: int = 0) -> None:
        """Give back a graph, and its executable one; launches of it that have not ended go on."""
        # It may be called from anywhere, also in a thread without a context.
        self.ensure_context()
        with self.beside_captures():
            if executable:
                self._call("cuGraphExecDestroy", executable)
            self._call("cuGraphDestroy", graph)

    def graph_enqueuer(self, executable: int, stream: int) -> Callable[[], int]:
        """Return what enqueues a graph in a stream and returns the driver's code, 0 for success."""
        return functools.partial(self._untyped("cuGraphLaunch"), _passed(executable), _passed(stream))

    def node_updater(self, executable: int, node: int, launched: KernelNodeParams) -> Callable[[], int]:
        """Return what has a node of an executable graph copy a kernel's parameters; it returns the driver's code.

        `launched` is that of `kernel_nodes`, with `parameters` to memory that lives as long. So does the graph that the
        node is of.
        """
        entry = self._untyped("cuGraphExecKernelNodeSetParams_v2")
        return functools.partial(entry, _passed(executable), _passed(node), ctypes.byref(launched))


_passed: Callable[[int], Any] = ctypes.c_void_p.from_param
"""A handle or an address as ctypes hands it on."""


def _load_library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(LIBRARY_NAME)
    except OSError as error:
        raise CudaDriverError(
            f"loading {LIBRARY_NAME}", f"{error}; launching needs an NVIDIA GPU and its driver"
        ) from None


@functools.cache
def default_driver() -> CudaDriver:
    """Return the process's driver object."""
    return CudaDriver()


@functools.cache
def cuda_major() -> int | None:
    """Return the major CUDA version whose binaries the driver loads, such as 13; None without a driver.

    The driver is not initialised for it, which takes a while.
    """
    try:
        library = _load_library()
    except CudaDriverError:
        return None
    version = ctypes.c_int()
    return version.value // 1000 if library.cuDriverGetVersion(ctypes.byref(version)) == 0 else None


def available() -> bool:
    """Return whether kernels can be launched here: a working driver and at least one GPU. Never raises."""
    return default_driver().available()
