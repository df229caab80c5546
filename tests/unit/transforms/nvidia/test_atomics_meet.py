"""Threads meet on the side of an atomic operation that its semantics ask for, whichever Triton version compiles."""

# covers: tlx-insert-barriers-at-atomics

import re

import pytest

from tests.unit.frontend.kernels import load
from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendOptions, compile_ttgir
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text

pytestmark = pytest.mark.backend

BARRIER, ATOMIC = "bar", "atom"
OPERATIONS = {
    "exchange": "tl.atomic_xchg(lock, 1, sem=SEM)",
    "sum": "tl.atomic_add(lock, 1, sem=SEM)",
    "compare": "tl.atomic_cas(lock, 0, 1, sem=SEM)",
    "of each thread": "tl.atomic_add(lock + at, 1, sem=SEM)",
}
SIDES = {
    "relaxed": [ATOMIC],
    "acquire": [ATOMIC, BARRIER],
    "release": [BARRIER, ATOMIC],
    "acq_rel": [BARRIER, ATOMIC, BARRIER],
}


@pytest.mark.parametrize("sem", SIDES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_side_on_which_threads_meet(name, sem, tmp_path):
    source = f"""
@tlx_xdsl.jit
def kernel(out, lock, SEM: tl.constexpr):
    at = tl.arange(0, 128)
    tl.store(out + at, at * 1.5)
    {OPERATIONS[name]}
"""
    kernel = load(tmp_path, source).kernel
    wanted = Specialization({"out": "*fp32", "lock": "*i32"}, {"SEM": sem}, target="sm_90a")
    text = compile_text(kernel.source, wanted, triton_version=INSTALLED)
    ptx = compile_ttgir(text.ttgir, BackendOptions(), stages="ptx").ptx
    found = re.findall(r"\b(bar\.sync|atom\.|red\.)", ptx.partition("st.global")[2])
    assert [BARRIER if each == "bar.sync" else ATOMIC for each in found] == SIDES[sem]
