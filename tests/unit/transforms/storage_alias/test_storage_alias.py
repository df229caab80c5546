"""Storage aliasing on IR: every message, and what the passes keep (locations, names, what is printed)."""

from collections.abc import Sequence

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tlx_xdsl.analysis.storage_regions import storage_regions
from tlx_xdsl.dialects.tlx import LocalAliasOp, ReuseGroupOp, StorageAliasLocalAllocOp, StorageAliasSpecOp
from tlx_xdsl.dialects.ttg import LocalAllocOp, MemDescIndexOp, MemDescReinterpretOp
from tlx_xdsl.dialects.ttg.types import memdesc_type
from tlx_xdsl.dialects.ttng import TMEMAllocOp
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.transforms.storage_alias.allocation import StorageAliasAllocationPass
from tlx_xdsl.transforms.storage_alias.lowering import StorageAliasLoweringPass
from tlx_xdsl.transforms.storage_alias.offset_calculation import BufferOffsetCalculationPass
from tlx_xdsl.transforms.storage_alias.rewrite_local_alias import RewriteLocalAliasPass
from tlx_xdsl.transforms.storage_alias.size_definition import StorageAliasSizeDefinitionPass

pytestmark = pytest.mark.quick

SIZE, OFFSETS, ALLOCATION = (
    StorageAliasSizeDefinitionPass(),
    BufferOffsetCalculationPass(),
    StorageAliasAllocationPass(),
)
LOWERING, REWRITE = StorageAliasLoweringPass(), RewriteLocalAliasPass()

ALIASES = """
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bytes = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#tmem = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!small = !tlx.storage_alias_spec<smem, 10000>
!tmem = !tlx.storage_alias_spec<tmem>
!bytes = !ttg.memdesc<32x1024xi8, #bytes, #smem, mutable>
!x1 = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!x2 = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
!x8 = !ttg.memdesc<8x64x64xf16, #shared, #smem, mutable>
!group = !tlx.reuse_group<shared>
!distinct = !tlx.reuse_group<distinct>
"""

SPEC = '%s = tlx.storage_alias_spec storage = smem : !spec loc("kernel.py":1:1)\n'
SIZED_SPEC = "%s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 32768>} : !spec\n"
A = '%a = tlx.storage_alias_local_alloc %s : !spec -> !x2 loc("kernel.py":2:1)\n'
B = '%b = tlx.storage_alias_local_alloc %s : !spec -> !x2 loc("kernel.py":3:1)\n'
PLACED_A = (
    "%a = tlx.storage_alias_local_alloc %s {buffer_offset = 8192 : i64, bytes_between_buffers = 16384 : i64, "
    'group_size = 1 : i64} : !spec -> !x2 loc("kernel.py":2:1)\n'
)


def shared(name: str, *members: str) -> str:
    """A reuse_group of arrays of type !x2, on line 4."""
    types = ", ".join(["!x2"] * len(members))
    return (
        f"%{name} = tlx.reuse_group({', '.join(members)}) group_kind = shared : ({types}) -> !group "
        'loc("kernel.py":4:1)\n'
    )


def overlap(group: str, line: int = 5) -> str:
    """A set_buffer_overlap on the given line."""
    return f'tlx.set_buffer_overlap(%s, %{group}) : (!spec, !group) -> () loc("kernel.py":{line}:1)\n'


def parse(body: str) -> ModuleOp:
    """The module of one function with `body`, verified."""
    module = parse_module(
        f"{ALIASES}{TENSOR_MEMORY}tt.func @f(%i: i32, %x: !x2, %g: !group, %q: !spec) {{\n{body}tt.return\n}}\n"
    )
    module.verify()
    return module


def run(module: ModuleOp, *passes: ModulePass) -> ModuleOp:
    for module_pass in passes:
        module_pass.apply(Context(), module)
        module.verify()
    return module


def ops_of(module: ModuleOp, kind: type[Operation]) -> list[Operation]:
    return [op for op in module.walk() if isinstance(op, kind)]


