"""Kernels of asynchronous copies, buffers and `tl.dot` compile from sm_80 on, and give numpy's numbers."""

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.targets.portable_runs import KERNELS, RUNS, compiled
from tests.versions import RELEASE
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.targets import TARGETS, Feature, target_of, targets_of

MATRIX = ("matmul", "attention")
EVERYWHERE = [target.name for target in targets_of(RELEASE)]
SOME = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
PAIRS = [
    (name, target)
    for name in KERNELS
    for target in EVERYWHERE
    if volume.is_full() or (target in SOME if name in MATRIX else target == "sm_80")
]


@pytest.mark.backend
@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_it_compiles_without_spills(name: str, target: str):
    result = compiled(name, target)
    assert result.cubin
    assert result.resources is not None
    # ptxas 13.1, which Triton 3.7 brings, has too few registers for attention by mma.sync.
    spilled = 32 if result.assembler.startswith("ptxas 13.1") and (name, target) == ("attention", "sm_80") else 0
    assert max(result.resources.spill_store_bytes, result.resources.spill_load_bytes) <= spilled
    assert name == "producer_consumer" or "cp.async" in result.ptx


@pytest.mark.backend
@pytest.mark.parametrize(
    ("target", "instruction"),
    [("sm_80", "mma.sync"), ("sm_90a", "wgmma.mma_async"), ("sm_100a", "tcgen05.mma"), ("sm_120a", "mma.sync")],
)
@pytest.mark.parametrize("name", MATRIX)
def test_a_dot_uses_the_tensor_cores_of_its_target(name: str, target: str, instruction: str):
    assert instruction in compiled(name, target).ptx


@pytest.mark.backend
@pytest.mark.parametrize("target", ["sm_80", "sm_120a"])
@pytest.mark.parametrize("name", MATRIX)
def test_operands_of_mma_come_by_ldmatrix(name: str, target: str):
    """The default layout of a buffer, swizzled rows of up to 128 bytes, is one that ldmatrix reads."""
    ptx = compiled(name, target).ptx
    assert "ldmatrix" in ptx
    # What is left are the tile's way to the output, and no operand of a product.
    loop = ptx[ptx.index("cp.async.wait_group") : ptx.rindex("mma.sync")]
    assert "ld.shared" not in loop


@pytest.mark.backend
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", MATRIX)
def test_after_stock_triton_s_passes_it_gives_the_right_numbers(name: str, target: str):
    RUNS[name]().interpret(target, "final")


@pytest.mark.parametrize("schedule", POLICIES)
@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
@pytest.mark.parametrize("name", KERNELS)
def test_it_gives_the_right_numbers(name: str, stage: str, schedule: str):
    RUNS[name]().interpret("sm_80", stage, schedule=schedule)


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_it_gives_the_right_numbers_on_the_gpu(name: str):
    import torch

    from tlx_xdsl.runtime.build import build
    from tlx_xdsl.tools.launch_line.loading import load_kernel

    major, minor = torch.cuda.get_device_capability()
    kernel, defaults = load_kernel(KERNELS[name])
    launcher = build(
        kernel,
        defaults.signature,
        defaults.constexprs,
        target=target_of(10 * major + minor).name,
        num_warps=defaults.options.get("num_warps", 4),
    )
    run = RUNS[name]()
    on_gpu = [torch.from_numpy(each).cuda() if isinstance(each, np.ndarray) else each for each in run.arguments]
    launcher(run.grid, *on_gpu)
    torch.cuda.synchronize()
    written = next(index for index, each in enumerate(run.arguments) if each is run.out)
    run.out[...] = on_gpu[written].cpu().numpy()
    run.check()


def test_the_table_of_targets_is_in_order():
    capabilities = [target.capability for target in TARGETS]
    assert capabilities == sorted(set(capabilities))
    assert all(target.has(Feature.CP_ASYNC) for target in TARGETS)
