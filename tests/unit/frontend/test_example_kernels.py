"""The complete kernels of `examples/`: every variant becomes verified IR, made of the operations of its design."""

from collections import Counter
from pathlib import Path

import pytest

from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.targets import target_named
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.tools.launch_line.loading import load_kernel

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

HOPPER_GEMM = [f"hopper_gemm_{name}.py:matmul" for name in ("ws", "pipelined")]
PERSISTENT_GEMM = [f"hopper_gemm_persistent_{name}.py:matmul" for name in ("cooperative", "pingpong")]
HOPPER_ATTENTION = [f"hopper_attention_{name}.py:attention" for name in ("ws", "pipelined", "pingpong")]
BLACKWELL_GEMM = "blackwell_gemm_ws.py:matmul"
BLACKWELL_ATTENTION = "blackwell_attention_ws.py:attention"


def build(spec, *, dtype="fp16", head_dim=128, **constexprs):
    """The verified module of a kernel of `examples/`, by its TLX_COMPILE table with some entries changed."""
    kernel, defaults = load_kernel(f"{EXAMPLES}/{spec}")
    signature = {
        name: text.replace("fp16", dtype).replace(", 128]", f", {head_dim}]" if "attention" in spec else ", 128]")
        for name, text in defaults.signature.items()
    }
    if "attention" in spec:
        constexprs["HEAD_DIM"] = head_dim
    options = dict(defaults.options)
    capability = target_named(options.pop("target", "sm_90a")).capability
    module = build_module(kernel.source, signature, defaults.constexprs | constexprs, capability=capability, **options)
    verify_module(module)
    return module


def operations(module):
    """Count each kind of operation."""
    return Counter(type(op) for op in module.walk())


def partitions(module):
    """The operations of each partition of the module's tasks, the default one first."""
    (specialize,) = [op for op in module.walk() if isinstance(op, ttg.WarpSpecializeOp)]
    regions = [specialize.default_region, *specialize.partitions.partition_regions]
    return [Counter(type(op) for op in region.walk()) for region in regions]


# --- GEMM -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("spec", [*HOPPER_GEMM, *PERSISTENT_GEMM, BLACKWELL_GEMM])
def test_variants_of_gemm(spec, dtype, stages):
    build(spec, dtype=dtype, NUM_STAGES=stages)


@pytest.mark.parametrize("stages", [2, 4])
def test_pipelined_gemm_copies_ahead(stages):
    count = operations(build("hopper_gemm_pipelined.py:matmul", NUM_STAGES=stages))
    # The loop's own, and stages - 1 before it; A and B in one group.
    assert count[ttg.AsyncCommitGroupOp] == stages
    assert count[ttg.AsyncCopyGlobalToLocalOp] == 2 * stages
    # For the oldest stage, and for the rest at the end.
    assert count[ttg.AsyncWaitOp] == 2
    assert count[ttng.WarpGroupDotOp] == 1
    assert count[ttng.FenceAsyncSharedOp] == 1
    assert count[ttg.WarpSpecializeOp] == 0


@pytest.mark.parametrize(("spec", "named"), [(PERSISTENT_GEMM[0], 0), (PERSISTENT_GEMM[1], 1)])
def test_persistent_gemm_has_a_producer_and_two_consumers(spec, named):
    producer, *consumers = partitions(build(spec))
    assert producer[ttng.AsyncTMACopyGlobalToLocalOp] == (2 if named else 3)
    assert producer[ttng.BarrierExpectOp] == producer[ttng.WaitBarrierOp] == 1
    assert len(consumers) == 2
    for consumer in consumers:
        assert consumer[ttng.WarpGroupDotOp] == consumer[ttng.WaitBarrierOp] == 1
        # One in flight in the loop, none after it; and a stage is given back after each.
        assert consumer[ttng.WarpGroupDotWaitOp] == consumer[ttng.ArriveBarrierOp] == 2
        assert consumer[ttng.AsyncTMACopyLocalToGlobalOp] == consumer[ttng.FenceAsyncSharedOp] == 1
        assert consumer[ttng.AsyncTMAStoreWaitOp] == 2
        assert consumer[tlx.NamedBarrierWaitOp] == consumer[tlx.NamedBarrierArriveOp] == named