# --- errors ---------------------------------------------------------------------------------------------------------

MALFORMED = {
    "too small": (
        '%s = tlx.storage_alias_spec storage = smem, size = 10000 : !small loc("kernel.py":1:1)\n'
        "%a = tlx.storage_alias_local_alloc %s : !small -> !x2\n",
        "kernel.py:1:1: error: storage_alias_spec buffer_size_bytes 10000 is too small for computed shape, "
        "requires at least 16384 bytes",
        ("the storage_alias_spec is at kernel.py:1:1",),
    ),
    "two trees": (
        SPEC + A + shared("t", "%a") + overlap("t") + overlap("t", line=6),
        "kernel.py:6:1: error: storage_alias_spec already has a set_buffer_overlap defined; "
        "each spec can only have one overlap definition",
        ("the first one is at kernel.py:5:1", "both relate the allocation at kernel.py:2:1"),
    ),
    "duplicate": (
        SPEC + A + shared("t", "%a", "%a") + overlap("t"),
        "kernel.py:4:1: error: reuse_group tree contains duplicate elements; "
        "each allocation can only appear once in the tree",
        ("the duplicate is allocated at kernel.py:2:1",),
    ),
    "foreign element": (
        SPEC + A + shared("t", "%a", "%x") + overlap("t"),
        "kernel.py:4:1: error: all elements in the reuse_group tree must be allocated via "
        "tlx.storage_alias_local_alloc, but found an element that is not",
        (),
    ),
    "two specs in a tree": (
        SPEC
        + A
        + "%s2 = tlx.storage_alias_spec storage = smem : !spec\n"
        + B.replace("%s", "%s2")
        + shared("t", "%a", "%b")
        + overlap("t"),
        "kernel.py:5:1: error: all allocations in the reuse_group must reference the same storage_alias_spec, "
        "but found an allocation that uses a different spec",
        ("the allocation is at kernel.py:3:1",),
    ),
    "outside of the tree": (
        SPEC + A + B + shared("t", "%a") + overlap("t"),
        "kernel.py:3:1: error: this allocation is not in the reuse_group tree of its storage_alias_spec",
        ("the tree is set at kernel.py:5:1",),
    ),
    "unknown tree": (
        SPEC + A + overlap("g"),
        "kernel.py:5:1: error: overlap_def must be defined by a tlx.reuse_group op",
        (),
    ),
    "unknown spec": (
        A.replace("%s", "%q"),
        "kernel.py:2:1: error: requires a valid storage_alias_spec",
        (),
    ),
    "captured spec": (
        SPEC
        + "ttg.warp_specialize(%s)\ndefault {\nttg.warp_yield\n}\npartition0(%p: !spec) num_warps(4) {\n"
        + "ttg.warp_return\n} : (!spec) -> ()\n",
        "<input>:33:1: error: a storage_alias_spec can only be used by local_alloc and set_buffer_overlap, "
        "not by 'ttg.warp_specialize.partitions'",
        ("the storage_alias_spec is at kernel.py:1:1",),
    ),
    "layout of tensor memory": (
        SPEC + A.replace("!x2", "!ttg.memdesc<2x64x64xf16, #tmem, #smem, mutable>"),
        "kernel.py:2:1: error: a buffer in shared memory needs a shared layout, found #ttng.tensor_memory_encoding<",
        (),
    ),
}


def check_error(body: str, passes: Sequence[ModulePass], message: str, notes: Sequence[str] = ()) -> None:
    with pytest.raises(CompilationError) as caught:
        run(parse(body), *passes)
    assert str(caught.value).splitlines()[0].startswith(message)
    assert caught.value.notes == tuple(notes)


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_regions(case: str):
    body, message, notes = MALFORMED[case]
    check_error(body, [LOWERING], message, notes)


