"""Kernels in TTL's final form, written by hand: an element-wise addition as it is lowered, and pipes between cores."""

# The lines of the IR are as long as they are.
# ruff: noqa: E501

from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from tlx_xdsl.dialects.registry import all_dialects


def parse(text: str) -> ModuleOp:
    """A module of the text, whose operations are located at the text's lines in the file `kernel.py`.

    The numbers of lines are those of the text, so that tests find an operation by what it says.
    """
    chunks: list[list[str]] = [[]]
    for line in text.split("\n"):
        chunks[-1].append(line)
        if line == "}":
            chunks.append([])
    module, first = ModuleOp([]), 1
    for chunk in chunks:
        for op in _chunk("\n".join(chunk), first).ops if any(chunk) else ():
            copy = op.clone()
            for old, new in zip(op.walk(), copy.walk(), strict=True):
                new.location = old.location
            module.body.block.add_op(copy)
        first += len(chunk)
    module.verify()
    return module


@cache
def _chunk(text: str, first: int) -> ModuleOp:
    """A function or a driver; most of a program stays as it is when a line of it is changed."""
    located = "\n".join(
        f'{line} loc("kernel.py":{number}:{len(line) - len(line.lstrip()) + 1})' if is_operation(line) else line
        for number, line in enumerate(text.split("\n"), first)
    )
    return Parser(_context(), located, "kernel.mlir").parse_module()


@cache
def _context() -> Context:
    context = Context()
    for name, make in all_dialects().items():
        context.register_dialect(name, make)
    return context


def is_operation(line: str) -> bool:
    """Return whether a line is all of an operation, so that a location can follow it."""
    start = line.strip()
    return (
        bool(start)
        and not start.startswith(
            (
                "//",
                "}",
                "func.func",
                "scf.for",
                "scf.if",
                "ttl.kernel_driver @",
                "builtin",
                "ttl.kernel @",
                "ttl.compute_thread",
                "ttl.datamovement_thread",
                "ttl.if_",
                "affine.for",
                "#",
                "^",
            )
        )
        and not start.endswith("{")
    )


TILE = "!ttcore.tile<32x32, f32>"
TENSOR = "tensor<{0}x{1}xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>"


