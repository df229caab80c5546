"""A kernel with every operation of `ttkernel`, for the tests of what C++ they become."""

from __future__ import annotations

from tlx_xdsl.ttl.elementwise import FUNCTIONS, Function

OPERANDS = {
    "c": ("%cb", "!cb"),
    "i": ("%i", "index"),
    "n": ("%n", "i32"),
    "a": ("%acc", "!ttkernel.TensorAccessor"),
    "x": ("%there", "!ttkernel.noc_addr"),
    "d": ("%data", "!ttkernel.noc_addr"),
    "m": ("%range", "!ttkernel.noc_addr"),
    "r": ("%all", "!ttkernel.noc_addr"),
    "s": ("%sem", "!ttkernel.semaphore"),
    "p": ("%ptr", "!ttkernel.l1_addr_ptr"),
}
"""Kinds of operands: a circular buffer, an index, an i32, an accessor, addresses (of a semaphore, of data, of data on
several cores, of a semaphore there), a semaphore, a pointer."""


def _numbers(function: Function) -> str:
    numbers = ", ".join("1.0 : f32" for _ in function.parameters)
    return f"parameters = [{numbers}]" if numbers else ""


_BINARY = ("add", "sub", "mul", "div", "max", "min", "remainder")

COMPUTE: dict[str, tuple[str, str]] = {
    "init_sfpu": ("cc", ""),
    "binary_op_init_common": ("ccc", ""),
    "mm_init": ("ccc", ""),
    "mm_block_init": ("cccnnnn", ""),
    "copy_tile_init": ("c", ""),
    "copy_tile": ("cii", ""),
    **{f"{name}_tiles_init": ("cc", "") for name in ("add", "sub", "mul")},
    **{f"{name}_tiles": ("cciii", "") for name in ("add", "sub", "mul")},
    "matmul_tiles": ("cciii", ""),
    "matmul_block": ("cciiinnnn", ""),
    "unary_bcast_init": ("cc", "dims = [1]"),
    "unary_bcast": ("cii", "dims = [1]"),
    "transpose_wh_init": ("cc", ""),
    "transpose_wh_tile": ("cii", ""),
    "reduce_init": ("ccc", 'dims = [1], kind = "sum"'),
    "reduce_tile": ("cciii", 'dims = [1], kind = "sum"'),
    "reduce_uninit": ("", ""),
    **{f"{name}_binary_tile_init": ("", "") for name in _BINARY},
    **{f"{name}_binary_tile": ("iii", "") for name in _BINARY},
    **{each.preparation: ("", "") for each in FUNCTIONS},
    **{each.callee: ("i", _numbers(each)) for each in FUNCTIONS},
    "where_tile_init": ("", ""),
    "where_tile": ("iiii", ""),
    "fill_tile_init": ("", ""),
    "fill_tile": ("i", "value = 1.5 : f32"),
    "fill_tile_int": ("i", "value = -7 : i32"),
    **{f"{name}_int_tile_init": ("", "format = ui32") for name in ("add", "sub", "mul", "max", "min")},
    **{f"{name}_int_tile": ("iii", "format = ui32") for name in ("add", "sub", "mul", "max", "min")},
    **{f"{name}_tile_int32": ("i", "") for name in ("negative", "abs", "relu")},
    "typecast_tile_init": ("", "source = bf16, target = i32"),
    "typecast_tile": ("i", "source = bf16, target = i32"),
    "copy_dest_values_init": ("", ""),
    "copy_dest_values": ("ii", ""),
    "pack_tile": ("ici", ""),
    "pack_tile_block": ("icn", ""),
    "pack_reconfig_l1_acc": ("n", ""),
    "tilize_init": ("cnc", ""),
    "tilize_block": ("cncnn", ""),
    "tilize_uninit": ("cc", ""),
    "pack_untilize_dest_init": ("c", "width = 2 : i32, full_width = 4 : i32"),
    "pack_untilize_dest": ("cn", "width = 2 : i32, full_width = 4 : i32"),
    "pack_untilize_uninit": ("c", ""),
    "dprint": ("i", 'format = "{}", thread = "math"'),
    "dprint_buffer": ("c", 'thread = "unpack"'),
    "dprint_tiles": ("c", 'tiles = 1 : i32, thread = "unpack"'),
    "tile_regs_acquire": ("", ""),
    "tile_regs_commit": ("", ""),
    "tile_regs_wait": ("", ""),
    "tile_regs_release": ("", ""),
}
"""Operations of compute threads: their operands and attributes."""

