"""The storage map: places, sharing, users and budgets, on small modules whose numbers can be worked out by hand."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.storage_budget import certain, check_budget
from tlx_xdsl.analysis.storage_map import StorageMap, limit_of
from tlx_xdsl.analysis.storage_map_reader import storage_maps
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.transforms.storage_alias.lowering import StorageAliasLoweringPass
from tlx_xdsl.transforms.storage_alias.offset_calculation import BufferOffsetCalculationPass
from tlx_xdsl.transforms.storage_alias.size_definition import StorageAliasSizeDefinitionPass

pytestmark = pytest.mark.quick

ALIASES = """
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#spanning = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!x2 = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
!spanning = !ttg.memdesc<2x64xf16, #spanning, #smem, mutable>
!x4 = !ttg.memdesc<4x64x64xf16, #shared, #smem, mutable>
!big = !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable>
!line = !ttg.memdesc<2x64xf16, #line, #smem, mutable>
!half = !ttg.memdesc<8x128x128xf16, #shared, #smem, mutable>
!t = !ttg.memdesc<2x128x64xf32, #tmem, #ttng.tensor_memory, mutable>
"""

TREE = """
%s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem> loc("kernel.py":1:1)
%q = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !big loc("kernel.py":2:1)
%p = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !x2 loc("kernel.py":3:1)
%l = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !line loc("kernel.py":4:1)
%d = tlx.reuse_group(%p, %l) group_kind = distinct : (!x2, !line) -> !tlx.reuse_group<distinct>
%g = tlx.reuse_group(%q, %d) group_kind = shared : (!big, !tlx.reuse_group<distinct>) -> !tlx.reuse_group<shared>
tlx.set_buffer_overlap(%s, %g) : (!tlx.storage_alias_spec<smem>, !tlx.reuse_group<shared>) -> ()
"""


def parse(body: str, attributes: str = "") -> ModuleOp:
    module = parse_module(
        f"{ALIASES}module attributes {{{attributes}}} {{ tt.func @f(%i: i32, %c: i1, %r: !x2) {{\n{body}tt.return }} }}"
    )
    module.verify()
    return module


def map_of(body: str, attributes: str = '"ttg.target" = "cuda:100"') -> StorageMap:
    (found,) = storage_maps(parse(body, attributes))
    return found


def spans(map_: StorageMap) -> dict[str, list[tuple[int, int]]]:
    arrays = [array for region in map_.regions for array in region.arrays]
    return {array.name: [(span.start, span.end) for span in array.buffers] for array in arrays}


TREE_SPANS = {
    # Groups of 16,384 bytes: a tile of q, or one of p and a line after it.
    "q": [(0, 16384), (16384, 32768)],
    "p": [(0, 8192), (16384, 24576)],
    "l": [(8192, 8320), (24576, 24704)],
}


def test_a_tree_s_places_and_who_shares_them():
    map_ = map_of(TREE)
    (region,) = map_.regions
    assert spans(map_) == TREE_SPANS
    assert (region.size, region.groups, region.stride, region.alignment) == (32768, 2, 16384, 1024)
    q, p, l = region.arrays  # noqa: E741
    assert [(other.name, found) for other, found in region.sharers(q, q.buffers[1])] == [("p", [1]), ("l", [1])]
    assert [(other.name, found) for other, found in region.sharers(p, p.buffers[0])] == [("q", [0])]
    assert [(other.name, found) for other, found in region.sharers(l, l.buffers[0])] == [("q", [0])]


def test_between_the_steps_of_lowering_the_map_is_the_same():
    module = parse(TREE)
    StorageAliasSizeDefinitionPass().apply(Context(), module)
    BufferOffsetCalculationPass().apply(Context(), module)
    (map_,) = storage_maps(module)
    assert spans(map_) == TREE_SPANS
    assert (map_.regions[0].groups, map_.regions[0].stride) == (2, 16384)


LINE = "!ttg.memdesc<64xf16, #line, #smem, mutable>"
INDEXED = f"%v = ttg.memdesc_index %l[%i] : !line -> {LINE}\nttg.local_dealloc %v : {LINE}\n"


def test_after_lowering_there_are_views():
    module = parse(TREE + INDEXED)
    StorageAliasLoweringPass().apply(Context(), module)
    (map_,) = storage_maps(module)
    (region,) = map_.regions
    assert (region.name, region.size, {array.role for array in region.arrays}) == ("s", 32768, {"view"})
    assert [array.name for array in region.arrays] == ["q", "p", "l"]
    assert [use.task for use in region.arrays[2].uses] == ["kernel"]


def test_what_no_buffer_takes():
    explicit = TREE.replace("storage = smem :", "storage = smem, size = 65536 :").replace("<smem>", "<smem, 65536>")
    (region,) = map_of(explicit).regions
    assert region.stride == 32768
    assert [(gap.start, gap.end) for gap in region.padding] == [(16384, 32768), (49152, 65536)]


def test_plain_allocations_follow_each_other():
    map_ = map_of(
        "%l = ttg.local_alloc : () -> !line\n%a = ttg.local_alloc : () -> !tile\n"
        "%b = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64, #line, #smem, mutable>\n"
        "%z = arith.constant 0 : i32\n"
        "%b0 = ttg.memdesc_index %b[%z] : !ttg.memdesc<3x1xi64, #line, #smem, mutable> "
        "-> !ttg.memdesc<1xi64, #line, #smem, mutable>\n"
        "ttng.init_barrier %b0, 1 : !ttg.memdesc<1xi64, #line, #smem, mutable>\n"
        "%t = ttng.tmem_alloc : () -> !t\n"
    )
    assert [(region.name, region.memory, region.start, region.size) for region in map_.regions] == [
        ("l", "smem", 0, 256),
        ("a", "smem", 1024, 8192),
        ("b", "smem", 9216, 24),
        ("t", "tmem", 0, 128),
    ]
    # A tile is one buffer, an array in tensor memory has columns.
    assert spans(map_)["a"] == [(0, 8192)]
    assert spans(map_)["t"] == [(0, 64), (64, 128)]
    assert [region.arrays[0].role for region in map_.regions] == ["buffers", "buffers", "barriers", "buffers"]
    assert (map_.used("smem"), map_.used("tmem"), map_.limit("tmem")) == (9240, 128, 512)


WAYS = {
    "for": "%y = scf.for %n = %i to %i step %i iter_args(%x = %a) -> (!x2) : i32 { {USE} scf.yield %x : !x2 }",
    "for result": "%x = scf.for %n = %i to %i step %i iter_args(%y = %a) -> (!x2) : i32 { scf.yield %y : !x2 } {USE}",
    "if result": "%x = scf.if %c -> (!x2) { scf.yield %a : !x2 } else { scf.yield %r : !x2 } {USE}",
    "while": "%y = scf.while (%w = %a) : (!x2) -> !x2 { scf.condition(%c) %w : !x2 } "
    "do { ^bb0(%x: !x2): {USE} scf.yield %x : !x2 }",
    "select": "%x = arith.select %c, %a, %r : !x2 {USE}",
    "branch": "cf.br ^next(%a : !x2) ^next(%x: !x2): {USE}",
    "conditional branch": "cf.cond_br %c, ^then, ^else(%i, %a : i32, !x2) ^then: tt.return "
    "^else(%n: i32, %x: !x2): {USE}",
    "partition": "ttg.warp_specialize(%i, %a) default { ttg.warp_yield } "
    "partition0(%i0: i32, %r0: !x2) num_warps(4) { ttg.warp_return } "
    "partition1(%i1: i32, %x: !x2) num_warps(4) { {USE} ttg.warp_return } : (i32, !x2) -> ()",
}


@pytest.mark.parametrize("way", WAYS)
def test_users_are_found_on_every_way(way: str):
    use = 'ttg.local_dealloc %x : !x2 loc("kernel.py":7:1)'
    map_ = map_of("%a = ttg.local_alloc : () -> !x2\n" + WAYS[way].replace("{USE}", use) + "\n")
    uses = map_.regions[0].arrays[0].uses
    task = "partition1" if way == "partition" else "kernel"
    assert [(found.task, found.lines) for found in uses if 7 in found.lines] == [(task, (7,))]
    assert map_.regions[0].captured_by == (frozenset({0}) if way == "partition" else frozenset())


# --- budgets --------------------------------------------------------------------------------------------------------

HALF = '%{0} = ttg.local_alloc : () -> !half loc("kernel.py":{1}:1)\n'
"""262,144 bytes."""
QUARTER = '%{0} = ttg.local_alloc : () -> !ttg.memdesc<4x128x128xf16, #shared, #smem, mutable> loc("kernel.py":{1}:1)\n'
"""131,072 bytes."""


def test_one_allocation_that_is_too_large_is_an_error():
    with pytest.raises(CompilationError) as caught:
        check_budget(map_of("%l = ttg.local_alloc : () -> !line\n" + HALF.format("a", 2)))
    assert caught.value.message == "'f' needs 262,144 B of shared memory, sm_100a has 232,448"
    assert str(caught.value).startswith("kernel.py:2:1: error: ")
    assert caught.value.notes[0] == "262,144 B: a, 8 buffers of 32,768 at kernel.py:2:1"


def test_allocations_that_may_never_live_together_are_a_warning():
    map_ = map_of(QUARTER.format("a", 1) + QUARTER.format("b", 2))
    with collected_diagnostics() as found:
        check_budget(map_)
    assert [(each.severity, each.message) for each in found] == [
        (
            "warning",
            "'f' allocates 262,144 B of shared memory, sm_100a has 232,448: it fits only where stock Triton lays "
            "allocations over each other",
        )
    ]


def test_what_partitions_capture_lives_at_the_same_time():
    type_ = "!ttg.memdesc<4x128x128xf16, #shared, #smem, mutable>"
    tasks = (
        f"ttg.warp_specialize(%a, %b) default {{ ttg.warp_yield }} partition0(%x: {type_}, %y: {type_}) num_warps(4) "
        f"{{ ttg.warp_return }} : ({type_}, {type_}) -> ()\n"
    )
    map_ = map_of(QUARTER.format("a", 1) + QUARTER.format("b", 2) + tasks)
    assert certain(map_, "smem") == 262_144
    with pytest.raises(CompilationError, match="needs 262,144 B of shared memory"):
        check_budget(map_)


def test_tensor_memory_has_a_budget_of_its_own():
    body = "".join(f"%t{i} = ttng.tmem_alloc : () -> !t\n" for i in range(4))
    with collected_diagnostics() as found:
        check_budget(map_of(body))
        check_budget(map_of(body + "%t = ttng.tmem_alloc : () -> !t\n"))
    assert ["640 columns of tensor memory, sm_100a has 512" in each.message for each in found] == [True]


@pytest.mark.parametrize(
    ("capability", "smem", "tmem"), [(80, 166912, 0), (90, 232448, 0), (100, 232448, 512), (103, 232448, 512)]
)
def test_limits(capability: int, smem: int, tmem: int):
    assert (limit_of("smem", capability), limit_of("tmem", capability)) == (smem, tmem)


def test_clusters_that_share_tensors_are_refused():
    with pytest.raises(CompilationError, match="num_ctas above 1"):
        map_of("%a = ttg.local_alloc : () -> !spanning\n", '"ttg.num-ctas" = 2 : i32')
