"""Mistakes in final PTX: what stock Triton makes of eight kernels, each time with one thing wrong. All are found.

`test_ptx_kernels.py` runs the same kernels as they are.
"""

import re

import numpy as np
import pytest

from tests.gallery.synchronisation import cluster_runs
from tests.gallery.synchronisation.example_runs import CASES
from tests.unit import volume
from tests.unit.ptx.compiled import changed, compiled_once, instead, matmul, matrices, without
from tests.versions import INSTALLED, NEWEST
from tlx_xdsl.ptx import PtxFault
from tlx_xdsl.runtime.simulate import ptx_stage
from tlx_xdsl.runtime.simulate.interpret import interpret

pytestmark = pytest.mark.backend


@pytest.fixture(autouse=True)
def _compile_once(monkeypatch):
    monkeypatch.setattr(ptx_stage, "compiled", compiled_once)


def ampere(**options):
    a, b = matrices()
    c = np.zeros((128, 64), np.float32)
    options = {"stage": "ptx", "target": "sm_80", **options}
    interpret(matmul, (2, 1), a, b, c, 128, 64, 160, BLOCK=64, DEPTH=32, options=options)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)


def case(make):
    return lambda **options: make().run(stage="ptx", **options)


KERNELS = {
    "gemm": case(CASES["ws-gemm-small-tiles"]),
    "ampere": ampere,
    "attention": case(CASES["ws-attention-causal"]),
    "cluster": case(cluster_runs.multicast),
    "ring": case(lambda: cluster_runs.ring("copy")),
    "ring of stores": case(lambda: cluster_runs.ring("async")),
    "blackwell gemm": case(CASES["blackwell-gemm-ragged"]),
    "blackwell attention": case(CASES["blackwell-attention-causal"]),
    "pair": case(cluster_runs.pair),
}
WAIT = r"mbarrier\.try_wait[^;]*;\s*@!complete bra\.uni waitLoop;"
CLUSTER_WAIT = r"barrier\.cluster\.wait\.aligned;"
SETS_PARITY = r"(mbarrier\.try_wait\.parity[^;]*, )(%r\d+);"
OTHER_PARITY = r".reg .b32 other; xor.b32 other, \2, 1; \1other;"


def everywhere(pattern, new=""):
    """A change that replaces all that a pattern finds."""

    def change(text):
        assert re.search(pattern, text), f"nothing matches {pattern}"
        return re.sub(pattern, new, text)

    return change


def swapped(first, second):
    """A change that exchanges an instruction with the next one that another pattern finds."""

    def change(text):
        one = re.search(first, text)
        other = re.compile(second).search(text, one.end())
        return text[: one.start()] + other[0] + text[one.end() : other.start()] + one[0] + text[other.end() :]

    return change


