"""Functions of several ranks as operators of torch (`library`): sums, gathering, and the products with them.

The engine is a text in a graph: its name, which is that of torch's process group. Gradients are of the losses' sum
over all ranks, by the other function of each pair: `all_gather_gemm` and `gemm_reduce_scatter`, `all_gather` and
`reduce_scatter`. `all_reduce` and `gemm_all_reduce` have none: whether each rank does what follows, or all do it once,
is not to be seen here.
"""

# torch is no dependency: what a short function has of its tensors is of unknown type to a checker.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from ..calls.operands import torch_module
from ..comm.config import ProductConfig
from . import MADE, Operator, Values, operator
from .gemm import product

_KNOWN: WeakValueDictionary[str, Any] = WeakValueDictionary()


def name_of(ranks: Any) -> str:
    """Return the text that stands for an engine in a graph. Raises TypeError for one without a name."""
    name = getattr(ranks, "name", None)
    if name is None:
        raise TypeError(f"argument 'ranks': expected an engine of processes, such as TorchRanks, got {ranks!r}")
    _KNOWN[name] = ranks
    return str(name)


def ranks_named(name: str) -> Any:
    """Return the engine of a name. Raises RuntimeError where this process has not made, or has not kept, one."""
    found = _KNOWN.get(name)
    if found is None:
        raise RuntimeError(f"argument 'ranks': expected an engine that this process has called with, got '{name}'")
    return found


_RANKS = {"ranks": (name_of, ranks_named)}


def _rows(name: str, x: Any, ranks: str) -> int:
    world = ranks_named(ranks).world_size
    torch_module()._check(x.shape[0] % world == 0, lambda: f"{name}: expected a multiple of {world} rows")
    return x.shape[0] // world


def _gathered(x: Any, ranks: str) -> int:
    return x.shape[0] * ranks_named(ranks).world_size


# --- sums and gathering -----------------------------------------------------------------------------------------------


def _keep_ranks(ctx: Any, inputs: Values, output: Any) -> None:
    ctx.ranks = inputs[1]


ALL_REDUCE = operator(
    "all_reduce",
    "Tensor x, str ranks, str algorithm",
    lambda x, ranks, algorithm: x.new_empty(x.shape),
    codecs={**_RANKS, "algorithm": (lambda asked: asked or "", lambda text: text or None)},
)

REDUCE_SCATTER = operator(
    "reduce_scatter",
    "Tensor x, str ranks",
    lambda x, ranks: x.new_empty((_rows("reduce_scatter", x, ranks), *x.shape[1:])),
    codecs=_RANKS,
    autograd=(_keep_ranks, lambda ctx, grad: (MADE["all_gather"](grad.contiguous(), ctx.ranks), None)),
)

ALL_GATHER = operator(
    "all_gather",
    "Tensor x, str ranks",
    lambda x, ranks: x.new_empty((_gathered(x, ranks), *x.shape[1:])),
    codecs=_RANKS,
    autograd=(_keep_ranks, lambda ctx, grad: (MADE["reduce_scatter"](grad.contiguous(), ctx.ranks), None)),
)


# --- products ---------------------------------------------------------------------------------------------------------


def _keep_factors(ctx: Any, inputs: Values, output: Any) -> None:
    a, b, ctx.ranks, _ = inputs
    ctx.save_for_backward(a, b)


def _backward_of_gather(ctx: Any, grad: Any) -> Values:
    """C = gather(A) B: dA is what the ranks have of dC B^T, summed and scattered; dB = gather(A)^T dC."""
    a, b = ctx.saved_tensors
    grad = grad.to(a.dtype).contiguous()
    of_a = MADE["gemm_reduce_scatter"](grad, b.t(), ctx.ranks, "") if ctx.needs_input_grad[0] else None
    of_b = product(MADE["all_gather"](a, ctx.ranks).t(), grad) if ctx.needs_input_grad[1] else None
    return of_a, of_b, None, None


def _backward_of_scatter(ctx: Any, grad: Any) -> Values:
    """C = scatter(sum of A B): dA = gather(dC) B^T, dB = A^T gather(dC)."""
    a, b = ctx.saved_tensors
    grad = grad.to(a.dtype).contiguous()
    gathered = of_a = of_b = None
    if ctx.needs_input_grad[1] or grad.shape[0] % ProductConfig.block_m:
        gathered = MADE["all_gather"](grad, ctx.ranks)
        of_b = product(a.t(), gathered) if ctx.needs_input_grad[1] else None
    if ctx.needs_input_grad[0]:
        of_a = MADE["all_gather_gemm"](grad, b.t(), ctx.ranks, "") if gathered is None else product(gathered, b.t())
    return of_a, of_b, None, None


def _product_of_ranks(name: str, rows: Callable[[Any, str], int], backward: Any = None) -> Operator:
    """A product with so many rows of the first factor and of an engine; `backward` is that of `torch.library`."""
    return operator(
        name,
        "Tensor a, Tensor b, str ranks, str config",
        lambda a, b, ranks, config: a.new_empty((rows(a, ranks), b.shape[1])),
        configs=(ProductConfig,),
        codecs=_RANKS,
        autograd=None if backward is None else (_keep_factors, backward),
    )


ALL_GATHER_GEMM = _product_of_ranks("all_gather_gemm", _gathered, _backward_of_gather)
GEMM_REDUCE_SCATTER = _product_of_ranks(
    "gemm_reduce_scatter", partial(_rows, "gemm_reduce_scatter"), _backward_of_scatter
)
GEMM_ALL_REDUCE = _product_of_ranks("gemm_all_reduce", lambda a, ranks: a.shape[0])
