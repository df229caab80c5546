"""FlashAttention 4 and QuACK, libraries in CuTe DSL, as rivals where they are installed.

Both come from pip: `flash-attn-4` (a pre-release), `quack-kernels`, and with them `nvidia-cutlass-dsl[cu13]`. Each
kernel is compiled at its first call, some 10 s for one of attention. Tensors of attention are (batch, length, heads,
head dimension) there: they are copied before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Launch = Callable[[], Any]
Makers = dict[str, Callable[[], Launch]]
"""What prepares a rival's launches, by its name."""

ATTENTION, ROWS = "FlashAttention 4", "QuACK"

LIBRARIES = ("flash-attn-4", "quack-kernels", "nvidia-cutlass-dsl")


def versions() -> dict[str, str]:
    """Versions of what is installed of these libraries."""
    installed = {each.metadata["Name"]: each.version for each in metadata.distributions()}
    return {each: installed[each] for each in LIBRARIES if each in installed}


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> Makers:
    """FlashAttention 4's forward pass, of tensors (batch, heads, length, head dimension)."""

    def make() -> Launch:
        from flash_attn.cute import interface

        given = _by_rows((q, k, v))
        return lambda: interface._flash_attn_fwd(*given, causal=causal)

    return {ATTENTION: make} if _serves("flash_attn.cute", q) else {}


def attention_backward(tensors: Sequence[torch.Tensor], lse: torch.Tensor, causal: bool) -> Makers:
    """FlashAttention 4's gradients in both modes; `tensors` are q, k, v, the result and its gradient."""

    def make(deterministic: bool) -> Launch:
        import torch
        from flash_attn.cute import interface

        q, k, v, out, dout = _by_rows(tensors)
        dq, dk, dv = (torch.empty_like(each) for each in (q, k, v))
        return lambda: interface._flash_attn_bwd(
            q, k, v, out, dout, lse, causal=causal, deterministic=deterministic, dq=dq, dk=dk, dv=dv
        )

    if not _serves("flash_attn.cute", lse):
        return {}
    return {ATTENTION: lambda: make(False), f"{ATTENTION}, deterministic": lambda: make(True)}


def rows(name: str, tensors: Sequence[torch.Tensor]) -> Makers:
    """QuACK's function of rows, where it has one of that name for these tensors."""

    def softmax() -> Launch:
        from quack.softmax import softmax_fwd

        return lambda: softmax_fwd(*tensors)

    def rms_norm() -> Launch:
        from quack.rmsnorm import rmsnorm_fwd

        return lambda: rmsnorm_fwd(*tensors)

    made = {"softmax": softmax, "rms_norm": rms_norm}.get(name)
    return {ROWS: made} if made and _serves("quack", tensors[0]) else {}


def _serves(package: str, tensor: torch.Tensor) -> bool:
    """Return whether a package is installed and the tensor on a GPU."""
    return tensor.is_cuda and find_spec(package.split(".")[0]) is not None and find_spec(package) is not None


def _by_rows(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [each.transpose(1, 2).contiguous() for each in tensors]
