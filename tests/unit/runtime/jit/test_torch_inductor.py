"""`torch.compile` on the CPU through `tlx_xdsl.torch.enable_inductor`, each function against eager torch."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("llvmlite")
pytest.importorskip("triton", reason="Triton is not installed")

import tlx_xdsl.torch
from tlx_xdsl.torch import inductor, inductor_kernels

pytestmark = pytest.mark.backend

torch: Any = import_module("torch")


@pytest.fixture(autouse=True)
def enabled(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path / "cache"))
    torch.compiler.reset()
    torch.manual_seed(0)
    with torch._inductor.config.patch(compile_threads=1), tlx_xdsl.torch.inductor_enabled():
        yield
    torch.compiler.reset()


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The kernels that are loaded, each of which has to be ours."""
    made: list[Any] = []

    def load(name: str, source: str) -> Any:
        made.append(inductor_load(name, source))
        return made[-1]

    inductor_load = inductor_kernels.load_kernel
    monkeypatch.setattr(inductor_kernels, "load_kernel", load)
    return made


def test_forward_and_backward_run_by_our_kernels(kernels: list[Any]):
    def loss(x: Any, w: Any) -> Any:
        return torch.nn.functional.gelu(x @ w).softmax(-1).square().sum()

    x, w = torch.randn(5, 7, requires_grad=True), torch.randn(7, 33, requires_grad=True)
    wanted = torch.autograd.grad(loss(x, w), (x, w))
    with warnings.catch_warnings():
        warnings.simplefilter("error", tlx_xdsl.torch.Fallback)
        got = torch.autograd.grad(torch.compile(loss, fullgraph=True)(x, w), (x, w))
    torch.testing.assert_close(got, wanted)
    assert len(kernels) >= 2


def test_scan_sort_scatter_and_lgamma_of_any_size(kernels: list[Any]):
    def several(x: Any, at: Any) -> Any:
        return x.cumsum(1), x.sort(1).values, torch.zeros(9).index_put((at,), x[0], accumulate=True), x.lgamma()

    compiled = torch.compile(several, dynamic=True, fullgraph=True)
    for length in (13, 30):
        x, at = torch.randn(3, length), torch.arange(length) % 9
        torch.testing.assert_close(compiled(x, at), several(x, at))
    assert kernels


def test_dropout_draws_for_both_directions():
    x = torch.ones(40, 50, requires_grad=True)
    result = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.3))(x)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert torch.equal(gradient, result.detach())
    assert 0.6 < (result != 0).float().mean() < 0.8


def test_configurations_are_timed_on_copies(kernels: list[Any]):
    """A kernel that adds to its argument is right after its configurations were tried."""

    def add(x: Any, y: Any) -> Any:
        return x.add_(y.t())

    x, y = torch.randn(60, 70), torch.randn(70, 60)
    wanted = x + y.t()
    torch.testing.assert_close(torch.compile(add)(x, y), wanted)
    (kernel,) = kernels
    assert len(kernel.described.configs) > 1
    assert kernel.config in kernel.described.configs


def test_an_index_out_of_bounds_is_an_error():
    table = torch.randn(5)
    compiled = torch.compile(lambda at: table[at] * 2)
    with pytest.raises(RuntimeError, match="index out of bounds"):
        compiled(torch.tensor([1, 7]))


def test_a_graph_that_is_refused_goes_to_the_other_backend_with_the_reason(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: Any) -> None:
        raise tlx_xdsl.CompilationError("no such kernel")

    monkeypatch.setattr(inductor_kernels, "load_kernel", refuse)
    x = torch.randn(9)
    with pytest.warns(tlx_xdsl.torch.Fallback, match=r"C\+\+ backend: .*no such kernel"):
        got = torch.compile(lambda x: x.sin() + 1)(x)
    torch.testing.assert_close(got, x.sin() + 1)


def test_the_backend_has_a_name_of_its_own(kernels: list[Any]):
    """It takes inductor's options, and nothing need be enabled."""
    tlx_xdsl.torch.disable_inductor()
    x = torch.randn(9)
    options = {"max_fusion_size": 8}
    got = torch.compile(lambda x: x.cos() * 2, backend=inductor.backend, options=options)(x)
    torch.testing.assert_close(got, x.cos() * 2)
    assert len(kernels) == 1


def test_what_was_replaced_is_taken_back():
    place = torch._inductor.compile_fx
    ours = place.compile_fx
    tlx_xdsl.torch.enable_inductor()
    assert place.compile_fx is ours
    tlx_xdsl.torch.disable_inductor()
    tlx_xdsl.torch.disable_inductor()
    assert place.compile_fx is not ours
    assert torch._inductor.config.cpu_backend == "cpp"
    with tlx_xdsl.torch.inductor_enabled():
        assert place.compile_fx is not ours


def test_a_torch_without_the_switch_is_refused(monkeypatch: pytest.MonkeyPatch):
    annotations = torch._inductor.config.__annotations__
    monkeypatch.setitem(annotations, "cpu_backend", "Literal['cpp', 'halide']")
    with pytest.raises(ValueError, match=r"torch .* generates no Triton for CPUs"):
        tlx_xdsl.torch.enable_inductor()
