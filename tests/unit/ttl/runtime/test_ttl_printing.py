"""Text that kernels write: on each machine, and in the C++."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tests.unit.ttl.metalium.metalium_programs import needs_compiler
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ttl.language.kernel import Kernel
from tlx_xdsl.ttl.runtime import MACHINES, Options, compile_kernel, run

SPECS = (ttl.TensorSpec((64, 32)), ttl.TensorSpec((64, 32)))


@ttl.operation(grid=(1, 1))
def talking(a, out):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
    o_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    print("compiled for", a.shape)

    @ttl.datamovement()
    def read():
        for i in range(2):
            with a_dfb.reserve() as x:
                ttl.copy(a[i, 0], x)
                print(f"read {i + 1} of {2}")
                # Waited for before it is shown.
                print(x)
        print("buffer", a_dfb)

    @ttl.compute()
    def compute():
        for i in range(2):
            with a_dfb.wait() as x, o_dfb.reserve() as o:
                print("block", i, x, thread="unpack")
                o.store(x + x)

    @ttl.datamovement()
    def write():
        for i in range(2):
            with o_dfb.wait() as o:
                ttl.copy(o, out[i, 0]).wait()
        print('"done"')


@needs_compiler
@pytest.mark.parametrize("machine", MACHINES)
def test_lines_of_a_run(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    a = np.full((64, 32), 7, np.float32)
    out = np.zeros_like(a)
    run(talking, a, out, machine=machine)
    assert (out == 14).all()
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "compiled for (64, 32)"
    lines = [each.strip() for each in said]
    for expected in (
        "(0,0) read: read 1 of 2",
        "(0,0) read: read 2 of 2",
        '(0,0) write: "done"',
        "(0,0) compute: block 1",
    ):
        assert expected in lines
    of_buffer = [each for each in lines if "buffer" in each or "a_dfb" in each]
    assert any("2 pages" in each for each in of_buffer)
    assert sum("7 7 7" in each.replace(".", "") for each in lines) >= 16


def test_cpp() -> None:
    sources = compile_kernel(talking, SPECS, Options(lines=False)).sources
    shown = [
        line.strip() for text in sources.values() for line in text.splitlines() if "PRINT" in line or "TSLICE" in line
    ]
    assert shown == [
        'DPRINT("read {} of 2\\n", i + 1);',
        "const auto v = TSLICE(a_dfb, 0, SliceRange::hw0_32_8(), TSLICE_OUTPUT_CB, TSLICE_WR_PTR);",
        'DPRINT("{}\\n", v);',
        'DPRINT("buffer\\n");',
        'DPRINT("a_dfb: 2 pages, number {}\\n", a_dfb);',
        'DPRINT_UNPACK("block {}\\n", i);',
        "const auto v = TSLICE(a_dfb, 0, SliceRange::hw0_32_8());",
        'DPRINT_UNPACK("{}\\n", v);',
        'DPRINT("\\"done\\"\\n");',
    ]
    assert '#include "api/debug/dprint_tile.h"' in sources["compute.cpp"]


def kernel_of(line: str) -> Kernel:
    lines: dict[str, Any] = {"ttl": ttl}

    def tensor(a, x):
        print(a)

    def computed(a, x):
        print(x + x)

    def two(a, x):
        print(x, x)

    def processor(a, x):
        print(x, thread="sfpu")

    def pages(a, x):
        print(x, num_pages=2)

    def form(a, x):
        for i in range(2):
            print(f"{i:3}")

    body = {**lines, **locals()}[line]

    @ttl.operation(grid=(1, 1))
    def kernel(a, out):
        a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))

        @ttl.compute()
        def compute():
            with a_dfb.wait() as x:
                body(a, x)

    return kernel


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tensor", "'print' shows blocks of circular buffers, found the tensor 'a' of 64x32xf32: copy a piece of it"),
        ("computed", "'print' shows blocks of circular buffers, found 1x1 tile of f32: store it"),
        ("two", "'print' takes one circular buffer or block, as its last argument"),
        ("processor", "'thread' of 'print' is one of unpack, math, pack, found 'sfpu'"),
        ("pages", "'print' takes no argument 'num_pages' in a TTL kernel: print a block that was waited for"),
        ("form", "a format, ':' in an f-string, is for what is known at compile time"),
    ],
)
def test_what_can_not_be_printed(line: str, message: str) -> None:
    with pytest.raises(CompilationError) as caught:
        compile_kernel(kernel_of(line), SPECS)
    assert message in caught.value.message
