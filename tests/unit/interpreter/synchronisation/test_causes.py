"""The first line of a report names the cause: of a deadlock, a race, a read of what was not written."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.faults import Fault

# Kernels are read by the frontend, not run by Python.
# pyright: basic

TILE = tl.constexpr(16 * 16 * 2)


@tlx_xdsl.jit
def ring(src, dst, TILES: tl.constexpr, KIND: tl.constexpr):
    """A loader and a task that stores, with a mistake of the kind that is asked for."""
    tiles = tlx.local_alloc((16, 16), tl.float16, 2)
    full = tlx.alloc_barriers(2, arrive_count=2 if KIND == "in part" else 1)
    empty = tlx.alloc_barriers(2)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                restarts = KIND == "restarts" or KIND == "early wait"
                tlx.barrier_wait(empty[t % 2], (0 if restarts else t // 2 & 1) ^ (0 if KIND == "no flip" else 1))
                if KIND == "too many bytes":
                    tlx.barrier_expect_bytes(full[t % 2], 2 * TILE)
                elif KIND == "too few bytes":
                    tlx.barrier_expect_bytes(full[t % 2], TILE // 2)
                elif KIND == "skips":
                    tlx.barrier_expect_bytes(full[t % 2], TILE, pred=t != 2)
                elif KIND == "arrives":
                    tlx.barrier_arrive(full[t % 2])
                else:
                    tlx.barrier_expect_bytes(full[t % 2], TILE)
                tlx.async_descriptor_load(src, tiles[t % 2], [t * 16, 0], full[t % 2], pred=KIND != "skips" or t != 2)
        with tlx.async_task(num_warps=4):
            for t in range(TILES if KIND != "ends early" else 1):
                tlx.barrier_wait(full[t % 2], t // 2 & 1)
                tlx.async_descriptor_store(dst, tiles[t % 2], [t * 16, 0])
                tlx.async_descriptor_store_wait(0)
                if KIND != "no arrive":
                    tlx.barrier_arrive(empty[t % 2])


def run(kernel, kind, tiles=6, **options):
    src, dst = np.ones((tiles * 16, 16), np.float16), np.zeros((tiles * 16, 16), np.float16)
    tile = tlx_xdsl.TensorDescriptor.from_tensor
    return tlx_xdsl.interpret(kernel, 1, tile(src, [16, 16]), tile(dst, [16, 16]), tiles, kind, **options)


def first_line(kind, **options):
    with pytest.raises(Fault) as caught:
        run(ring, kind, **options)
    return caught.value.message


def test_the_ring_without_a_mistake_runs():
    assert not run(ring, "").warnings


FIRST = "of parity 0, lacks 1 of 1 arrivals"
CAUSES = {
    # What can't come at all is named before who waits for the victim.
    "too many bytes": "phase 0, of parity 0, lacks 512 bytes: it expects 1024 bytes, 512 have come, and no other",
    "no arrive": f"the default task waits at 'empty[0]' for parity 0, while its phase 0, {FIRST}, and no line arrives",
    "in part": "partition 0 waits at 'full[0]' for parity 0, while its phase 0, of parity 0, lacks 1 of 2 arrivals",
    "ends early": "lacks 1 of 1 arrivals, and partition 0, which arrives there, has ended",
    # A task that counts its phases otherwise than the barrier.
    "restarts": "lacks 1 of 1 arrivals, and its wait before was for parity 1, too: the tasks count phases differently",
    # The loader has gone on to the next slots without filling this one.
    "skips": "and the default task, which arrives there, has waited at 'empty[0]' 2 times for 1 phase of 'full[0]'",
    "no flip": f"while its phase 0, {FIRST}, the first one: where nothing is to be waited for yet, it takes parity 1",
}


@pytest.mark.parametrize(("kind", "expected"), CAUSES.items())
def test_a_deadlock_begins_with_its_cause(kind, expected):
    assert expected in first_line(kind)


def test_bytes_that_a_phase_did_not_expect_are_named_at_the_copy():
    """The phase is complete by an arrival alone, and then the tile is read too early."""
    assert first_line("arrives", schedule="adversarial") == (
        "512 bytes more arrive on 'full[0]' than were expected for its phase 0: the expected bytes are too few"
    )


@tlx_xdsl.jit
def waits_again(src, out, KIND: tl.constexpr):
    """Two tiles on two barriers; the second wait is for the first of them again."""
    tiles = tlx.local_alloc((16, 16), tl.float16, 2)
    full = tlx.alloc_barriers(2)
    offsets = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    for t in tl.static_range(2):
        tlx.barrier_expect_bytes(full[t], TILE)
        tlx.async_descriptor_load(src, tiles[t], [t * 16, 0], full[t])
    tlx.barrier_wait(full[0], 0)
    tl.store(out + offsets, tlx.local_load(tiles[0]))
    tlx.barrier_wait(full[0 if KIND else 1], 0)
    tl.store(out + 256 + offsets, tlx.local_load(tiles[1]))


@pytest.mark.parametrize("schedule", ["round-robin", "adversarial"])
def test_a_second_wait_for_one_phase_is_named_and_the_race_in_a_note(schedule):
    """The tile may have come or not: a race, or a read of what is not written."""
    src = tlx_xdsl.TensorDescriptor.from_tensor(np.ones((32, 16), np.float16), [16, 16])
    tlx_xdsl.interpret(waits_again, 1, src, np.zeros(512, np.float16), 0, schedule=schedule)
    with pytest.raises(Fault, match="twice in a row, which is phase 0 both times") as caught:
        tlx_xdsl.interpret(waits_again, 1, src, np.zeros(512, np.float16), 1, schedule=schedule)
    assert "reads 'tiles[1]'" in caught.value.notes[0] or "'tiles[1]' is read" in caught.value.notes[0]


@tlx_xdsl.jit
def exchange(out, KIND: tl.constexpr):
    """Tasks pass a buffer by a named barrier."""
    note = tlx.local_alloc((128,), tl.int32, 1)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.local_store(note[0], tl.arange(0, 128))
            tlx.named_barrier_arrive(1, 256)
            if KIND == "again":
                tlx.local_store(note[0], tl.arange(0, 128) + 1)
        with tlx.async_task(num_warps=4):
            tlx.named_barrier_wait(1, 256)
            tl.store(out + tl.arange(0, 128), tlx.local_load(note[0]))


def test_the_last_wait_may_be_at_a_named_barrier():
    tlx_xdsl.interpret(exchange, 1, np.zeros(128, np.int32), "")
    with pytest.raises(Fault) as caught:
        tlx_xdsl.interpret(exchange, 1, np.zeros(128, np.int32), "again", schedule="adversarial")
    text = str(caught.value)
    assert "partition 0 has last waited at named barrier 1, at" in text or "has waited at no barrier so far" in text


@tlx_xdsl.jit
def one_for_both(out, KIND: tl.constexpr):
    """Two handshakes: by two named barriers, or by one, where an arrival may count for the phase before."""
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.named_barrier_arrive(1, 256)
            tlx.named_barrier_wait(1 if KIND else 2, 256)
            tl.store(out, 1)
        with tlx.async_task(num_warps=4):
            tlx.named_barrier_wait(1, 256)
            tlx.named_barrier_arrive(1 if KIND else 2, 256)


def test_arrivals_at_a_named_barrier_are_ordered_after_its_phase_before():
    """All is well in this order; in another one the default task arrives twice in one phase."""
    tlx_xdsl.interpret(one_for_both, 1, np.zeros(1, np.int32), 0)
    with pytest.raises(Fault, match="nothing orders this arrival at named barrier 1 after its phase before"):
        tlx_xdsl.interpret(one_for_both, 1, np.zeros(1, np.int32), 1)