def test_passes_name_the_one_that_must_run_first():
    tree = SPEC + A + shared("t", "%a") + overlap("t")
    no_shape = "storage_alias_spec has no shape set; run tlx-storage-alias-size-definition first"
    check_error(tree, [OFFSETS], f"kernel.py:1:1: error: {no_shape}")
    check_error(tree, [ALLOCATION], f"kernel.py:1:1: error: {no_shape}")
    has_tree = "set_buffer_overlap was not processed by tlx-buffer-offset-calculation, which must run first"
    check_error(tree, [SIZE, ALLOCATION], f"kernel.py:5:1: error: {has_tree}")


def test_a_tree_cannot_move_allocations_that_have_their_place():
    check_error(
        SIZED_SPEC + PLACED_A + shared("t", "%a") + overlap("t"),
        [OFFSETS],
        "kernel.py:5:1: error: buffer layout attributes already set; cannot process set_buffer_overlap",
        ["they are set on the allocation at kernel.py:2:1"],
    )


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (("8200", "16384"), "buffer_offset (8200) must be a multiple of the original buffer size (8192)"),
        (("0", "9000"), "units_between_buffer_groups (9000) must be a multiple of the original buffer size (8192)"),
    ],
)
def test_places_between_buffers_are_refused(numbers: tuple[str, str], message: str):
    offset, stride = numbers
    placed = PLACED_A.replace("= 8192", f"= {offset}").replace("= 16384", f"= {stride}")
    check_error(SIZED_SPEC + placed, [ALLOCATION], f"kernel.py:2:1: error: {message}")


@pytest.mark.parametrize(
    ("alias", "message"),
    [
        ("%x : !x2 -> !x1", "LocalAliasOp must refer to a local_alloc or local_alias op"),
        ("%m : !bytes -> !x8", "TLXRewriteLocalAlias cannot view a 262144-bit allocation as a 524288-bit alias"),
    ],
)
def test_aliases_that_are_no_view_of_an_allocation(alias: str, message: str):
    body = f'%m = ttg.local_alloc : () -> !bytes\n%u = tlx.local_alias {alias} loc("kernel.py":8:1)\n'
    check_error(body, [REWRITE], f"kernel.py:8:1: error: {message}")


# --- tensor memory --------------------------------------------------------------------------------------------------

TENSOR_MEMORY = """
#f32 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#f16 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, colStride = 1>
#one = #ttng.tensor_memory_encoding<blockM = 128, blockN = 1, colStride = 1>
#half = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>
!qk = !ttg.memdesc<2x128x128xf32, #f32, #ttng.tensor_memory, mutable>
!p = !ttg.memdesc<8x128x32xf16, #f16, #ttng.tensor_memory, mutable>
!p_i = !ttg.memdesc<128x32xf16, #f16, #ttng.tensor_memory, mutable>
!row = !ttg.memdesc<2x128x1xf32, #one, #ttng.tensor_memory, mutable>
!wide = !ttg.memdesc<5x128x128xf32, #f32, #ttng.tensor_memory, mutable>
!half = !ttg.memdesc<2x64x64xf32, #half, #ttng.tensor_memory, mutable>
!narrow = !tlx.storage_alias_spec<tmem, 1000>
"""
TMEM_SPEC = '%s = tlx.storage_alias_spec storage = tmem : !tmem loc("kernel.py":1:1)\n'
ATTENTION = (
    TMEM_SPEC
    + "".join(
        f"%{name} = tlx.storage_alias_local_alloc %s : !tmem -> !{type_}\n"
        for name, type_ in {"qk": "qk", "p": "p", "alpha": "row", "l": "row", "m": "row"}.items()
    )
    + "%slices = tlx.reuse_group(%p) group_kind = shared, group_size = 4 : (!p) -> !group\n"
    + "%parts = tlx.reuse_group(%slices, %alpha, %l, %m) group_kind = distinct : "
    + "(!group, !row, !row, !row) -> !distinct\n"
    + "%tree = tlx.reuse_group(%qk, %parts) group_kind = shared : (!qk, !distinct) -> !group\n"
    + "tlx.set_buffer_overlap(%s, %tree) : (!tmem, !group) -> ()\n"
)
"""Two groups of flash attention: QK of 128 columns over P in four slices of 16 columns and three single columns."""


