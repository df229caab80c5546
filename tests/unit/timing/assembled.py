"""PTX of small kernels, and what ptxas and nvdisasm of the installed Triton make of them."""

import subprocess
from functools import cache

import pytest

from tlx_xdsl.ptx.program import prepare
from tlx_xdsl.ptx.read.reader import read
from tlx_xdsl.sass.text import disassembly, find_nvdisasm

BEGIN = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 .ptr .global .align 16 data, .param .u32 count, .param .f32 scale)
.reqntid 128
{
.reg .pred %p<9>;
.reg .b16 %h<9>;
.reg .b32 %r<99>;
.reg .f32 %f<99>;
.reg .b64 %rd<29>;
ld.param.b64 %rd1, [data];
ld.param.b32 %r1, [count];
ld.param.f32 %f1, [scale];
mov.u32 %r2, %tid.x;
mul.wide.u32 %rd2, %r2, 4;
add.s64 %rd3, %rd1, %rd2;
"""


def kernel(body):
    """The PTX of a kernel: `%rd3` is an address of its own for each thread, `%r1` and `%f1` are arguments."""
    return f"{BEGIN}{body}ret;\n}}\n"


def program(text):
    return prepare(read(text, "kernel.ptx"))


@cache
def machine_code(text):
    """The disassembly of what ptxas makes of PTX, with its lines; skips the test without these tools."""
    nvdisasm = find_nvdisasm()
    if nvdisasm is None:
        pytest.skip("stock Triton, which has nvdisasm, is not installed")
    command = [nvdisasm.parent / "ptxas", "-arch", "sm_90a", "-lineinfo", "-", "-o", "/dev/stdout"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    return disassembly(done.stdout, nvdisasm, lines_of_ptx=True)


def total(costs, blocks=None):
    """Slots and cycles alone of some blocks together."""
    chosen = [costs[each] for each in (range(len(costs)) if blocks is None else blocks)]
    works = [work for cost in chosen for work in cost.pieces]
    return sum(work.slots for work in works), sum(work.latency for work in works)
