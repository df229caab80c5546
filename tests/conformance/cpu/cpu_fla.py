"""A slice of flash-linear-attention: the first function of each folder, forward and backward, against its `naive.py`.

The folders are the first twelve that `fla/ops/__init__.py` imports from and that have such a file.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from tests.conformance.cpu.cpu_entries import Load, Pairs, both, entry, learnt

OPS = "fla/ops/"
TOLERANCE = 2e-2
"""Products of float32 are made of parts of fewer bits (TF32), where a kernel does not say otherwise."""
LENGTH, HEADS, KEY, VALUE = 70, 2, 32, 32
"""More than one chunk of 64 positions."""


def _heads_first(reference: Any) -> Any:
    """A reference whose tensors have the heads before the positions."""

    def run(*given: torch.Tensor) -> Any:
        result = reference(*(each.transpose(1, 2) for each in given))
        return (result[0] if isinstance(result, tuple) else result).transpose(1, 2)

    return run


def _first(function: Any, **more: Any) -> Any:
    """The first result of a function."""

    def run(*given: torch.Tensor) -> Any:
        result = function(*given, **more)
        return result[0] if isinstance(result, tuple) else result

    return run


def _tensor(size: int, seed: int) -> torch.Tensor:
    return learnt(1, LENGTH, HEADS, size, seed=seed)


def _unit(size: int, seed: int) -> torch.Tensor:
    return functional.normalize(_tensor(size, seed).detach(), dim=-1).requires_grad_()


def _qkv() -> tuple[torch.Tensor, ...]:
    return _tensor(KEY, 0), _tensor(KEY, 1), _tensor(VALUE, 2)


def _decay(*size: int) -> torch.Tensor:
    return functional.logsigmoid(learnt(1, LENGTH, HEADS, *size, seed=3)).detach().requires_grad_()


def _beta() -> torch.Tensor:
    return learnt(1, LENGTH, HEADS, seed=4).detach().sigmoid().requires_grad_()


@entry("fla", OPS + "abc/chunk.py", call="chunk_abc", tolerance=TOLERANCE)
def chunk_abc(load: Load) -> Pairs:
    """`naive_recurrent_abc`."""
    yield from both(
        _first(load("abc").chunk_abc), _heads_first(load("abc.naive").naive_recurrent_abc), *_qkv(), _tensor(16, 5)
    )


@entry("fla", OPS + "attn/parallel.py", call="parallel_attn", tolerance=TOLERANCE)
def parallel_attn(load: Load) -> Pairs:
    """`naive_parallel_attn`."""
    yield from both(load("attn").parallel_attn, _first(load("attn.naive").naive_parallel_attn), *_qkv())


@entry("fla", OPS + "attnres/fused.py", call="fused_attnres", tolerance=TOLERANCE)
def fused_attnres(load: Load) -> Pairs:
    """`naive_attnres`."""
    torch.Tensor.is_cuda = property(lambda _: True)  # pyright: ignore  # it asks, and nothing else of it is CUDA's
    blocks = [learnt(1, 9, 100, seed=at) for at in range(3)]
    yield from both(
        lambda query, weight, *given: _first(load("attnres").fused_attnres)(query, list(given), weight),
        lambda query, weight, *given: _first(load("attnres.naive").naive_attnres)(query, list(given), weight),
        learnt(100, seed=4), learnt(100, seed=5), *blocks,
    )  # fmt: skip


@entry("fla", OPS + "based/fused_chunk.py", call="fused_chunk_based", tolerance=TOLERANCE)
def fused_chunk_based(load: Load) -> Pairs:
    """`naive_parallel_based`."""
    given = _tensor(16, 0), _tensor(16, 1), _tensor(VALUE, 2)
    naive = _heads_first(load("based.naive").naive_parallel_based)
    yield from both(load("based").fused_chunk_based, naive, *given)


@entry("fla", OPS + "comba/chunk.py", call="chunk_comba", tolerance=TOLERANCE)
def chunk_comba(load: Load) -> Pairs:
    """`naive_chunk_comba`."""
    yield from both(
        _first(load("comba").chunk_comba), _first(load("comba.naive").naive_chunk_comba), _unit(KEY, 0), _unit(KEY, 1),
        _tensor(VALUE, 2), _unit(KEY, 6), _decay(), _beta(),
    )  # fmt: skip


@entry("fla", OPS + "delta_rule/chunk.py", call="chunk_delta_rule", tolerance=5e-2)
def chunk_delta_rule(load: Load) -> Pairs:
    """`delta_rule_recurrence`, of bf16, which is all that it takes."""
    naive = _heads_first(load("delta_rule.naive").delta_rule_recurrence)
    given = _tensor(KEY, 0), _unit(KEY, 1), _tensor(VALUE, 2), _beta()
    yield from both(
        _first(load("delta_rule").chunk_delta_rule),
        naive,
        *(each.detach().bfloat16().requires_grad_() for each in given),
    )


@entry("fla", OPS + "forgetting_attn/parallel.py", call="parallel_forgetting_attn", tolerance=TOLERANCE)
def parallel_forgetting_attn(load: Load) -> Pairs:
    """`naive_forgetting_attn`."""
    yield from both(
        load("forgetting_attn").parallel_forgetting_attn, _first(load("forgetting_attn.naive").naive_forgetting_attn),
        *_qkv(), _decay(),
    )  # fmt: skip


@entry("fla", OPS + "gated_delta_rule/chunk.py", call="chunk_gated_delta_rule", tolerance=TOLERANCE)
def chunk_gated_delta_rule(load: Load) -> Pairs:
    """`naive_recurrent_gated_delta_rule`."""

    def naive(q: Any, k: Any, v: Any, g: Any, beta: Any) -> Any:
        return _first(load("gated_delta_rule.naive").naive_recurrent_gated_delta_rule)(q, k, v, beta, g)

    yield from both(
        _first(load("gated_delta_rule").chunk_gated_delta_rule), naive, _tensor(KEY, 0), _unit(KEY, 1),
        _tensor(VALUE, 2), _decay(), _beta(),
    )  # fmt: skip


@entry("fla", OPS + "gla/chunk.py", call="chunk_gla", tolerance=TOLERANCE)
def chunk_gla(load: Load) -> Pairs:
    """`naive_recurrent_gla`."""
    yield from both(_first(load("gla").chunk_gla), _first(load("gla.naive").naive_recurrent_gla), *_qkv(), _decay(KEY))


@entry("fla", OPS + "gsa/chunk.py", call="chunk_gsa", tolerance=TOLERANCE)
def chunk_gsa(load: Load) -> Pairs:
    """`naive_recurrent_gsa`."""
    yield from both(
        _first(load("gsa").chunk_gsa),
        _first(load("gsa.naive").naive_recurrent_gsa),
        *_qkv(),
        _tensor(16, 5),
        _decay(16),
    )


@entry("fla", OPS + "hgrn/fused_recurrent.py", call="fused_recurrent_hgrn", tolerance=TOLERANCE)
def fused_recurrent_hgrn(load: Load) -> Pairs:
    """`naive_recurrent_hgrn`."""
    decay = functional.logsigmoid(learnt(2, LENGTH, 100, seed=1)).detach().requires_grad_()
    yield from both(
        _first(load("hgrn").fused_recurrent_hgrn), _first(load("hgrn.naive").naive_recurrent_hgrn),
        learnt(2, LENGTH, 100), decay,
    )  # fmt: skip


@entry("fla", OPS + "kda/chunk.py", call="chunk_kda", tolerance=TOLERANCE)
def chunk_kda(load: Load) -> Pairs:
    """`naive_recurrent_kda`."""
    yield from both(
        _first(load("kda").chunk_kda), _first(load("kda.naive").naive_recurrent_kda), _unit(KEY, 0), _unit(KEY, 1),
        _tensor(VALUE, 2), _decay(KEY), _beta(),
    )  # fmt: skip
