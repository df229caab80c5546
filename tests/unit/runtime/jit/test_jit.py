"""`@tlx_xdsl.jit` on Triton's runtime, without a GPU: what is compiled, for which key, and what is refused."""

from __future__ import annotations

import pickle
import re

import pytest

pytest.importorskip("triton")

import triton
from triton import knobs
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor as StockTensorDescriptor

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.runtime.jit import jit_kernels
from tests.unit.runtime.jit.jit_kernels import FakeTensor, Pair, add, copy_tile, of_a_tuple, rank_in_cluster
from tlx_xdsl.runtime.host.kernel import CpuKernel
from tlx_xdsl.runtime.jit import without_launching
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target
from tlx_xdsl.runtime.kernel import Kernel

pytestmark = pytest.mark.backend


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    """A cache of our own, so that the first of these tests compiles and the others need not."""
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path_factory.mktemp("cache"))
        yield knobs.cache.dir


@pytest.fixture(autouse=True)
def hopper():
    with assume_target("sm_90a"):
        yield


def ints(pattern, text):
    return [int(number) for number in re.findall(pattern, text)]


def tensors(count, **options):
    return [FakeTensor(1024, **options) for _ in range(count)]


def test_a_kernel_is_one_of_ours_and_one_of_tritons():
    assert isinstance(add, Kernel)
    assert isinstance(add, JITFunction)
    assert add.arg_names == ["x", "y", "z", "n", "BLOCK"]
    assert add.__name__ == "add"


def test_warmup_compiles_to_a_binary_with_every_stage():
    kernel = add.warmup(*tensors(3), 1000, BLOCK=256, grid=(4,))
    assert list(kernel.asm) == ["ttir", "handoff", "ttgir", "llir", "ptx", "cubin"]
    assert kernel.asm["cubin"].startswith(b"\x7fELF")
    assert kernel.name == "add"
    assert kernel.metadata.registers > 0
    assert add.warmup(*tensors(3), 1000, BLOCK=256, grid=(4,)) is kernel


def test_stages_of_passes_are_made_when_they_are_asked_for():
    tiles = [tlx_xdsl.TensorDescriptor.from_tensor(FakeTensor(128, 64), [64, 64]) for _ in range(2)]
    kernel = copy_tile.warmup(*tiles, ROWS=64, COLUMNS=64, grid=(2,))
    before = kernel.asm["tlx-storage-alias-lowering"]
    assert "tensor<64x64xf16>" not in before
    assert kernel.asm["frontend"] == kernel.asm["ttir"]
    assert before != kernel.asm["convert-triton-to-tritongpu"]
    with pytest.raises(KeyError, match="no stage 'nothing': expected one of ttir, handoff"):
        kernel.asm["nothing"]


def test_arguments_are_specialised_on_divisibility_and_one():
    divisible = add.warmup(*tensors(3), 1024, BLOCK=256, grid=(4,)).asm["ttir"]
    odd = add.warmup(*tensors(2), FakeTensor(1024, address=4098), 1023, BLOCK=256, grid=(4,)).asm["ttir"]
    one = add.warmup(*tensors(3), 1, BLOCK=256, grid=(4,)).asm["ttir"]
    assert divisible.count("tt.divisibility = 16") == 4
    assert odd.count("tt.divisibility = 16") == 2
    assert "%n" not in one
    assert "%n" in odd


def test_an_argument_can_be_left_unspecialised():
    kernel = tlx_xdsl.jit(add.fn, do_not_specialize=["n"])
    assert kernel.warmup(*tensors(3), 1, BLOCK=256, grid=(4,)).asm["ttir"].count("tt.divisibility = 16") == 3