BUFFERS: dict[str, tuple[str, str]] = {
    **{f"cb_{name}": ("cn", "") for name in ("reserve_back", "push_back", "wait_front", "pop_front")},
    "dprint": ("i", 'format = "i = {}"'),
    "dprint_buffer": ("c", ""),
    "dprint_tiles": ("c", "tiles = 2 : i32"),
}
"""Operations of all threads."""

NOC: dict[str, tuple[str, str]] = {
    **{f"noc_async_{way}_{unit}": ("nan", "") for way in ("read", "write") for unit in ("tile", "shard")},
    **{f"noc_async_{way}_page": ("nann", "") for way in ("read", "write")},
    **{f"noc_async_{kind}_barrier": ("", "") for kind in ("read", "write", "atomic")},
    "noc_async_write": ("ndn", ""),
    "noc_async_write_multicast": ("nmnn", ""),
    "noc_async_write_multicast_loopback_src": ("nmnn", ""),
    "noc_semaphore_set": ("pn", ""),
    "noc_semaphore_wait": ("pn", ""),
    "noc_semaphore_wait_min": ("pn", ""),
    "noc_semaphore_inc": ("xn", ""),
    "noc_semaphore_set_remote": ("sx", ""),
    "noc_semaphore_set_multicast": ("srn", ""),
    "noc_semaphore_set_multicast_loopback_src": ("srn", ""),
}
"""Operations of threads that move data, but for those that give values."""

VALUES = """
  %n = arith.constant 1 : i32
  %i = arith.constant 1 : index
  %cb = ttkernel.get_compile_time_arg_val() {index = 0 : i32} : () -> !cb
"""
NOC_VALUES = """
  %base = ttkernel.get_common_arg_val() {index = 0 : i32} : () -> i32
  %args = ttkernel.TensorAccessorArgs() {cta = 1 : i32, crta = 0 : i32} : () -> !ttkernel.TensorAccessorArgs
  %acc = ttkernel.TensorAccessor(%args, %base, %n) {layout = #ttl.layout<tiled>, shape = [32, 32], element = !t}
    : (!ttkernel.TensorAccessorArgs, i32, i32) -> !ttkernel.TensorAccessor
  %sem = ttkernel.get_semaphore() {index = 0 : i32} : () -> !ttkernel.semaphore
  %ptr = ttkernel.cast_to_l1_ptr(%sem) : (!ttkernel.semaphore) -> !ttkernel.l1_addr_ptr
  %value = ttkernel.semaphore_value(%ptr) : (!ttkernel.l1_addr_ptr) -> i32
  %at = ttkernel.semaphore_address(%sem) : (!ttkernel.semaphore) -> i32
  %x = ttkernel.my_x() : () -> i32
  %y = ttkernel.my_y() : () -> i32
  %lx = ttkernel.my_logical_x() : () -> i32
  %ly = ttkernel.my_logical_y() : () -> i32
  %vx = ttkernel.virtual_x(%lx) : (i32) -> i32
  %there = ttkernel.get_noc_addr(%vx, %y, %at) : (i32, i32, i32) -> !ttkernel.noc_addr
  %all = ttkernel.get_noc_multicast_addr(%x, %y, %lx, %ly, %at) : (i32, i32, i32, i32, i32) -> !ttkernel.noc_addr
  %w = ttkernel.get_write_ptr(%cb) : (!cb) -> i32
  %data = ttkernel.get_noc_addr(%x, %y, %w) : (i32, i32, i32) -> !ttkernel.noc_addr
  %range = ttkernel.get_noc_multicast_addr(%x, %y, %lx, %ly, %w) : (i32, i32, i32, i32, i32) -> !ttkernel.noc_addr
  %r = ttkernel.get_read_ptr(%cb) : (!cb) -> i32
"""


def call(name: str, kinds: str, attributes: str) -> str:
    operands = ", ".join(OPERANDS[kind][0] for kind in kinds)
    types = ", ".join(OPERANDS[kind][1] for kind in kinds)
    shown = f" {{{attributes}}}" if attributes else ""
    return f"  ttkernel.{name}({operands}){shown} : ({types}) -> ()\n"


def kernel(element: str = "f32") -> str:
    """A compute thread and one that moves data, which call everything in no sensible order."""
    calls = {
        "compute": "".join(call(name, *how) for name, how in {**BUFFERS, **COMPUTE}.items()),
        "noc": NOC_VALUES + "".join(call(name, *how) for name, how in {**BUFFERS, **NOC}.items()),
    }
    functions = "".join(
        f"func.func @{kind}() attributes {{ttkernel.thread = #ttkernel.thread<{kind}>}} {{"
        f"{VALUES}{text}  func.return\n}}\n"
        for kind, text in calls.items()
    )
    return f"!t = !ttcore.tile<32x32, {element}>\n!cb = !ttkernel.cb<2, !t>\n{functions}"
