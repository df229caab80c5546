"""The cluster kernels on a GPU: remote stores and arrivals, copies between CTAs, and TMA loads for several of them.

`python -m tests.unit.transforms.nvidia.test_clusters_on_gpu` prints a line for each kernel.
"""

# covers: tlx.cluster, tlx-lower-cluster-barriers, tlx-lower-remote-memory, tlx-lower-multicast-loads

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.gallery.synchronisation.cluster_runs import CASES
from tests.gallery.synchronisation.lowered_clusters import HOPPER, bound, specialization
from tlx_xdsl.runtime.build import build
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

LAUNCHES = 20
"""Of each kernel: what is not ordered shows now and then only."""


def run(name: str) -> float:
    """Launch a kernel; gives the largest relative error of all launches."""
    import torch

    case = CASES[name]()
    wanted = specialization(case)
    launcher = build(
        case.kernel, wanted.signature, wanted.constexprs, target=wanted.target, num_warps=wanted.num_warps,
        cluster=wanted.cluster,
    )  # fmt: skip
    arrays: list[tuple[np.ndarray, Any]] = []

    def on_device(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append((value, torch.from_numpy(value).cuda()))
            return arrays[-1][1]
        if isinstance(value, TensorDescriptor):
            return TensorDescriptor.from_tensor(on_device(value.base), list(value.block_shape))
        return value

    given = bound(case)
    arguments = [on_device(given[each]) for each in wanted.signature]
    before = [array.copy() for array, _ in arrays]
    worst = 0.0
    for _ in range(LAUNCHES):
        for (_, tensor), array in zip(arrays, before, strict=True):
            tensor.copy_(torch.from_numpy(array))
        launcher(case.grid, *arguments)
        torch.cuda.synchronize()
        for array, tensor in arrays:
            array[...] = tensor.cpu().numpy()
        for found, expected in case.results():
            error = np.linalg.norm(found.astype(np.float64) - expected) / np.linalg.norm(expected)
            worst = max(worst, float(error) if np.isfinite(error) else float("inf"))
    assert worst < case.tolerance, f"relative error {worst:.1e}"
    return worst


@pytest.mark.gpu
@pytest.mark.parametrize("name", HOPPER)
def test_cluster_kernel_gives_the_reference_on_a_gpu(name):
    import torch

    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("the kernels are for compute capability 9.0")
    run(name)


if __name__ == "__main__":
    for each in HOPPER:
        print(f"{each}: error {run(each):.1e} in {LAUNCHES} launches", flush=True)
