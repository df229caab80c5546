"""Ownership of kernels: `@triton.jit` while the drop-in is installed."""

import importlib
import sys
import threading

import pytest

pytest.importorskip("triton")

import triton
from triton.runtime.jit import JITFunction

import tlx_xdsl.compat as compat
from tlx_xdsl.runtime.jit import triton_kernel
from tlx_xdsl.runtime.jit.triton_kernel import TritonKernel

pytestmark = pytest.mark.backend

KERNELS = "tests.unit.compat.drop_in_kernels"


@pytest.fixture(autouse=True)
def launches(monkeypatch: pytest.MonkeyPatch):
    """Install, and let launches only say who launched what."""
    made = []

    def launch(self, *args, grid, warmup, **kwargs):
        made.append((type(self), args))

    monkeypatch.setattr(JITFunction, "run", launch)
    monkeypatch.setattr(triton_kernel, "_launch", launch)
    with compat.installed():
        yield made


@pytest.fixture
def kernels():
    """The functions of the file, in a state of its own for each test."""
    sys.modules.pop(KERNELS, None)
    yield importlib.import_module(KERNELS)
    sys.modules.pop(KERNELS, None)


@pytest.mark.parametrize(
    "name",
    [
        "direct", "by_full_name", "by_imported_name", "by_constant", "by_tuple", "by_default", "by_annotation",
        "by_lambda", "staged",
    ],
)  # fmt: skip
def test_a_kernel_that_names_tlx_is_ours_at_once(kernels, name: str):
    assert type(triton.jit(getattr(kernels, name))) is TritonKernel


def test_a_closure_over_tlx_is_ours(kernels):
    assert type(triton.jit(kernels.in_a_closure(kernels.tlx))) is TritonKernel


@pytest.mark.parametrize("name", ["add", "recursive", "shadowed", "mentions_in_a_string", "mentions_an_enum"])
def test_a_kernel_without_tlx_is_stock_s_own(kernels, launches, name: str):
    kernels.twice = triton.jit(kernels.twice)
    kernel = triton.jit(getattr(kernels, name))
    assert type(kernel) is JITFunction
    kernel[(1,)](1)
    assert launches == [(JITFunction, (1,))]
    # Nothing of ours stands in the way of the next launch, nor is seen.
    assert vars(kernel).keys() == vars(JITFunction(kernel.fn)).keys()


@pytest.mark.parametrize("name", ["through_helper", "through_two_helpers"])
def test_what_is_defined_later_counts_at_the_first_launch(kernels, launches, name: str):
    kernel = kernels.through_helper = triton.jit(kernels.through_helper)
    if name != "through_helper":
        kernel = triton.jit(kernels.through_two_helpers)
    assert type(kernel) is JITFunction
    kernels.staged = triton.jit(kernels.staged)
    kernel[(1,)](1)
    assert launches == [(TritonKernel, (1,))]
    assert type(kernel) is TritonKernel


def test_what_is_defined_before_counts_at_once(kernels):
    kernels.staged = triton.jit(kernels.staged)
    assert type(triton.jit(kernels.through_helper)) is TritonKernel


def test_a_method_of_an_aggregate_counts(kernels):
    kernels.staged = triton.jit(kernels.staged)
    for name in ("__init__", "load"):
        setattr(kernels.Stage, name, triton.jit(getattr(kernels.Stage, name)))
    kernels.Stage.__annotations__ = {"x_ptr": kernels.tl.tensor}
    kernels.Stage.__triton_aggregate__ = True
    assert type(triton.jit(kernels.through_method)) is TritonKernel


def test_a_helper_serves_both(kernels, launches):
    helper = kernels.twice = triton.jit(kernels.twice)
    kernels.staged = triton.jit(kernels.staged)
    plain, ours = triton.jit(kernels.add), triton.jit(kernels.through_helper)
    for kernel in (plain, ours):
        kernel[(1,)]()
    assert [who for who, _ in launches] == [JITFunction, TritonKernel]
    assert type(helper) is JITFunction
    assert "arith.mulf" in ours.compile_text({"x_ptr": "*fp32"}, stage="ttir")


