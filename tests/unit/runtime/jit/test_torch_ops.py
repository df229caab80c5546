"""`tlx_xdsl.torch.op`: on the CPU with torch where it is installed, and with a stand-in for what needs little of it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.torch
from tlx_xdsl.runtime import jit as jit_module
from tlx_xdsl.runtime.launch.launch_graph import refuse_while_capturing

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@tlx_xdsl.jit
def double_kernel(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) * 2)


def double(x):
    y = np.zeros_like(x)
    double_kernel.interpret(1, x, y, BLOCK=16)
    return y


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch):
    """torch with nothing but the function that makes operators, which writes down what it is given."""
    made = types.SimpleNamespace(fake=None)

    def custom_op(name, fn, **options):
        made.name, made.fn, made.options = name, fn, options
        made.register_fake = lambda fake: setattr(made, "fake", fake)
        return made

    module = types.ModuleType("torch")
    module.library = types.SimpleNamespace(custom_op=custom_op)
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def test_an_operator_is_torch_s_own(torch):
    made = tlx_xdsl.torch.op("space::double", mutates_args=["x"], device_types="cuda")(double)
    assert (made.name, made.fn) == ("space::double", double)
    assert made.options == {"mutates_args": ["x"], "device_types": "cuda"}


def test_the_fake_is_the_function_without_its_launches(torch):
    made = tlx_xdsl.torch.op("space::double")(double)
    x = np.arange(16, dtype=np.float32)
    assert (made.fake(x) == 0).all()
    assert made.fake(x).shape == (16,)
    assert (made.fn(x) == 2 * x).all()


def test_a_fake_that_is_given_is_taken(torch):
    def fake(x):
        return x

    assert tlx_xdsl.torch.op("space::double", fake=fake)(double).fake is fake


def test_a_failing_fake_says_what_it_was(torch):
    def looks(x):
        raise KeyError(1)

    made = tlx_xdsl.torch.op("space::looks")(looks)
    with pytest.raises(KeyError) as caught:
        made.fake(None)
    (note,) = caught.value.__notes__
    assert note.startswith("'space::looks' was run on tensors without data")
    assert "fake=" in note


@pytest.mark.parametrize(("available", "capturing"), [(False, True), (True, False), (True, True)])
def test_loading_is_refused_during_a_capture(torch, available, capturing):
    torch.cuda = types.SimpleNamespace(is_available=lambda: available, is_current_stream_capturing=lambda: capturing)
    if available and capturing:
        with pytest.raises(RuntimeError, match="the kernel 'add' is launched for the first time"):
            refuse_while_capturing("add")
    else:
        refuse_while_capturing("add")


def test_without_torch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError):
        tlx_xdsl.torch.op("space::double")


# --- launches that do nothing ---------------------------------------------------------------------------------------


@pytest.mark.backend
def test_no_kernel_launches(monkeypatch: pytest.MonkeyPatch):
    import triton
    from triton.runtime.jit import JITFunction, KernelInterface

    from tlx_xdsl.runtime.jit import triton_kernel
    from tlx_xdsl.runtime.jit.triton_kernel import TritonKernel

    launched = []
    monkeypatch.setattr(JITFunction, "run", lambda self, *args, **_: launched.append(self))
    monkeypatch.setattr(triton_kernel, "_launch", lambda self, *args, **_: launched.append(self))
    fn = double_kernel.source.fn
    stock, ours = triton.jit(fn), tlx_xdsl.jit(fn)
    stock_tuned = triton.autotune([triton.Config({"BLOCK": 16})], key=[])(stock)
    tuned = tlx_xdsl.autotune([triton.Config({"BLOCK": size}) for size in (16, 32)], key=[])(ours)
    before = [dict(vars(cls)) for cls in (KernelInterface, TritonKernel)]
    with tlx_xdsl.torch.no_launches():
        for kernel in (stock, ours, stock_tuned, tuned):
            assert kernel[(1,)](1, 2, BLOCK=16) is None
        ours.bind((1,), 1, 2, BLOCK=16)()
        with tlx_xdsl.torch.no_launches():
            assert ours[(1,)](1, 2) is None
        assert ours[(1,)](1, 2) is None
        assert launched == []
        # Another thread is not concerned.
        other = threading.Thread(target=lambda: (stock[(1,)](1, 2), ours[(1,)](1, 2)))
        other.start()
        other.join()
        assert launched == [stock, ours]
    assert [dict(vars(cls)) for cls in (KernelInterface, TritonKernel)] == before
    ours[(1,)](1, 2)
    assert launched == [stock, ours, ours]


def test_launches_are_back_after_a_failure():
    x, y = np.ones(16, np.float32), np.zeros(16, np.float32)

    def fails():
        with tlx_xdsl.torch.no_launches():
            double_kernel.interpret(1, x, y, BLOCK=16)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert (y == 0).all()
    double_kernel.interpret(1, x, y, BLOCK=16)
    assert (y == 2).all()
    assert isinstance(double_kernel, jit_module.Kernel)


# --- with torch, on the CPU -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def operators():
    """Operators whose kernels run in the interpreter, and torch."""
    torch = pytest.importorskip("torch")

    def interpreted(x):
        y = torch.empty_like(x)
        double_kernel.interpret(x.numel() // 16, x, y, BLOCK=16)
        return y

    interpreted.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    made = tlx_xdsl.torch.op("tlx_xdsl_cpu::double")(interpreted)
    made.register_autograd(lambda ctx, grad: grad * 2)

    def in_place(x, y):
        double_kernel.interpret(x.numel() // 16, x, y, BLOCK=16)

    in_place.__annotations__ = {"x": torch.Tensor, "y": torch.Tensor, "return": None}
    return made, tlx_xdsl.torch.op("tlx_xdsl_cpu::double_into", mutates_args=["y"])(in_place), torch


@needs_torch
def test_opcheck(operators):
    double, double_into, torch = operators
    for requires_grad in (False, True):
        torch.library.opcheck(double, (torch.randn(4, 16, requires_grad=requires_grad),))
    torch.library.opcheck(double_into, (torch.randn(32), torch.randn(32)))


@needs_torch
def test_in_a_compiled_graph(operators):
    double, _, torch = operators
    compiled = torch.compile(lambda x: double(x + 1).relu(), fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (16, 64):
        x = torch.randn(n)
        assert torch.equal(compiled(x), ((x + 1) * 2).relu())


@needs_torch
def test_gradients(operators):
    double, _, torch = operators
    x = torch.randn(16, requires_grad=True)
    double(x).sum().backward()
    assert torch.equal(x.grad, torch.full((16,), 2.0))


@needs_torch
def test_the_example_of_an_operator_of_ones_own():
    example = Path(__file__).parents[4] / "examples" / "torch_operator.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "opcheck: fine"