def add(rows: int = 2, columns: int = 2, *, block: int = 2, factor: int = 2) -> str:
    """c = a + b of `rows` by `columns` tiles, `block` tiles of a row at a time."""
    cb = f"!ttkernel.cb<{block * factor}, {TILE}>"
    ttl_cb = f"!ttl.cb<[1, {block}], {TILE}, {factor}>"
    tensor = TENSOR.format(rows * 32, columns * 32)
    accessor = f"!ttl.tensor_accessor<{tensor}>"
    size = block * factor * 4096
    binds = "\n".join(
        f"  %cb{i} = ttl.bind_cb {{cb_index = {i} : i32, buffer_factor = {factor} : i32, l1_address = {i * size} : i32}} : {ttl_cb}"
        for i in range(3)
    )
    accessors = "\n".join(f"  %acc_{name} = ttl.tensor_accessor %{name} : {tensor} -> {accessor}" for name in "abc")

    def move(number: int, name: str, crta: int, *, read: bool) -> str:
        verb, acquire, release, pointer = (
            ("read", "reserve_back", "push_back", "write") if read else ("write", "wait_front", "pop_front", "read")
        )
        return f"""\
    ttkernel.cb_{acquire}(%cb{number}, %pages) : ({cb}, i32) -> ()
    %p{name} = ttkernel.get_{pointer}_ptr(%cb{number}) : ({cb}) -> i32
    scf.for %t{name} = %c0 to %block step %c1 {{
      %k{name} = arith.addi %first, %t{name} : index
      %id{name} = arith.index_cast %k{name} : index to i32
      %ti{name} = arith.index_cast %t{name} : index to i32
      %o{name} = arith.muli %ti{name}, %bytes : i32
      %d{name} = arith.addi %p{name}, %o{name} : i32
      ttkernel.noc_async_{verb}_tile(%id{name}, %acc{name}, %d{name}) : (i32, !ttkernel.TensorAccessor, i32) -> ()
    }}
    ttkernel.noc_async_{verb}_barrier() : () -> ()
    ttkernel.cb_{release}(%cb{number}, %pages) : ({cb}, i32) -> ()
"""

    def access(number: int, name: str, crta: int) -> str:
        return f"""\
  %cb{number} = ttkernel.get_compile_time_arg_val() {{index = {number} : i32}} : () -> {cb}
  %base{name} = ttkernel.get_common_arg_val() {{index = {crta} : i32}} : () -> i32
  %args{name} = ttkernel.TensorAccessorArgs() {{cta = {3 + number} : i32, crta = {crta} : i32}} : () -> !ttkernel.TensorAccessorArgs
  %acc{name} = ttkernel.TensorAccessor(%args{name}, %base{name}, %bytes) {{layout = #ttl.layout<tiled>, shape = [{rows * 32} : i32, {columns * 32} : i32], element = {TILE}}} : (!ttkernel.TensorAccessorArgs, i32, i32) -> !ttkernel.TensorAccessor
"""

    constants = f"""\
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %block = arith.constant {block} : index
  %blocks = arith.constant {rows * columns // block} : index
  %pages = arith.constant {block} : i32
  %bytes = arith.constant 4096 : i32
  %n0 = arith.constant 0 : i32
  %n1 = arith.constant 1 : i32
  %n3 = arith.constant 3 : i32
  %n4 = arith.constant 4 : i32
  %n8 = arith.constant 8 : i32
"""
    loop = "  scf.for %i = %c0 to %blocks step %c1 {\n    %first = arith.muli %i, %block : index\n"
    return f"""\
ttl.kernel_driver @add_driver(%a : {tensor}, %b : {tensor}, %c : {tensor}) attributes {{grid = #ttcore.grid<1x1>}} {{
{binds}
{accessors}
  ttl.launch_thread @reader(%cb0, %cb1, %acc_a, %acc_b)
  ttl.launch_thread @compute(%cb0, %cb1, %cb2)
  ttl.launch_thread @writer(%cb2, %acc_c)
  ttl.kernel_driver_return
}}
func.func @reader() attributes {{ttkernel.thread = #ttkernel.thread<noc>}} {{
{constants}{access(0, "a", 0)}{access(1, "b", 1)}{loop}{move(0, "a", 0, read=True)}{move(1, "b", 1, read=True)}  }}
  func.return
}}
func.func @compute() attributes {{ttkernel.thread = #ttkernel.thread<compute>}} {{
{constants}  %d1 = arith.constant 1 : i32
  %d0 = arith.constant 0 : i32
  %cb0 = ttkernel.get_compile_time_arg_val() {{index = 0 : i32}} : () -> {cb}
  %cb1 = ttkernel.get_compile_time_arg_val() {{index = 1 : i32}} : () -> {cb}
  %cb2 = ttkernel.get_compile_time_arg_val() {{index = 2 : i32}} : () -> {cb}
  scf.for %i = %c0 to %blocks step %c1 {{
    ttkernel.cb_wait_front(%cb0, %pages) : ({cb}, i32) -> ()
    ttkernel.cb_wait_front(%cb1, %pages) : ({cb}, i32) -> ()
    ttkernel.cb_reserve_back(%cb2, %pages) : ({cb}, i32) -> ()
    ttkernel.init_sfpu(%cb0, %cb2) : ({cb}, {cb}) -> ()
    scf.for %t = %c0 to %block step %c1 {{
      ttkernel.tile_regs_acquire() : () -> ()
      ttkernel.copy_tile_init(%cb0) : ({cb}) -> ()
      ttkernel.copy_tile(%cb0, %t, %d0) : ({cb}, index, i32) -> ()
      ttkernel.copy_tile_init(%cb1) : ({cb}) -> ()
      ttkernel.copy_tile(%cb1, %t, %d1) : ({cb}, index, i32) -> ()
      ttkernel.add_binary_tile_init() : () -> ()
      ttkernel.add_binary_tile(%d0, %d1, %d0) : (i32, i32, i32) -> ()
      ttkernel.tile_regs_commit() : () -> ()
      ttkernel.tile_regs_wait() : () -> ()
      ttkernel.pack_tile(%d0, %cb2, %t) : (i32, {cb}, index) -> ()
      ttkernel.tile_regs_release() : () -> ()
    }}
    ttkernel.cb_pop_front(%cb0, %pages) : ({cb}, i32) -> ()
    ttkernel.cb_pop_front(%cb1, %pages) : ({cb}, i32) -> ()
    ttkernel.cb_push_back(%cb2, %pages) : ({cb}, i32) -> ()
  }}
  func.return
}}
func.func @writer() attributes {{ttkernel.thread = #ttkernel.thread<noc>}} {{
{constants}{access(2, "c", 0)}{loop}{move(2, "c", 0, read=False)}  }}
  func.return
}}
"""


