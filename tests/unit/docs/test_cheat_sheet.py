"""The cheat sheet is up to date, and the examples in the docstrings of `tlx` compile and run."""

from __future__ import annotations

import ast
from dataclasses import replace

import numpy as np
import pytest

import tlx_xdsl
from docs.site.cheat_sheet import GIVEN, MADE, PAGE, example_of, functions, page
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.tools.launch_line.loading import kernels_of_file

TYPES = {
    "x": "*fp32", "h": "*fp16", "n": "i32", "a_desc": "tensordesc<fp16[128, 64]>", "rows": "tensordesc<fp16[1, 64]>",
}  # fmt: skip
BLACKWELL = {
    "subslice", "tmem_copy", "tmem_shift", "storage_kind", "async_dot_scaled", "tcgen05_commit", "add4", "fma4", "mul4",
    "async_descriptor_gather", "async_descriptor_scatter", "packed_add4", "packed_fma4", "packed_mul4", "packed_sub4",
    "sub4",
    "tensor_memory_layout_encoding", "tensor_memory_scales_layout_encoding", "make_tensor_memory_layout",
    "make_tensor_memory_scales_layout", "clc_create_context", "clc_producer", "clc_consumer", "_alloc_clc_responses",
    "_clc_issue", "_clc_query", "stoch_round", "warp_redux",
}  # fmt: skip
CLUSTER = {
    "async_remote_shmem_copy", "async_remote_shmem_store", "cluster_barrier", "remote_shmem_store", "remote_view",
    "fence_mbarrier_init_cluster",
}  # fmt: skip
"""Examples of a cluster of two CTAs."""
RANKS = {"peer", "rank", "signal", "wait_signal", "world_size"}
"""Examples on two simulated GPUs, which are run, and in that compiled."""
HALF = {
    "barrier_wait": "nothing arrives", "wait_signal": "nothing signals", "named_barrier_wait": "others are to arrive",
    "clc_consumer": "nothing produces", "_clc_query": "no response has come",
    "reinterpret_tensor_descriptor": "nothing has made the descriptor", "async_dot_scaled": "nothing writes the scales",
    "async_remote_shmem_copy": "the other CTA is to wait", "async_remote_shmem_store": "the other CTA is to wait",
    "warp_redux": "the interpreter has no redux.sync",
}  # fmt: skip
"""Examples that are not run, and why: most are one side of what two parts of a kernel do."""
OF_WARPS = {"warp_all", "warp_any", "warp_ballot"}
"""Examples that depend on which thread holds what: they are run with layouts."""
FILLED = {
    "a": ("tl.float16", "(128, 64)", 2), "b": ("tl.float16", "(64, 128)", 2),
    "gathered": ("tl.float16", "(32, 64)", 1), "a8": ("tl.float8e4nv", "(128, 128)", 1),
    "b8": ("tl.float8e4nv", "(128, 128)", 1),
}  # fmt: skip
"""Buffers that hold zeros before an example, with type, shape and number."""

NAMES = [name for names in functions().values() for name in names]


def kernel_of(name):
    """The text of the kernel in which an example stands, and its parameters."""
    example = example_of(name)
    assert example is not None, f"the docstring of tlx.{name} has no example"

    def names_in(code):
        return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}

    needed = []
    todo = [each for each in names_in(example) if each in MADE or each in GIVEN]
    while todo:
        each = todo.pop()
        if each in needed:
            continue
        needed.append(each)
        todo += [other for other in names_in(MADE.get(each, "")) if other in MADE or other in GIVEN]
    lines = [f"{each} = {made}" for each, made in MADE.items() if each in needed]
    for each, (type_, shape, number) in FILLED.items():
        stores = [f"tlx.local_store({each}[{index}], tl.zeros({shape}, {type_}))" for index in range(number)]
        lines += stores if each in needed else []
    if FILLED.keys() & set(needed):
        lines += ["tlx.fence_async_shared()", *(["tlx.cluster_barrier()"] if name in CLUSTER else [])]
    parameters = [each for each in GIVEN if each in needed]
    body = "\n".join(f"    {line}" for line in (*lines, *example.splitlines()))
    return f"@tlx_xdsl.jit\ndef {name.strip('_')}({', '.join(parameters)}):\n{body}\n", parameters


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("examples") / "examples.py"
    head = "import tlx_xdsl\nimport tlx_xdsl.language as tl\nimport tlx_xdsl.language.tlx as tlx\n\n\n"
    head += "@tlx_xdsl.jit\ndef double(value):\n    return value * 2\n\n\n"
    path.write_text(head + "\n\n".join(kernel_of(name)[0] for name in NAMES))
    return {name: kernel for name, (kernel, _) in kernels_of_file(str(path)).items()}


def test_the_page_is_made_of_the_docstrings():
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in RANKS])
def test_an_example_compiles(kernels, name):
    _, parameters = kernel_of(name)
    target = "sm_100a" if name in BLACKWELL else "sm_90a"
    wanted = Specialization({each: TYPES[each] for each in parameters}, {}, target)
    if name in CLUSTER:
        wanted = replace(wanted, cluster=(2, 1, 1))
    assert f"{name.strip('_')}" in compile_text(kernels[name.strip("_")].source, wanted).ttgir


@pytest.mark.parametrize("name", [name for name in NAMES if name not in HALF])
def test_an_example_runs(kernels, name):
    values = {
        "x": np.zeros(1024, np.float32), "h": np.zeros(128 * 64, np.float16), "n": 3,
        "a_desc": tlx_xdsl.TensorDescriptor.from_tensor(np.zeros((128, 64), np.float16), [128, 64]),
        "rows": tlx_xdsl.TensorDescriptor.from_tensor(np.zeros((64, 64), np.float16), [1, 64]),
        "peers": tlx_xdsl.symmetric([np.zeros(16, np.float32) for _ in range(2)]),
        "pad": tlx_xdsl.symmetric([np.zeros(16, np.int32) for _ in range(2)]),
    }  # fmt: skip
    options = {"target": "sm_100a" if name in BLACKWELL else "sm_90a"}
    options |= {"stage": "ttgir"} if name in OF_WARPS else {}
    options |= {"ranks": 2} if name in RANKS else {}
    options |= {"cluster": (2, 1, 1)} if name in CLUSTER else {}
    _, parameters = kernel_of(name)
    grid = 2 if name in CLUSTER else 1
    kernels[name.strip("_")].interpret(grid, *(values[each] for each in parameters), **options)
