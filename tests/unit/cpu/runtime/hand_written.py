"""Machine code from hand-written LLVM IR, in the form of `cpu/codegen`: what the runtime launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlx_xdsl.cpu.codegen.host import host
from tlx_xdsl.cpu.codegen.llvm import optimized
from tlx_xdsl.cpu.codegen.metadata import Argument, Metadata, Site
from tlx_xdsl.cpu.codegen.module import CpuObject
from tlx_xdsl.cpu.runtime.build import load_code
from tlx_xdsl.cpu.runtime.program import Program

RUN = """
define i32 @kernel.run(ptr %arguments, ptr %launch, ptr %scratch) {
entry:
  %total.at = getelementptr i8, ptr %launch, i64 8
  %total = load i64, ptr %total.at
  %chunk.at = getelementptr i8, ptr %launch, i64 16
  %chunk = load i64, ptr %chunk.at
  %site.at = getelementptr i8, ptr %launch, i64 36
  %program.at = getelementptr i8, ptr %launch, i64 40
  br label %take
take:
  %first = atomicrmw add ptr %launch, i64 %chunk monotonic
  %left = icmp slt i64 %first, %total
  br i1 %left, label %begin, label %done
begin:
  %end.chunk = add i64 %first, %chunk
  %whole = icmp slt i64 %end.chunk, %total
  %end = select i1 %whole, i64 %end.chunk, i64 %total
  br label %loop
loop:
  %pid = phi i64 [ %first, %begin ], [ %next, %after ]
  %failed.elsewhere = load atomic i32, ptr %site.at monotonic, align 4
  %stop = icmp ne i32 %failed.elsewhere, 0
  br i1 %stop, label %stopped, label %go
go:
  %site = call i32 @program(ptr %arguments, ptr %scratch, i64 %pid)
  %bad = icmp ne i32 %site, 0
  br i1 %bad, label %fail, label %after
after:
  %next = add i64 %pid, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %take
fail:
  store atomic i32 %site, ptr %site.at monotonic, align 4
  store i64 %pid, ptr %program.at
  ret i32 %site
stopped:
  ret i32 %failed.elsewhere
done:
  ret i32 0
}
"""
"""Runs `i32 @program(ptr arguments, ptr scratch, i64 program)` over the chunks of a launch."""


def made(
    body: str,
    arguments: Sequence[str] = (),
    scratch_bytes: int = 0,
    sites: Sequence[Site] = (),
    symbols: Sequence[str] = (),
    checks: bool = False,
) -> CpuObject:
    """The object of a module that defines `@program`; `arguments` are types, `symbols` what it declares."""
    metadata = Metadata(
        "kernel", "kernel.run", tuple(Argument(f"a{at}", type_) for at, type_ in enumerate(arguments)), scratch_bytes,
        tuple(sites), tuple(symbols), checks, host().triple, host().cpu,
    )  # fmt: skip
    return CpuObject(optimized(body + RUN).object_code(), metadata)


def program(body: str, *args: Any, **kwargs: Any) -> Program:
    """The program of what `made` makes."""
    found = made(body, *args, **kwargs)
    return load_code(found.code, found.metadata)


NOTHING = "define i32 @program(ptr %arguments, ptr %scratch, i64 %pid) {\n  ret i32 0\n}\n"

COUNTS = """
define i32 @program(ptr %arguments, ptr %scratch, i64 %pid) {
  %counts = load ptr, ptr %arguments
  %at = getelementptr i64, ptr %counts, i64 %pid
  %before = load i64, ptr %at
  %after = add i64 %before, 1
  store i64 %after, ptr %at
  ret i32 0
}
"""
"""Adds 1 to the element of an array of i64 whose index is the program's."""