_NOC_ADDR = "!ttkernel.noc_addr"
_WORD = "!ttkernel.l1_addr_ptr"
_SEMAPHORE = "!ttkernel.semaphore"

SEND = """\
    ttkernel.noc_semaphore_wait(%ready, %receivers) : (!ttkernel.l1_addr_ptr, i32) -> ()
    ttkernel.noc_semaphore_set(%ready, %zero) : (!ttkernel.l1_addr_ptr, i32) -> ()
    {address_of_data}
    {write_data}
    ttkernel.noc_async_write_barrier() : () -> ()
    ttkernel.noc_semaphore_set(%valid, %one) : (!ttkernel.l1_addr_ptr, i32) -> ()
    {address_of_valid}
    {write_valid}
    ttkernel.noc_async_write_barrier() : () -> ()
"""
"""What the source of a pipe does for a block."""

RECEIVE = """\
    ttkernel.noc_semaphore_set(%valid, %zero) : (!ttkernel.l1_addr_ptr, i32) -> ()
    %ready_there = ttkernel.get_noc_addr(%source_x, %source_y, %ready_address) : (i32, i32, i32) -> !ttkernel.noc_addr
    ttkernel.noc_semaphore_inc(%ready_there, %one) : (!ttkernel.noc_addr, i32) -> ()
    ttkernel.noc_async_atomic_barrier() : () -> ()
    ttkernel.noc_semaphore_wait(%valid, %one) : (!ttkernel.l1_addr_ptr, i32) -> ()
"""
"""What a receiver does for a block."""


def multicast(receivers: int = 2, blocks: int = 1) -> str:
    """Core (0, 0) reads each tile of `a` and sends it to the cores right of it; each core writes it to a row of `c`.

    With one receiver the transfers are still multicasts.
    """
    address = "ttkernel.get_noc_multicast_addr(%first_x, %source_y, %last_x, %source_y, {}) : (i32, i32, i32, i32, i32) -> !ttkernel.noc_addr"
    send = SEND.format(
        address_of_data=f"%data_there = {address.format('%place')}",
        write_data="ttkernel.noc_async_write_multicast(%place, %data_there, %bytes, %receivers) : (i32, !ttkernel.noc_addr, i32, i32) -> ()",
        address_of_valid=f"%valid_there = {address.format('%valid_address')}",
        write_valid="ttkernel.noc_semaphore_set_multicast(%valid_word, %valid_there, %receivers) : (!ttkernel.semaphore, !ttkernel.noc_addr, i32) -> ()",
    )
    return _exchange(receivers + 1, blocks, send, RECEIVE, receivers)


