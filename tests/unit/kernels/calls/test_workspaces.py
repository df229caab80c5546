"""The memory of streams, on stand-ins for torch and the CUDA driver: from where it comes, and when it goes."""

import threading

import pytest

from tests.unit.kernels import stand_in_torch
from tests.unit.kernels.stand_in_torch import OutOfMemoryError
from tlx_xdsl.kernels.calls.workspaces import COUNTER_BYTES, Workspaces, captured
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriverError


@pytest.fixture
def torch(monkeypatch):
    return stand_in_torch.install(monkeypatch)


@pytest.fixture
def workspaces(torch):
    return Workspaces()


def lent(workspaces, size, *, device=0, stream=0):
    """The start of the memory that a call gets, with the counters."""
    piece = workspaces.piece(device, stream)
    with piece.in_use:
        if piece.size < size:
            piece.grow(size)
        return piece.address - COUNTER_BYTES


def test_a_piece_is_kept_while_it_is_large_enough(workspaces, torch):
    assert len({lent(workspaces, size) for size in (2048, 512, 2048, 1024)}) == 1
    assert list(torch.cuda.memory.values()) == [COUNTER_BYTES + 2048]
    assert not torch.allocated, "torch may be allocating from a pool in which nothing may stay"


def test_what_has_become_too_small_is_given_back_in_the_order_of_its_stream(workspaces, torch):
    """The release comes after what the stream has been given, and before the larger piece, which may be made of it."""
    small = lent(workspaces, 512, stream=7)
    lent(workspaces, 512, stream=8)
    torch.cuda.in_order.clear()
    large = lent(workspaces, 1024, stream=7)
    assert torch.cuda.in_order == [
        ("free", small, 7),
        ("allocate", large, COUNTER_BYTES + 1024, 7),
        ("clear", large, COUNTER_BYTES, 7),
    ]
    assert not torch.cuda.counts["cuCtxSynchronize"]


def test_each_stream_of_each_gpu_has_its_own(workspaces):
    places = [(device, stream) for device in (0, 1) for stream in (0, 7)]
    first, again = ([lent(workspaces, 512, device=device, stream=stream) for device, stream in places] for _ in "12")
    assert first == again
    assert len(set(first)) == 4


@pytest.mark.parametrize(("current", "expected"), [(0, 0xC1), (0xABC, 0xABC)])
def test_a_thread_without_a_context_gets_that_of_the_gpu(workspaces, torch, current, expected):
    torch.cuda.context = current
    lent(workspaces, 512, device=1)
    assert torch.cuda.context == expected


def test_a_captured_call_has_memory_of_torch_s(workspaces, torch):
    """The memory is of the graph's pool. It goes with the call, for what follows in the graph to use."""
    kept = lent(workspaces, 512)
    own = [captured(0, 4096, counts=False) for _ in range(2)]
    assert own == torch.allocated
    assert [each.shape for each in own] == [(4096,)] * 2
    assert lent(workspaces, 512) == kept


def test_counters_of_a_graph_are_cleared_in_it(torch):
    """Each replay begins with zeros, and other calls have none."""
    memory = captured(0, 4096, counts=True)
    assert memory.zeroed
    assert memory.shape == (COUNTER_BYTES + 4096,)


def test_all_memory_is_given_back_when_the_gpu_has_done_its_work(workspaces, torch):
    for device, stream in ((0, 0), (0, 7), (1, 0)):
        lent(workspaces, 512, device=device, stream=stream)
    torch.entered.clear()
    workspaces.clear()
    assert not torch.cuda.memory
    assert torch.entered == [0, 0, 1]
    assert torch.cuda.counts["cuCtxSynchronize"] == torch.cuda.counts["cuMemFree_v2"] == 3
    workspaces.clear()
    assert torch.cuda.counts["cuMemFree_v2"] == 3
    assert lent(workspaces, 512) in torch.cuda.memory


# --- no memory ------------------------------------------------------------------------------------------------------


def test_torch_gives_up_what_it_keeps_for_later(workspaces, torch):
    torch.empty_cache = torch.cuda.failures.clear
    torch.cuda.failures["cuMemAllocAsync"] = 2
    assert lent(workspaces, 512) in torch.cuda.memory


def test_out_of_memory_is_torch_s_error(workspaces, torch):
    lent(workspaces, 512)
    emptied = []
    torch.empty_cache = lambda: emptied.append(True)
    torch.cuda.failures["cuMemAllocAsync"] = 2
    with pytest.raises(
        OutOfMemoryError,
        match=r"cuda:0: expected 4608 bytes to be free for the workspace of a stream, got cuMemAllocAsync failed: "
        r"CUDA_ERROR_OUT_OF_MEMORY \(2\): out of memory; 4608 bytes",
    ):
        lent(workspaces, 4096)
    assert emptied == [True]
    torch.cuda.failures.clear()
    # The small piece is gone, and is not given back twice.
    assert lent(workspaces, 512) in torch.cuda.memory
    assert lent(workspaces, 4096) in torch.cuda.memory
    assert len(torch.cuda.memory) == 1


@pytest.mark.parametrize("freed", [False, True])
def test_other_failures_are_the_driver_s(workspaces, torch, freed):
    def empty_cache():
        torch.cuda.failures["cuMemAllocAsync"] = 700

    torch.empty_cache = empty_cache
    torch.cuda.failures["cuMemAllocAsync"] = 2 if freed else 700
    with pytest.raises(CudaDriverError, match="an illegal memory access was encountered"):
        lent(workspaces, 512)
    assert torch.cuda.capture_mode == 0


# --- threads --------------------------------------------------------------------------------------------------------


def test_memory_is_not_given_back_while_a_call_is_enqueued(workspaces, torch):
    other = threading.Thread(target=workspaces.clear)
    start = lent(workspaces, 512)
    with workspaces.piece(0, 0).in_use:
        other.start()
        other.join(0.1)  # it would have ended by then
        assert start in torch.cuda.memory
    other.join()
    assert not torch.cuda.memory
