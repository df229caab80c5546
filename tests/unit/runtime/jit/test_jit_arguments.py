"""Arguments of launches: kinds of arguments, names that mean two things, options, targets."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import types

import pytest

pytest.importorskip("triton")

import triton
import triton.language as stock_tl
from triton import knobs
from triton.compiler import CompiledKernel

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.runtime.jit import jit_kernels
from tests.unit.runtime.jit.jit_kernels import FakeTensor, Pair, add, copy_tile, rank_in_cluster
from tests.versions import RELEASE
from tlx_xdsl.runtime.jit import compiled_kernel
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target
from tlx_xdsl.runtime.jit.triton_compile import CompilationWarning
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver

pytestmark = [pytest.mark.backend, pytest.mark.quick]

MODE = tl.constexpr(3)
STOCK_MODE = stock_tl.constexpr(3)
ELEMENT = tl.float16
NOT_A_NUMBER = tl.constexpr(float("nan"))
value = 1.5
"""Has the name of a parameter below."""


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path_factory.mktemp("cache"))
        yield


@pytest.fixture(autouse=True)
def hopper():
    with assume_target("sm_90a"):
        yield


@tlx_xdsl.jit
def store_value(out, value):
    other = value
    tl.store(out, other)


@tlx_xdsl.jit
def store_globals(out):
    tl.store(out, tl.zeros((), ELEMENT) + MODE + STOCK_MODE + NOT_A_NUMBER)


@tlx_xdsl.jit
def store_constant(out, kind: tl.constexpr):
    if kind == "1":
        tl.store(out, 1.0)
    else:
        tl.store(out, 2.0)


@tlx_xdsl.jit
def plus_one(x):
    return x + 1.0


@tlx_xdsl.jit
def apply(out, function: tl.constexpr):
    tl.store(out, function(1.0))


@tlx_xdsl.jit
def copy_pair(pair):
    tile = tlx.local_alloc((64, 64), tlx.dtype_of(pair.first), 1)
    full = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(full[0], 64 * 64 * 2)
    tlx.async_descriptor_load(pair.first, tile[0], [0, 0], full[0])
    tlx.barrier_wait(full[0], 0)
    tlx.async_descriptor_store(pair.second[0], tile[0], [0, 0])
    tlx.async_descriptor_store_wait(0)


def fresh(kernel):
    """The same kernel with nothing compiled yet."""
    return tlx_xdsl.jit(kernel.fn)


def test_booleans_are_arguments():
    assert "%value: i1" in store_value.warmup(FakeTensor(4), True, grid=(1,)).asm["ttir"]


def test_a_constant_of_ours_is_one_of_tritons():
    kernel = store_value.warmup(FakeTensor(4), tl.constexpr(5), grid=(1,))
    assert kernel.src.signature == {"out": "*fp16", "value": "constexpr"}


def test_descriptors_of_ours_within_tuples():
    tile = tlx_xdsl.TensorDescriptor.from_tensor(FakeTensor(128, 64), [64, 64])
    kernel = copy_pair.warmup(Pair(tile, (tile,)), grid=(1,))
    spelled = "tensordesc<fp16[64, 64]>"
    assert kernel.src.signature == {"pair": Pair(spelled, (spelled,))}
    assert type(kernel.src.signature["pair"]) is Pair


def test_constants_that_look_alike_are_distinguished():
    one, text = (store_constant.warmup(FakeTensor(4), kind, grid=(1,)) for kind in (1, "1"))
    assert one.hash != text.hash
    assert "dense<1" not in one.asm["ttir"]


def test_a_function_within_a_tuple_counts_by_its_text(monkeypatch):
    @tlx_xdsl.jit
    def first(out, functions: tl.constexpr):
        tl.store(out, functions[0](1.0))

    before = first.warmup(FakeTensor(4), (plus_one,), grid=(1,))
    again = fresh(first).warmup(FakeTensor(4), (fresh(plus_one),), grid=(1,))
    assert before.hash == again.hash
    monkeypatch.setitem(vars(plus_one.source), "text", "def plus_one(x):\n    return x + 2.0\n")
    assert fresh(first).warmup(FakeTensor(4), (plus_one,), grid=(1,)).hash != before.hash


def test_a_kernel_gets_the_name_that_its_decorator_makes():
    kernels = [tlx_xdsl.jit(repr=lambda asked, mark=mark: f"{mark}_{asked.constants['kind']}") for mark in ("a", "b")]
    names = [decorate(store_constant.fn).warmup(FakeTensor(4), 2, grid=(1,)).name for decorate in kernels]
    assert names == ["a_2", "b_2"]


# --- globals ----------------------------------------------------------------------------------------------------


def test_a_global_with_the_name_of_a_parameter_is_another_thing(monkeypatch):
    kernel = fresh(store_value)
    first = kernel.warmup(FakeTensor(4), 2.0, grid=(1,))
    monkeypatch.setitem(globals(), "value", 2.5)
    monkeypatch.setitem(globals(), "other", 2.5)
    assert kernel.warmup(FakeTensor(4), 2.0, grid=(1,)) is first
    assert fresh(store_value).cache_key == kernel.cache_key


@pytest.mark.parametrize(
    ("name", "other"), [("MODE", tl.constexpr(4)), ("STOCK_MODE", stock_tl.constexpr(4)), ("ELEMENT", tl.float32)]
)
def test_a_changed_global_that_is_no_plain_number_is_reported(monkeypatch, name, other):
    kernel = fresh(store_globals)
    first = kernel.warmup(FakeTensor(4), grid=(1,))
    # Although one of the globals is NaN, which differs from itself.
    assert kernel.warmup(FakeTensor(4), grid=(1,)) is first
    monkeypatch.setitem(globals(), name, other)
    with pytest.raises(RuntimeError, match=f"Global variable {name} has changed"):
        kernel.warmup(FakeTensor(4), grid=(1,))


class Sizes:
    ROWS = 64


@tlx_xdsl.jit
def store_attributes(out):
    tl.store(out, Sizes.ROWS + jit_kernels.OFFSET)


@pytest.mark.parametrize(("holder", "name"), [(Sizes, "ROWS"), (jit_kernels, "OFFSET")])
def test_a_changed_attribute_of_a_class_or_a_module_is_reported(monkeypatch, holder, name):
    kernel = fresh(store_attributes)
    kernel.warmup(FakeTensor(4), grid=(1,))
    monkeypatch.setattr(holder, name, 32)
    with pytest.raises(RuntimeError, match=f"Global variable {name} has changed"):
        kernel.warmup(FakeTensor(4), grid=(1,))


# --- options and targets ----------------------------------------------------------------------------------------


def test_no_software_pipeline_is_an_option():
    assert rank_in_cluster.warmup(FakeTensor(4), grid=(1,), num_stages=0).metadata.num_stages == 0


@pytest.mark.parametrize(
    ("option", "found"), [("arch", "sm80"), ("ptx_version", 80), ("default_dot_input_precision", "ieee")]
)
def test_options_that_would_change_nothing_are_refused(option, found):
    with pytest.raises(KeyError, match=rf"kernel 'rank_in_cluster': tlx_xdsl does not .* option {option}='?{found}"):
        rank_in_cluster.warmup(FakeTensor(4), grid=(1,), **{option: found})


def test_numbers_of_options_are_whole():
    with pytest.raises(TypeError, match="kernel 'rank_in_cluster': maxnreg is a whole number, found '64'"):
        rank_in_cluster.warmup(FakeTensor(4), grid=(1,), maxnreg="64")


def test_settings_that_change_nothing_are_reported():
    with knobs.compilation.scope():
        knobs.compilation.override = True
        with pytest.warns(CompilationWarning, match="tlx_xdsl does not look at TRITON_KERNEL_OVERRIDE"):
            fresh(rank_in_cluster).warmup(FakeTensor(4), grid=(1,))


def test_each_target_has_its_own_binaries():
    def architecture():
        return rank_in_cluster.warmup(FakeTensor(4), grid=(1,)).metadata.target.arch

    with assume_target("sm_100a"):
        assert architecture() == 100
    assert architecture() == 90


def test_without_a_gpu_there_are_other_ways(monkeypatch):
    monkeypatch.setattr(sys.modules["triton.runtime.driver"], "backends", {})
    monkeypatch.setattr(triton.runtime.driver, "_default", None)
    monkeypatch.setattr(triton.runtime.driver, "_active", None)
    tensors = [FakeTensor(1024) for _ in range(3)]
    for launch in (add[(1,)], functools.partial(add.bind, (1,))):
        with pytest.raises(RuntimeError, match=r"'add' can't be launched: Triton finds no GPU\. .*interpret"):
            launch(*tensors, 1024, BLOCK=256)
        with pytest.raises(TypeError, match=r"'y' must be an array, .*, found list"):
            launch(tensors[0], [1.0, 2.0], tensors[2], 1024, BLOCK=256)


@pytest.mark.parametrize("given", [5, "n", [1.5]])
def test_parameters_that_are_not_to_be_specialised_come_in_a_list(given):
    expected = "do_not_specialize: expected a list of names or positions of parameters, found "
    with pytest.raises(TypeError, match=re.escape(f"{expected}{given!r}")):
        tlx_xdsl.jit(add.fn, do_not_specialize=given)


def test_another_text_is_refused():
    with pytest.raises(NotImplementedError, match="'add' is compiled as it stands in its file"):
        add._unsafe_update_src("def add(): pass")


# --- what hooks receive, and preloading ------------------------------------------------------------------------


def specialization_of(kernel, *args, **named):
    """Return the data that a `jit_cache_hook` receives, which then says that there is no need to compile."""
    seen = []
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = lambda **what: not seen.append(what["compile"]["specialization_data"])
        assert fresh(kernel).warmup(*args, grid=(2,), **named) is None
    return seen[0]


def test_a_cluster_is_preloaded():
    data = specialization_of(rank_in_cluster, FakeTensor(64), ctas_per_cga=(2, 1, 1))
    kernel = fresh(rank_in_cluster)
    loaded = kernel.preload(data)
    assert loaded.metadata.cluster == [2, 1, 1]
    assert kernel.warmup(FakeTensor(64), grid=(2,), ctas_per_cga=(2, 1, 1)) is loaded
    # The next one has none again.
    assert kernel.preload(specialization_of(rank_in_cluster, FakeTensor(64))).metadata.cluster is None


@pytest.mark.skipif(RELEASE < (3, 7), reason="Triton 3.6 can't write down kernels among the arguments")
def test_a_kernel_among_the_arguments_is_preloaded():
    data = specialization_of(apply, FakeTensor(4), plus_one)
    assert [f"{plus_one.module}:plus_one"] == [each["jit_function"] for each in json.loads(data)["constant_vals"]]
    assert "arith.constant 2" in fresh(apply).preload(data).asm["ttir"]


def test_what_a_hook_keeps_from_compiling_can_not_be_bound():
    tile = tlx_xdsl.TensorDescriptor.from_tensor(FakeTensor(128, 64), [64, 64])
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = lambda **what: True
        with pytest.raises(RuntimeError, match="a jit_cache_hook kept 'copy_tile' from being compiled"):
            fresh(copy_tile).bind((1,), tile, tile, ROWS=64, COLUMNS=64)


@pytest.mark.skipif(not hasattr(CompiledKernel, "__del__"), reason="this Triton does not unload kernels")
def test_a_loaded_kernel_may_go_while_a_target_is_assumed(monkeypatch):
    unloaded = []
    real = types.SimpleNamespace(utils=types.SimpleNamespace(unload_module=unloaded.append))
    monkeypatch.setattr(triton.runtime.driver, "_active", real)
    with assume_target("sm_90a"):
        kernel = fresh(rank_in_cluster).warmup(FakeTensor(4), grid=(1,))
        kernel.module, kernel._module_pid = 7, os.getpid()
        kernel.__del__()
        kernel.module = None
    assert unloaded == [7]


# --- clusters ---------------------------------------------------------------------------------------------------


def test_ctas_share_tensors_or_have_their_own():
    with pytest.raises(
        ValueError, match=r"'rank_in_cluster': with num_ctas=2 .* ctas_per_cga=\(2, 1, 1\) .* choose one"
    ):
        rank_in_cluster.warmup(FakeTensor(64), grid=(4,), num_ctas=2, ctas_per_cga=(2, 1, 1))


def test_a_cluster_has_an_end():
    with pytest.raises(ValueError, match=r"ctas_per_cga: a cluster has at most 16 CTAs, got \(16, 2\)"):
        tlx_xdsl.Config({}, ctas_per_cga=(16, 2))


@pytest.mark.parametrize(("extent", "asked"), [(8, []), (16, [(14, 1)])])
def test_clusters_beyond_the_portable_size_are_asked_for(cuda, monkeypatch, extent, asked):
    cuda.library.cuFuncSetAttribute = lambda function, *pair: bool(asked_for.append(pair))
    monkeypatch.setattr(compiled_kernel, "default_driver", lambda: CudaDriver(cuda.library))
    asked_for = []
    pretender = triton.runtime.driver.active
    pretender.launcher_cls = lambda src, metadata: lambda *launch: None
    pretender.utils = types.SimpleNamespace(
        load_binary=lambda *binary: (None, 2, 32, 0, 1024),
        get_device_properties=lambda device: {"max_shared_mem": 227 * 1024},
    )
    fresh(rank_in_cluster)[(16,)](FakeTensor(64), ctas_per_cga=(extent, 1, 1))
    assert set(asked_for) == set(asked)
