"""Manifest of a kernel, by which a host launches it, read off the driver after all lowerings.

`manifest(module)` is a dictionary of numbers, strings, lists and dictionaries, so that it can be written as JSON:

- `kernel`: its name; `arch`: `wormhole` or `blackhole`; `grid`: [columns, rows] of cores;
- `cbs`: circular buffers by their numbers: `index`, `name`, `address` (bytes in L1; None where none was given),
  `bytes`, `page_bytes`, `pages`, `data_format` (of `tt::DataFormat`), `internal` (whether the compiler made it),
  `unpack_to_dest` (whether its f32 only goes to registers, so that none of the bits need get lost on the way);
- `tensors`: the kernel's, in order: `name`, `shape` (elements), `dtype`, `layout` (`kind`; of a sharded one `grid` and
  `tiles_per_shard`), `memory_space` (`dram` or `l1`), `page_bytes`;
- `semaphores`: `index`, `initial`;
- `threads`: functions in the order of their launches: `name`, `file` (of its C++), `kind` (`noc` or `compute`),
  `processor` and `noc` (see below; None for compute threads), `compile_time_args`, `common_runtime_args`;
- `options`: `fp32_dest_acc_en` (set by the kernel, or because tiles have 32 bits), `dst_full_sync_en`, `dst_capacity`
  (registers);
- `remarks`: what the compiler has put right (`ttl-report-repairs`): `file`, `line`, `column`, `message`, `notes`. The
  compiler adds it; `manifest(module)` has none.

Processors. The first thread that moves data has `RISCV_1` and `NOC_0`, as TT-Metalium's readers, the other `RISCV_0`
and `NOC_1`, as its writers. The C++ of a thread is for its network: NOC_1 runs the other way and takes the corners of a
multicast in the other order.

Arguments. `compile_time_args` are numbers: those of all circular buffers, 0 to n - 1, and in threads that move data a
word for each tensor of the kernel, in order, with the bits of TT-Metalium's `tensor_accessor::ArgConfig`: 1 where it
is sharded, 2 where it is in DRAM. `TensorAccessorArgs<n + t>` finds the word of tensor t there. That is all of an
interleaved tensor; a device wants more words for a sharded one, which its host functions make from the buffer.
`common_runtime_args` are names of tensors: the addresses of these, in this order, are the arguments at run time that
all cores have in common.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from tlx_xdsl.errors import InputError
from tlx_xdsl.transforms.rewriting import ops_of

from ..analysis.dst_capacity import is_wide, registers_of
from ..dialects.ttcore import MemorySpace, format_of
from ..dialects.ttkernel import CopyTileOp, GetCompileTimeArgValOp, TilizeBlockOp
from ..dialects.ttkernel.base import THREAD, ComputeOp, ThreadAttr, ThreadKind, noc_of
from ..dialects.ttl.base import block_shape
from ..dialects.ttl.buffers import BindCBOp
from ..dialects.ttl.kernel import KernelDriverOp, LaunchThreadOp, TensorAccessorOp
from ..dialects.ttl.pipes import CreateSemaphoreOp
from ..dialects.ttl.types import LayoutKind, encoding_of
from ..language.tensors import DTYPES
from .thread_function import circular_buffers, element_of, page_of

DRIVER = "_driver"
"""What the name of a driver has after that of its kernel."""

_SHARDED, _IS_DRAM = 1, 2


def manifest(module: ModuleOp, kernel: str | None = None) -> dict[str, Any]:
    """The manifest of a kernel; `kernel` names it where the module has several.

    Raises InputError if there is no such kernel, or none whose threads were lowered.
    """
    driver = _driver(module, kernel)
    functions = {each.sym_name.data: each for each in module.ops if isinstance(each, FuncOp)}
    launches = ops_of(driver, LaunchThreadOp)
    launched = [functions[launch.callee.root_reference.data] for launch in launches]
    return {
        "kernel": _kernel_name(driver),
        "arch": driver.architecture.name,
        "grid": [driver.grid.x, driver.grid.y],
        "cbs": [_buffer(op, launched) for op in circular_buffers(driver)],
        "tensors": [_tensor(driver, number) for number in range(len(driver.args))],
        "semaphores": [
            {"index": index if op.index is None else op.index.value.data, "initial": op.initial.value.data}
            for index, op in enumerate(ops_of(driver, CreateSemaphoreOp))
        ],
        "threads": [_thread(driver, launch, function) for launch, function in zip(launches, launched, strict=True)],
        "options": _options(driver),
    }


def _driver(module: ModuleOp, kernel: str | None) -> KernelDriverOp:
    drivers = {_kernel_name(op): op for op in ops_of(module, KernelDriverOp)}
    if kernel is None and len(drivers) == 1:
        return next(iter(drivers.values()))
    if kernel is None or kernel not in drivers:
        wanted = "one kernel" if kernel is None else f"kernel '{kernel}'"
        raise InputError(f"expected the driver of {wanted}, found those of: {', '.join(drivers) or 'none'}")
    return drivers[kernel]


def _kernel_name(driver: KernelDriverOp) -> str:
    return driver.sym_name.data.removesuffix(DRIVER)


def _goes_to_registers(index: int, functions: list[FuncOp]) -> bool:
    compute = [each for each in functions if _kind(each) is ThreadKind.COMPUTE]
    found = [op for each in compute for op in ops_of(each, GetCompileTimeArgValOp) if op.index.value.data == index]
    users = [use.operation for op in found for use in op.result.uses if isinstance(use.operation, ComputeOp)]
    return any(isinstance(op, CopyTileOp | TilizeBlockOp) for op in users) and all(op.KEEPS_F32 for op in users)


def _buffer(op: BindCBOp, functions: list[FuncOp]) -> dict[str, Any]:
    type_ = op.result.type
    index = op.cb_index.value.data
    return {
        "index": index,
        "name": op.result.name_hint or f"cb{index}",
        "address": None if op.l1_address is None else op.l1_address.value.data,
        "bytes": type_.bytes,
        "page_bytes": type_.page_bytes,
        "pages": type_.num_pages,
        "data_format": _data_format(type_.data_type),
        "internal": op.internal is not None,
        "unpack_to_dest": type_.data_type == f32 and _goes_to_registers(index, functions),
    }


def _data_format(type_: Attribute) -> str:
    return DTYPES[format_of(type_)].data_format


def _name(driver: KernelDriverOp, number: int) -> str:
    return driver.args[number].name_hint or f"arg{number}"


def _tensor(driver: KernelDriverOp, number: int) -> dict[str, Any]:
    type_ = driver.args[number].type
    encoding = encoding_of(type_)
    layout: dict[str, Any] = {"kind": encoding.layout.kind.value}
    if encoding.layout.kind is LayoutKind.SHARDED:
        layout |= {"grid": [*encoding.layout.grid], "tiles_per_shard": [*encoding.layout.tiles_per_shard]}
    return {
        "name": _name(driver, number),
        "shape": [*block_shape(type_)],
        "dtype": format_of(element_of(type_)),
        "layout": layout,
        "memory_space": encoding.space.data.value,
        "page_bytes": page_of(type_)[1],
    }


_PROCESSORS = (("RISCV_1", "NOC_0"), ("RISCV_0", "NOC_1"))


def _thread(driver: KernelDriverOp, launch: LaunchThreadOp, function: FuncOp) -> dict[str, Any]:
    name, kind = function.sym_name.data, _kind(function)
    if kind is None:
        raise InputError(f"thread '{name}' was not lowered: run ttl-lower-synchronization before")
    moves = kind is ThreadKind.NOC
    arguments = [op.cb_index.value.data for op in circular_buffers(driver)]
    if moves:
        arguments += [_accessor_word(each.type) for each in driver.args]
    processor, noc = _PROCESSORS[noc_of(function)] if moves else (None, None)
    return {
        "name": name,
        "file": f"{name}.cpp",
        "kind": kind.value,
        "processor": processor,
        "noc": noc,
        "compile_time_args": arguments,
        "common_runtime_args": [_name(driver, _number_of(driver, value)) for value in launch.arguments],
    }


def _kind(function: FuncOp) -> ThreadKind | None:
    attribute = function.attributes.get(THREAD)
    return attribute.data if isinstance(attribute, ThreadAttr) else None


def _accessor_word(type_: Attribute) -> int:
    encoding = encoding_of(type_)
    sharded = _SHARDED if encoding.layout.kind is LayoutKind.SHARDED else 0
    return sharded | (_IS_DRAM if encoding.space.data is MemorySpace.DRAM else 0)


def _number_of(driver: KernelDriverOp, accessor: SSAValue) -> int:
    assert isinstance(accessor.owner, TensorAccessorOp), "a launch keeps accessors only"
    return list(driver.args).index(accessor.owner.tensor)


def _options(driver: KernelDriverOp) -> dict[str, Any]:
    return {
        "fp32_dest_acc_en": is_wide(driver),
        "dst_full_sync_en": driver.dst_full_sync_en,
        "dst_capacity": registers_of(driver),
    }