def indices(name: str, count: int) -> str:
    """Every buffer of the array of P, by constant index."""
    return "".join(
        f"%c{i} = arith.constant {i} : i32\n%at{i} = ttg.memdesc_index %{name}[%c{i}] : !p -> !p_i\n"
        for i in range(count)
    )


def constant_indices(module: ModuleOp) -> list[int]:
    found = []
    for op in ops_of(module, MemDescIndexOp):
        value = op.operands[1].owner.value
        found.append(value.value.data)
    return found


def test_flash_attention_with_four_slices_in_tensor_memory():
    """Slice 3 of P stays inside group 0 of QK and slice 7 inside group 1: 16 columns each, a group has 128."""
    module = run(parse(ATTENTION + indices("p", 8)), LOWERING, REWRITE)
    (backing,) = ops_of(module, TMEMAllocOp)
    assert memdesc_type(backing.results[0].type).shape == (1, 128, 256)
    assert constant_indices(module) == [0, 1, 2, 3, 8, 9, 10, 11]
    starts = [16 * index for index in constant_indices(module)]
    assert starts[3] + 16 <= 128 <= starts[4]
    assert starts[7] + 16 <= 256


def test_single_columns_lie_after_the_slices():
    module = run(parse(ATTENTION), SIZE, OFFSETS)
    (spec,) = ops_of(module, StorageAliasSpecOp)
    assert tuple(spec.buffer_shape.get_values()) == (128, 256)
    places = {
        op.results[0].name_hint: (
            op.buffer_offset.value.data,
            op.bytes_between_buffers.value.data,
            op.group_size.value.data,
        )
        for op in ops_of(module, StorageAliasLocalAllocOp)
    }
    assert places == {
        "qk": (0, 128, 1), "p": (0, 128, 4), "alpha": (64, 128, 1), "l": (65, 128, 1), "m": (66, 128, 1)
    }  # fmt: skip


def test_strict_does_not_pad_columns():
    """P in slices of 16 columns after a single column: padded to 16, or refused."""
    body = (
        TMEM_SPEC
        + "%one = tlx.storage_alias_local_alloc %s : !tmem -> !row\n"
        + '%p = tlx.storage_alias_local_alloc %s : !tmem -> !p loc("kernel.py":3:1)\n'
        + "%slices = tlx.reuse_group(%p) group_kind = shared, group_size = 4 : (!p) -> !group\n"
        + "%tree = tlx.reuse_group(%one, %slices) group_kind = distinct : (!row, !group) -> !distinct\n"
        + 'tlx.set_buffer_overlap(%s, %tree) : (!tmem, !distinct) -> () loc("kernel.py":6:1)\n'
    )
    # P comes first where that saves columns: 64 + 1 in each group, which begins on a multiple of 16.
    (spec,) = ops_of(run(parse(body), SIZE), StorageAliasSpecOp)
    assert tuple(spec.buffer_shape.get_values()) == (128, 80 + 65)
    check_error(
        body,
        [StorageAliasLoweringPass(strict=True)],
        "kernel.py:6:1: error: units_between_buffer_groups (65) must be a multiple of the original buffer size (16)",
    )


def test_strict_wants_kinds_to_alternate():
    body = SPEC + A + shared("t", "%a") + shared("u", "%t").replace("(!x2)", "(!group)") + overlap("u")
    run(parse(body), LOWERING)
    check_error(
        body,
        [StorageAliasLoweringPass(strict=True)],
        "kernel.py:5:1: error: nested reuse_groups must have a different group_kind than their parent, both are shared",
    )


