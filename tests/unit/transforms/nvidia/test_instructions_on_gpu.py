"""PTX of the NVIDIA passes, on a GPU: the same results as in the interpreter.

`python -m tests.unit.transforms.nvidia.test_instructions_on_gpu` prints a line for each kernel.
"""

# covers: tlx-lower-bulk-copies, tlx-lower-device-descriptors, tlx-lower-special-instructions, tlx-lower-votes
# covers: tlx-insert-proxy-fences

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.analysis import test_proxy_hazards
from tests.unit.interpreter.operations import test_device_descriptors
from tests.unit.interpreter.synchronisation import test_bulk
from tests.unit.transforms.nvidia import test_lowered_instructions
from tlx_xdsl.runtime.build import build
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

LAUNCHES = 20
"""Of each kernel: what is not ordered shows now and then only."""


def launched(kernel: Any, signature: dict[str, str], constexprs: dict[str, Any], grid: int, *args: Any) -> None:
    """Launch a kernel on copies of arrays, and bring them back; descriptors are pairs of an array and a block."""
    import torch

    def on_device(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value).cuda()
        if isinstance(value, tuple):
            return TensorDescriptor.from_tensor(on_device(value[0]), list(value[1]))
        return value

    launcher = build(kernel, signature, constexprs)
    for _ in range(LAUNCHES):
        given = [on_device(value) for value in args]
        launcher(grid, *given)
        torch.cuda.synchronize()
    for value, tensor in zip(args, given, strict=True):
        if isinstance(value, np.ndarray):
            value[...] = tensor.cpu().numpy()
        elif isinstance(value, tuple):
            value[0][...] = tensor.base.cpu().numpy()


def bulk_copies() -> None:
    """Copy through shared memory and back."""
    x, y = np.arange(256, dtype=np.float32), np.full(256, -1, np.float32)
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "SIZE": "i32"}
    launched(test_bulk.double, signature, {"OFFSET": 0, "EXPECT": 512, "DROP": ""}, 1, x, y, 512)
    np.testing.assert_array_equal(y[:128], 2 * x[:128])
    assert (y[128:] == -1).all()


def device_descriptors() -> None:
    """Descriptors in scratch memory, in many programs at once."""
    x = np.random.default_rng(0).standard_normal((70, 56)).astype(np.float16)
    y = np.zeros_like(x)
    signature = {"x_ptr": "*fp16", "y_ptr": "*fp16", "M": "i32", "N": "i32", "STRIDE": "i32"}
    launched(test_device_descriptors.through, signature, {"USE": "memory"}, 500, x, y, 70, 50, 56)
    np.testing.assert_array_equal(y[:, :50], x[:, :50])
    assert not y[:, 50:].any()


def votes() -> None:
    """The elements that a thread holds are those that the interpreter takes for its."""
    x, expected = test_lowered_instructions.voters()
    out = np.zeros(257, np.int32)
    launched(test_lowered_instructions.votes, {"x_ptr": "*fp32", "out_ptr": "*i32"}, {}, 1, x, out)
    np.testing.assert_array_equal(out.view(np.uint32), expected)


def small_things() -> None:
    """The clock runs; prefetches and fences change nothing."""
    x, y, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), np.full(1, -1, np.int64)
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*i64"}
    launched(test_lowered_instructions.small_things, signature, {}, 1, x, y, out)
    np.testing.assert_array_equal(x, y)
    assert out[0] > 0


def warp_barrier() -> None:
    """Every thread arrives."""
    x, y = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32"}
    launched(test_lowered_instructions.warp_barrier, signature, {"ARRIVALS": 1}, 1, x, y)
    np.testing.assert_array_equal(x, y)


def inserted_fences() -> None:
    """A tile handed to TMA and to wgmma in another task, by a kernel without fences."""
    signature = {"x_ptr": "*fp16", "y_desc": "tensordesc<fp16[64, 64]>", "y_ptr": "*fp16", "flag_ptr": "*i32"}
    # A commit of tcgen05 needs Blackwell.
    for sync in (sync for sync in test_proxy_hazards.SYNCS if sync != "commit"):
        x = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float16)
        for use in ("tma", "dot"):
            y, z = np.zeros_like(x), np.zeros_like(x)
            constexprs = {"SYNC": sync, "FENCE": "none", "USE": use, "TURNS": 1 if sync == "begin" else 3}
            flag = np.zeros(1, np.int32)
            launched(test_proxy_hazards.hand_over, signature, constexprs, 1, x, (y, [64, 64]), z, flag)
            if use == "tma":
                np.testing.assert_array_equal(x, y)
            else:
                np.testing.assert_allclose(z, x.astype(np.float32) @ x.astype(np.float32), atol=0.05, rtol=0.01)


CHECKS: tuple[Callable[[], None], ...] = (
    bulk_copies, device_descriptors, votes, small_things, warp_barrier, inserted_fences,
)  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_gpu_gives_what_the_interpreter_gives(check):
    import torch

    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("the kernels are for compute capability 9.0")
    check()


if __name__ == "__main__":
    for each in CHECKS:
        each()
        print(f"{each.__name__}: right in {LAUNCHES} launches", flush=True)