def _exchange(columns: int, blocks: int, send: str, receive: str, receivers: int) -> str:
    cb = f"!ttkernel.cb<2, {TILE}>"
    ttl_cb = f"!ttl.cb<[1, 1], {TILE}, 2>"
    a, c = TENSOR.format(32, 32 * blocks), TENSOR.format(32 * columns, 32 * blocks)
    return f"""\
ttl.kernel_driver @pipe_driver(%a : {a}, %c : {c}) attributes {{grid = #ttcore.grid<{columns}x1>}} {{
  %cb0 = ttl.bind_cb {{cb_index = 0 : i32, buffer_factor = 2 : i32, l1_address = 64 : i32}} : {ttl_cb}
  %s0 = ttl.create_semaphore {{initial = 0 : i32, index = 0 : i32}} : !ttl.semaphore
  %s1 = ttl.create_semaphore {{initial = 0 : i32, index = 1 : i32}} : !ttl.semaphore
  %acc_a = ttl.tensor_accessor %a : {a} -> !ttl.tensor_accessor<{a}>
  %acc_c = ttl.tensor_accessor %c : {c} -> !ttl.tensor_accessor<{c}>
  ttl.launch_thread @exchange(%cb0, %acc_a)
  ttl.launch_thread @writer(%cb0, %acc_c)
  ttl.kernel_driver_return
}}
func.func @exchange() attributes {{ttkernel.thread = #ttkernel.thread<noc>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %blocks = arith.constant {blocks} : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %receivers = arith.constant {receivers} : i32
  %bytes = arith.constant 4096 : i32
  %source_x = arith.constant 1 : i32
  %source_y = arith.constant 2 : i32
  %first_x = arith.constant 2 : i32
  %last_x = arith.constant {columns} : i32
  %cb = ttkernel.get_compile_time_arg_val() {{index = 0 : i32}} : () -> {cb}
  %base = ttkernel.get_common_arg_val() {{index = 0 : i32}} : () -> i32
  %args = ttkernel.TensorAccessorArgs() {{cta = 1 : i32, crta = 0 : i32}} : () -> !ttkernel.TensorAccessorArgs
  %acc = ttkernel.TensorAccessor(%args, %base, %bytes) {{layout = #ttl.layout<tiled>, shape = [32 : i32, {32 * blocks} : i32], element = {TILE}}} : (!ttkernel.TensorAccessorArgs, i32, i32) -> !ttkernel.TensorAccessor
  %ready_word = ttkernel.get_semaphore() {{index = 0 : i32}} : () -> !ttkernel.semaphore
  %valid_word = ttkernel.get_semaphore() {{index = 1 : i32}} : () -> !ttkernel.semaphore
  %ready = ttkernel.cast_to_l1_ptr(%ready_word) : (!ttkernel.semaphore) -> !ttkernel.l1_addr_ptr
  %valid = ttkernel.cast_to_l1_ptr(%valid_word) : (!ttkernel.semaphore) -> !ttkernel.l1_addr_ptr
  %ready_address = ttkernel.semaphore_address(%ready_word) : (!ttkernel.semaphore) -> i32
  %valid_address = ttkernel.semaphore_address(%valid_word) : (!ttkernel.semaphore) -> i32
  %x = ttkernel.my_logical_x() : () -> i32
  %is_source = arith.cmpi eq, %x, %zero : i32
  scf.for %i = %c0 to %blocks step %c1 {{
    ttkernel.cb_reserve_back(%cb, %one) : ({cb}, i32) -> ()
    %place = ttkernel.get_write_ptr(%cb) : ({cb}) -> i32
    scf.if %is_source {{
    %id = arith.index_cast %i : index to i32
    ttkernel.noc_async_read_tile(%id, %acc, %place) : (i32, !ttkernel.TensorAccessor, i32) -> ()
    ttkernel.noc_async_read_barrier() : () -> ()
{send}    }} else {{
{receive}    }}
    ttkernel.cb_push_back(%cb, %one) : ({cb}, i32) -> ()
  }}
  func.return
}}
func.func @writer() attributes {{ttkernel.thread = #ttkernel.thread<noc>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %blocks = arith.constant {blocks} : index
  %one = arith.constant 1 : i32
  %row = arith.constant {blocks} : i32
  %bytes = arith.constant 4096 : i32
  %cb = ttkernel.get_compile_time_arg_val() {{index = 0 : i32}} : () -> {cb}
  %base = ttkernel.get_common_arg_val() {{index = 0 : i32}} : () -> i32
  %args = ttkernel.TensorAccessorArgs() {{cta = 2 : i32, crta = 0 : i32}} : () -> !ttkernel.TensorAccessorArgs
  %acc = ttkernel.TensorAccessor(%args, %base, %bytes) {{layout = #ttl.layout<tiled>, shape = [{32 * columns} : i32, {32 * blocks} : i32], element = {TILE}}} : (!ttkernel.TensorAccessorArgs, i32, i32) -> !ttkernel.TensorAccessor
  %x = ttkernel.my_logical_x() : () -> i32
  %first = arith.muli %x, %row : i32
  scf.for %i = %c0 to %blocks step %c1 {{
    %t = arith.index_cast %i : index to i32
    %id = arith.addi %first, %t : i32
    ttkernel.cb_wait_front(%cb, %one) : ({cb}, i32) -> ()
    %place = ttkernel.get_read_ptr(%cb) : ({cb}) -> i32
    ttkernel.noc_async_write_tile(%id, %acc, %place) : (i32, !ttkernel.TensorAccessor, i32) -> ()
    ttkernel.noc_async_write_barrier() : () -> ()
    ttkernel.cb_pop_front(%cb, %one) : ({cb}, i32) -> ()
  }}
  func.return
}}
"""