def test_every_leaf_has_a_whole_number_of_groups():
    body = SPEC + A + '%p = tlx.storage_alias_local_alloc %s : !spec -> !x8 loc("kernel.py":3:1)\n'
    body += "%t = tlx.reuse_group(%a, %p) group_kind = shared, group_size = 4 : (!x2, !x8) -> !group\n" + overlap("t")
    check_error(
        body,
        [LOWERING],
        "kernel.py:5:1: error: all allocations of a reuse_group tree must have a whole number of buffer groups "
        "(buffers / group_size): a has 2 / 4 = 1/2, p has 8 / 4 = 2",
    )


def test_places_that_end_after_the_region_are_refused():
    check_error(
        SIZED_SPEC.replace(": !spec", ': !spec loc("kernel.py":1:1)') + PLACED_A.replace("= 16384", "= 24576"),
        [ALLOCATION],
        "kernel.py:2:1: error: the last buffer ends 40960 bytes after the start of its storage_alias_spec, "
        "which has 32768",
        ["the storage_alias_spec is at kernel.py:1:1"],
    )


def test_tiles_of_64_rows_alone_take_64_rows():
    half = TMEM_SPEC + "%a = tlx.storage_alias_local_alloc %s : !tmem -> !half\n"
    assert tuple(ops_of(run(parse(half), SIZE), StorageAliasSpecOp)[0].buffer_shape.get_values()) == (64, 128)
    both = half + "%b = tlx.storage_alias_local_alloc %s : !tmem -> !row\n"
    assert tuple(ops_of(run(parse(both), SIZE), StorageAliasSpecOp)[0].buffer_shape.get_values()) == (128, 128)


def test_a_size_for_tensor_memory_is_in_bytes_of_whole_columns():
    """Two single columns of 128 rows need 1024 bytes; 1100 are still two columns."""
    body = TMEM_SPEC.replace("tmem :", "tmem, size = 1000 :").replace("!tmem", "!narrow")
    body += "%a = tlx.storage_alias_local_alloc %s : !narrow -> !row\n"
    check_error(
        body,
        [LOWERING],
        "kernel.py:1:1: error: storage_alias_spec buffer_size_bytes 1000 is too small for computed shape, "
        "requires at least 1024 bytes",
        ["the storage_alias_spec is at kernel.py:1:1"],
    )
    enough = body.replace("1000", "1100").replace("!narrow", "!tlx.storage_alias_spec<tmem, 1100>")
    (spec,) = ops_of(run(parse(enough), SIZE), StorageAliasSpecOp)
    assert tuple(spec.buffer_shape.get_values()) == (128, 2)


def test_tensor_memory_has_512_columns():
    body = ATTENTION.replace(
        "%tree = tlx.reuse_group(%qk, %parts) group_kind = shared",
        "%tree = tlx.reuse_group(%qk, %parts) group_kind = distinct",
    )
    body = body.replace("(!qk, !distinct) -> !group", "(!qk, !distinct) -> !distinct").replace(
        "(!tmem, !group)", "(!tmem, !distinct)"
    )
    # Each group of 128 + 67 columns begins on a multiple of 128.
    (spec,) = ops_of(run(parse(body), SIZE), StorageAliasSpecOp)
    assert tuple(spec.buffer_shape.get_values()) == (128, 256 + 195)
    wide = TMEM_SPEC + "%a = tlx.storage_alias_local_alloc %s : !tmem -> !wide\n"
    check_error(
        wide,
        [LOWERING],
        "kernel.py:1:1: error: storage_alias_spec takes 640 columns of tensor memory, there are 512",
    )


# --- several definitions --------------------------------------------------------------------------------------------

ONE_AFTER_THE_OTHER = (
    SPEC
    + A
    + B
    + shared("t", "%a")
    + overlap("t", line=5)
    + shared("u", "%b")
    + overlap("u", line=6)
    + '%a_0 = ttg.memdesc_index %a[%i] : !x2 -> !x1 loc("kernel.py":7:1)\n'
    + 'ttg.local_dealloc %a_0 : !x1 loc("kernel.py":8:1)\n'
    + '%b_0 = ttg.memdesc_index %b[%i] : !x2 -> !x1 loc("kernel.py":9:1)\n'
)


