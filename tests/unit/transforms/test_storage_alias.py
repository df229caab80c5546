"""Storage aliasing on IR: every message, and what the passes keep (locations, names, what is printed)."""

from collections.abc import Sequence

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tlx_xdsl.analysis.storage_regions import storage_regions
from tlx_xdsl.dialects.tlx import LocalAliasOp, StorageAliasSpecOp
from tlx_xdsl.dialects.ttg import LocalAllocOp, MemDescIndexOp, MemDescReinterpretOp
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.transforms.storage_alias.allocation import StorageAliasAllocationPass
from tlx_xdsl.transforms.storage_alias.lowering import StorageAliasLoweringPass
from tlx_xdsl.transforms.storage_alias.offset_calculation import BufferOffsetCalculationPass
from tlx_xdsl.transforms.storage_alias.rewrite_local_alias import RewriteLocalAliasPass
from tlx_xdsl.transforms.storage_alias.size_definition import StorageAliasSizeDefinitionPass

SIZE, OFFSETS, ALLOCATION = (
    StorageAliasSizeDefinitionPass(),
    BufferOffsetCalculationPass(),
    StorageAliasAllocationPass(),
)
LOWERING, REWRITE = StorageAliasLoweringPass(), RewriteLocalAliasPass()

ALIASES = """
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bytes = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#regs = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
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
    module = parse_module(f"{ALIASES}tt.func @f(%i: i32, %x: !x2, %g: !group, %q: !spec) {{\n{body}tt.return\n}}\n")
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
    "tensor memory": (
        'tlx.storage_alias_spec storage = tmem : !tmem loc("kernel.py":1:1)\n',
        "kernel.py:1:1: error: tensor memory is not supported yet",
        (),
    ),
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
        ("the first one is at kernel.py:5:1",),
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
        "error: a storage_alias_spec can only be used by local_alloc and set_buffer_overlap, "
        "not by 'ttg.warp_specialize.partitions'",
        ("the storage_alias_spec is at kernel.py:1:1",),
    ),
    "register layout": (
        SPEC + A.replace("!x2", "!ttg.memdesc<2x64xf16, #regs, #smem, mutable>"),
        "kernel.py:2:1: error: a buffer in shared memory needs a shared layout, found #ttg.blocked<",
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
    has_tree = "set_buffer_overlap is still there; run tlx-buffer-offset-calculation first"
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


def test_groups_without_a_spec_disappear():
    module = run(parse(SPEC + A + shared("t", "%a") + shared("u", "%a")), LOWERING, REWRITE)
    assert [op.name for op in module.walk()][2:] == ["ttg.local_alloc", "ttg.memdesc_reinterpret", "tt.return"]


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
