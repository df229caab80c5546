"""A multilayer perceptron over several GPUs: each rank has columns of the first matrix and rows of the second.

    python examples/several_gpus/tensor_parallel_mlp.py                            (no GPU: two simulated ranks)
    torchrun --nproc-per-node 2 examples/several_gpus/tensor_parallel_mlp.py       (a process for each GPU, gradients)

Tokens are divided over the ranks. `all_gather_gemm` multiplies the tokens of all ranks by the rank's own columns while
they come; `gemm_reduce_scatter` multiplies by the rank's own rows, and each rank gets the sum for its own tokens.
"""

from __future__ import annotations

import os
import sys

import numpy as np

import tlx_xdsl
from tlx_xdsl.kernels import comm


def forward(x, w1, w2, ranks, relu):
    """The tokens of a rank through both layers: (tokens, width) -> (tokens, width)."""
    return comm.gemm_reduce_scatter(relu(comm.all_gather_gemm(x, w1, ranks)), w2, ranks)


def simulated(world=2, tokens=32, width=64, hidden=64):
    """Run on simulated ranks, and return the error beside float64."""
    import ml_dtypes

    rng = np.random.default_rng(0)

    def random(*shape):
        return [(rng.standard_normal(shape) / 8).astype(ml_dtypes.bfloat16) for _ in range(world)]

    x, w1, w2 = random(tokens, width), random(width, hidden // world), random(hidden // world, width)
    found = forward(x, w1, w2, tlx_xdsl.SimulatedRanks(world), lambda parts: [np.maximum(part, 0) for part in parts])
    wide = [np.concatenate(each, axis).astype(np.float64) for each, axis in ((x, 0), (w1, 1), (w2, 0))]
    exact = np.maximum(wide[0] @ wide[1], 0) @ wide[2]
    return float(np.linalg.norm(np.concatenate(found).astype(np.float64) - exact) / np.linalg.norm(exact))


def on_gpus(tokens=1024, width=4096, hidden=8192):
    """Run with gradients in the processes of torchrun, and return the largest error beside float64 of any rank."""
    import torch
    import torch.distributed as dist

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    ranks = tlx_xdsl.TorchRanks()
    world, rank = ranks.world_size, ranks.rank
    torch.manual_seed(rank)

    def random(*shape):
        return (torch.randn(shape, device=device) / 64).bfloat16().requires_grad_()

    x, w1, w2 = random(tokens, width), random(width, hidden // world), random(hidden // world, width)
    slope = torch.randn(tokens, width, device=device).bfloat16()
    out = forward(x, w1, w2, ranks, torch.relu)
    out.backward(slope)

    def whole(part, axis):
        parts = [torch.empty_like(part) for _ in range(world)]
        dist.all_gather(parts, part.detach().contiguous())
        return torch.cat(parts, axis).double().requires_grad_()

    wide = [whole(part, axis) for part, axis in ((x, 0), (w1, 1), (w2, 0))]
    exact = torch.relu(wide[0] @ wide[1]) @ wide[2]
    exact.backward(whole(slope, 0))
    pairs = [(out.detach(), exact.detach().chunk(world, 0)[rank])]
    pairs += [
        (part.grad, each.grad.chunk(world, axis)[rank])
        for part, each, axis in ((x, wide[0], 0), (w1, wide[1], 1), (w2, wide[2], 0))
    ]
    worst = torch.stack([(found.double() - each).norm() / each.norm() for found, each in pairs])
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    dist.destroy_process_group()
    if rank == 0:
        print("errors of the result and of the gradients of x, w1, w2:", ", ".join(f"{each:.4f}" for each in worst))
    return float(worst.max())


def main():
    """Run where there are GPUs, else simulated; the status is 1 where the result is wrong."""
    error = on_gpus() if "LOCAL_RANK" in os.environ else simulated()
    if os.environ.get("RANK", "0") == "0":
        print(f"largest relative error: {error:.4f}")
    return int(not error < 0.01)


if __name__ == "__main__":
    sys.exit(main())