def test_definitions_whose_buffers_are_never_live_together():
    module = run(parse(ONE_AFTER_THE_OTHER), LOWERING)
    (backing,) = ops_of(module, LocalAllocOp)
    assert memdesc_type(backing.results[0].type).shape == (16, 1024)
    assert [memdesc_type(op.results[0].type).shape[0] for op in ops_of(module, LocalAliasOp)] == [2, 2]


DUPLICATE = (
    "kernel.py:6:1: error: storage_alias_spec already has a set_buffer_overlap defined; "
    "each spec can only have one overlap definition"
)


def test_definitions_whose_buffers_are_live_together():
    # The view of %a is touched again after the first use of %b.
    body = ONE_AFTER_THE_OTHER + 'ttg.local_dealloc %a_0 : !x1 loc("kernel.py":10:1)\n'
    notes = [
        "the first one is at kernel.py:5:1",
        "its buffers are live from kernel.py:7:1 to kernel.py:10:1",
        "those of this one are live from kernel.py:9:1 to kernel.py:9:1",
    ]
    check_error(body, [LOWERING], DUPLICATE, notes)
    check_error(ONE_AFTER_THE_OTHER, [StorageAliasLoweringPass(strict=True)], DUPLICATE, notes[:1])


def test_what_a_loop_touches_is_live_in_all_of_it():
    loop = "scf.for %k = %i to %i step %i : i32 {\n%a_k = ttg.memdesc_index %a[%k] : !x2 -> !x1\nBODY}"
    loop += ' loc("kernel.py":8:1)\n'
    before, rest = ONE_AFTER_THE_OTHER.split("ttg.local_dealloc")[0], "%b_0 = ttg.memdesc_index %b[%i] : !x2 -> !x1\n"
    run(parse(before + loop.replace("BODY", "") + rest), SIZE)
    both = loop.replace("BODY", "%b_k = ttg.memdesc_index %b[%k] : !x2 -> !x1\n")
    notes = [
        "the first one is at kernel.py:5:1",
        "its buffers are live from kernel.py:7:1 to kernel.py:8:1",
        "those of this one are live from kernel.py:8:1 to kernel.py:8:1",
    ]
    check_error(before + both, [LOWERING], DUPLICATE, notes)


def test_what_leaves_the_block_is_live_anywhere():
    body = SPEC + A + B + shared("t", "%a") + overlap("t") + shared("u", "%b") + overlap("u", line=6)
    body += '%b_0 = ttg.memdesc_index %b[%i] : !x2 -> !x1 loc("kernel.py":7:1)\n'
    loop = f"%r = scf.for %k = %i to %i step %i iter_args(%y = %x) -> (!x2) : i32 {{\n{body}scf.yield %a : !x2\n}}\n"
    notes = [
        "the first one is at kernel.py:5:1",
        "its buffers are used outside of the block that defines the overlap",
        "those of this one are live from kernel.py:7:1 to kernel.py:7:1",
    ]
    check_error(loop, [LOWERING], DUPLICATE, notes)


# --- what is kept ---------------------------------------------------------------------------------------------------

WHOLE = (
    SPEC
    + A
    + B
    + shared("t", "%b")
    + "%d = tlx.reuse_group(%a, %t) group_kind = distinct : (!x2, !group) -> !distinct\n"
    + "tlx.set_buffer_overlap(%s, %d) : (!spec, !distinct) -> ()\n"
    + '%b_i = ttg.memdesc_index %b[%i] : !x2 -> !x1 loc("kernel.py":9:1)\n'
)


