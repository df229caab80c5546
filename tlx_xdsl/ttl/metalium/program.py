"""Programs as the machine takes them: the text that is compiled, and the description that it reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ..cpp.profiles import PRINTING
from ..dialects.ttcore import ARCHITECTURES
from ..elementwise import FUNCTIONS
from ..language.tensors import DTYPES
from ..tiles import TILED

# What is reported of a kernel that does not compile, or does what it must not.


class MetaliumError(Exception):
    """An error in a kernel, or what keeps the machine from running it; `line` is 0 where there is no place."""

    def __init__(self, message: str, file: str = "", line: int = 0):
        super().__init__(message, file, line)
        self.message = message
        self.file = file
        self.line = line

    def __str__(self) -> str:
        """Return `file:line: error: message`."""
        place = f"{self.file}:{self.line}: " if self.file else ""
        return f"{place}error: {self.message}"


# The headers of TT-Metalium that a kernel may include here; `include/metalium.h` stands for all of them.
#
# Two versions: that of ttnn 0.81, and that of December 2025, which has `compute_kernel_api/`.

_COMPUTE = (
    "bcast.h",
    "common.h",
    "eltwise_binary.h",
    "eltwise_binary_sfpu.h",
    "matmul.h",
    "reduce.h",
    "tile_move_copy.h",
    "copy_dest_values.h",
    "binary_max_min.h",
    "pack.h",
    "pack_untilize.h",
    "tilize.h",
    "eltwise_unary/eltwise_unary.h",
    "eltwise_unary/fill.h",
    "eltwise_unary/where.h",
    "eltwise_unary/typecast.h",
    "binary_remainder.h",
    *(f"{name}_int_sfpu.h" for name in ("add", "sub", "mul")),
    *sorted({each.header for each in FUNCTIONS if not each.header.startswith("/")}),
)
"""In both versions."""

HEADERS = {
    "cstdint",
    *PRINTING.values(),
    "api/core_local_mem.h",
    "api/dataflow/circular_buffer.h",
    "api/debug/kernel_profiler.hpp",
    "tools/profiler/kernel_profiler.hpp",
    "api/dataflow/dataflow_api.h",
    "api/dataflow/endpoints.h",
    "api/dataflow/noc.h",
    "api/dataflow/noc_semaphore.h",
    "api/tensor/noc_traits.h",
    "api/tensor/tensor_accessor.h",
    "experimental/core_local_mem.h",
    "dataflow_api.h",
    *(f"{folder}/{name}" for folder in ("api/compute", "compute_kernel_api") for name in _COMPUTE),
    "api/compute/compute_kernel_api.h",
    "api/compute/compute_kernel_hw_startup.h",
    "api/compute/reconfig_data_format.h",
    "api/compute/cb_api.h",
    "api/compute/reg_api.h",
    "api/compute/transpose.h",
    "compute_kernel_api.h",
    "compute_kernel_api/cb_api.h",
    "compute_kernel_api/reconfig_data_format.h",
    "compute_kernel_api/reg_api.h",
    "compute_kernel_api/transpose_wh.h",
}

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"].*$', re.MULTILINE)


def without_includes(name: str, text: str) -> str:
    """The text of a kernel with empty lines for the headers that it includes.

    Raises MetaliumError for one that the machine does not have.
    """

    def known(match: re.Match[str]) -> str:
        if match[1] not in HEADERS:
            raise MetaliumError(
                f"the machine has no header '{match[1]}'", name, text.count("\n", 0, match.start(1)) + 1
            )
        return ""

    return _INCLUDE.sub(known, text)


Manifest = Mapping[str, Any]
"""What the host has to know of a kernel: `ttl/transforms/manifest.py` makes it."""

_FORMATS = {each.data_format: name for name, each in DTYPES.items() if name not in ("i16", "i8")}
_DST_TILES = 16


@dataclass(frozen=True)
class Program:
    """The kernels of one program, by the names of their files or threads, and its manifest."""

    sources: Mapping[str, str]
    manifest: Manifest

    def source(self, thread: Mapping[str, Any]) -> tuple[str, str]:
        """The name and the text of a thread's kernel."""
        for name in (thread.get("file"), thread["name"], f"{thread['name']}.cpp"):
            if name is not None and name in self.sources:
                return name, self.sources[name]
        raise MetaliumError(f"there is no source for thread '{thread['name']}'")

    def text(self, namespace: str) -> str:
        """C++ with all kernels, each in a namespace of its own; `NAMESPACE_entries` are their functions."""
        parts: list[str] = []
        entries: list[str] = []
        for number, thread in enumerate(self.manifest["threads"]):
            name, text = self.source(thread)
            arguments = [int(argument) for argument in thread["compile_time_args"]]
            inner = f"{namespace}_{number}"
            parts.append(_KERNEL.format(inner=inner, arguments=_initializer(arguments), count=len(arguments)))
            parts.append(f'#line 1 "{name}"\n{without_includes(name, text)}\n')
            parts.append(f'#line 1 "harness.cpp"\n}}  // namespace {inner}\n')
            old = re.search(r"\bvoid\s+MAIN\b", text)
            entries.append(f"{inner}::kernel::run_main" if old else f"{inner}::kernel_main")
        parts.append(f'extern "C" void (*const {namespace}_entries[])() = {{{", ".join(entries)}}};\n')
        return "".join(parts)

    def description(self, seed: int, capacity: int | None, sizes: Sequence[int]) -> str:
        """Return what the machine reads before the tensors, whose sizes in bytes are given."""
        manifest = self.manifest
        names = [tensor["name"] for tensor in manifest["tensors"]]
        semaphores = manifest.get("semaphores", ())
        words: list[object] = [seed, self._capacity(capacity), *manifest["grid"]]
        words += [len(manifest["cbs"]), len(names), len(semaphores), len(manifest["threads"])]
        words += ARCHITECTURES[manifest.get("arch", "wormhole")].network_columns(manifest["grid"][0])
        for cb in manifest["cbs"]:
            if cb["address"] is None:
                raise MetaliumError(
                    f"circular buffer {cb['index']} has no address: run ttl-allocate-circular-buffers before"
                )
            words += [cb["index"], cb["address"], cb["pages"], cb["page_bytes"]]
            words.append(_FORMATS.get(cb["data_format"], cb["data_format"]))
        for tensor, size in zip(manifest["tensors"], sizes, strict=True):
            words += [tensor["name"], size, tensor["page_bytes"], *_shards(tensor)]
        for semaphore in semaphores:
            words += [semaphore["index"], semaphore["initial"]]
        for thread in manifest["threads"]:
            common = [names.index(name) for name in thread["common_runtime_args"]]
            noc = int(thread.get("noc") == "NOC_1")
            words += [thread["name"], int(thread["kind"] == "compute"), noc, len(common), *common]
        return " ".join(map(str, words)) + "\n"

    def _capacity(self, chosen: int | None) -> int:
        capacity = int(self.manifest["options"]["dst_capacity"]) if chosen is None else chosen
        if not 1 <= capacity <= _DST_TILES:
            raise MetaliumError(f"expected 1 to {_DST_TILES} tiles in DST, found {capacity}")
        return capacity


_KERNEL = """namespace {inner} {{
constexpr uint32_t kernel_compile_time_args[] = {{{arguments}}};
template <uint32_t index>
constexpr uint32_t get_ct_arg() {{
  static_assert(index < {count}, "there is no compile-time argument of this number");
  return kernel_compile_time_args[index];
}}
"""


def _initializer(arguments: Sequence[int]) -> str:
    return ", ".join(map(str, arguments)) or "0"


def _shards(tensor: Mapping[str, Any]) -> list[int]:
    """Pages of a shard, then rows and columns of tiles of the tensor and of a shard, and shards of a row; or 0."""
    layout = tensor["layout"]
    if "tiles_per_shard" not in layout:
        return [0]
    rows, columns = TILED.matrix_tiles(tuple(tensor["shape"]))
    return [prod(layout["tiles_per_shard"]), rows, columns, *layout["tiles_per_shard"], layout["grid"][1]]
