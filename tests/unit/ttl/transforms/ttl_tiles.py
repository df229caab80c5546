"""A machine that runs compute threads with tiles that are expressions: written from what the operations mean.

It runs a thread as the frontend makes it, with blocks as values, and as it is after `ttl-lower-compute`, with calls of
TT-Metalium. A tile is a nested tuple such as `("add", "a3", ("exp", "b0"))`, so equal results mean equal computations;
tiles of 16 bits are rounded (`"round"`) where the meaning of blocks, or the packer, says so. The calls are checked for
what the hardware requires: registers within the capacity, each written before it is read, what is called prepared by
the last preparation, places packed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import ModuleOp, UnrealizedConversionCastOp
from xdsl.ir import Block, Operation, SSAValue

from tests.unit.ttl.transforms.ttl_programs import Program
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.ttl.dialects import ttkernel, ttl
from tlx_xdsl.ttl.dialects.ttcore import element_bytes

Tile = Any
PASSES = (
    "ttl-infer-dst-requirements", "ttl-bufferize", "ttl-spill-dst-registers", "ttl-allocate-circular-buffers",
    "ttl-expand-threads", "ttl-assign-dst-registers", "ttl-lower-compute",
)  # fmt: skip


def compiled(text: str, *, until: str = PASSES[-1], **options: dict[str, object]) -> ModuleOp:
    """The module after the passes up to `until`; `options`: those of passes, by their names with underscores."""
    module = parse_module(text)
    verify_module(module)
    for name in PASSES[: PASSES.index(until) + 1]:
        pass_class(name)(**options.get(name.replace("-", "_"), {})).apply(None, module)  # type: ignore[arg-type]
        verify_module(module)
    return module


@dataclass
class Buffer:
    """A circular buffer: pages that were pushed, and pages that are reserved."""

    type: ttl.CBType
    pages: list[Tile] = field(default_factory=list)
    reserved: list[Tile] = field(default_factory=list)
    pushed: list[Tile] = field(default_factory=list)
    """All pages that have ever been pushed."""
    waited: int = 0
    packed: int = 0
    """Tiles of the reservation that were packed in order."""

    def reserve(self, count: int) -> None:
        self.reserved += [None] * (count - len(self.reserved))
        assert len(self.pages) + len(self.reserved) <= self.type.num_pages, "no room is left"

    def push(self, count: int) -> None:
        done = [self.reserved.pop(0) for _ in range(count)]
        assert None not in done, "a page that was not written is pushed"
        self.pages += done
        self.pushed += done
        self.packed = 0

    def wait(self, count: int) -> None:
        assert len(self.pages) >= count, "no page comes any more"
        self.waited = max(self.waited, count)

    def pop(self, count: int) -> None:
        assert self.waited >= count
        del self.pages[:count]
        self.waited -= count

    def read(self, page: int) -> Tile:
        assert 0 <= page < self.waited, f"page {page} was not waited for"
        return self.pages[page]


@dataclass
class View:
    """Blocks of a buffer, by the number of their first page."""

    buffer: Buffer
    begin: int
    produces: bool


STEPS = {"wait": Buffer.wait, "pop": Buffer.pop, "reserve": Buffer.reserve, "push": Buffer.push}


def rounded(tile: Tile, type_: Any) -> Tile:
    """A tile as it is in memory."""
    if element_bytes(ttl.tile_of(type_).data_type) == 4:
        return tile
    # What comes from memory is rounded, and stays so when its elements are only moved.
    return tile if isinstance(tile, str) or tile[0] in ("round", "bcast", "transpose") else ("round", tile)


def accumulated(kind: str, before: Tile, part: Tile) -> Tile:
    """A sum or maximum as one flat tuple, so that the order of additions counts."""
    return (kind, part) if before is None else (*before, part)


@dataclass
class Machine:
    """Runs one thread."""

    inputs: int = 8
    """Blocks that are in a buffer without a producer in the beginning."""
    values: dict[SSAValue, Any] = field(default_factory=dict)
    buffers: list[Buffer] = field(default_factory=list)
    capacity: int = 0
    registers: dict[int, Tile] | None = None
    committed: bool = False
    prepared: tuple[Any, ...] = ()
    sizes: tuple[int, ...] = ()
    """Of the products of blocks that the matrix unit is prepared for."""
    accumulates: bool = False
    masks: bool = False
    """Whether the packer writes zeros beside what a reduction leaves."""
    reduced: set[int] = field(default_factory=set)
    """The registers with a result of a reduction."""
    acquires: int = 0
    used: int = 0

    def get(self, value: SSAValue) -> Any:
        return self.values[value]

    def run(self, block: Block) -> None:
        for op in block.ops:
            handler = _handlers().get(op.name)
            assert handler is not None, f"unknown operation {op.name}"
            handler(self, op)

    def new_buffer(self, type_: ttl.CBType, name: str, *, produced: bool) -> Buffer:
        pages = [] if produced else [f"{name}{i}" for i in range(self.inputs * type_.block_pages)]
        self.buffers.append(Buffer(type_, pages))
        return self.buffers[-1]

    # Registers

    def read(self, register: int) -> Tile:
        assert self.registers is not None
        assert register in self.registers, f"register {register} holds nothing"
        return self.registers[register]

    def write(self, register: int, tile: Tile) -> None:
        assert self.registers is not None, "the registers are not acquired"
        assert not self.committed
        assert 0 <= register < self.capacity, f"register {register} of {self.capacity}"
        self.used = max(self.used, register + 1)
        self.reduced.discard(register)
        self.registers[register] = tile


def run_thread(module: ModuleOp, capacity: int = 16) -> tuple[dict[str, list[Tile]], Machine]:
    """Run the compute thread of a module; return what it pushes, by the names of buffers, and the machine."""
    machine = Machine(capacity=capacity)
    named: dict[str, Buffer] = {}
    produced = {op.cb for op in module.walk() if isinstance(op, ttl.CBReserveOp)}
    functions = {op.properties["sym_name"].data: op for op in module.walk() if op.name == "func.func"}  # type: ignore[attr-defined]
    thread: Block | None = None
    for launch in [op for op in module.walk() if isinstance(op, ttl.LaunchThreadOp)]:
        thread = functions[launch.callee.root_reference.data].regions[0].block
        for outer, inner in zip(launch.arguments, thread.args, strict=True):
            if isinstance(outer.type, ttl.CBType):
                assert outer.name_hint is not None or outer.owner.properties.get("internal") is not None
                name = outer.name_hint or f"internal{len(named)}"
                named[name] = machine.new_buffer(outer.type, name, produced=inner in produced)
                machine.values[inner] = named[name]
    if thread is None:
        (found,) = [op for op in module.walk() if isinstance(op, ttl.ComputeThreadOp)]
        thread = found.body.block
        for create in [op for op in module.walk() if isinstance(op, ttl.CreateCBOp)]:
            name = create.result.name_hint
            assert name is not None
            named[name] = machine.new_buffer(create.type, name, produced=create.result in produced)
            machine.values[create.result] = named[name]
    machine.run(thread)
    assert machine.registers is None
    assert not machine.accumulates
    assert not machine.masks
    for buffer in machine.buffers:
        assert not buffer.reserved, "a push is missing"
        assert not buffer.waited, "a pop is missing"
    return {name: buffer.pushed for name, buffer in named.items() if not name.startswith("internal")}, machine


def check(
    program: Program, *, capacity: int = 16, forms: tuple[str, ...] = ("ttkernel",), **options: dict[str, object]
) -> Machine:
    """Compare a thread before the passes with what they make of it; `forms`: those that it is lowered to in turn."""
    wanted, _ = run_thread(parse_module(program.text))
    module = compiled(program.text, until=PASSES[-2], **options)
    for form in forms:
        pass_class(PASSES[-1])(to=form).apply(None, module)  # type: ignore[arg-type]
        verify_module(module)
    found, machine = run_thread(module, capacity)
    assert {name: found[name] for name in wanted} == wanted
    assert any(wanted.values())
    return machine


# --- operations -------------------------------------------------------------------------------------------------------

Handler = Callable[[Machine, Any], None]


@cache
def _handlers() -> dict[str, Handler]:
    found: dict[str, Handler] = {
        "arith.constant": lambda m, op: m.values.__setitem__(op.result, op.value.value.data),
        "arith.index_cast": lambda m, op: m.values.__setitem__(op.result, m.get(op.input)),
        "arith.select": lambda m, op: m.values.__setitem__(op.result, m.get(op.lhs if m.get(op.cond) else op.rhs)),
        "arith.cmpi": _compare,
        "affine.apply": lambda m, op: m.values.__setitem__(
            op.result, op.map.data.eval([m.get(each) for each in op.mapOperands], [])[0]
        ),
        "affine.for": _affine_for,
        "scf.for": _scf_for,
        "scf.if": lambda m, op: (
            m.run(op.regions[0 if m.get(op.cond) else 1].block) if m.get(op.cond) or op.regions[1].blocks else None
        ),
        UnrealizedConversionCastOp.name: lambda m, op: m.values.__setitem__(op.results[0], m.get(op.operands[0])),
        "ttl.block": _block,
        "ttl.store": _store,
    }
    for name in ("affine.yield", "scf.yield", "func.return", "ttl.thread_return", "ttl.require_dst"):
        found[name] = lambda _m, _op: None
    for name, function in {"addi": int.__add__, "muli": int.__mul__, "subi": int.__sub__}.items():
        found[f"arith.{name}"] = _arithmetic(function)
    for step in STEPS:
        found[f"ttl.cb_{step}"] = _step(step)
    for class_ in ttl.TTL.operations:
        if issubclass(class_, ttl.BlockComputeOp):
            found[class_.name] = _on_blocks
    found |= {f"ttkernel.{name}": handler for name, handler in _calls().items()}
    return found


def _arithmetic(function: Callable[[int, int], int]) -> Handler:
    def run(machine: Machine, op: Any) -> None:
        machine.values[op.result] = function(machine.get(op.lhs), machine.get(op.rhs))

    return run


def _compare(machine: Machine, op: arith.CmpiOp) -> None:
    assert op.predicate.value.data == 0, "eq"
    machine.values[op.result] = machine.get(op.lhs) == machine.get(op.rhs)


def _affine_for(machine: Machine, op: affine.ForOp) -> None:
    (begin,), (end,) = op.lowerBoundMap.data.eval([], []), op.upperBoundMap.data.eval([], [])
    for index in range(begin, end, op.step.value.data):
        machine.values[op.body.block.args[0]] = index
        machine.run(op.body.block)


def _scf_for(machine: Machine, op: scf.ForOp) -> None:
    for index in range(*(machine.get(each) for each in (op.lb, op.ub, op.step))):
        machine.values[op.body.block.args[0]] = index
        machine.run(op.body.block)


def _step(step: str) -> Handler:
    def run(machine: Machine, op: ttl.CBOp) -> None:
        buffer: Buffer = machine.get(op.cb)
        STEPS[step](buffer, op.num_pages)
        if op.results:
            machine.values[op.results[0]] = View(buffer, 0, produces=step == "reserve")

    return run


def _block(machine: Machine, op: ttl.BlockOp) -> None:
    view: View = machine.get(op.view)
    machine.values[op.result] = View(view.buffer, view.buffer.type.block_pages * machine.get(op.index), view.produces)


# Blocks as values: a tile for each place.

Tiles = dict[tuple[int, int], Tile]


def places(shape: Sequence[int]) -> list[tuple[int, int]]:
    rows, columns = shape
    return list(product(range(rows), range(columns)))


def _tiles(machine: Machine, value: SSAValue, user: Any) -> Tiles:
    found = machine.get(value)
    reads_memory = isinstance(user, ttl.BlockComputeOp) and bool(user.TILE.CB_OPERANDS)
    is_sum = isinstance(value.owner, ttl.MatmulOp | ttl.ReduceOp)
    if not isinstance(found, View) and (reads_memory or (is_sum and not isinstance(user, ttl.StoreOp))):
        return {at: rounded(tile, value.type) for at, tile in found.items()}
    if isinstance(found, View):
        assert not found.produces
        shape = ttl.block_shape(value.type)
        return {at: found.buffer.read(found.begin + at[0] * shape[1] + at[1]) for at in places(shape)}
    return found


def _on_blocks(machine: Machine, op: Any) -> None:
    name = op.name.removeprefix("ttl.")
    operands = [_tiles(machine, each, op) for each in op.operands]
    result: Tiles = {}
    for row, column in places(ttl.block_shape(op.result.type)):
        at = row, column
        match op:
            case ttl.FillOp():
                result[at] = name, op.value.value.data
            case ttl.BcastOp():
                dims = op.dimensions
                result[at] = name, dims, operands[0][0 if 0 in dims else row, 0 if 1 in dims else column]
            case ttl.TransposeOp():
                result[at] = name, operands[0][column, row]
            case ttl.MatmulOp():
                inner = ttl.block_shape(op.lhs.type)[1]
                result[at] = ("sum", *(("matmul", operands[0][row, k], operands[1][k, column]) for k in range(inner)))
            case ttl.ReduceOp():
                kind, dims = name.removeprefix("reduce_"), op.dimensions
                parts = [
                    tile
                    for (i, j), tile in operands[0].items()
                    if (0 in dims or i == row) and (1 in dims or j == column)
                ]
                result[at] = (kind, *(("reduce", kind, dims, tile) for tile in parts))
            case _:
                result[at] = (name, *_numbers(op), *(each[at] for each in operands))
    machine.values[op.result] = result


def _store(machine: Machine, op: ttl.StoreOp) -> None:
    tiles = _tiles(machine, op.value, op)
    view: View = machine.get(op.view)
    assert view.produces
    overwrites = op.accumulate is None or (op.first is not None and machine.get(op.first))
    for number, at in enumerate(places(ttl.block_shape(op.value.type))):
        _pack(view.buffer, view.begin + number, tiles[at], overwrites=overwrites)


def _pack(buffer: Buffer, page: int, tile: Tile, *, overwrites: bool) -> None:
    before = buffer.reserved[page]
    assert (before is None) is overwrites, "a place is written once, and added to after that"
    buffer.reserved[page] = rounded(tile if overwrites else ("added", before, tile), buffer.type.element_type)


# Calls.


def _calls() -> dict[str, Handler]:
    found: dict[str, Handler] = {
        "tile_regs_acquire": _acquire,
        "tile_regs_commit": _commit,
        "tile_regs_wait": lambda m, _op: _expect(m.committed),
        "tile_regs_release": _release,
        "copy_tile": _copy_tile,
        "copy_dest_values": _copy_dest_values,
        "fill_tile": _fill_tile,
        "mm_block_init": _prepare_blocks,
        "matmul_tiles": _matmul,
        "matmul_block": _matmul_block,
        "reduce_tile": _reduce,
        "unary_bcast": _unary_bcast,
        "transpose_wh_tile": _transpose,
        "pack_tile": _pack_tile,
        "pack_tile_block": _pack_tile_block,
        "pack_reconfig_l1_acc": lambda m, op: setattr(m, "accumulates", bool(m.get(op.enabled))),
        "reduce_uninit": lambda m, _op: setattr(m, "masks", False),
    }
    for class_ in ttkernel.TTKERNEL.operations:
        if issubclass(class_, ttkernel.ComputeOp):
            name = class_.name.removeprefix("ttkernel.")
            if name in found:
                continue
            if name.endswith("init") or name in ("init_sfpu", "binary_op_init_common"):
                found[name] = lambda m, op: _prepare(m, (op.name.removeprefix("ttkernel."), _buffers(m, op), _dims(op)))
            elif name.endswith("_binary_tile") or name == "where_tile":
                found[name] = _sfpu_several
            elif name.endswith("_tiles"):
                found[name] = _fpu
            else:
                found[name] = _sfpu_unary
    return found


def _numbers(op: Operation) -> tuple[float, ...]:
    given: Any = op.properties.get("parameters")
    return () if given is None else tuple(each.value.data for each in given)


def _expect(holds: bool) -> None:
    assert holds, "the registers are somewhere else"


def _acquire(machine: Machine, _op: Operation) -> None:
    _expect(machine.registers is None)
    machine.registers = {}
    machine.acquires += 1


def _commit(machine: Machine, _op: Operation) -> None:
    _expect(machine.registers is not None and not machine.committed)
    machine.committed = True


def _release(machine: Machine, _op: Operation) -> None:
    _expect(machine.committed)
    machine.committed, machine.registers = False, None


def _buffers(machine: Machine, op: Operation) -> tuple[int, ...]:
    return tuple(id(machine.get(each)) for each in op.operands if isinstance(each.type, ttkernel.CBType))


def _dims(op: Operation) -> tuple[str, ...]:
    return tuple(str(op.properties[name]) for name in ("dims", "kind") if name in op.properties)


def _prepare(machine: Machine, what: tuple[Any, ...]) -> None:
    machine.prepared = what
    machine.masks = machine.masks or what[0] == "reduce_init"


def _check_prepared(machine: Machine, op: Operation, name: str) -> None:
    """The last preparation was for this call: its buffers begin with those of the call."""
    wanted, buffers = name, _buffers(machine, op)
    assert machine.prepared[:1] == (wanted,), f"{op.name} after {machine.prepared}"
    assert machine.prepared[1][: len(buffers)] == buffers
    assert machine.prepared[2] == _dims(op)


def _copy_tile(machine: Machine, op: ttkernel.CopyTileOp) -> None:
    _check_prepared(machine, op, "copy_tile_init")
    machine.write(machine.get(op.dst), machine.get(op.cb).read(machine.get(op.tile)))


def _copy_dest_values(machine: Machine, op: ttkernel.CopyDestValuesOp) -> None:
    _check_prepared(machine, op, "copy_dest_values_init")
    machine.write(machine.get(op.destination), machine.read(machine.get(op.source)))


def _fill_tile(machine: Machine, op: ttkernel.FillTileOp) -> None:
    _check_prepared(machine, op, "fill_tile_init")
    machine.write(machine.get(op.dst), ("fill", op.value.value.data))


def _sfpu_unary(machine: Machine, op: Any) -> None:
    _check_prepared(machine, op, op.FUNCTION.preparation)
    register = machine.get(op.dst)
    machine.write(register, (op.FUNCTION.name, *_numbers(op), machine.read(register)))


def _sfpu_several(machine: Machine, op: Any) -> None:
    name = op.name.removeprefix("ttkernel.")
    _check_prepared(machine, op, f"{name}_init")
    *sources, target = op.operands
    tiles = [machine.read(machine.get(each)) for each in sources]
    machine.write(machine.get(target), (name.removesuffix("_tile").removesuffix("_binary"), *tiles))


def _from_buffers(machine: Machine, op: Any) -> list[Tile]:
    return [machine.get(cb).read(machine.get(at)) for cb, at in ((op.in0, op.tile0), (op.in1, op.tile1))]


def _fpu(machine: Machine, op: Any) -> None:
    name = op.name.removeprefix("ttkernel.")
    _check_prepared(machine, op, f"{name}_init")
    register = machine.get(op.dst)
    assert machine.registers is not None
    assert register not in machine.registers, "it would be added to"
    machine.write(register, (name.removesuffix("_tiles"), *_from_buffers(machine, op)))


def _matmul(machine: Machine, op: ttkernel.MatmulTilesOp) -> None:
    _check_prepared(machine, op, "mm_init")
    register = machine.get(op.dst)
    assert machine.registers is not None
    part = ("matmul", *_from_buffers(machine, op))
    machine.write(register, accumulated("sum", machine.registers.get(register), part))


def _sizes(machine: Machine, op: ttkernel.MMBlockInitOp | ttkernel.MatmulBlockOp) -> tuple[int, ...]:
    return tuple(machine.get(each) for each in (op.transpose, op.ct, op.rt, op.kt))


def _prepare_blocks(machine: Machine, op: ttkernel.MMBlockInitOp) -> None:
    _prepare(machine, ("mm_block_init", _buffers(machine, op), _dims(op)))
    machine.sizes = _sizes(machine, op)


def _matmul_block(machine: Machine, op: ttkernel.MatmulBlockOp) -> None:
    _check_prepared(machine, op, "mm_block_init")
    assert machine.sizes == _sizes(machine, op)
    _, columns, rows, stride = machine.sizes
    tile0, tile1, dst = (machine.get(each) for each in (op.tile0, op.tile1, op.dst))
    assert machine.registers is not None
    for row, column in product(range(rows), range(columns)):
        register = dst + row * columns + column
        left, right = machine.get(op.in0).read(tile0 + row * stride), machine.get(op.in1).read(tile1 + column)
        part = ("matmul", left, right)
        machine.write(register, accumulated("sum", machine.registers.get(register), part))


def _reduce(machine: Machine, op: ttkernel.ReduceTileOp) -> None:
    _check_prepared(machine, op, "reduce_init")
    assert machine.get(op.scaler).read(machine.get(op.scaler_tile)) in (("fill", 1.0), ("round", ("fill", 1.0)))
    register = machine.get(op.dst)
    assert machine.registers is not None
    dims = tuple(each.value.data for each in op.dims)
    part = ("reduce", op.kind.data, dims, machine.get(op.icb).read(machine.get(op.tile)))
    machine.write(register, accumulated(op.kind.data, machine.registers.get(register), part))
    machine.reduced.add(register)


def _unary_bcast(machine: Machine, op: ttkernel.UnaryBcastOp) -> None:
    _check_prepared(machine, op, "unary_bcast_init")
    dims = tuple(each.value.data for each in op.dims)
    machine.write(machine.get(op.dst), ("bcast", dims, machine.get(op.icb).read(machine.get(op.tile))))


def _transpose(machine: Machine, op: ttkernel.TransposeWHTileOp) -> None:
    _check_prepared(machine, op, "transpose_wh_init")
    machine.write(machine.get(op.dst), ("transpose", machine.get(op.icb).read(machine.get(op.tile))))


def _pack_tile(machine: Machine, op: ttkernel.PackTileOp) -> None:
    _expect(machine.committed)
    register = machine.get(op.dst)
    assert machine.masks is (register in machine.reduced), "the packer writes zeros where it should not, or the reverse"
    _pack(machine.get(op.cb), machine.get(op.tile), machine.read(register), overwrites=not machine.accumulates)


def _pack_tile_block(machine: Machine, op: ttkernel.PackTileBlockOp) -> None:
    _expect(machine.committed)
    buffer = machine.get(op.cb)
    for number in range(machine.get(op.count)):
        register = machine.get(op.dst) + number
        assert machine.masks is (register in machine.reduced)
        _pack(buffer, buffer.packed, machine.read(register), overwrites=not machine.accumulates)
        buffer.packed += 1
