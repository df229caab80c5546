"""Spelling of the kernel API in two versions of TT-Metalium: names, headers that declare them, the kernel's function.

`0.81` is that of ttnn 0.81; its headers come with the wheel, and a test compiles against them. `0.81-objects` has the
same functions of compute threads, and circular buffers, semaphores and transfers as objects ("Device 2.0"). `2025-12`
is that of the TTL design document's time: compute headers below `compute_kernel_api/`, kernels of compute threads as
`MAIN` in a namespace, and inits of operations that configure the hardware, too, where 0.81 has one startup.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tlx_xdsl.errors import InputError

from ..elementwise import FUNCTIONS

DATAFLOW = "api/dataflow/dataflow_api.h"
"""The header of data movement threads."""
BUFFER_OBJECTS = "api/dataflow/circular_buffer.h"
"""The header of circular buffers as objects, in any thread."""
OBJECTS = ("api/core_local_mem.h", BUFFER_OBJECTS, "api/dataflow/endpoints.h", "api/dataflow/noc.h",
           "api/dataflow/noc_semaphore.h", "api/tensor/noc_traits.h")  # fmt: skip
"""The headers of data movement threads with objects, beside the other one."""

_BINARY = ("add_binary", "sub_binary", "mul_binary", "div_binary")
_MATRIX = ("add", "sub", "mul")
_INTEGER_EXTREMES = tuple(f"binary_{kind}_{type_}" for kind in ("max", "min") for type_ in ("int32", "uint32"))


def _both(names: tuple[str, ...], header: str) -> dict[str, str]:
    """A function of the vector unit and its init."""
    return {f"{name}_tile{suffix}": header for name in names for suffix in ("", "_init")}


def _vector_functions(one_header: str) -> dict[str, str]:
    """The headers of functions of one register; `one_header` is that of the functions that have none of their own."""
    return {
        name: one_header if each.header.startswith("/") else each.header
        for each in FUNCTIONS
        for name in (each.callee, each.preparation, *([each.int32_callee] if each.has_int32 else []))
    }


_HEADERS = {
    **_both(_BINARY, "eltwise_binary_sfpu.h"),
    **_both(("binary_max", "binary_min"), "binary_max_min.h"),
    **_both(("remainder_binary",), "binary_remainder.h"),
    **_both(("fill",), "eltwise_unary/fill.h"),
    "fill_tile_int": "eltwise_unary/fill.h",
    **_both(("typecast",), "eltwise_unary/typecast.h"),
    **{name: f"{kind}_int_sfpu.h" for kind in ("add", "sub", "mul") for name in _both((f"{kind}_int",), "")},
    **_both(_INTEGER_EXTREMES, "binary_max_min.h"),
    **_both(("where",), "eltwise_unary/where.h"),
    **{f"{name}_tiles": "eltwise_binary.h" for name in _MATRIX},
    "copy_tile": "tile_move_copy.h",
    "copy_dest_values": "copy_dest_values.h",
    "copy_dest_values_init": "copy_dest_values.h",
    **{f"matmul_{unit}": "matmul.h" for unit in ("tiles", "block")},
    **{f"unary_bcast{suffix}": "bcast.h" for suffix in ("", "_init", "_uninit")},
    **{f"reduce_{suffix}": "reduce.h" for suffix in ("init", "tile", "uninit")},
    **{f"tilize_{suffix}": "tilize.h" for suffix in ("init", "block", "uninit")},
    **{f"pack_untilize_{suffix}": "pack_untilize.h" for suffix in ("dest_init", "dest", "uninit")},
}
"""Headers of both versions."""


PRINTING = {
    **{f"DPRINT{processor}": "api/debug/dprint.h" for processor in ("", "_UNPACK", "_MATH", "_PACK")},
    "TSLICE": "api/debug/dprint_tile.h",
}
"""Headers of the macros that write text, for all threads."""


@dataclass(frozen=True)
class CppProfile:
    """The spelling of one version."""

    name: str
    compute_folder: str
    """Where the headers of compute threads are."""
    profiler: str
    """The header of the device's profiler."""
    headers: Mapping[str, str] = field(repr=False)
    """The header of each function of compute threads in that folder; of all others, `common.h`."""
    callees: Mapping[str, str] = field(repr=False)
    """The names of functions that are not those of the operations."""
    has_startup: bool
    """Whether `compute_kernel_hw_startup` begins a compute thread, and inits leave the hardware's configuration."""
    has_kernel_main: bool
    """Whether compute threads have `kernel_main`, as the others do."""
    local_memory: str
    """The class whose objects are places in the core's memory."""
    local_memory_header: str
    has_objects: bool = False
    """Whether circular buffers, semaphores and the network are objects with methods."""

    def callee(self, name: str) -> str:
        """The function of an operation, whose name is given without the dialect."""
        return self.callees.get(name, name)

    def compute_header(self, callee: str) -> str:
        """The header that declares a function of compute threads."""
        if callee in PRINTING:
            return PRINTING[callee]
        header = self.headers.get(callee, "common.h")
        return header.removeprefix("/") if header.startswith("/") else f"{self.compute_folder}/{header}"


