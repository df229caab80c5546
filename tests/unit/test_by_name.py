"""Kernels are pickled by name, and copied as themselves."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

from tests.unit import named_kernels as kernels

NAMED = [
    kernels.bump,
    kernels.bump_on_cpu,
    kernels.computed,
    kernels.computed.fn,
    kernels.tuned,
    kernels.tuned.fn,
    kernels.tuned_on_cpu,
    kernels.tuned_on_cpu.fn,
    kernels.tuned_on_cpu.fn.fn,
    kernels.Holder.held,
    kernels.tiles,
]


@pytest.mark.parametrize("kernel", NAMED, ids=lambda each: type(each).__name__)
def test_what_is_pickled_is_found_again(kernel):
    assert pickle.loads(pickle.dumps({"kernel": kernel}))["kernel"] is kernel
    assert copy.deepcopy({"kernel": kernel})["kernel"] is kernel
    assert copy.copy(kernel) is kernel


@pytest.mark.parametrize("kernel", [kernels.renamed, kernels.made()], ids=["renamed", "local"])
def test_what_no_name_leads_to_is_not_pickled(kernel):
    with pytest.raises(pickle.PicklingError, match=r"a kernel is pickled by its name, and '\S+' is not this one"):
        pickle.dumps(kernel)
    assert copy.deepcopy(kernel) is kernel


def test_a_process_that_does_not_fork_launches():
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=kernels.child, args=(kernels.bump, np.zeros(1, np.int32), queue))
    process.start()
    assert queue.get(timeout=60) == (3, True)
    process.join()
