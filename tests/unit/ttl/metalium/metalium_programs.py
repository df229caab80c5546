"""Kernels in C++ for the tests of the machine: one that reads all tiles, one that writes all, a third one between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tlx_xdsl.ttl.metalium.machine import Program, find_compiler, run
from tlx_xdsl.ttl.metalium.program import MetaliumError
from tlx_xdsl.ttl.tiles import from_pages, page_bytes, to_pages


def _missing() -> str:
    try:
        find_compiler()
    except MetaliumError as error:
        return error.message
    return ""


needs_compiler = pytest.mark.skipif(bool(_missing()), reason=_missing())

READ = """void kernel_main() {{
  const uint32_t address_{name} = get_common_arg_val<uint32_t>({crta});
  const auto tensor_{name} = TensorAccessor(TensorAccessorArgs<{cta}, {crta}>(), address_{name}, {page});
  cb_reserve_back({cb}, {tiles});
  for (size_t i = 0; i < {tiles}; i += 1) {{
    noc_async_read_page(i, tensor_{name}, get_write_ptr({cb}) + i * {page});
  }}
  noc_async_read_barrier();
  cb_push_back({cb}, {tiles});
}}
"""
WRITE = """void kernel_main() {{
  const uint32_t address_{name} = get_common_arg_val<uint32_t>({crta});
  const auto tensor_{name} = TensorAccessor(TensorAccessorArgs<{cta}, {crta}>(), address_{name}, {page});
  cb_wait_front({cb}, {tiles});
  for (size_t i = 0; i < {tiles}; i += 1) {{
    noc_async_write_page(i, tensor_{name}, get_read_ptr({cb}) + i * {page});
  }}
  noc_async_write_barrier();
  cb_pop_front({cb}, {tiles});
}}
"""


@dataclass
class Tensor:
    """A tensor of a test program: an array, or the shape of one that is written."""

    name: str
    array: np.ndarray
    dtype: str = "f32"
    written: bool = False

    @property
    def tiles(self) -> int:
        rows, columns = self.array.shape
        return -(-rows // 32) * -(-columns // 32)


def output(shape: tuple[int, int], dtype: str = "f32", name: str = "out") -> Tensor:
    return Tensor(name, np.zeros(shape, np.float32), dtype, written=True)


def inputs(*arrays: np.ndarray, dtype: str = "f32") -> list[Tensor]:
    return [Tensor("abcdef"[i], array, dtype) for i, array in enumerate(arrays)]


def program(
    compute: str,
    tensors: list[Tensor],
    *,
    buffers: list[dict[str, Any]] | None = None,
    capacity: int = 8,
) -> Program:
    """A program whose tensors have the circular buffers of their numbers, each with room for all tiles.

    `buffers` are more ones, by `pages` and `data_format`.
    """
    count = len(tensors) + len(buffers or [])
    cbs: list[dict[str, Any]] = []
    address = 0
    for each in [*tensors, *(buffers or [])]:
        dtype = each.dtype if isinstance(each, Tensor) else each["data_format"]
        pages = each.tiles if isinstance(each, Tensor) else each["pages"]
        page = page_bytes((32, 32), dtype)
        cbs.append({"index": len(cbs), "address": address, "pages": pages, "page_bytes": page, "data_format": dtype})
        address += pages * page
    arguments = [*range(count), *(0 for _ in tensors)]
    read, written = ([each for each in tensors if each.written is flag] for flag in (False, True))
    sources = {"compute": compute}
    threads = [thread("compute", "compute", arguments, [])]
    for name, template, group in (("reader", READ, read), ("writer", WRITE, written)):
        sources[name] = "".join(
            template.format(
                name=each.name,
                cb=tensors.index(each),
                tiles=each.tiles,
                page=page_bytes((32, 32), each.dtype),
                cta=count + tensors.index(each),
                crta=number,
            )
            for number, each in enumerate(group)
        ).replace("}\nvoid kernel_main() {\n", "")
        threads.append(thread(name, "noc", arguments, [each.name for each in group]))
    return Program(sources, manifest(cbs, tensors, threads, capacity=capacity))


def manifest(
    cbs: list[dict[str, Any]],
    tensors: list[Tensor],
    threads: list[dict[str, Any]],
    *,
    grid: tuple[int, int] = (1, 1),
    semaphores: int = 0,
    capacity: int = 8,
) -> dict[str, Any]:
    return {
        "kernel": "test",
        "grid": list(grid),
        "cbs": cbs,
        "tensors": [
            {"name": each.name, "layout": {"kind": "tiled"}, "page_bytes": page_bytes((32, 32), each.dtype)}
            for each in tensors
        ],
        "semaphores": [{"index": index, "initial": 0} for index in range(semaphores)],
        "threads": threads,
        "options": {"dst_capacity": capacity},
    }


def thread(name: str, kind: str, arguments: list[int], tensors: list[str]) -> dict[str, Any]:
    return {"name": name, "kind": kind, "compile_time_args": arguments, "common_runtime_args": tensors}


def results(made: Program, tensors: list[Tensor], *, seed: int = 0) -> list[np.ndarray]:
    """Run a program; return the contents of the written tensors."""
    pages = {each.name: to_pages(each.array, each.dtype) for each in tensors}
    for each in tensors:
        if each.written:
            pages[each.name][:] = 0xFF
    run(made.sources, made.manifest, pages, seed=seed)
    return [from_pages(pages[each.name], each.array.shape, each.dtype) for each in tensors if each.written]


@dataclass(frozen=True)
class Mutation:
    """A change of one kernel, and what the machine says: the line of the text that `at` names, and the message."""

    thread: str
    old: str
    new: str
    message: str
    at: str
    """`thread: text`: the place of the error, in the changed program."""


def mutated(made: Program, mutation: Mutation) -> Program:
    text = made.sources[mutation.thread]
    assert mutation.old in text, mutation.old
    return Program({**made.sources, mutation.thread: text.replace(mutation.old, mutation.new, 1)}, made.manifest)


def check_mutation(made: Program, mutation: Mutation, tensors: list[Tensor], seed: int = 0) -> None:
    """Assert that the machine finds the mutation, with its message at its line."""
    changed = mutated(made, mutation)
    name, _, text = mutation.at.partition(": ")
    with pytest.raises(MetaliumError, match=mutation.message) as raised:
        results(changed, tensors, seed=seed)
    error = raised.value
    assert error.file == name, error
    assert text in changed.sources[name].split("\n")[error.line - 1], error
