"""Kernels that choose a buffer by a condition, through the installed Triton and in the interpreter."""

# covers: tlx-keep-buffer-branches

import numpy as np
import pytest
from backend_kernels import needs_triton

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.versions import INSTALLED
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.runtime.simulate.interpret import interpret_text
from tlx_xdsl.text.profiles import profile_for

N = 128


@tlx_xdsl.jit
def elements(x_ptr, y_ptr, first, N: tl.constexpr):
    a = tlx.local_alloc((N,), tl.float32, 2)
    b = tlx.local_alloc((N,), tl.float32, 2)
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tlx.local_store(a[0], x)
    tlx.local_store(b[1], x * 2)
    view = a[0] if first else b[1]
    tl.store(y_ptr + offs, tlx.local_load(view))


@tlx_xdsl.jit
def arrays(x_ptr, y_ptr, first, N: tl.constexpr):
    a = tlx.local_alloc((N,), tl.float32, 2)
    b = tlx.local_alloc((N,), tl.float32, 2)
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tlx.local_store(a[1], x)
    tlx.local_store(b[1], x * 2)
    if first:  # noqa: SIM108 (a statement, for once)
        array = a
    else:
        array = b
    tl.store(y_ptr + offs, tlx.local_load(array[1]))


@tlx_xdsl.jit
def barriers(x_ptr, y_ptr, first, N: tl.constexpr):
    a = tlx.alloc_barriers(2, arrive_count=1)
    b = tlx.alloc_barriers(2, arrive_count=1)
    offs = tl.arange(0, N)
    tlx.barrier_arrive(a[0] if first else b[1])
    tlx.barrier_wait(a[0] if first else b[1], 0)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) * tl.where(first, 1, 2))


@tlx_xdsl.jit
def parts(x_ptr, y_ptr, first, N: tl.constexpr):
    a = tlx.local_alloc((2, N), tl.float32, 1)
    rows, offs = tl.arange(0, 2), tl.arange(0, N)
    tlx.local_store(a[0], (rows[:, None] + 1) * tl.load(x_ptr + offs)[None, :])
    upper = tlx.local_slice(a[0], [0, 0], [1, N])
    lower = tlx.local_slice(a[0], [1, 0], [1, N])
    part = upper if first else lower
    tl.store(y_ptr + offs[None, :], tlx.local_load(part))


SPECIALIZATION = Specialization({"x_ptr": "*fp32", "y_ptr": "*fp32", "first": "i1"}, {"N": N}, "sm_90a")
CHOICES = (elements, arrays, barriers)


@needs_triton
@pytest.mark.parametrize("kernel", CHOICES, ids=lambda kernel: kernel.source.name)
def test_whole_buffers_can_be_chosen(kernel):
    assert compile_kernel(kernel, SPECIALIZATION).cubin


@needs_triton
def test_parts_of_buffers_can_be_chosen_or_are_refused_at_their_line():
    if not profile_for(INSTALLED).selects_buffers:
        with pytest.raises(CompilationError, match=r"can't choose between parts of buffers, 3\.8 is the first") as info:
            compile_kernel(parts, SPECIALIZATION)
        assert "part = upper if first else lower" in str(info.value)
    else:
        assert compile_kernel(parts, SPECIALIZATION).cubin


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("version", ["3.6", "3.9"])
@pytest.mark.parametrize("kernel", CHOICES, ids=lambda kernel: kernel.source.name)
def test_the_text_for_a_version_computes_the_same(kernel, version, first):
    text = compile_text(kernel.source, SPECIALIZATION, triton_version=version).ttgir
    assert ("memdesc_reinterpret" in text) == (version == "3.6")
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    result = interpret_text(text, 1, (x, y, first), jobs=1)
    np.testing.assert_array_equal(y, x if first else 2 * x)
    assert list(result.warnings) == []
