"""Runs a module as machine code of other CPUs with Linux, each in QEMU's emulation of a process.

Debian has what it takes in the packages `qemu-user`, `gcc` and `gcc-aarch64-linux-gnu`; `QEMU_AARCH64`, `QEMU_X86_64`,
`CC_AARCH64` and `CC_X86_64` are the commands where they have other names.
"""

from __future__ import annotations

import os
import shlex
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tests.unit.cpu.codegen.native import FENCE, bits, bufferized
from tlx_xdsl.cpu.codegen.host import named_host
from tlx_xdsl.cpu.codegen.llvm import Compiled, optimized
from tlx_xdsl.cpu.codegen.metadata import Metadata
from tlx_xdsl.cpu.codegen.module import llvm_module

_FENCE_BYTES = 256
"""Bytes on either side of an array that must stay as they are."""

_PROCESS = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int kernel(void *, void *, void *) __asm__("%(symbol)s");
#define WEAK __attribute__((weak))
WEAK void printI64(int64_t x) {} WEAK void printU64(uint64_t x) {} WEAK void printF32(float x) {}
WEAK void printF64(double x) {} WEAK void printNewline(void) {} WEAK void printString(const char *x) {}
int main(int count, char **names)
{
    FILE *in = fopen(names[1], "rb"), *out = fopen(names[2], "wb");
    int64_t head[8], size, status, *sizes;
    uint64_t *slots;
    char *scratch, **arrays;
    fread(head, 8, 8, in);  /* arguments, bytes of scratch memory, the launch */
    slots = calloc(3 * head[0] + 1, 8), sizes = calloc(head[0] + 1, 8), arrays = calloc(head[0] + 1, sizeof(char *));
    for (int64_t at = 0; at < head[0]; ++at) {
        fread(&size, 8, 1, in);
        if (size < 0) {
            fread(&slots[at], 8, 1, in);
            continue;
        }
        sizes[at] = size, arrays[at] = aligned_alloc(64, (size + 63) / 64 * 64);
        fread(arrays[at], 1, size, in);
        slots[at] = slots[head[0] + 2 * at] = (uint64_t)arrays[at] + %(fence)d;
        slots[head[0] + 2 * at + 1] = (uint64_t)arrays[at] + size - %(fence)d;
    }
    scratch = aligned_alloc(64, (head[1] + 127) / 64 * 64);
    memset(scratch, 255, (head[1] + 127) / 64 * 64);
    status = kernel(slots, head + 2, scratch);
    fwrite(&status, 8, 1, out);
    for (int64_t at = 0; at < head[0]; ++at)
        fwrite(arrays[at], 1, sizes[at], out);
    return fclose(out);
}
"""


MODELS = {
    "linux-arm64": "cortex-a57",
    "linux-arm64-sve256": "max,sve256=on",
    "linux-arm64-sve512": "max,sve512=on",
    "linux-x86-64": "Opteron_G1",
    "linux-x86-64-v2": "Nehalem",
    "linux-x86-64-v3": "Haswell",
}
"""QEMU's CPU that has the instructions of a name of ours, and few others: on another one a kernel ends with a signal.
QEMU has no AVX-512. Longer vectors of SVE than ours are off."""


def commands(name: str) -> tuple[list[str], list[str]]:
    """Return how a C compiler and QEMU are called for a CPU; their first words may not be installed."""
    kind, compiler = ("AARCH64", "aarch64-linux-gnu-gcc") if "arm64" in name else ("X86_64", "x86_64-linux-gnu-gcc")
    emulator = os.environ.get(f"QEMU_{kind}", f"qemu-{kind.lower()}")
    return shlex.split(os.environ.get(f"CC_{kind}", compiler)), [*shlex.split(emulator), "-cpu", MODELS[name]]


def missing(name: str) -> str | None:
    """Return why a CPU can't be emulated, or None."""
    absent = [command[0] for command in commands(name) if shutil.which(command[0]) is None]
    return f"{' and '.join(absent)} not installed" if absent else None


def lowered_for(name: str, module: ModuleOp) -> tuple[Compiled, Metadata]:
    """Compile a module of plain Triton for a CPU of a name (`named_host`)."""
    target = named_host(name)
    text, metadata = llvm_module(bufferized(module), target, checks=False)
    return optimized(text, target=target), metadata


def run_on(name: str, module: ModuleOp, grid: tuple[int, int, int], values: Sequence[Any], folder: Path) -> int:
    """Run all programs on a CPU of `MODELS`; arrays have what was written.

    Returns the status of the kernel: 0 if none of its checks has failed.
    """
    made, metadata = lowered_for(name, module)
    (folder / "kernel.o").write_bytes(made.object_code())
    (folder / "process.c").write_text(_PROCESS % {"symbol": metadata.symbol, "fence": _FENCE_BYTES})
    fence = np.resize(FENCE, _FENCE_BYTES).tobytes()
    launch = struct.pack("<qqqiiiiq", 0, grid[0] * grid[1] * grid[2], 1, *grid, 0, 0)
    parts = [struct.pack("<qq", len(values), metadata.scratch_bytes), launch]
    for value, argument in zip(values, metadata.arguments, strict=True):
        if isinstance(value, np.ndarray):
            parts += [struct.pack("<q", value.nbytes + 2 * _FENCE_BYTES), fence, value.tobytes(), fence]
        else:
            parts += [struct.pack("<q", -1), bits(value, argument.type).ljust(8, b"\0")]
    (folder / "in").write_bytes(b"".join(parts))
    compiler, qemu = commands(name)
    for command in (
        [*compiler, "-w", "-static", "-o", "process", "process.c", "kernel.o", "-lm"],
        [*qemu, "./process", "in", "out"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, (done.returncode, done.stderr)
    result = (folder / "out").read_bytes()
    at = 8
    for value in values:
        if isinstance(value, np.ndarray):
            before, data, after = (
                result[at + start : at + end]
                for start, end in (
                    (0, _FENCE_BYTES),
                    (_FENCE_BYTES, _FENCE_BYTES + value.nbytes),
                    (_FENCE_BYTES + value.nbytes, 2 * _FENCE_BYTES + value.nbytes),
                )
            )
            assert before == after == fence, "it writes beside an array"
            value.reshape(-1).view(np.uint8)[...] = np.frombuffer(data, np.uint8)
            at += 2 * _FENCE_BYTES + value.nbytes
    return int.from_bytes(result[:8], "little")