@pytest.mark.parametrize("cls", [tlx_xdsl.TensorDescriptor, StockTensorDescriptor])
def test_descriptors_of_either_kind(cls):
    source, target = (cls.from_tensor(FakeTensor(128, 64), [64, 64]) for _ in range(2))
    kernel = copy_tile.warmup(source, target=target, ROWS=64, COLUMNS=64, grid=(2,))
    assert [entry["block_size"] for entry in kernel.metadata.tensordesc_meta] == [[64, 64]] * 2
    assert "cp.async.bulk.tensor" in kernel.asm["ptx"]


def test_tuples_with_constants_within():
    out = FakeTensor(4)
    kernel = of_a_tuple.warmup(out, Pair(FakeTensor(4), 1), (2.5,), grid=(1,))
    assert kernel.src.signature == {"out": "*fp16", "pair": Pair("*fp16", "constexpr"), "rest": ("fp32",)}
    # The factor of one is no argument.
    assert re.findall(r"%([\w.]+): ", kernel.asm["ttir"]) == ["out", "pair", "rest"]


def test_launch_options():
    kernel = add.warmup(*tensors(3), 1024, BLOCK=512, grid=(2,), num_warps=8, maxnreg=32, enable_fp_fusion=False)
    assert ints(r"\.maxnreg (\d+)", kernel.asm["ptx"]) == [32]
    assert kernel.metadata.num_warps == kernel.metadata.kernel_num_warps == 8
    assert not kernel.metadata.enable_fp_fusion


def test_fusion_is_said_where_triton_would_warn_that_nothing_says_it(monkeypatch):
    def warn(message):
        raise AssertionError(message)

    # 3.9 alone warns, once in a process.
    monkeypatch.setattr(knobs, "warn_once", warn, raising=False)
    monkeypatch.delenv("TRITON_DEFAULT_FP_FUSION", raising=False)
    assert add.warmup(*tensors(3), 1024, BLOCK=128, grid=(2,)).metadata.enable_fp_fusion
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "0")
    assert not add.warmup(*tensors(3), 1024, BLOCK=128, num_warps=2, grid=(2,)).metadata.enable_fp_fusion


def test_a_cluster_is_an_option_of_the_launch_and_of_a_config():
    out = FakeTensor(64)
    alone = rank_in_cluster.warmup(out, grid=(8,))
    pair = rank_in_cluster.warmup(out, grid=(8,), ctas_per_cga=(2, 1, 1))
    assert pair is not alone
    assert (alone.metadata.cluster, pair.metadata.cluster) == (None, [2, 1, 1])
    assert ints(r"\.reqnctapercluster (\d+)", pair.asm["ptx"]) == [2]
    config = tlx_xdsl.Config({}, num_warps=4, ctas_per_cga=[2])
    assert rank_in_cluster.warmup(out, grid=(8,), **config.all_kwargs()).metadata.cluster == [2, 1, 1]


@pytest.mark.parametrize("cluster", [(0, 1, 1), (1, 1, 1, 1), "2", (True,), ()])
def test_a_cluster_of_another_form_is_refused(cluster):
    with pytest.raises(ValueError, match=r"ctas_per_cga: expected CTAs along x, y and z as in \(2, 1, 1\), got"):
        rank_in_cluster.warmup(FakeTensor(64), grid=(8,), ctas_per_cga=cluster)


def test_configs_differ_by_their_clusters_and_can_be_pickled():
    one, other = (tlx_xdsl.Config({"BLOCK": 64}, num_stages=2, ctas_per_cga=(2, extent, 1)) for extent in (1, 2))
    assert one != other
    assert hash(one) != hash(other)
    assert pickle.loads(pickle.dumps(other)) == other
    assert str(other).endswith("ctas_per_cga: (2, 2, 1)")
    assert tlx_xdsl.Config({"BLOCK": 64}) == triton.Config({"BLOCK": 64})


