"""Runs recorded cases on this GPU: `python device_side.py CASES.pkl.xz RESULTS.pkl.xz`; needs CUDA's driver only.

The input is a list of `launches.Recording`s as dictionaries, of plain types; the output a pickle for each case of its
name and the bytes of its outputs, or of what the driver refused.
"""

from __future__ import annotations

import ctypes
import lzma
import os
import pickle
import struct
import sys
from typing import Any

_MAP = struct.Struct("<Q5I4Q5I5IBBBBBB")
"""A tensor map of the PTX machine (`tlx_xdsl/ptx/memory/tensor_map.py`)."""
_MAP_BYTES = 128
_TYPES_OF_THE_DRIVER = {8: 10, 9: 8, 10: 9}
"""From the numbers of `tensormap.replace` to those of CUtensorMapDataType, where they differ."""
_MAX_DYNAMIC_SHARED, _NON_PORTABLE_CLUSTER, _CLUSTER_DIMENSION = 8, 14, 4


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint32 * 16)]


class _Config(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(_Attribute)), ("count", ctypes.c_uint),
    ]  # fmt: skip


class Device:
    """The first GPU."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        """Call the driver. Raises RuntimeError for what it refuses."""
        code = getattr(self.cuda, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def copy_in(self, data: bytes) -> int:
        """Memory with these bytes, and some after them."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(len(data) + 1024))
        self.call("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(data)))
        return address.value

    def copy_out(self, address: int, size: int) -> bytes:
        """The bytes at an address."""
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return data.raw

    def free(self, address: int) -> None:
        """Give memory back."""
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def launch(self, launch: dict[str, Any], memories: list[int]) -> None:
        """Launch a kernel and wait for it."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), launch["cubin"])
        self.call("cuModuleGetFunction", ctypes.byref(function), module, launch["entry"].encode())
        self.call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, launch["shared"])
        self.call("cuFuncSetAttribute", function, _NON_PORTABLE_CLUSTER, 1)
        scratch = self.copy_in(bytes(launch["scratch"])) if launch["scratch"] else 0
        values = [self._value(raw, launch["buffers"], memories) for _, raw in launch["parameters"]]
        if scratch:
            values[-2] = struct.pack("<Q", scratch)
        held = []
        for raw in values:
            # A tensor map must be aligned to 64 bytes.
            memory = ctypes.create_string_buffer(len(raw) + 64)
            start = -ctypes.addressof(memory) % 64
            memory[start : start + len(raw)] = raw
            held.append((memory, ctypes.addressof(memory) + start))
        parameters = (ctypes.c_void_p * max(1, len(held)))(*(address for _, address in held))
        attribute = _Attribute(_CLUSTER_DIMENSION, b"", (ctypes.c_uint32 * 16)(*launch["cluster"]))
        config = _Config(
            (ctypes.c_uint * 3)(*launch["grid"]), (ctypes.c_uint * 3)(launch["threads"], 1, 1), launch["shared"], None,
            ctypes.pointer(attribute), int(tuple(launch["cluster"]) != (1, 1, 1)),
        )  # fmt: skip
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, parameters, None)
        self.call("cuCtxSynchronize")
        self.call("cuModuleUnload", module)

    def _value(self, raw: bytes, buffers: list[Any], memories: list[int]) -> bytes:
        if len(raw) == _MAP_BYTES:
            return self._tensor_map(raw, buffers, memories)
        if len(raw) != 8:
            return raw
        (value,) = struct.unpack("<Q", raw)
        return struct.pack("<Q", _moved(value, buffers, memories) or value)

    def _tensor_map(self, raw: bytes, buffers: list[Any], memories: list[int]) -> bytes:
        address, *rest = _MAP.unpack(raw[: _MAP.size])
        extents, strides, box, steps = rest[:5], rest[5:9], rest[9:14], rest[14:19]
        number, rank, interleave, swizzle, fill, _ = rest[19:25]
        rank += 1
        memory = ctypes.create_string_buffer(_MAP_BYTES + 64)
        start = -ctypes.addressof(memory) % 64
        self.call(
            "cuTensorMapEncodeTiled", ctypes.c_void_p(ctypes.addressof(memory) + start),
            _TYPES_OF_THE_DRIVER.get(number, number), rank, ctypes.c_void_p(_moved(address, buffers, memories)),
            (ctypes.c_uint64 * 5)(*extents), (ctypes.c_uint64 * 5)(*strides), (ctypes.c_uint32 * 5)(*box),
            (ctypes.c_uint32 * 5)(*steps), interleave, swizzle, 2, fill,
        )  # fmt: skip
        return memory.raw[start : start + _MAP_BYTES]


def _moved(address: int, buffers: list[Any], memories: list[int]) -> int | None:
    """The address on this GPU of one in a recorded buffer; None for what is none."""
    for start, size, number, place in buffers:
        if start <= address < start + max(size, 1):
            return memories[number] + place + address - start
    return None


def run(device: Device, case: dict[str, Any]) -> list[bytes | None]:
    """The bytes of each output, from its first element to the end of its last; None for one that is as it was."""
    memories = [device.copy_in(data) for data in case["memories"]]
    for launch in case["launches"]:
        device.launch(launch, memories)
    found: list[bytes | None] = []
    for number, place, _dtype, itemsize, shape, strides in case["outputs"]:
        span = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + itemsize
        data = device.copy_out(memories[number] + place, span)
        found.append(None if data == case["memories"][number][place : place + span] else data)
    for memory in memories:
        device.free(memory)
    return found


def main(source: str, target: str, first: str = "0") -> None:
    """Run all cases from the first on; a fault of one ends the context, and another process goes on after it."""
    with lzma.open(source) as file:
        cases = pickle.load(file)
    device = Device()
    with lzma.open(target, "ab" if int(first) else "wb") as file:
        for number, case in enumerate(cases[int(first) :], int(first)):
            found: Any
            try:
                found = run(device, case)
            except RuntimeError as error:
                found = str(error)
                print(f"{case['name']}: {error}", flush=True)
            pickle.dump((case["name"], found), file)
            if isinstance(found, str) and "cuCtxSynchronize" in found:
                file.close()
                os.execv(sys.executable, [sys.executable, __file__, source, target, str(number + 1)])
    print(f"{len(cases)} cases ran", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
