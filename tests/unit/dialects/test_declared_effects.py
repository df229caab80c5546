"""Every operation declares what it accesses and how it synchronises, in terms that analyses can rely on."""

import pytest
from xdsl.irdl import IRDLOperation
from xdsl.traits import IsTerminator, NoMemoryEffect, RecursiveMemoryEffect

from tlx_xdsl.dialects import gpu, llvm, nvvm, tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base.effects import UNKNOWN, Kind, Space, Sync, accesses_of, effects_of, sync_of
from tlx_xdsl.dialects.base.ptx import sync_of_ptx
from tlx_xdsl.text.parser import parse_module

OURS = [op for dialect in (tt.TT, ttg.TTG, ttng.TTNG, tlx.TLX, nvvm.NVVM) for op in dialect.operations]
OURS += [gpu.BarrierOp, llvm.AssumeOp]

UNDECLARED = {"tt.call", "tt.func"}
"""A call does what the function does, and a function is no access."""


PROPERTIES = {"nvvm.fence.proxy": {"kind": nvvm.ProxyKindAttr(nvvm.ProxyKind.ASYNC)}}
"""What effects depend on, by operation."""


def declares(op: type[IRDLOperation]) -> bool:
    return hasattr(op, "EFFECTS") or hasattr(op, "effects")


@pytest.mark.parametrize("op", OURS, ids=lambda op: op.name)
def test_it_declares_its_effects_or_has_none(op):
    free = any(op.create().has_trait(trait) for trait in (NoMemoryEffect, RecursiveMemoryEffect, IsTerminator))
    assert declares(op) != (free or op.name in UNDECLARED), "declared once: by effects, or by a trait that says none"


@pytest.mark.parametrize("op", [op for op in OURS if declares(op)], ids=lambda op: op.name)
def test_it_accesses_operands_that_it_has(op):
    definition = op.get_irdl_definition()
    operands = {name for name, _ in definition.operands}
    effects = effects_of(op.create(properties=PROPERTIES.get(op.name, {})))
    for access in effects.accesses or ():
        results = {name for name, _ in definition.results} if Kind.ALLOC in access.kind else set()
        assert access.operand in operands | results
    if isinstance(effects.completes_on, str):
        assert effects.completes_on in operands


def test_an_operation_that_declares_nothing_may_do_anything():
    assert effects_of(tt.CallOp.create()) is UNKNOWN
    assert accesses_of(tt.CallOp.create()) is None
    assert Sync.RELEASE in sync_of(tt.CallOp.create())


MODULE = """
!tile = !ttg.memdesc<64x64xf16, #s, #smem, mutable>
!barrier = !ttg.memdesc<1xi64, #b, #smem, mutable>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @f(%d: !tt.tensordesc<64x64xf16, #s>, %p: !tt.ptr<i32>, %v: i32, %yes: i1) {
  %t = ttg.local_alloc : () -> !tile
  %bar = ttg.local_alloc : () -> !barrier
  ttng.async_tma_copy_global_to_local %d[%v, %v] %t, %bar, %yes
    : !tt.tensordesc<64x64xf16, #s>, !barrier -> !tile
  ttng.arrive_barrier %bar, 1 : !barrier
  %0 = tt.atomic_rmw exch, RMW, gpu, %p, %v : (!tt.ptr<i32>, i32) -> i32
  tt.return
}
"""


def test_accesses_name_values_and_spaces():
    ops = {op.name: op for op in parse_module(MODULE.replace("RMW", "acq_rel")).walk()}
    load = ops["ttng.async_tma_copy_global_to_local"]
    found = [(access.value, access.space, access.kind) for access in accesses_of(load)]
    assert found == [
        (load.desc, Space.GLOBAL, Kind.READ),
        (load.result, Space.SHARED, Kind.WRITE),
        (load.barrier, Space.SHARED, Kind.COMPLETE),
    ]
    assert not sync_of(load)
    assert sync_of(ops["ttng.arrive_barrier"]) == Sync.RELEASE


@pytest.mark.parametrize(
    ("semantics", "sync"),
    [
        ("relaxed", Sync.NONE), ("acquire", Sync.ACQUIRE), ("release", Sync.RELEASE),
        ("acq_rel", Sync.RELEASE | Sync.ACQUIRE),
    ],
)  # fmt: skip
def test_an_atomic_operation_orders_what_its_semantics_say(semantics, sync):
    ops = {op.name: op for op in parse_module(MODULE.replace("RMW", semantics)).walk()}
    assert sync_of(ops["tt.atomic_rmw"]) == sync


@pytest.mark.parametrize(
    ("code", "sync"),
    [
        ("add.s32 $0, $1, $2;", Sync.NONE),
        ("bar.sync $0, 128;", Sync.NAMED | Sync.RELEASE | Sync.ACQUIRE),
        ("barrier.arrive $0, 128;", Sync.NAMED | Sync.RELEASE),
        ("{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [$0]; }", Sync.RELEASE),
        ("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [$0];", Sync.NONE),
        ("@$1 barrier.cluster.arrive.aligned;", Sync.RELEASE),
        ("barrier.cluster.wait.aligned;", Sync.ACQUIRE),
        ("wait: mbarrier.try_wait.parity.shared.b64 p, [$0], $1; @!p bra wait;", Sync.ACQUIRE),
        ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [$0];", Sync.RELEASE),
        ("fence.proxy.async.shared::cta;", Sync.FENCE_PROXY),
        ("atom.global.acq_rel.gpu.add.u32 $0, [$1], $2; // mbarrier.arrive.b64", Sync.RELEASE | Sync.ACQUIRE),
        ("st.release.gpu.global.b32 [$0], $1;", Sync.RELEASE),
        ("fence.mbarrier_init.release.cluster;", Sync.FENCE),
        ("fence.acq_rel.gpu;", Sync.RELEASE | Sync.ACQUIRE | Sync.FENCE),
        ("fence.sc.cluster;", Sync.RELEASE | Sync.ACQUIRE | Sync.FENCE),
        ("fence.acquire.cluster;", Sync.ACQUIRE),
        ("membar.gl;", Sync.RELEASE | Sync.ACQUIRE | Sync.FENCE),
    ],
)  # fmt: skip
def test_ptx_synchronises_as_its_instructions_do(code, sync):
    assert sync_of_ptx(code) == sync
