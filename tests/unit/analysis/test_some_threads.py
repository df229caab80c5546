"""Stores of tensors that only some threads do make a kernel one whose layouts are ours to choose."""

# covers: tlx.utility

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module, installed_profile
from tlx_xdsl.transforms.pipelines import is_plain


@tlx_xdsl.jit
def under_a_branch(out):
    i = tl.arange(0, 64)
    if tlx.thread_id(0) * 2 == 4:
        tl.store(out + i, i)


@tlx_xdsl.jit
def by_the_turns_before(out):
    i, n = tl.arange(0, 64), 0
    for k in range(4):
        n += tlx.thread_id(0) + k
    while n > 3:
        tl.store(out + i, i)
        n -= 1


@tlx_xdsl.jit
def in_a_loop_of_each_thread(out):
    for k in range(tlx.thread_id(0)):
        tl.store(out + tl.arange(0, 64), k)


@tlx_xdsl.jit
def of_a_number(out):
    if tlx.thread_id(0) == 0:
        tl.store(out, 1)
    tl.store(out + tl.arange(0, 64), 2)


@tlx_xdsl.jit
def beside_a_number_that_is_carried(out):
    n = 0
    for k in range(4):
        tl.store(out + tl.arange(0, 64), k)
        n += tlx.thread_id(0)
    tl.store(out, n)


@pytest.mark.parametrize(
    ("kernel", "plain"),
    [
        (under_a_branch, False),
        (by_the_turns_before, False),
        (in_a_loop_of_each_thread, False),
        (of_a_number, True),
        (beside_a_number_that_is_carried, True),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_a_kernel_is_plain_unless_some_threads_store_tensors(kernel, plain) -> None:
    source: KernelSource = kernel.source
    module = frontend_module(source, Specialization({"out": "*i32"}, {}, "sm_90a"), installed_profile())
    assert is_plain(module) == plain
