"""A kernel of your own in a compiled program of torch's: y = x * sigmoid(x) * gate, with its gradients.

    python examples/torch_operator.py

`tlx_xdsl.torch.op` makes an operator of the function that launches a kernel. torch.compile keeps it in its graph as it
is, fake tensors say what comes out, and autograd gets a derivative, which is an operator of the same kind. That is how
the kernels of `tlx_xdsl.kernels` are torch's, too. With a GPU it runs there, else as machine code of the CPU.
"""

from __future__ import annotations

import torch

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.torch

BLOCK = 1024


@tlx_xdsl.jit
def gate_forward(x, gate, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, inside, other=0.0).to(tl.float32)
    sigmoid = 1.0 / (1.0 + tl.exp(-value))
    tl.store(y + at, value * sigmoid * tl.load(gate + at, inside, other=0.0).to(tl.float32), inside)


@tlx_xdsl.jit
def gate_backward(x, gate, dy, dx, dgate, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, inside, other=0.0).to(tl.float32)
    factor = tl.load(gate + at, inside, other=0.0).to(tl.float32)
    slope = tl.load(dy + at, inside, other=0.0).to(tl.float32)
    sigmoid = 1.0 / (1.0 + tl.exp(-value))
    tl.store(dx + at, slope * factor * sigmoid * (1.0 + value * (1.0 - sigmoid)), inside)
    tl.store(dgate + at, slope * value * sigmoid, inside)


TLX_COMPILE = {
    "gate_forward": {
        "signature": {"x": "*fp32:16", "gate": "*fp32:16", "y": "*fp32:16", "n": "i32"},
        "constexprs": {"BLOCK": BLOCK},
    },
    "gate_backward": {
        "signature": {name: "*fp32:16" for name in ("x", "gate", "dy", "dx", "dgate")} | {"n": "i32"},
        "constexprs": {"BLOCK": BLOCK},
    },
}


def programs(n: int) -> tuple[int]:
    """The grid for n elements."""
    return ((n + BLOCK - 1) // BLOCK,)


@tlx_xdsl.torch.op("tlx_examples::gate")
def gated(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    """x * sigmoid(x) * gate, for contiguous tensors of one shape."""
    y = torch.empty_like(x)
    gate_forward[programs(x.numel())](x, gate, y, x.numel(), BLOCK=BLOCK)
    return y


@tlx_xdsl.torch.op("tlx_examples::gate_backward")
def gated_backward(x: torch.Tensor, gate: torch.Tensor, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of x and of the gate."""
    dx, dgate = torch.empty_like(x), torch.empty_like(gate)
    dy = dy.contiguous()
    gate_backward[programs(x.numel())](x, gate, dy, dx, dgate, x.numel(), BLOCK=BLOCK)
    return dx, dgate


def _keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _differentiate(ctx, dy):
    return gated_backward(*ctx.saved_tensors, dy)


gated.register_autograd(_differentiate, setup_context=_keep)


def block(x, gate, weight):
    """Compute a block for torch.compile: torch fuses the rest, and finds the operator whole."""
    return torch.relu(gated(x * 2.0, gate)) @ weight


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    x, gate = (torch.randn(96, 64, device=device, requires_grad=True) for _ in range(2))
    weight = torch.randn(64, 8, device=device)
    # Where there is no C++ compiler, torch's own one for CPUs has nothing to work with: the graph alone then.
    compiled = torch.compile(block, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")
    for rows in (96, 33):
        found = compiled(x[:rows], gate[:rows], weight)
        inner = x[:rows] * 2.0
        wanted = torch.relu(inner * torch.sigmoid(inner) * gate[:rows]) @ weight
        gradients = torch.autograd.grad(found.sum(), (x, gate))
        expected = torch.autograd.grad(wanted.sum(), (x, gate))
        errors = [
            float((a - b).detach().abs().max()) for a, b in zip((found, *gradients), (wanted, *expected), strict=True)
        ]
        print(f"{rows} rows on {device}: largest errors {', '.join(f'{each:.1e}' for each in errors)}")
        assert max(errors) < 1e-4
    torch.library.opcheck(gated, (torch.randn(8, 4, device=device), torch.randn(8, 4, device=device)))
    print("opcheck: fine")


if __name__ == "__main__":
    main()
