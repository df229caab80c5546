"""Indices of arrays whose buffers lie apart: every index, by every way, reaches the bytes that the map names.

A small evaluator runs the rewritten function on integers. A buffer is the number of its first byte, or column of
tensor memory, so it knows nothing about maps.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import SymbolTable

from tests.versions import INSTALLED
from tlx_xdsl.analysis.overlap_tree import IndexMap
from tlx_xdsl.dialects.tlx import LocalAliasOp, StorageAliasLocalAllocOp
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.dialects.ttng import TMEMSubSliceOp
from tlx_xdsl.dialects.ttng.attrs import TensorMemorySpaceAttr
from tlx_xdsl.dialects.ttng.tmem import columns_of
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.transforms.rewriting import insert_before
from tlx_xdsl.transforms.storage_alias.allocation import StorageAliasAllocationPass
from tlx_xdsl.transforms.storage_alias.index_rewriting import array_place, rewrite_indices
from tlx_xdsl.transforms.storage_alias.rewrite_local_alias import RewriteLocalAliasPass

pytestmark = pytest.mark.quick

# --- the evaluator --------------------------------------------------------------------------------------------------


def size(type_: MemDescType) -> int:
    if isinstance(type_.memory_space, TensorMemorySpaceAttr):
        return columns_of(type_)
    return type_.bytes_of_trailing(len(type_.shape))


def first_dimension(type_: MemDescType) -> int:
    """The distance of neighbours along the first dimension of an array, which may be part of a larger one."""
    return size(type_.with_shape(type_.alloc_shape[1:]))


@dataclass
class Run:
    """One run of a module; `reached` are the buffers that `ttg.local_dealloc` saw."""

    module: ModuleOp
    values: dict[SSAValue, int] = field(default_factory=dict)
    reached: list[int] = field(default_factory=list)

    def function(self, func: Operation, arguments: list[int]) -> list[int]:
        return self.blocks(func.regions[0].blocks[0], arguments)

    def blocks(self, block: Block, arguments: list[int]) -> list[int]:
        """Run from `block` to the end of its region; what ends it yields."""
        while True:
            self.values.update(zip(block.args, arguments, strict=True))
            for op in block.ops:
                given = [self.values[operand] for operand in op.operands]
                match op.name:
                    case "cf.br":
                        block, arguments = op.successors[0], given
                    case "cf.cond_br":
                        taken = op.then_arguments if given[0] else op.else_arguments
                        block = op.then_block if given[0] else op.else_block
                        arguments = [self.values[value] for value in taken]
                    case "scf.yield" | "scf.condition" | "tt.return" | "ttg.warp_return" | "ttg.warp_yield":
                        return given
                    case _:
                        self.values.update(zip(op.results, self.op(op, given), strict=True))

    def op(self, op: Operation, given: list[int]) -> list[int]:
        if op.name in COMPUTED:
            return [COMPUTED[op.name](op, *given)]
        if op.name == "ttg.local_dealloc":
            self.reached += given
            return []
        return self.control_flow(op, given)

    def control_flow(self, op: Operation, given: list[int]) -> list[int]:
        match op.name:
            case "scf.if":
                region = op.true_region if given[0] else op.false_region
                return self.blocks(region.blocks[0], [])
            case "scf.for":
                carried = given[3:]
                for number in range(*given[:3]):
                    carried = self.blocks(op.body.block, [number, *carried])
                return carried
            case "scf.while":
                go_on, *carried = self.blocks(op.before_region.block, given)
                while go_on:
                    carried = self.blocks(op.after_region.block, carried)
                    go_on, *carried = self.blocks(op.before_region.block, carried)
                return carried
            case "scf.index_switch":
                assert len(op.cases) == 0
                return self.blocks(op.default_region.blocks[0], [])
            case "scf.execute_region":
                return self.blocks(op.region.blocks[0], [])
            case "tt.call":
                return self.function(SymbolTable.lookup_symbol(self.module, op.callee), given)
            case "ttg.warp_specialize":
                captures = [self.values[value] for value in op.partitions.explicit_captures]
                results = self.blocks(op.default_region.blocks[0], [])
                for region in op.partitions.partition_regions:
                    self.blocks(region.blocks[0], captures)
                return results
            case _:
                raise AssertionError(op.name)


def tmem_part(op: TMEMSubSliceOp, source: int) -> int:
    assert op.dim.value.data == len(op.src.type.shape) - 1, "columns of 32 bits only"
    return source + op.offset.value.data


def same(_op: Operation, value: int) -> int:
    return value


COMPUTED: Mapping[str, Callable[..., int]] = {
    "arith.constant": lambda op: op.value.value.data,
    "arith.addi": lambda _, a, b: a + b,
    "arith.muli": lambda _, a, b: a * b,
    "arith.divui": lambda _, a, b: a // b,
    "arith.remui": lambda _, a, b: a % b,
    "arith.select": lambda _, condition, a, b: a if condition else b,
    "ttg.local_alloc": lambda _: 0,
    "ttg.memdesc_index": lambda op, source, index: source + index * first_dimension(op.src.type),
    "ttg.memdesc_subslice": lambda op, source: source + op.offsets.get_values()[0] * first_dimension(op.src.type),
    "ttng.tmem_subslice": tmem_part,
    "ttg.memdesc_reinterpret": same,
    "ttg.memdesc_trans": same,
    "ttg.memdesc_reshape": same,
    "tlx.require_layout": same,
    "tlx.local_alias": same,
}
"""The result of an operation on integers, and on the beginnings of buffers."""


def reached(module: ModuleOp, index: int) -> list[int]:
    """Return the places that @f reaches with its arguments `index`, true and the integers 0, 1, 2."""
    run = Run(module)
    run.function(SymbolTable.lookup_symbol(module, "f"), [index, 1, 0, 1, 2])
    return run.reached


# --- paths ----------------------------------------------------------------------------------------------------------

HEADER = """
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#turned = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#wide = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<8x64x64xf16, #shared, #smem, mutable>
!a_i = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!turned = !ttg.memdesc<8x64x64xf16, #turned, #smem, mutable>
!turned_i = !ttg.memdesc<64x64xf16, #turned, #smem, mutable>
!wide = !ttg.memdesc<8x64x32xf32, #wide, #smem, mutable>
!wide_i = !ttg.memdesc<64x32xf32, #wide, #smem, mutable>
!half = !ttg.memdesc<16x32x64xf16, #shared, #smem, mutable>
!half_i = !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
!pair = !ttg.memdesc<4x128x64xf16, #shared, #smem, mutable>
!pair_i = !ttg.memdesc<128x64xf16, #shared, #smem, mutable>
!front = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
!part = !ttg.memdesc<4x64x64xf16, #shared, #smem, mutable, 8x64x64>
!column = !ttg.memdesc<8x64x32xf16, #shared, #smem, mutable, 8x64x64>
!moved = !ttg.memdesc<64x8x64xf16, #shared, #smem, mutable>
!column_i = !ttg.memdesc<64x32xf16, #shared, #smem, mutable, 64x64>
"""
UNIT = 8192


def at(array: str = "%a", index: str = "%i", types: str = "!a -> !a_i") -> str:
    """Reach a buffer."""
    name = f"%b{array[1:]}"
    result = types.split(" -> ")[1]
    return f"{name} = ttg.memdesc_index {array}[{index}] : {types}\nttg.local_dealloc {name} : {result}\n"


@dataclass(frozen=True)
class Path:
    """A way of an array to an index."""

    body: str
    unit: int = UNIT
    """Bytes of the buffers that are reached."""
    count: int = 8
    first: int = 0
    """The byte of the array that buffer 0 begins with."""
    times: int = 1
    """How often each is reached."""
    functions: str = ""


def view(op: str, type_: str, unit: int = UNIT, count: int = 8) -> Path:
    body = f"%v = {op} : !a -> !{type_}\n" + at("%v", types=f"!{type_} -> !{type_}_i")
    return Path(body, unit, count)


PATHS = {
    "direct": Path(at()),
    "default region and partitions": Path(
        "ttg.warp_specialize(%a, %i)\ndefault {\n"
        + at()
        + "ttg.warp_yield\n}\npartition0(%p: !a, %j: i32) num_warps(4) {\n"
        + at("%p", "%j")
        + "%true = arith.constant true\nscf.if %true {\n"
        + at("%p", "%j").replace("%bp", "%bq")
        + "}\nttg.warp_return\n}\npartition1(%q: !a, %k: i32) num_warps(4) {\n"
        + at("%q", "%k")
        + "ttg.warp_return\n} : (!a, i32) -> ()\n",
        times=4,
    ),
    "yielded by the default region": Path(
        "%y = ttg.warp_specialize()\ndefault {\nttg.warp_yield %a : !a\n}\npartition0() num_warps(4) {\n"
        "ttg.warp_return\n} : () -> !a\n" + at("%y")
    ),
    "scf.for": Path(
        "%r = scf.for %k = %c0 to %c2 step %c1 iter_args(%x = %a) -> (!a) : i32 {\n"
        + at("%x")
        + "scf.yield %x : !a\n}\n"
        + at("%r"),
        times=3,
    ),
    "scf.if": Path("%r = scf.if %t -> (!a) {\nscf.yield %a : !a\n} else {\nscf.yield %a : !a\n}\n" + at("%r")),
    "scf.execute_region": Path(
        '%r = "scf.execute_region"() ({\n"scf.yield"(%a) : (!a) -> ()\n}) : () -> !a\n' + at("%r")
    ),
    "scf.index_switch": Path(
        '%o = arith.constant 0 : index\n%r = "scf.index_switch"(%o) <{cases = array<i64>}> ({\n'
        '"scf.yield"(%a) : (!a) -> ()\n}) : (index) -> !a\n' + at("%r")
    ),
    "scf.while": Path(
        "%n, %r = scf.while (%k = %c0, %x = %a) : (i32, !a) -> (i1, !a) {\n"
        + at("%x")
        + "%f = arith.constant false\nscf.condition(%f) %f, %x : i1, !a\n} do {\n^bb0(%g: i1, %y: !a):\n"
        + at("%y")
        + "scf.yield %c1, %y : i32, !a\n}\n"
        + at("%r"),
        times=2,
    ),
    "cf": Path(
        "cf.cond_br %t, ^bb1(%a : !a), ^bb2(%a : !a)\n^bb1(%x: !a):\n"
        + at("%x")
        + "cf.br ^bb2(%x : !a)\n^bb2(%y: !a):\n"
        + at("%y"),
        times=2,
    ),
    "arith.select": Path("%r = arith.select %t, %a, %a : !a\n" + at("%r")),
    "tt.call": Path(
        "%r = tt.call @g(%a, %i) : (!a, i32) -> !a\n" + at("%r"),
        times=2,
        functions="tt.func private @g(%a: !a, %i: i32) -> !a {\n" + at() + "tt.return %a : !a\n}\n",
    ),
    "tt.call in a call": Path(
        "tt.call @g(%a, %i) : (!a, i32) -> ()\n",
        functions="tt.func private @h(%a: !a, %i: i32) {\n" + at() + "tt.return\n}\n"
        "tt.func private @g(%a: !a, %i: i32) {\ntt.call @h(%a, %i) : (!a, i32) -> ()\ntt.return\n}\n",
    ),
    "tlx.local_alias": view("tlx.local_alias %a", "wide"),
    "ttg.memdesc_reinterpret": view("ttg.memdesc_reinterpret %a", "wide"),
    "halves": view("ttg.memdesc_reinterpret %a", "half", UNIT // 2, 16),
    "pairs": view("ttg.memdesc_reinterpret %a", "pair", UNIT * 2, 4),
    "reshaped halves": view("ttg.memdesc_reshape %a", "half", UNIT // 2, 16),
    "the first two": Path(
        "%v = ttg.memdesc_reinterpret %a : !a -> !front\n" + at("%v", types="!front -> !a_i"), count=2
    ),
    "the first one": Path(
        "%v = ttg.memdesc_reinterpret %a : !a -> !wide_i\nttg.local_dealloc %v : !wide_i\n", count=1
    ),
    "the first pair": Path(
        "%v = tlx.local_alias %a : !a -> !pair_i\nttg.local_dealloc %v : !pair_i\n", UNIT * 2, 1
    ),
    "ttg.memdesc_trans": view("ttg.memdesc_trans %a {order = array<i32: 0, 2, 1>}", "turned"),
    "ttg.memdesc_subslice": Path(
        "%v = ttg.memdesc_subslice %a[0, 0, 0] : !a -> !part\n" + at("%v", types="!part -> !a_i"), count=4
    ),
    "the second half": Path(
        "%v = ttg.memdesc_subslice %a[4, 0, 0] : !a -> !part\n" + at("%v", types="!part -> !a_i"),
        count=4,
        first=4 * UNIT,
    ),
    "slices of buffers": view("ttg.memdesc_subslice %a[0, 0, 0]", "column"),
    "tlx.require_layout": view("tlx.require_layout %a", "turned"),
    "a view in a loop in a partition": Path(
        "ttg.warp_specialize(%a, %i)\ndefault {\nttg.warp_yield\n}\npartition0(%p: !a, %j: i32) num_warps(4) {\n"
        "%z = arith.constant 0 : i32\n%o = arith.constant 1 : i32\n"
        "%v = ttg.memdesc_reinterpret %p : !a -> !half\n"
        "%w = scf.for %k = %z to %o step %o iter_args(%x = %v) -> (!half) : i32 {\n"
        + at("%x", "%j", "!half -> !half_i")
        + "scf.yield %x : !half\n}\nttg.warp_return\n} : (!a, i32) -> ()\n",
        UNIT // 2,
        16,
    ),
}  # fmt: skip

MAPS = [
    IndexMap(1, 1, 0),
    IndexMap(1, 1, 2),
    IndexMap(1, 1, 3),
    IndexMap(1, 3, 0),
    IndexMap(1, 4, 1),
    IndexMap(2, 3, 1),
    IndexMap(2, 4, 2),
    IndexMap(4, 6, 1),
    IndexMap(4, 6, 2),
]


def placed(map_: IndexMap, name: str = "a", type_: str = "!a", line: int = 2) -> str:
    """An array whose buffers lie at `map_`."""
    return (
        f"%{name} = tlx.storage_alias_local_alloc %s {{buffer_offset = {map_.offset * UNIT} : i64, "
        f"bytes_between_buffers = {map_.group_stride * UNIT} : i64, group_size = {map_.group_size} : i64}} "
        f': !spec -> {type_} loc("kernel.py":{line}:1)\n'
    )


SPEC = "%s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 1048576>} : !spec\n"


def parse(body: str, functions: str = "") -> ModuleOp:
    module = parse_module(
        f"{HEADER}tt.func @f(%i: i32, %t: i1, %c0: i32, %c1: i32, %c2: i32) {{\n{body}tt.return\n}}\n{functions}"
    )
    module.verify()
    return module


def lowered(module: ModuleOp, *, whole_views: bool = False) -> ModuleOp:
    for step in (StorageAliasAllocationPass(), RewriteLocalAliasPass(whole_views=whole_views)):
        step.apply(Context(), module)
        module.verify()
    return module


def expected(path: Path, map_: IndexMap, index: int) -> list[int]:
    """The byte that buffer `index` must begin with, from the meaning of a view alone."""
    byte = path.first + index * path.unit
    return [map_(byte // UNIT) * UNIT + byte % UNIT] * path.times


def in_one_piece(path: Path, map_: IndexMap, index: int) -> bool:
    first = path.first + index * path.unit
    pieces = range(first // UNIT, -(-(first + path.unit) // UNIT))
    return all(map_(b) - map_(pieces[0]) == b - pieces[0] for b in pieces)


REFUSED: Mapping[str, list[IndexMap]] = {
    # Buffers of the view would be cut, or would begin between two of its units.
    "pairs": [MAPS[2], MAPS[3], MAPS[4], MAPS[5], MAPS[7]],
    "the first pair": [MAPS[2], MAPS[3], MAPS[4], MAPS[5], MAPS[7]],
}


@pytest.mark.parametrize("whole_views", [False, True])
@pytest.mark.parametrize("map_", MAPS, ids=str)
@pytest.mark.parametrize("name", PATHS)
def test_every_index_reaches_its_buffer(name: str, map_: IndexMap, whole_views: bool):
    """The arrays may get more buffers afterwards, to be as large as their allocation."""
    path = PATHS[name]
    text = SPEC + placed(map_) + path.body
    if map_ in REFUSED.get(name, []):
        with pytest.raises(CompilationError, match="cannot see them that way"):
            lowered(parse(text, path.functions))
        return
    module = lowered(parse(text, path.functions), whole_views=whole_views)
    assert all(in_one_piece(path, map_, index) for index in range(path.count))
    assert [reached(module, index) for index in range(path.count)] == [
        expected(path, map_, index) for index in range(path.count)
    ]
    assert print_module(parse_module(print_module(module))) == print_module(module)


@pytest.mark.parametrize("map_", MAPS, ids=str)
def test_constant_indices_fold(map_: IndexMap):
    for index in range(8):
        body = f"%k = arith.constant {index} : i32\n" + at(index="%k")
        module = lowered(parse(SPEC + placed(map_) + body))
        assert reached(module, 0) == [map_(index) * UNIT]
        assert not [op for op in module.walk() if op.name in ("arith.addi", "arith.muli", "arith.divui")]


def test_only_groups_cost_a_division():
    for map_ in MAPS:
        names = [op.name for op in lowered(parse(SPEC + placed(map_) + at())).walk()]
        assert ("arith.divui" in names) == ("arith.remui" in names) == (map_.group_size > 1)


def test_names_and_locations_stay():
    module = lowered(
        parse(SPEC + placed(IndexMap(2, 4, 2)) + '%b = ttg.memdesc_index %a[%i] : !a -> !a_i loc("k.py":9:1)')
    )
    lines = [str(op.location) for op in module.walk() if op.name.startswith("arith.")]
    assert lines == ['loc("k.py":9:1)'] * len(lines)


# --- several arrays -------------------------------------------------------------------------------------------------

FIRST, SECOND = IndexMap(1, 2, 0), IndexMap(1, 2, 1)
TWO = SPEC + placed(FIRST, "a") + placed(SECOND, "b", line=3)


def test_a_function_exists_once_for_each_combination_of_places():
    """The last call takes an array that did not move, which is a combination of its own."""
    functions = (
        "tt.func private @g(%a: !a, %i: i32) -> !a {\n%r = tt.call @h(%a, %i) : (!a, i32) -> !a\ntt.return %r : !a\n}\n"
        "tt.func private @h(%a: !a, %i: i32) -> !a {\n" + at() + "tt.return %a : !a\n}\n"
    )
    calls = "".join(
        f"%r{number} = tt.call @g(%{name}, %i) : (!a, i32) -> !a\n" + at(f"%r{number}")
        for number, name in enumerate("ababx")
    )
    module = lowered(parse(TWO + "%x = ttg.local_alloc : () -> !a\n" + calls, functions))
    names = [op.sym_name.data for op in module.ops if op.name == "tt.func"]
    assert sorted(names) == ["f", "g", "g_1", "g_2", "h", "h_1", "h_2"]
    for index in range(8):
        a, b, x = 2 * index * UNIT, (2 * index + 1) * UNIT, index * UNIT
        assert reached(module, index) == [a, a, b, b, a, a, b, b, x, x]


def test_each_copy_of_a_function_has_its_own_allocations():
    functions = "tt.func private @g(%x: !a, %i: i32) {\n" + TWO + at() + at("%b") + at("%x") + "tt.return\n}\n"
    body = TWO + "".join(f"tt.call @g(%{name}, %i) : (!a, i32) -> ()\n" for name in "ab")
    module = lowered(parse(body, functions))
    a, b = 6 * UNIT, 7 * UNIT
    assert reached(module, 3) == [a, b, a, a, b, b]


LINE = 'loc("kernel.py":8:1)\n'
APART = "error: the buffers of a do not lie one after the other from the start of their storage_alias_spec"
DIFFERENT = (
    "may get either of two arrays whose buffers lie differently: "
    "buffer i of a is number i * 2 of its region, that of b is number i * 2 + 1"
)
ORIGINS = ("a is allocated at kernel.py:2:1", "b is allocated at kernel.py:3:1")

MIXED = {
    "arith.select": f"%r = arith.select %t, %a, %b : !a {LINE}",
    "scf.if": f"%r = scf.if %t -> (!a) {{\nscf.yield %a : !a\n}} else {{\nscf.yield %b : !a\n}} {LINE}",
    "scf.for": "%r = scf.for %k = %c0 to %c2 step %c1 iter_args(%x = %a) -> (!a) : i32 {\n"
    f"scf.yield %b : !a\n}} {LINE}",
    "scf.while": "%r = scf.while (%x = %a) : (!a) -> !a {\nscf.condition(%t) %x : !a\n} do {\n^bb0(%y: !a):\n"
    f"scf.yield %b : !a\n}} {LINE}",
    "cf.br": f"cf.cond_br %t, ^bb1, ^bb2(%a : !a)\n^bb1:\ncf.br ^bb2(%b : !a) {LINE}^bb2(%y: !a):\n",
}


@pytest.mark.parametrize("name", MIXED)
def test_arrays_at_different_places_do_not_meet(name: str):
    check_error(TWO + MIXED[name], f"kernel.py:8:1: error: '{name}' {DIFFERENT}", ORIGINS)


def test_an_array_that_stayed_is_one_at_another_place():
    other = '%x = ttg.local_alloc : () -> !a loc("kernel.py":4:1)\n'
    check_error(
        SPEC + placed(FIRST) + other + MIXED["scf.if"].replace("%b", "%x"),
        "kernel.py:8:1: error: 'scf.if' may get either of two arrays whose buffers lie differently: "
        "buffer i of a is number i * 2 of its region, that of x is number i",
        ("a is allocated at kernel.py:2:1", "x is allocated at kernel.py:4:1"),
    )


def test_arrays_at_the_same_places_meet():
    """A loop swaps two arrays of different regions."""
    other = (SPEC + placed(SECOND, "b")).replace("%s", "%s2")
    swap = (
        "%p, %q = scf.for %k = %c0 to %c2 step %c1 iter_args(%x = %a, %y = %b) -> (!a, !a) : i32 {\n"
        + at("%x")
        + "scf.yield %y, %x : !a, !a\n}\n"
    )
    module = lowered(parse(SPEC + placed(SECOND) + other + swap))
    assert reached(module, 3) == [7 * UNIT] * 2


def test_a_loop_may_carry_a_view_only_where_it_is_like_what_it_views():
    carried = "%r = scf.for %k = %c0 to %c2 step %c1 iter_args(%x = %a) -> (!a) : i32 {\n"
    view_ = "%v = ttg.memdesc_{} : {} -> !a\nscf.yield %v : !a\n}} {}"
    again = view_.format("trans %x {order = array<i32: 0, 2, 1>}", "!a", LINE)
    module = lowered(parse(SPEC + placed(SECOND) + carried + again + at("%r")))
    assert reached(module, 2) == [5 * UNIT]
    other = "%w = ttg.memdesc_reinterpret %b : !a -> !a\n" + view_.format("reinterpret %w", "!a", LINE)
    check_error(TWO + carried + other, f"kernel.py:8:1: error: 'scf.for' {DIFFERENT}", ORIGINS)


# --- what is refused ------------------------------------------------------------------------------------------------

NEEDS_ALL = "needs the whole array in one piece"
CANNOT_SEE = "cannot see them that way"
REFUSED_USES = {
    "ttg.local_dealloc": (f"ttg.local_dealloc %a : !a {LINE}", NEEDS_ALL),
    "tlx.memdesc_dynamic_subslice": (
        f"%v = tlx.memdesc_dynamic_subslice %a[%i, %c0, %c0] : !a -> !part {LINE}",
        NEEDS_ALL,
    ),
    "scf.parallel": (
        '%o = arith.constant 0 : index\n%v = "scf.parallel"(%o, %o, %o, %a) '
        '<{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({\n^bb0(%n: index):\n"scf.reduce"(%a) ({\n'
        '^bb0(%l: !a, %r: !a):\n"scf.reduce.return"(%l) : (!a) -> ()\n}) : (!a) -> ()\n'
        "}) : (index, index, index, !a) -> !a " + LINE,
        NEEDS_ALL,
    ),
    "ttg.memdesc_trans": (
        f"%v = ttg.memdesc_trans %a {{order = array<i32: 1, 0, 2>}} : !a -> !moved {LINE}",
        CANNOT_SEE,
    ),
    "ttg.memdesc_reshape": (f"%v = ttg.memdesc_reshape %a : !a -> !pair {LINE}", CANNOT_SEE),
    "ttg.memdesc_reinterpret": (f"%v = ttg.memdesc_reinterpret %a : !a -> !pair_i {LINE}", CANNOT_SEE),
    "tlx.local_alias": (f"%v = tlx.local_alias %a : !a -> !pair {LINE}", CANNOT_SEE),
}


@pytest.mark.parametrize("name", REFUSED_USES)
def test_uses_that_cannot_be_rewritten_are_refused(name: str):
    """An array that stays where it was may be used in any way."""
    use, why = REFUSED_USES[name]
    check_error(
        SPEC + placed(FIRST) + use,
        f"kernel.py:8:1: {APART} (buffer i is number i * 2), and '{name}' {why}",
        ORIGINS[:1],
    )
    lowered(parse(SPEC + placed(IndexMap(1, 1, 0)) + use))


def check_error(body: str, message: str, notes: Sequence[str], functions: str = "") -> None:
    with pytest.raises(CompilationError) as caught:
        StorageAliasAllocationPass().apply(Context(), parse(body, functions))
    assert str(caught.value).splitlines()[0] == message
    assert caught.value.notes == tuple(notes)


def test_functions_do_not_return_either_of_two_arrays():
    returns = f"cf.cond_br %t, ^bb1, ^bb2\n^bb1:\ntt.return %a : !a\n^bb2:\ntt.return %b : !a {LINE}"
    functions = f"tt.func private @g(%t: i1) -> !a {{\n{TWO}{returns}}}\n"
    check_error("", f"kernel.py:8:1: error: 'tt.return' {DIFFERENT}", ORIGINS, functions)


def test_arrays_do_not_go_around_in_recursive_calls():
    call = f"tt.call @g(%a) : (!a) -> () {LINE}"
    functions = f"tt.func private @g(%a: !a) {{\n{call}tt.return\n}}\n"
    check_error(
        SPEC + placed(FIRST) + call,
        "kernel.py:8:1: error: the arrays of a recursive call of '@g' cannot be followed",
        (),
        functions,
    )


@pytest.mark.parametrize("index", [-1, 8])
def test_constant_indices_outside_of_the_array(index: int):
    check_error(
        SPEC + placed(FIRST) + f"%k = arith.constant {index} : i32\n%b = ttg.memdesc_index %a[%k] : !a -> !a_i {LINE}",
        f"kernel.py:8:1: error: buffer {index} of a does not exist, it has 8",
        ORIGINS[:1],
    )


def test_nothing_is_changed_before_an_error():
    module = parse(SPEC + placed(FIRST) + at() + REFUSED_USES["ttg.local_dealloc"][0])
    (array,) = [op for op in module.walk() if isinstance(op, StorageAliasLocalAllocOp)]
    before = print_module(module)
    with pytest.raises(CompilationError):
        rewrite_indices(module, [array_place(array.result, FIRST)])
    assert print_module(module) == before


# --- tensor memory --------------------------------------------------------------------------------------------------

COLUMNS = """
#t128 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#t64 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
!t = !ttg.memdesc<2x128x128xf32, #t128, #tmem, mutable>
!t_i = !ttg.memdesc<128x128xf32, #t128, #tmem, mutable>
!packed = !ttg.memdesc<4x128x128xf16, #t128, #tmem, mutable>
!packed_i = !ttg.memdesc<128x128xf16, #t128, #tmem, mutable>
!left = !ttg.memdesc<128x64xf32, #t128, #tmem, mutable, 128x128>
"""
IN_COLUMNS = {
    "direct": ("", "%a", "!t -> !t_i", 128, 2),
    "two halves each": ("%v = ttg.memdesc_reinterpret %a : !t -> !packed\n", "%v", "!packed -> !packed_i", 64, 4),
    "carried": ("%v = arith.select %t, %a, %a : !t\n", "%v", "!t -> !t_i", 128, 2),
}


@pytest.mark.parametrize("map_", MAPS, ids=str)
@pytest.mark.parametrize("name", IN_COLUMNS)
def test_indices_in_tensor_memory(name: str, map_: IndexMap):
    """The right half of a buffer begins 64 columns after it."""
    path, array, types, unit, count = IN_COLUMNS[name]
    right = "%h = ttng.tmem_subslice %b {offset = 64 : i32} : !t_i -> !left\nttg.local_dealloc %h : !left\n"
    body = path + at(array, types=types).replace(f"%b{array[1:]}", "%b")
    text = HEADER + COLUMNS + "tt.func @f(%a: !t, %i: i32, %t: i1) {\n" + body
    module = parse_module(text + (right if types.endswith("!t_i") else "") + "tt.return\n}\n")
    argument = module.body.block.first_op.body.blocks[0].args[0]
    # Until an alias has been made of it, any value does as an allocation.
    alias = LocalAliasOp(operands=[argument], result_types=[argument.type])
    insert_before(argument.block.first_op, alias)
    argument.replace_uses_with_if(alias.result, lambda use: use.operation is not alias)
    rewrite_indices(module, [array_place(alias.result, map_)])
    for index in range(count):
        run = Run(module)
        run.function(module.body.block.first_op, [0, index, 1])
        column = map_(index * unit // 128) * 128 + index * unit % 128
        assert run.reached == ([column, column + 64] if types.endswith("!t_i") else [column])


# --- stock Triton ---------------------------------------------------------------------------------------------------


@pytest.mark.backend
def test_stock_triton_accepts_every_path():
    """The arrays moved; stock dies of a transposed, reshaped or sliced array of buffers, which these are not now."""
    from tests.corpus.stock import reprint_in_subprocess

    version = INSTALLED
    assert version is not None
    profile = profile_for(version)
    # A later pass lowers this one.
    paths = {name: path for name, path in PATHS.items() if name != "tlx.require_layout"}
    texts: list[str] = []
    for name, path in paths.items():
        map_ = next(map_ for map_ in MAPS[::-1] if map_ not in REFUSED.get(name, []))
        module = parse(SPEC + placed(map_) + path.body, path.functions)
        texts.append(print_module(lowered(module, whole_views=profile.views_fill_allocations), profile=profile))
    for name, text, answer in zip(paths, texts, reprint_in_subprocess(texts), strict=True):
        assert answer.text is not None, f"{name}: {answer.error}\n{text}"