def two_pipes(announce: str = "set") -> str:
    """Cores (0, 0) and (2, 0) each send a tile to core (1, 0), over pipes that share the semaphore `valid`.

    With `announce="set"`, a source sets it to one, and the receiver takes it back before it waits for the second
    arrival: tt-lang's issue 505, where an arrival may be lost. With `"inc"` sources add to it.
    """
    cb = f"!ttkernel.cb<2, {TILE}>"
    ttl_cb = f"!ttl.cb<[1, 2], {TILE}, 1>"
    own = f"!ttkernel.cb<1, {TILE}>"
    a, c = TENSOR.format(32, 96), TENSOR.format(32, 64)
    if announce == "set":
        arrive = """\
    ttkernel.noc_semaphore_set(%valid, %one) : (!ttkernel.l1_addr_ptr, i32) -> ()
    ttkernel.noc_semaphore_set_remote(%valid_word, %valid_there) : (!ttkernel.semaphore, !ttkernel.noc_addr) -> ()
    ttkernel.noc_async_write_barrier() : () -> ()"""
        take = """\
    ttkernel.noc_semaphore_wait(%valid, %one) : (!ttkernel.l1_addr_ptr, i32) -> ()
    ttkernel.noc_semaphore_set(%valid, %zero) : (!ttkernel.l1_addr_ptr, i32) -> ()
    ttkernel.noc_semaphore_wait(%valid, %one) : (!ttkernel.l1_addr_ptr, i32) -> ()"""
    else:
        arrive = """\
    ttkernel.noc_semaphore_inc(%valid_there, %one) : (!ttkernel.noc_addr, i32) -> ()
    ttkernel.noc_async_atomic_barrier() : () -> ()"""
        take = "    ttkernel.noc_semaphore_wait_min(%valid, %two) : (!ttkernel.l1_addr_ptr, i32) -> ()"
    return f"""\
ttl.kernel_driver @two_driver(%a : {a}, %c : {c}) attributes {{grid = #ttcore.grid<3x1>}} {{
  %cb0 = ttl.bind_cb {{cb_index = 0 : i32, buffer_factor = 1 : i32, l1_address = 0 : i32}} : {ttl_cb}
  %cb1 = ttl.bind_cb {{cb_index = 1 : i32, buffer_factor = 1 : i32, l1_address = 8192 : i32}} : !ttl.cb<[1, 1], {TILE}, 1>
  %s0 = ttl.create_semaphore {{initial = 0 : i32, index = 0 : i32}} : !ttl.semaphore
  %s1 = ttl.create_semaphore {{initial = 0 : i32, index = 1 : i32}} : !ttl.semaphore
  %acc_a = ttl.tensor_accessor %a : {a} -> !ttl.tensor_accessor<{a}>
  %acc_c = ttl.tensor_accessor %c : {c} -> !ttl.tensor_accessor<{c}>
  ttl.launch_thread @exchange(%cb0, %cb1, %acc_a, %acc_c)
  ttl.kernel_driver_return
}}
func.func @exchange() attributes {{ttkernel.thread = #ttkernel.thread<noc>}} {{
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %bytes = arith.constant 4096 : i32
  %into = ttkernel.get_compile_time_arg_val() {{index = 0 : i32}} : () -> {cb}
  %from = ttkernel.get_compile_time_arg_val() {{index = 1 : i32}} : () -> {own}
  %base_a = ttkernel.get_common_arg_val() {{index = 0 : i32}} : () -> i32
  %args_a = ttkernel.TensorAccessorArgs() {{cta = 2 : i32, crta = 0 : i32}} : () -> !ttkernel.TensorAccessorArgs
  %acc_a = ttkernel.TensorAccessor(%args_a, %base_a, %bytes) {{layout = #ttl.layout<tiled>, shape = [32 : i32, 96 : i32], element = {TILE}}} : (!ttkernel.TensorAccessorArgs, i32, i32) -> !ttkernel.TensorAccessor
  %base_c = ttkernel.get_common_arg_val() {{index = 1 : i32}} : () -> i32
  %args_c = ttkernel.TensorAccessorArgs() {{cta = 3 : i32, crta = 1 : i32}} : () -> !ttkernel.TensorAccessorArgs
  %acc_c = ttkernel.TensorAccessor(%args_c, %base_c, %bytes) {{layout = #ttl.layout<tiled>, shape = [32 : i32, 64 : i32], element = {TILE}}} : (!ttkernel.TensorAccessorArgs, i32, i32) -> !ttkernel.TensorAccessor
  %ready_word = ttkernel.get_semaphore() {{index = 0 : i32}} : () -> !ttkernel.semaphore
  %valid_word = ttkernel.get_semaphore() {{index = 1 : i32}} : () -> !ttkernel.semaphore
  %ready = ttkernel.cast_to_l1_ptr(%ready_word) : (!ttkernel.semaphore) -> !ttkernel.l1_addr_ptr
  %valid = ttkernel.cast_to_l1_ptr(%valid_word) : (!ttkernel.semaphore) -> !ttkernel.l1_addr_ptr
  %ready_address = ttkernel.semaphore_address(%ready_word) : (!ttkernel.semaphore) -> i32
  %valid_address = ttkernel.semaphore_address(%valid_word) : (!ttkernel.semaphore) -> i32
  %x = ttkernel.my_logical_x() : () -> i32
  %is_receiver = arith.cmpi eq, %x, %one : i32
  scf.if %is_receiver {{
    ttkernel.cb_reserve_back(%into, %two) : ({cb}, i32) -> ()
    %left = ttkernel.get_noc_addr(%one, %two, %ready_address) : (i32, i32, i32) -> !ttkernel.noc_addr
    ttkernel.noc_semaphore_inc(%left, %one) : (!ttkernel.noc_addr, i32) -> ()
    %right = ttkernel.get_noc_addr(%three, %two, %ready_address) : (i32, i32, i32) -> !ttkernel.noc_addr
    ttkernel.noc_semaphore_inc(%right, %one) : (!ttkernel.noc_addr, i32) -> ()
    ttkernel.noc_async_atomic_barrier() : () -> ()
{take}
    ttkernel.cb_push_back(%into, %two) : ({cb}, i32) -> ()
    ttkernel.cb_wait_front(%into, %two) : ({cb}, i32) -> ()
    %result = ttkernel.get_read_ptr(%into) : ({cb}) -> i32
    ttkernel.noc_async_write_tile(%zero, %acc_c, %result) : (i32, !ttkernel.TensorAccessor, i32) -> ()
    %next = arith.addi %result, %bytes : i32
    ttkernel.noc_async_write_tile(%one, %acc_c, %next) : (i32, !ttkernel.TensorAccessor, i32) -> ()
    ttkernel.noc_async_write_barrier() : () -> ()
    ttkernel.cb_pop_front(%into, %two) : ({cb}, i32) -> ()
  }} else {{
    ttkernel.cb_reserve_back(%from, %one) : ({own}, i32) -> ()
    %place = ttkernel.get_write_ptr(%from) : ({own}) -> i32
    ttkernel.noc_async_read_tile(%x, %acc_a, %place) : (i32, !ttkernel.TensorAccessor, i32) -> ()
    ttkernel.noc_async_read_barrier() : () -> ()
    ttkernel.noc_semaphore_wait(%ready, %one) : (!ttkernel.l1_addr_ptr, i32) -> ()
    %half = arith.divsi %x, %two : i32
    %there = arith.muli %half, %bytes : i32
    %data_there = ttkernel.get_noc_addr(%two, %two, %there) : (i32, i32, i32) -> !ttkernel.noc_addr
    ttkernel.noc_async_write(%place, %data_there, %bytes) : (i32, !ttkernel.noc_addr, i32) -> ()
    ttkernel.noc_async_write_barrier() : () -> ()
    %valid_there = ttkernel.get_noc_addr(%two, %two, %valid_address) : (i32, i32, i32) -> !ttkernel.noc_addr
{arrive}
    ttkernel.cb_push_back(%from, %one) : ({own}, i32) -> ()
    ttkernel.cb_wait_front(%from, %one) : ({own}, i32) -> ()
    %again = ttkernel.get_read_ptr(%from) : ({own}) -> i32
    ttkernel.cb_pop_front(%from, %one) : ({own}, i32) -> ()
  }}
  func.return
}}
"""


