"""`convert-ttkernel-to-emitc`: each thread's function becomes a file of C++, as operations of `emitc`.

Before:
```mlir
func.func @writer() attributes {ttkernel.thread = #ttkernel.thread<noc>} {
  %n = arith.constant 1 : i32
  %cb = ttkernel.get_compile_time_arg_val() {index = 2 : i32} : () -> !ttkernel.cb<2, !ttcore.tile<32x32, f32>>
  ttkernel.cb_wait_front(%cb, %n) : (!ttkernel.cb<2, !ttcore.tile<32x32, f32>>, i32) -> ()
  func.return
}
```
After `convert-ttkernel-to-emitc`, for ttnn 0.81:
```mlir
emitc.file "writer.cpp" {
  emitc.verbatim "// writer: data movement thread"
  emitc.verbatim "// Compile-time arguments: 2: circular buffer cb"
  emitc.include <"cstdint">
  emitc.include "api/dataflow/dataflow_api.h"
  emitc.verbatim ""
  emitc.func @kernel_main() {
    %cb = emitc.call_opaque "get_compile_time_arg_val"() {args = [2 : i32]} : () -> !emitc.opaque<"constexpr uint32_t">
    %n = "emitc.constant"() <{value = 1 : i32}> : () -> i32
    emitc.call_opaque "cb_wait_front"(%cb, %n) : (!emitc.opaque<"constexpr uint32_t">, i32) -> ()
    emitc.return
  }
}
```
The option `profile` is `0.81`, `0.81-objects` or `2025-12` (`ttl/cpp/profiles.py`). The driver stays: the host's
manifest is read off it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.rewriter import Rewriter

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import Pass, ops_of

from ..cpp.profiles import (
    BUFFER_OBJECTS,
    DATAFLOW,
    MAIN_PROFILE,
    OBJECTS,
    PRINTING,
    CppProfile,
    cpp_profile,
)
from ..dialects import ttkernel
from ..dialects.emitc.structure import FileOp, FuncOp, IncludeOp, ReturnOp, VerbatimOp
from ..dialects.ttkernel.base import THREAD
from ..dialects.ttl.kernel import KernelDriverOp, LaunchThreadOp
from .cpp.conversion import Conversion
from .cpp.objects import emit_network
from .cpp.startup import emit_startup
from .cpp.statements import convert, convert_block


@dataclass(frozen=True)
class ConvertTTKernelToEmitCPass(Pass):
    """Convert every function that is a thread."""

    name = "convert-ttkernel-to-emitc"

    profile: str = MAIN_PROFILE
    """The TT-Metalium release that the C++ is for."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        profile = cpp_profile(self.profile)
        for function in ops_of(op, func.FuncOp):
            if THREAD in function.attributes:
                file = _file(function, _driver_of(op, function), profile)
                file.location = function.location
                Rewriter.replace_op(function, file, [])


def _driver_of(module: ModuleOp, function: func.FuncOp) -> KernelDriverOp | None:
    name = function.sym_name.data
    for driver in module.ops:
        launches = ops_of(driver, LaunchThreadOp) if isinstance(driver, KernelDriverOp) else []
        if isinstance(driver, KernelDriverOp) and any(each.callee.root_reference.data == name for each in launches):
            return driver
    return None


def _file(function: func.FuncOp, driver: KernelDriverOp | None, profile: CppProfile) -> FileOp:
    name = function.sym_name.data
    if function.body.block.args:
        raise error_at(function, f"thread '{name}' takes arguments: run ttl-lower-synchronization first")
    to = Conversion(function, profile, driver)
    buffers = ops_of(function, ttkernel.GetCompileTimeArgValOp)
    for op in sorted(buffers, key=lambda op: op.index.value.data):
        # The startup comes before everything else, and names buffers.
        to.at(op)
        convert(op, to)
    if to.is_compute:
        emit_startup(to)
    elif profile.has_objects:
        to.at(function)
        emit_network(to)
    convert_block(function.body.block, to)
    to.at(function)
    to.emit(ReturnOp())
    parts = [*_comments(to), *_includes(to), VerbatimOp(""), *_kernel(to)]
    for part in parts:
        part.location = function.location
    return FileOp(f"{name}.cpp", Region(Block(parts)))


def _comments(to: Conversion) -> Iterator[Operation]:
    """Yield what the thread is, and which arguments it has."""
    function = to.function
    kind = "compute" if to.is_compute else "data movement"
    yield VerbatimOp(f"// {function.sym_name.data}: {kind} thread")
    compile_time: dict[int, str] = {}
    common: dict[int, str] = {}
    for op in ops_of(function, ttkernel.GetCompileTimeArgValOp):
        compile_time[op.index.value.data] = f"circular buffer {to.buffer_name(op)}"
    for accessor in ops_of(function, ttkernel.TensorAccessorOp):
        args, base = accessor.args.owner, accessor.base.owner
        assert isinstance(args, ttkernel.TensorAccessorArgsOp)
        name = accessor.result.name_hint or to.tensor_name(args) or "a tensor"
        compile_time[args.cta.value.data] = f"TensorAccessorArgs of {name}"
        if isinstance(base, ttkernel.GetCommonArgValOp):
            common[base.index.value.data] = f"address of {name}"
    for title, arguments in (("Compile-time arguments", compile_time), ("Common runtime arguments", common)):
        if arguments:
            listed = "; ".join(f"{index}: {what}" for index, what in sorted(arguments.items()))
            yield VerbatimOp(f"// {title}: {listed}")


def _includes(to: Conversion) -> Iterator[Operation]:
    yield IncludeOp("cstdint", standard=True)
    if not to.is_compute:
        headers = {DATAFLOW, *(OBJECTS if to.profile.has_objects else ())}
        headers |= {PRINTING[each] for each in to.callees if each in PRINTING}
        if f"*{to.profile.local_memory}" in to.callees:
            headers.add(to.profile.local_memory_header)
        for header in sorted(headers):
            yield IncludeOp(header)
        return
    if "reduce_init" in to.callees and not to.profile.has_startup:
        # The header's defaults are these macros; the calls say themselves what they reduce.
        yield VerbatimOp("#define REDUCE_OP PoolType::SUM")
        yield VerbatimOp("#define REDUCE_DIM ReduceDim::REDUCE_ROW")
    headers = {to.profile.compute_header(callee) for callee in to.callees if not callee.startswith(".")}
    for header in sorted(headers | ({BUFFER_OBJECTS} if to.objects else set())):
        yield IncludeOp(header)


def _kernel(to: Conversion) -> Iterator[Operation]:
    kernel = FuncOp("kernel_main", Region(to.block))
    if to.profile.has_kernel_main or not to.is_compute:
        yield kernel
        return
    yield VerbatimOp("namespace NAMESPACE {")
    yield kernel
    yield VerbatimOp("void MAIN { kernel_main(); }")
    yield VerbatimOp("}  // namespace NAMESPACE")
