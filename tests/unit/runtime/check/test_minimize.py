"""Redundant synchronisation is named, and all else is needed for a reason."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.analysis.protocol.prove import Proof, Requirement
from tlx_xdsl.runtime.check.minimize import minimize
from tlx_xdsl.runtime.check.report import ProofAt
from tlx_xdsl.runtime.check.run import subject_of
from tlx_xdsl.tools.tlx import main

# covers: tlx minimize-sync

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def ring(src, dst, T, EXTRA: tl.constexpr):
    """Tiles through a ring of two; EXTRA says what is redundant."""
    tiles = tlx.local_alloc((16, 16), tl.float32, 2)
    full, empty = tlx.alloc_barriers(2), tlx.alloc_barriers(2)
    begun, first = tlx.alloc_barriers(1), tlx.local_alloc((16, 16), tl.float32, 1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            if EXTRA == "empty":
                tlx.local_store(first[0], tl.zeros((16, 16), tl.float32))
                tlx.fence_async_shared()
            if EXTRA == "start" or EXTRA == "empty":
                tlx.barrier_arrive(begun[0])
            for t in range(T):
                tlx.barrier_wait(empty[t % 2], (t // 2) & 1 ^ 1)
                tlx.barrier_expect_bytes(full[t % 2], 16 * 16 * 4)
                tlx.async_descriptor_load(src, tiles[t % 2], [t * 16, 0], full[t % 2])
        with tlx.async_task(num_warps=4):
            if EXTRA == "start" or EXTRA == "empty":
                tlx.barrier_wait(begun[0], 0)
            if EXTRA == "threads":
                tl.debug_barrier()
            for t in range(T):
                tlx.barrier_wait(full[t % 2], (t // 2) & 1)
                if EXTRA == "again":
                    tlx.barrier_wait(full[t % 2], (t // 2) & 1)
                tlx.async_descriptor_store(dst, tiles[t % 2], [t * 16, 0])
                tlx.async_descriptor_store_wait(0)
                if EXTRA == "fence":
                    tlx.fence_async_shared()
                tlx.barrier_arrive(empty[t % 2])
            if EXTRA == "empty":
                tlx.async_descriptor_store(dst, first[0], [0, 0])
                tlx.async_descriptor_store_wait(0)


def found(extra, sizes=(1, 5)):
    def arguments(T):
        arrays = (np.ones((max(T, 1) * 16, 16), np.float32), np.zeros((max(T, 1) * 16, 16), np.float32))
        return (*(tlx_xdsl.TensorDescriptor.from_tensor(each, [16, 16]) for each in arrays), T, extra)

    subject = subject_of(ring, 1, (), {}, {"T": sizes}, arguments, sweep=True, options=None)
    return minimize(subject, ("frontend", "ttgir"), 0.0)


def texts(result):
    return [[each.text for each in deletion.what] for deletion in result.redundant]


def test_all_of_a_ring_is_needed():
    result = found("")
    assert len(result.deletions) == 5
    assert result.redundant == []
    assert result.proof is not None
    assert str(result).endswith("5 deletions tried: 5 needed, 0 not")
    reasons = [str(each) for each in result.deletions]
    assert any("needed, without it: deadlock: " in each for each in reasons)
    assert any("without it: 'tiles[0]' is read before it is written" in each for each in reasons)


def test_a_second_wait_is_redundant_and_that_is_proved():
    """A proof is of each deletion by itself: one of the two may go, not both."""
    result = found("again")
    assert texts(result) == [["tlx.barrier_wait(full[t % 2], (t // 2) & 1)"]] * 2
    assert all(each.is_proved for each in result.redundant)
    assert "redundant, proved for all trip counts; no finding in 4 runs at 2 sizes" in str(result)
    assert result.together is None


def test_what_a_loop_without_turns_needs_is_not_proved_redundant():
    """The first tile orders what came before it, too; without tiles only the wait does."""
    result = found("empty")
    (wait, *_) = [each for each in result.redundant if each.what[0].text == "tlx.barrier_wait(begun[0], 0)"]
    assert not wait.is_proved
    assert "perhaps redundant, no finding in 4 runs at 2 sizes, but only where the loop at " in str(wait)
    assert "turns at least once; else: this reads 'first[0]', and nothing orders it after" in str(wait)
    needed = [each.what[0].text for each in found("empty", sizes=(0, 1)).deletions if each.wrong is not None]
    assert "tlx.barrier_wait(begun[0], 0)" in needed


def test_a_proof_on_conditions_says_so_first():
    plain = Proof("ring", "proved", None, 3, 0.0)
    held = Proof("ring", "proved", None, 3, 0.0, required=(Requirement("ring.py:3:5", None),))
    said = "the synchronisation of 'ring' in shared memory is "
    assert str(ProofAt({}, plain)).startswith(f"{said}proved for all trip counts (3 states")
    assert str(ProofAt({}, held)).startswith(f"{said}proved on conditions for all trip counts (3 states")


def test_a_barrier_is_redundant_as_a_whole():
    """The wait would be for ever without its arrival alone."""
    arrival, wait = "tlx.barrier_arrive(begun[0])", "tlx.barrier_wait(begun[0], 0)"
    assert texts(found("start")) == [[wait], [arrival, wait]]


def test_what_never_runs_is_said():
    result = found("again", sizes=(0,))
    assert len(result.redundant) == 6
    assert all("never runs at this size" in str(each) for each in result.redundant)


def test_a_fence_is_not_proved_redundant():
    result = found("fence")
    (fence,) = result.redundant
    assert not fence.is_proved
    assert "perhaps redundant, no finding in 4 runs at 2 sizes, but whether the async proxy sees" in str(fence)


def test_barriers_within_a_task_are_not_judged():
    result = found("threads")
    assert [each.text for each in result.unjudged] == ["tl.debug_barrier()"]
    assert "not judged, a task runs as a whole: tl.debug_barrier()" in str(result)


def test_a_kernel_that_is_wrong_as_it_is():
    @tlx_xdsl.jit
    def waits():
        tlx.barrier_wait(tlx.alloc_barriers(1)[0], 0)

    subject = subject_of(waits, 1, (), {}, {}, None, sweep=True, options=None)
    with pytest.raises(ValueError, match=r"something is wrong with the kernel as it is:\n(.|\n)*deadlock"):
        minimize(subject, ("frontend",), 0.0)


COPY = """\
import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def copy(src, dst, W: tl.constexpr):
    offsets = tl.arange(0, W)
    buffer = tlx.local_alloc((W,), tl.float32, 1)[0]
    tlx.async_load_commit_group([tlx.async_load(src + offsets, buffer)])
    tlx.async_load_wait_group(0)
    tl.store(dst + offsets, tlx.local_load(buffer))
"""


def test_the_command(tmp_path, capsys):
    path = tmp_path / "copy.py"
    path.write_text(COPY)
    given = ["--grid", "1", "--constexpr", "W=128", "--arg", "src=ones:f32[128]", "--arg", "dst=zeros:f32[128]"]
    assert main(["minimize-sync", f"{path}:copy", *given, "--seconds", "0"]) == 0
    printed = capsys.readouterr().out
    assert f"{path}:11:5: needed, without it: " in printed
    assert printed.endswith("1 deletions tried: 1 needed, 0 not\n")
    path.write_text(COPY.replace("wait_group(0)", "wait_group(1)"))
    assert main(["minimize-sync", f"{path}:copy", *given, "--seconds", "0"]) == 1
    assert "error: something is wrong with the kernel as it is" in capsys.readouterr().err