def semaphore_program(cores: list[list[str]]) -> str:
    """Cores that only set semaphores and wait for them: a list of steps for each.

    `set W V` sets word W of its own to V, `wait W V` and `min W V` wait for it, and `inc W X` adds one to word W of
    core (X, 0).
    """

    def step(number: int, text: str) -> str:
        kind, word, value = text.split()
        if kind == "inc":
            return f"""\
    %there{number} = ttkernel.get_noc_addr(%x{value}, %y, %address{word}) : (i32, i32, i32) -> !ttkernel.noc_addr
    ttkernel.noc_semaphore_inc(%there{number}, %v1) : (!ttkernel.noc_addr, i32) -> ()
    ttkernel.noc_async_atomic_barrier() : () -> ()
"""
        name = {"set": "set", "wait": "wait", "min": "wait_min"}[kind]
        return f"    ttkernel.noc_semaphore_{name}(%word{word}, %v{value}) : (!ttkernel.l1_addr_ptr, i32) -> ()\n"

    bodies = "".join(
        f"  %is{core} = arith.cmpi eq, %me, %v{core} : i32\n  scf.if %is{core} {{\n"
        + "".join(step(100 * core + number, text) for number, text in enumerate(steps))
        + "  }\n"
        for core, steps in enumerate(cores)
    )
    words = "".join(
        f"""\
  %semaphore{word} = ttkernel.get_semaphore() {{index = {word} : i32}} : () -> !ttkernel.semaphore
  %word{word} = ttkernel.cast_to_l1_ptr(%semaphore{word}) : (!ttkernel.semaphore) -> !ttkernel.l1_addr_ptr
  %address{word} = ttkernel.semaphore_address(%semaphore{word}) : (!ttkernel.semaphore) -> i32
"""
        for word in range(2)
    )
    numbers = "".join(f"  %v{number} = arith.constant {number} : i32\n" for number in range(4))
    places = "".join(f"  %x{core} = arith.constant {core + 1} : i32\n" for core in range(len(cores)))
    return f"""\
ttl.kernel_driver @words_driver() attributes {{grid = #ttcore.grid<{len(cores)}x1>}} {{
  %s0 = ttl.create_semaphore {{initial = 0 : i32, index = 0 : i32}} : !ttl.semaphore
  %s1 = ttl.create_semaphore {{initial = 0 : i32, index = 1 : i32}} : !ttl.semaphore
  ttl.launch_thread @words()
  ttl.kernel_driver_return
}}
func.func @words() attributes {{ttkernel.thread = #ttkernel.thread<noc>}} {{
{numbers}{places}  %y = arith.constant 2 : i32
{words}  %me = ttkernel.my_logical_x() : () -> i32
{bodies}  func.return
}}
"""
