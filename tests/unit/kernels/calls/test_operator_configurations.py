"""Operators of torch take each configuration that their function takes, as a text on the way; torch need not be there.

The classes are those of the functions' annotations, so that a new one is tested as it comes.
"""

from dataclasses import fields
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest

from tests.unit.kernels.stand_in_torch import Tensor
from tlx_xdsl.kernels import operators
from tlx_xdsl.kernels.attention.backward.call import attention_backward
from tlx_xdsl.kernels.attention.forward import attention_forward, attention_fp8_launch
from tlx_xdsl.kernels.attention.options import Options
from tlx_xdsl.kernels.attention.varlen import attention_varlen
from tlx_xdsl.kernels.comm.products import all_gather_gemm, gemm_reduce_scatter
from tlx_xdsl.kernels.gemm.config import TINY
from tlx_xdsl.kernels.gemm.dense import gemm
from tlx_xdsl.kernels.gemm.grouped.call import grouped_gemm
from tlx_xdsl.kernels.gemm.grouped.scaled import scaled_grouped_gemm
from tlx_xdsl.kernels.gemm.scaled.call import scaled_gemm
from tlx_xdsl.kernels.gemm.tiles import GemmConfig
from tlx_xdsl.kernels.operators import attention, comm, gemm as products


class Engine:
    """An engine with a name, by which a graph finds it."""

    name = "an engine of a test"


ENGINE = Engine()

# The function whose configurations these are, its operator, how many tensors, and the options before the configuration.
OPERATORS = {
    "attention_forward": (attention_forward, attention.attention(lambda *_: ()), 5, (True, None)),
    "attention_forward_options": (attention_forward, attention.ATTENTION_OPTIONS, 6, (Options(), None)),
    "attention_forward_fp8": (attention_fp8_launch, attention.ATTENTION_FP8, 8, (True, None, "bf16")),
    "attention_varlen": (attention_varlen, attention.ATTENTION_VARLEN, 8, (Options(), None)),
    "attention_backward": (attention_backward, attention.ATTENTION_BACKWARD, 10, (True, None, False)),
    "gemm": (gemm, products.GEMM, 4, (0, None, None)),
    "scaled_gemm": (scaled_gemm, products.SCALED_GEMM, 5, ("bf16", False)),
    "grouped_gemm": (grouped_gemm, products.GROUPED_GEMM, 4, ()),
    "scaled_grouped_gemm": (scaled_grouped_gemm, products.SCALED_GROUPED_GEMM, 6, ("bf16",)),
    "all_gather_gemm": (all_gather_gemm, comm.ALL_GATHER_GEMM, 3, (ENGINE,)),
    "gemm_reduce_scatter": (gemm_reduce_scatter, comm.GEMM_REDUCE_SCATTER, 3, (ENGINE,)),
}


def configurations(function: Any) -> list[Any]:
    """Examples of each class that a function takes, with values that no default has."""
    classes = set(get_args(get_type_hints(function)["config"])) - {type(None)}
    assert classes
    return [example(each) for each in sorted(classes, key=lambda each: each.__name__)]


def example(kind: type) -> Any:
    if kind is GemmConfig:
        return TINY
    hints = get_type_hints(kind)
    return kind(**{each.name: value_of(hints[each.name], at) for at, each in enumerate(fields(kind))})


def value_of(kind: Any, at: int) -> Any:
    if kind is GemmConfig:
        return TINY
    if kind is bool:
        return True
    return 1000 + at if kind is int or int in get_args(kind) else f"text {at}"


CASES = [
    pytest.param(name, config, id=f"{name}-{type(config).__name__}")
    for name, (function, *_) in OPERATORS.items()
    for config in configurations(function)
]


@pytest.fixture
def made(monkeypatch):
    """The functions that operators are made of, by name: torch would call them with what it was given."""
    found = {}

    def op(name: str, **_: Any) -> Any:
        def make(fn: Any) -> Any:
            found[name.removeprefix("tlx_xdsl::")] = fn
            return SimpleNamespace(register_autograd=lambda *_, **__: None)

        return make

    monkeypatch.setattr(operators, "op", op)
    monkeypatch.setattr(operators, "_keep", lambda name: None)
    monkeypatch.setattr(operators, "MADE", found)
    for module in (attention, products):
        monkeypatch.setattr(module, "torch_type", str)
    return found


@pytest.mark.parametrize(("name", "config"), CASES)
def test_a_configuration_goes_through_the_operator(name, config, made):
    _, operator, count, options = OPERATORS[name]
    ran = []

    def run(tensors: Any, settings: Any) -> tuple[str, ...]:
        ran.append(settings)
        return ("a result",) * 3

    operator.define(run)
    assert name in made
    for given in (config, None):
        operator.call((Tensor(), *(None,) * (count - 1)), (*options, given))
        assert ran.pop()[-1] == given