_VECTOR_NAMES = {
    **{
        f"{kind}_binary_tile{suffix}": f"binary_{kind}_tile{suffix}"
        for kind in ("max", "min")
        for suffix in ("", "_init")
    },
}

PROFILES = {
    "0.81": CppProfile(
        name="0.81",
        compute_folder="api/compute",
        profiler="api/debug/kernel_profiler.hpp",
        headers={
            **_HEADERS,
            **_vector_functions("compute_kernel_api.h"),
            **{f"{name}_init": "eltwise_binary.h" for name in _MATRIX},
            "copy_init": "tile_move_copy.h",
            "matmul_init": "matmul.h",
            "matmul_block_init": "matmul.h",
            "pack_block": "pack.h",
            "transpose_init": "transpose.h",
            "transpose_tile": "transpose.h",
        },
        callees={
            **_VECTOR_NAMES,
            **{f"{name}_tiles_init": f"{name}_init" for name in _MATRIX},
            "copy_tile_init": "copy_init",
            "pack_tile_block": "pack_block",
            "transpose_wh_tile": "transpose_tile",
            # `noc_async_read_tile` is deprecated.
            "noc_async_read_tile": "noc_async_read_page",
            "noc_async_write_tile": "noc_async_write_page",
        },
        has_startup=True,
        has_kernel_main=True,
        local_memory="CoreLocalMem",
        local_memory_header="api/core_local_mem.h",
    ),
    "2025-12": CppProfile(
        name="2025-12",
        compute_folder="compute_kernel_api",
        profiler="tools/profiler/kernel_profiler.hpp",
        headers={
            **_HEADERS,
            # Beside the folder.
            **_vector_functions("/compute_kernel_api.h"),
            **{f"{name}_tiles_init": "eltwise_binary.h" for name in _MATRIX},
            "binary_op_init_common": "eltwise_binary.h",
            "init_sfpu": "eltwise_unary/eltwise_unary.h",
            "copy_tile_init": "tile_move_copy.h",
            "mm_init": "matmul.h",
            "mm_block_init": "matmul.h",
            "pack_tile_block": "pack.h",
            "transpose_wh_init": "transpose_wh.h",
            "transpose_wh_tile": "transpose_wh.h",
            "reconfig_data_format": "reconfig_data_format.h",
            "reconfig_data_format_srca": "reconfig_data_format.h",
            "pack_reconfig_data_format": "reconfig_data_format.h",
        },
        callees=_VECTOR_NAMES,
        has_startup=False,
        has_kernel_main=False,
        local_memory="experimental::CoreLocalMem",
        local_memory_header="experimental/core_local_mem.h",
    ),
}
PROFILES["0.81-objects"] = replace(PROFILES["0.81"], name="0.81-objects", has_objects=True)
"""By name."""

MAIN_PROFILE = "0.81"


def cpp_profile(name: str) -> CppProfile:
    """The profile of that name."""
    if name not in PROFILES:
        raise InputError(f"expected one of the profiles {', '.join(PROFILES)}, found {name!r}")
    return PROFILES[name]