@pytest.mark.parametrize("name", ["applies", "hands_on"])
def test_a_function_that_a_kernel_is_given_counts(kernels, launches, name: str):
    kernels.applied = triton.jit(kernels.applied)
    kernels.staged, kernels.twice = triton.jit(kernels.staged), triton.jit(kernels.twice)
    kernel = triton.jit(getattr(kernels, name))
    for fn in (kernels.twice, kernels.twice, kernels.staged, kernels.twice):
        kernel[(1,)](1, FN=fn)
    assert [who for who, _ in launches] == [JITFunction, JITFunction, TritonKernel, TritonKernel]


def test_threads_may_launch_first_together(kernels, launches):
    kernel = triton.jit(kernels.through_helper)
    kernels.staged = triton.jit(kernels.staged)
    threads = [threading.Thread(target=lambda: kernel[(1,)](1)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert launches == [(TritonKernel, (1,))] * 8


def test_a_kernel_that_is_half_ours_is_never_launched(kernels, launches, monkeypatch: pytest.MonkeyPatch):
    """A thread that comes while a kernel becomes ours waits for that."""
    kernel = triton.jit(kernels.through_helper)
    kernels.staged = triton.jit(kernels.staged)
    others: list[threading.Thread] = []
    launched_early: list[bool] = []
    initialise = TritonKernel.__init__

    def slowly(self, *args, **options):
        if self is kernel:
            others.append(threading.Thread(target=lambda: kernel[(1,)](2)))
            others[0].start()
            others[0].join(0.2)
            launched_early.append(bool(launches))
        initialise(self, *args, **options)

    monkeypatch.setattr(TritonKernel, "__init__", slowly)
    kernel[(1,)](1)
    others[0].join()
    assert launched_early == [False]
    assert {args for _, args in launches} == {(1,), (2,)}
    assert {kind for kind, _ in launches} == {TritonKernel}


def test_tuners_see_the_kernel_that_it_becomes(kernels, launches):
    kernel = triton.jit(kernels.through_helper)
    tuned = triton.autotune([triton.Config({}, 8, ctas_per_cga=(2, 1, 1))], key=[])(kernel)
    kernels.staged = triton.jit(kernels.staged)
    tuned[(1,)](1)
    assert launches == [(TritonKernel, (1,))]
    assert tuned.fn is kernel
    assert tuned.best_config.all_kwargs()["ctas_per_cga"] == (2, 1, 1)
    assert tuned.best_config.num_warps == 8


def test_hooks_and_options_stay(kernels, launches):
    options = {"do_not_specialize": ["x_ptr"], "noinline": True, "repr": lambda _: "renamed", "debug": True}
    made = [triton.jit(**options)(fn) for fn in (kernels.direct, kernels.through_helper)]
    kernels.staged = triton.jit(kernels.staged)
    for kernel in made:
        hook = lambda *args: None  # noqa: E731
        kernel.add_pre_run_hook(hook)
        kernel[(1,)](1)
        assert type(kernel) is TritonKernel
        assert kernel.pre_run_hooks == [hook]
        assert kernel.do_not_specialize == ["x_ptr"]
        assert kernel.repr(None) == "renamed"
        assert (kernel.noinline, kernel.debug, kernel.source.noinline) == (True, True, True)


def test_without_a_source_stock_says_so():
    names: dict[str, object] = {"triton": triton}
    exec("def kernel(x): pass", names)
    with pytest.raises(ValueError, match="should be defined in a Python file"):
        triton.jit(names["kernel"])


def test_after_uninstalling_stock_s_decorator_is_back(kernels, launches):
    during = triton.jit(kernels.through_helper)
    compat.uninstall()
    assert "run" not in vars(triton.jit(kernels.add))
    # What was decorated before still finds its compiler.
    kernels.staged = TritonKernel(kernels.staged)
    during[(1,)](1)
    assert launches == [(TritonKernel, (1,))]