MISTAKES = {
    "gemm: no fence": ("gemm", without(r"fence\.proxy\.async[^;]*;")),
    "gemm: no wait for loads": ("gemm", without(WAIT, 1)),
    "gemm: no expected bytes": ("gemm", without(r"@%p\d+ mbarrier\.arrive\.expect_tx[^;]*;")),
    "gemm: fewer bytes": ("gemm", instead(r"(arrive\.expect_tx[^;]*, )\d+;", r"\g<1>1024;")),
    "gemm: no initialisation": ("gemm", without(r"@%p\d+ mbarrier\.init[^;]*;")),
    "gemm: one arrival more": ("gemm", instead(r"(mbarrier\.init[^;]*, )1;", r"\g<1>2;")),
    "gemm: no load": ("gemm", without(r"@%p\d+ cp\.async\.bulk\.tensor\.2d\.shared[^;]*;")),
    "gemm: no arrival": ("gemm", without(r"@%p\d+ mbarrier\.arrive\.shared[^;]*;")),
    "gemm: no wait for products": ("gemm", without(r"wgmma\.wait_group\.sync\.aligned 0;", -1)),
    "gemm: a wait for one product less": ("gemm", instead(r"(wgmma\.wait_group\.sync\.aligned) 1;", r"\1 2;")),
    "gemm: no fence of registers": ("gemm", without(r"wgmma\.fence\.sync\.aligned;")),
    "gemm: no commit of products": ("gemm", without(r"wgmma\.commit_group\.sync\.aligned;")),
    "gemm: commit before the product": (
        "gemm", swapped(r"wgmma\.mma_async[^;]*;", r"wgmma\.commit_group\.sync\.aligned;"),
    ),
    "gemm: no barrier of tasks": ("gemm", without(r"barrier\.sync \t1;")),
    "gemm: registers kept": ("gemm", without(r"setmaxnreg\.dec[^;]*;")),
    "gemm: no wait for the store": ("gemm", without(r"cp\.async\.bulk\.wait_group\.read[^;]*;")),
    "gemm: the other parity": ("gemm", instead(SETS_PARITY, OTHER_PARITY)),
    "ampere: no wait for copies": ("ampere", without(r"cp\.async\.wait_group[^;]*;")),
    "ampere: a wait for one group less": ("ampere", instead(r"(cp\.async\.wait_group\s+)2;", r"\g<1>3;")),
    "ampere: no barrier": ("ampere", without(r"bar\.sync[^;]*;")),
    "ampere: no commit": ("ampere", without(r"cp\.async\.commit_group;", -1)),
    "attention: no wait for loads": ("attention", without(WAIT, -1)),
    "attention: the other parity": ("attention", instead(SETS_PARITY, OTHER_PARITY, -1)),
    "attention: no wait for products": ("attention", without(r"wgmma\.wait_group\.sync\.aligned[^;]*;")),
    "attention: no fence": ("attention", without(r"fence\.proxy\.async[^;]*;", -1)),
    "attention: twice the bytes": ("attention", instead(r"(arrive\.expect_tx[^;]*, )8192;", r"\g<1>16384;")),
    "cluster: another multicast mask": ("cluster", instead(r"cvt\.u16\.u32 m, 3;", "cvt.u16.u32 m, 1;")),
    "cluster: no barrier at its start": (
        "cluster", everywhere(r"barrier\.cluster\.arrive\.relaxed[^;]*;\s*" + CLUSTER_WAIT),
    ),
    "cluster: no fence of initialisations": ("cluster", without(r"fence\.mbarrier_init[^;]*;")),
    "cluster: no arrival at another": ("cluster", without(r"@p mbarrier\.arrive\.release[^;]*;")),
    "cluster: an arrival at the wrong CTA": ("cluster", instead(r"(mapa\.shared::cluster\.u32 [^;]*, )1;", r"\g<1>0;")),
    "cluster: no barrier at its end": (
        "cluster", everywhere(r"barrier\.cluster\.arrive\.aligned;\s*" + CLUSTER_WAIT),
    ),
    "ring: no wait at its start": ("ring", without(CLUSTER_WAIT)),
    "ring: no barrier at its end": ("ring", without(r"barrier\.cluster\.arrive\.aligned;\s*" + CLUSTER_WAIT, -1)),
    "ring: no fence": ("ring", without(r"fence\.proxy\.async[^;]*;")),
    "ring: no wait": ("ring", without(WAIT, 1)),
    "ring: fewer bytes": ("ring", instead(r"(complete_tx::bytes \[%r\d+\], \[%r\d+\], )2048", r"\g<1>1024")),
    "ring of stores: no acquire": ("ring of stores", without(r"fence\.acquire\.sync_restrict[^;]*;")),
    "blackwell gemm: no commit": ("blackwell gemm", without(r"@%p\d+ tcgen05\.commit[^;]*;")),
    "blackwell gemm: no wait": ("blackwell gemm", without(WAIT)),
    "blackwell gemm: no fence": ("blackwell gemm", without(r"fence\.proxy\.async[^;]*;", -1)),
    "blackwell gemm: no allocation": ("blackwell gemm", without(r"@%p\d+ tcgen05\.alloc[^;]*;")),
    "blackwell gemm: fewer columns": ("blackwell gemm", instead(r"(tcgen05\.alloc[^;]*, )512;", r"\g<1>128;")),
    "blackwell gemm: columns kept": ("blackwell gemm", everywhere(r"@%p\d+ tcgen05\.dealloc[^;]*;")),
    "blackwell gemm: a bit of a descriptor": (
        "blackwell gemm", instead(r"(tcgen05\.mma[^;]*, %rd\d+, %rd\d+, )%r\d+,", r"\g<1>%r0,"),
    ),
    "blackwell attention: no wait for its stores": (
        "blackwell attention", everywhere(r"tcgen05\.wait::st\.sync\.aligned;"),
    ),
    "blackwell attention: no wait": ("blackwell attention", without(WAIT)),
    "blackwell attention: the other parity": ("blackwell attention", instead(SETS_PARITY, OTHER_PARITY, -1)),
    "blackwell attention: no commit": ("blackwell attention", without(r"@%p\d+ tcgen05\.commit[^;]*;", 1)),
    "pair: another commit mask": ("pair", instead(r"cvt\.u16\.u32 m, %r\d+;", "cvt.u16.u32 m, 1;")),
    "pair: fewer bytes": ("pair", instead(r"(arrive\.expect_tx[^;]*, )49152;", r"\g<1>32768;")),
}  # fmt: skip
"""The kernel of each mistake, and the change of its PTX."""
SOME = list(MISTAKES)[:: 1 if volume.is_full() else 3]


@pytest.mark.parametrize("mistake", SOME)
def test_it_is_found(mistake):
    kernel, change = MISTAKES[mistake]
    if kernel == "pair" and INSTALLED != NEWEST:
        pytest.skip("pairs of CTAs were tried with the newest Triton")
    with changed(change), pytest.raises((PtxFault, AssertionError)) as error:
        KERNELS[kernel](max_seconds=20)
    assert "nothing matches" not in str(error.value)
    assert "internal error" not in str(error.value)
    assert mistake != "gemm: no fence" or "without a proxy fence in between" in str(error.value)


@pytest.mark.parametrize("kernel", KERNELS if volume.is_full() else ["cluster", "ring"])
def test_without_a_mistake_there_is_no_report(kernel):
    KERNELS[kernel]()