def test_unknown_options_are_refused():
    with pytest.raises(KeyError, match="num_wraps was specified but unrecognised"):
        add.warmup(*tensors(3), 1024, BLOCK=256, grid=(4,), num_wraps=4)
    with pytest.raises(KeyError, match="kernel 'add': tlx_xdsl does not have the launch option ptx_options='-O1'"):
        add.warmup(*tensors(3), 1024, BLOCK=256, grid=(4,), ptx_options="-O1")
    with pytest.raises(TypeError, match=r"tlx_xdsl\.jit has no option 'num_warps': expected one of version"):
        tlx_xdsl.jit(num_warps=4)


# --- errors -----------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def adds_a_pointer(x, y):
    tl.store(x, y + x)


def test_a_fault_is_one_of_ours_and_one_of_tritons():
    with pytest.raises(tlx_xdsl.CompilationError) as raised:
        adds_a_pointer.warmup(FakeTensor(4), FakeTensor(4), grid=(1,))
    error = raised.value
    assert isinstance(error, triton.CompilationError)
    assert error.location.filename == __file__
    assert "tl.store(x, y + x)" in str(error)
    assert "^" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def test_what_can_not_fit_is_out_of_resources():
    tiles = [tlx_xdsl.TensorDescriptor.from_tensor(FakeTensor(128, 64), [64, 64]) for _ in range(2)]
    with pytest.raises(tlx_xdsl.CompilationError, match="needs 524,288 B of shared memory") as raised:
        copy_tile.warmup(*tiles, ROWS=64, COLUMNS=64, BUFFERS=64, grid=(2,))
    error = raised.value
    assert isinstance(error, OutOfResources)
    assert (error.name, error.limit) == ("shared memory", 227 * 1024)
    assert error.required > error.limit
    assert "jit_kernels.py" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_changed_global_is_reported(monkeypatch):
    kernel = tlx_xdsl.jit(add.fn)
    kernel.warmup(*tensors(3), 1024, BLOCK=256, grid=(4,))
    monkeypatch.setattr(jit_kernels, "OFFSET", 4)
    with pytest.raises(RuntimeError, match="Global variable OFFSET has changed"):
        kernel.warmup(*tensors(3), 1024, BLOCK=256, grid=(4,))


def test_a_kernel_without_a_file_says_so_when_it_is_launched():
    names = {"tl": tl}
    exec("def kernel(x):\n    tl.store(x, 1.0)\n", names)
    kernel = tlx_xdsl.jit(names["kernel"])
    assert type(kernel) is CpuKernel
    for launch in (
        lambda: kernel[(1,)](FakeTensor(4)),
        lambda: kernel.warmup(FakeTensor(4), grid=(1,)),
        lambda: kernel.bind((1,)),
    ):
        with pytest.raises(tlx_xdsl.CompilationError, match="the source of 'kernel' is not available"):
            launch()


def test_kernels_that_are_only_read_need_no_triton():
    with without_launching():
        kernel = tlx_xdsl.jit(add.fn)
    assert type(kernel) is Kernel
    with pytest.raises(tlx_xdsl.CompilationError, match="was made to be read only"):
        kernel[(1,)]


# --- hooks ------------------------------------------------------------------------------------------------------


def test_tritons_hooks_are_called():
    seen = []
    kernel = tlx_xdsl.jit(add.fn)
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append("run"))
    with knobs.runtime.scope(), knobs.compilation.scope():
        knobs.runtime.jit_cache_hook = lambda **what: bool(seen.append(f"cache {what['fn'].name}"))
        knobs.runtime.jit_post_compile_hook = lambda **what: bool(seen.append("compiled"))
        knobs.compilation.listener = lambda **what: seen.append(f"hit {what['cache_hit']}")
        knobs.compilation.always_compile = True
        kernel.warmup(*tensors(3), 1024, BLOCK=256, grid=(4,))
    assert [event.split(".")[-1] for event in seen] == ["run", "cache add", "hit False", "compiled"]


def test_heuristics():
    kernel = triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})(add)
    compiled = kernel.run(*tensors(3), 100, grid=(1,), warmup=True)
    assert "tensor<128xf16>" in compiled.asm["ttir"]
