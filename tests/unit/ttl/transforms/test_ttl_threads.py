"""Kernels as drivers and functions: where they come from, what a host must know of them, and the stages."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.dialects.func import FuncOp

import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import InputError
from tlx_xdsl.text.diagnostics import source_location
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.transforms.rewriting import ops_of
from tlx_xdsl.ttl.dialects.ttl import BindCBOp, KernelDriverOp, LaunchThreadOp
from tlx_xdsl.ttl.frontend import compile_kernel
from tlx_xdsl.ttl.transforms.manifest import manifest
from tlx_xdsl.ttl.transforms.pipeline import STAGES, ttl_pipeline


@ttl.kernel(grid=(2, 1))
def add(x, y, out):
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, 2))
    y_cb = ttl.make_circular_buffer_like(y, shape=(1, 2))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 2), buffer_factor=1)

    @ttl.datamovement()
    def read():
        column, row = ttl.core(dims=2)
        with x_cb.reserve() as a, y_cb.reserve() as b:
            ttl.copy(x[row, column * 2 : column * 2 + 2], a).wait()
            ttl.copy(y[row, column * 2 : column * 2 + 2], b).wait()

    @ttl.compute()
    def compute():
        with x_cb.wait() as a, y_cb.wait() as b, out_cb.reserve() as o:
            o.store(a + b)

    @ttl.datamovement()
    def write():
        column, row = ttl.core(dims=2)
        with out_cb.wait() as o:
            ttl.copy(o, out[row, column * 2 : column * 2 + 2]).wait()


BFLOAT16 = ttl.TensorSpec((32, 128), ttl.bfloat16)
SHARDED = ttl.TensorSpec((32, 128), ttl.bfloat16, layout=ttl.sharded((1, 2), (1, 2)), memory_space="L1")


@cache
def run(until: str) -> ModuleOp:
    """The kernel after the passes up to a stage."""
    module = compile_kernel(add, (BFLOAT16, SHARDED, BFLOAT16))
    context = make_context()
    for each in ttl_pipeline(to=until):
        each.apply(context, module)
        verify_module(module)
    return module


def test_operations_keep_their_places_in_the_source():
    """Calls are located at the statements that they were made for."""
    module = run("ttkernel")
    source = Path(__file__).read_text().splitlines()
    found: dict[str, set[str]] = {}
    for function in ops_of(module, FuncOp):
        for op in function.walk():
            place = source_location(op.location)
            assert place is not None, op.name
            assert place.filename == __file__, op.name
            found.setdefault(op.name, set()).add(source[place.line - 1].strip())
    assert found["ttkernel.noc_async_read_shard"] == {
        "ttl.copy(y[row, column * 2 : column * 2 + 2], b).wait()",
    }
    assert found["ttkernel.pack_tile_block"] == {"o.store(a + b)"}
    assert found["ttkernel.cb_wait_front"] == {
        "with x_cb.wait() as a, y_cb.wait() as b, out_cb.reserve() as o:",
        "with out_cb.wait() as o:",
    }


def test_the_driver_keeps_grid_and_buffers():
    module = run("threads")
    (driver,) = ops_of(module, KernelDriverOp)
    assert driver.sym_name.data == "add_driver"
    assert (driver.grid.x, driver.grid.y) == (2, 1)
    assert [op.cb_index.value.data for op in ops_of(driver, BindCBOp)] == [0, 1, 2]
    assert [op.callee.root_reference.data for op in ops_of(driver, LaunchThreadOp)] == ["read", "compute", "write"]
    assert all(isinstance(op.location, FileLineColLoc) for op in ops_of(driver, BindCBOp))


def test_manifest():
    found = manifest(run("ttkernel"))
    assert json.loads(json.dumps(found)) == found
    assert found["kernel"] == "add"
    assert found["grid"] == [2, 1]
    assert found["cbs"][2] == {
        "index": 2, "name": "out_cb", "address": 16384, "bytes": 4096, "page_bytes": 2048, "pages": 2,
        "data_format": "Float16_b", "internal": False, "unpack_to_dest": False,
    }  # fmt: skip
    assert found["tensors"][1] == {
        "name": "y", "shape": [32, 128], "dtype": "bf16", "memory_space": "l1", "page_bytes": 2048,
        "layout": {"kind": "sharded", "grid": [1, 2], "tiles_per_shard": [1, 2]},
    }  # fmt: skip
    read, compute, write = found["threads"]
    # Numbers of three buffers, then tensors in DRAM (2) and sharded in L1 (1).
    assert read["compile_time_args"] == write["compile_time_args"] == [0, 1, 2, 2, 1, 2]
    assert compute["compile_time_args"] == [0, 1, 2]
    assert [each["common_runtime_args"] for each in found["threads"]] == [["x", "y"], [], ["out"]]
    assert [each["processor"] for each in found["threads"]] == ["RISCV_1", None, "RISCV_0"]
    assert [each["noc"] for each in found["threads"]] == ["NOC_0", None, "NOC_1"]
    assert [each["kind"] for each in found["threads"]] == ["noc", "compute", "noc"]
    assert read["file"] == "read.cpp"
    assert found["options"] == {"fp32_dest_acc_en": False, "dst_full_sync_en": False, "dst_capacity": 8}


def test_manifest_needs_a_lowered_kernel():
    with pytest.raises(InputError, match="thread 'read' was not lowered"):
        manifest(run("threads"))
    with pytest.raises(InputError, match="found those of: none"):
        manifest(run("memory"))
    with pytest.raises(InputError, match="expected the driver of kernel 'sub', found those of: add"):
        manifest(run("ttkernel"), "sub")


def test_arguments_of_calls_are_those_of_the_manifest():
    """The accessor of tensor t reads word n + t, and its address where the manifest lists it."""
    module = run("ttkernel")
    found = manifest(module)
    for thread in found["threads"]:
        (function,) = (each for each in ops_of(module, FuncOp) if each.sym_name.data == thread["name"])
        accessors = [op.properties for op in function.walk() if op.name == "ttkernel.TensorAccessorArgs"]
        taken = {
            each["cta"].value.data: each["crta"].value.data  # pyright: ignore
            for each in accessors
        }
        names = [tensor["name"] for tensor in found["tensors"]]
        expected = {
            len(found["cbs"]) + names.index(name): number for number, name in enumerate(thread["common_runtime_args"])
        }
        assert taken == expected


@pytest.mark.parametrize("schedule", [True, False])
def test_stages_stop_where_they_say(schedule: bool):
    for stage, last in STAGES.items():
        passes = ttl_pipeline(schedule=schedule, to=stage)
        assert passes[-1].name == last
        assert type(passes[-1]) is pass_class(last)
    assert ("ttl-schedule-pipeline" in [each.name for each in ttl_pipeline()]) is True
    assert ("ttl-schedule-pipeline" in [each.name for each in ttl_pipeline(schedule=False)]) is False


def test_every_stage_can_be_printed_and_read():
    for stage in STAGES:
        text = print_module(run(stage))
        assert print_module(parse_module(text)) == text