def test_locations_and_names_stay():
    module = run(parse(WHOLE), LOWERING)
    (backing,), (a, b) = ops_of(module, LocalAllocOp), ops_of(module, LocalAliasOp)
    (index,) = ops_of(module, MemDescIndexOp)
    named = {op.results[0].name_hint: op for op in (backing, a, b, index)}
    assert set(named) == {"s", "a", "b", "b_i"}
    assert [line_of(named[name]) for name in ("s", "a", "b", "b_i")] == [1, 2, 3, 9]
    # The arithmetic on the index belongs to the line that indexes.
    between = []
    op = index.prev_op
    while op is not None and op is not b:
        between.append((op.name, line_of(op)))
        op = op.prev_op
    assert between == [("arith.addi", 9), ("arith.constant", 9), ("arith.muli", 9), ("arith.constant", 9)]


def line_of(op: Operation) -> int:
    assert isinstance(op.location, FileLineColLoc)
    return op.location.line.data


def test_aliases_of_rewritten_views_keep_location_and_name():
    module = run(parse(WHOLE), LOWERING, REWRITE)
    views = ops_of(module, MemDescReinterpretOp)
    assert [(view.results[0].name_hint, line_of(view)) for view in views] == [("a", 2), ("b", 3)]


def test_every_stage_can_be_printed_and_read_back():
    at_once = print_module(run(parse(WHOLE), LOWERING, REWRITE))
    module = parse(WHOLE)
    for step in (SIZE, OFFSETS, ALLOCATION, REWRITE):
        module = parse_module(print_module(run(module, step)))
    assert print_module(module) == at_once


@pytest.mark.parametrize("steps", [(SIZE,), (SIZE, OFFSETS), (LOWERING,), (LOWERING, REWRITE)])
def test_a_second_run_changes_nothing(steps: tuple[ModulePass, ...]):
    module = run(parse(WHOLE), *steps)
    once = print_module(module)
    assert print_module(run(module, *steps)) == once


def test_a_reuse_group_alone_is_enough():
    """The largest groups over a spec's allocations relate them, as if the user had set them; not under strict."""
    grouped = WHOLE.replace("tlx.set_buffer_overlap(%s, %d) : (!spec, !distinct) -> ()", "")
    assert grouped != WHOLE
    assert print_module(run(parse(grouped), LOWERING)) == print_module(run(parse(WHOLE), LOWERING))
    strict = run(parse(grouped), StorageAliasLoweringPass(strict=True))
    assert not ops_of(strict, ReuseGroupOp)
    assert [memdesc_type(op.results[0].type).shape[0] for op in ops_of(strict, LocalAliasOp)] == [2, 2]


def test_a_group_beside_the_one_that_is_set_disappears():
    module = run(parse(SPEC + A + shared("t", "%a") + shared("u", "%a") + overlap("t")), LOWERING, REWRITE)
    assert [op.name for op in module.walk()][2:] == ["ttg.local_alloc", "ttg.memdesc_reinterpret", "tt.return"]


def test_two_groups_alone_are_two_definitions():
    check_error(
        SPEC + A + shared("t", "%a") + shared("u", "%a").replace(":4:", ":6:"),
        [LOWERING],
        "kernel.py:6:1: error: storage_alias_spec already has a reuse_group over its allocations; "
        "each spec can only have one overlap definition",
        ["the first one is at kernel.py:4:1", "both relate the allocation at kernel.py:2:1"],
    )


def test_an_unused_spec_warns_and_disappears(capsys: pytest.CaptureFixture[str]):
    module = run(parse(SPEC), LOWERING)
    assert capsys.readouterr().err == (
        "kernel.py:1:1: warning: storage_alias_spec has no referencing storage_alias_local_alloc operations\n"
    )
    assert not ops_of(module, StorageAliasSpecOp)


def test_two_regions_are_independent():
    other = (SPEC + A).replace("%s", "%s2").replace("%a", "%a2")
    module = parse(SPEC + A + other)
    first, second = storage_regions(module)
    assert [len(region.allocations) for region in (first, second)] == [1, 1]
    assert len(ops_of(run(module, LOWERING), LocalAllocOp)) == 2