def test_the_barriers_of_pingpong_gemm_are_the_consumers_own_and_the_others():
    (specialize,) = [op for op in build(PERSISTENT_GEMM[1]).walk() if isinstance(op, ttg.WarpSpecializeOp)]
    named = tlx.NamedBarrierWaitOp | tlx.NamedBarrierArriveOp
    numbers = [
        [(type(op), op.operands[0].owner.value.value.data) for op in region.walk() if isinstance(op, named)]
        for region in specialize.partitions.partition_regions
    ]
    assert numbers == [
        [(tlx.NamedBarrierWaitOp, 0), (tlx.NamedBarrierArriveOp, 1)],
        [(tlx.NamedBarrierWaitOp, 1), (tlx.NamedBarrierArriveOp, 0)],
    ]


def test_blackwell_gemm_hands_tiles_from_task_to_task():
    epilogue, mma, producer = partitions(build(BLACKWELL_GEMM))
    assert mma[ttng.TCGen5MMAOp] == mma[ttng.TCGen5CommitOp] == 1
    assert mma[ttng.WaitBarrierOp] == 2
    assert producer[ttng.AsyncTMACopyGlobalToLocalOp] == 2
    # 256 columns in slices of 64.
    assert epilogue[ttng.TMEMLoadOp] == epilogue[ttng.AsyncTMACopyLocalToGlobalOp] == 4
    assert epilogue[ttng.WaitBarrierOp] == epilogue[ttng.ArriveBarrierOp] == 1


# --- attention ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("spec", [*HOPPER_ATTENTION, BLACKWELL_ATTENTION])
def test_variants_of_attention(spec, dtype, head_dim, causal):
    build(spec, dtype=dtype, head_dim=head_dim, CAUSAL=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("spec", "waits", "k_and_v_released"),
    [(HOPPER_ATTENTION[0], [0, 0], 2), (HOPPER_ATTENTION[1], [0, 1, 0, 0], 3)],
)
def test_hopper_attention_overlaps_products(spec, waits, k_and_v_released, causal):
    module = build(spec, CAUSAL=causal)
    producer, *consumers = partitions(module)
    assert producer[ttng.AsyncTMACopyGlobalToLocalOp] == 4
    (specialize,) = [op for op in module.walk() if isinstance(op, ttg.WarpSpecializeOp)]
    assert len(consumers) == 2
    for consumer, region in zip(consumers, specialize.partitions.partition_regions, strict=True):
        assert consumer[ttng.WarpGroupDotOp] == len(waits)
        assert [op.pendings.value.data for op in region.walk() if isinstance(op, ttng.WarpGroupDotWaitOp)] == waits
        assert consumer[ttng.ArriveBarrierOp] == k_and_v_released


def test_pingpong_attention_gives_each_turn_back():
    _, first, second = partitions(build(HOPPER_ATTENTION[2]))
    # Three turns in the text. Consumer 1 makes the first call, consumer 0 takes the last one.
    assert (first[tlx.NamedBarrierWaitOp], first[tlx.NamedBarrierArriveOp]) == (4, 3)
    assert (second[tlx.NamedBarrierWaitOp], second[tlx.NamedBarrierArriveOp]) == (3, 4)


@pytest.mark.parametrize("slices", [1, 2])
def test_blackwell_attention_has_five_tasks_and_one_region_of_scores(slices):
    module = build(BLACKWELL_ATTENTION, NUM_SLICES=slices)
    correction, *softmax, mma, producer = partitions(module)
    count = operations(module)
    assert count[tlx.StorageAliasSpecOp] == count[tlx.SetBufferOverlapOp] == 1
    assert count[tlx.StorageAliasLocalAllocOp] == 5
    assert count[tlx.ReuseGroupOp] == 3
    # Two groups: scores before the loop and in it, and the product with V in the loop and after it.
    assert mma[ttng.TCGen5MMAOp] == 2 * (2 + 2 * slices)
    assert len(softmax) == 2
    for task in softmax:
        # alpha, the slices of the probabilities; m and the denominator at the end.
        assert task[ttng.TMEMStoreOp] == 1 + slices + 2
        assert task[ttng.ArriveBarrierOp] == 1 + slices + 1
        assert task[ttng.WaitBarrierOp] == 1
    assert correction[ttng.AsyncTMACopyLocalToGlobalOp] == 2
    assert producer[ttng.AsyncTMACopyGlobalToLocalOp] == 4
