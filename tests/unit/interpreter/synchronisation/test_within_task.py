"""Threads of one task at one address of global memory, and two elements of one store."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.errors import CompilationError

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def passed_on(x, line, out, KIND: tl.constexpr):
    """Elements go through memory; `KIND` says where threads meet, if they do."""
    own = tl.arange(0, 64)
    values = tl.load(x + own)
    tl.store(line + own, values)
    if KIND == "barrier":
        tl.debug_barrier()
    elif KIND == "reduction":
        values += tl.sum(values, 0)
    elif KIND == "shared memory":
        buffer = tlx.local_alloc((64,), tl.float32, 1)
        tlx.local_store(buffer[0], values)
        values = tlx.local_load(buffer[0])
    elif KIND == "atomic operation":
        tl.atomic_add(out + 64, 1.0)
    elif KIND == "arithmetic":
        values = values * 2 + 1
    other = own if KIND == "own element" else 63 - own
    tl.store(out + own, tl.load(line + other) + values)


def found(kernel, *arguments, **options):
    """Return the message of a run with compared accesses; None where nothing is reported."""
    try:
        tlx_xdsl.interpret(kernel, 1, *arguments, global_order=True, **options)
    except CompilationError as error:
        return error.message
    return None


def floats(*counts):
    return [np.arange(count, dtype=np.float32) for count in counts]


@pytest.mark.parametrize("kind", ["barrier", "reduction", "shared memory", "atomic operation", "own element"])
@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_threads_that_meet_may_read_what_others_have_written(kind, stage):
    assert found(passed_on, *floats(64, 64, 65), kind, stage=stage) is None


@pytest.mark.parametrize("kind", ["", "arithmetic"])
@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_threads_that_do_not_meet_may_not(kind, stage):
    message = found(passed_on, *floats(64, 64, 65), kind, stage=stage)
    assert message == (
        "a thread of the default task of program (0, 0, 0) reads byte 252 of 'line' in global memory, and nothing "
        "orders it after another one, by which it is written"
    )


@tlx_xdsl.jit
def around(line, STEPS: tl.constexpr, KIND: tl.constexpr):
    """A loop whose last operation meets the first one of the next turn."""
    own = tl.arange(0, 64)
    for _ in range(STEPS):
        if KIND != "at the end":
            tl.debug_barrier()
        values = tl.load(line + (own + 1) % 64)
        tl.debug_barrier()
        tl.store(line + own, values)


@pytest.mark.parametrize(
    ("steps", "kind", "reads"), [(1, "at the end", False), (2, "at the end", True), (3, "", False)]
)
def test_the_way_may_be_once_round_a_loop(steps, kind, reads):
    message = found(around, *floats(64), steps, kind)
    assert (message is not None) == reads
    assert message is None or "reads byte 4 of 'line'" in message


@tlx_xdsl.jit
def twice(out, places, KIND: tl.constexpr):
    own = tl.arange(0, 32)
    target = tl.load(places + own)
    if KIND == "one value":
        tl.store(out + target, tl.zeros((32,), tl.int32) + 7)
    elif KIND == "masked":
        tl.store(out + target, own, mask=own % 2 == 0)
    elif KIND == "atomic":
        tl.atomic_xchg(out + target, own, sem="relaxed")
    else:
        tl.store(out + target, own)


@pytest.mark.parametrize("kind", ["one value", "masked", "atomic"])
def test_elements_at_one_address_need_one_value(kind):
    assert found(twice, np.zeros(32, np.int32), np.arange(32, dtype=np.int32) // 2, kind) is None


def test_elements_at_one_address_with_different_values():
    message = found(twice, np.zeros(32, np.int32), np.arange(32, dtype=np.int32) // 2, "")
    assert message == (
        "'out' in global memory is written twice at byte 0 by one store: its elements [0] and [1] have different "
        "values, and either may stay"
    )


@tlx_xdsl.jit
def in_a_branch(out, KIND: tl.constexpr):
    """Some threads reach a barrier, the others do not."""
    if tlx.thread_id(0) < (32 if KIND != "all" else 1024):
        if KIND == "named":
            tlx.named_barrier_arrive(1, 256)
        else:
            tl.debug_barrier()
    tl.store(out, 1)


@pytest.mark.parametrize("kind", ["named", "barrier"])
def test_a_barrier_that_some_threads_do_not_reach(kind):
    message = found(in_a_branch, np.zeros(1, np.int32), kind)
    assert message == "all threads of the task meet at this barrier, and only 32 of 128 run here: others can't arrive"


def test_a_barrier_in_a_branch_that_all_threads_take():
    assert found(in_a_branch, np.zeros(1, np.int32), "all") is None


@tlx_xdsl.jit
def two_views(x, out, KIND: tl.constexpr):
    """A swizzled tile, and its bytes as one of another shape."""
    tile = tlx.local_alloc((16, 64), tl.float16, 1, layout=tlx.swizzled_shared_layout_encoding(8, 1, 8, [1, 0]))
    wide = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    high = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    if KIND == "reshape":
        view = tlx.local_reshape(tile[0], [32, 32])
    else:
        view = tlx.local_reinterpret(tile[0], tl.float16, [32, 32])
    if KIND == "through the view":
        tlx.local_store(view, tl.load(x + high))
    else:
        tlx.local_store(tile[0], tl.load(x + wide))
    tl.store(out + high, tlx.local_load(view))


@pytest.mark.parametrize(("kind", "warns"), [("", True), ("reshape", False), ("through the view", False)])
def test_a_view_of_another_layout_than_what_is_written(kind, warns):
    x, out = np.arange(1024, dtype=np.float16), np.zeros(1024, np.float16)
    result = tlx_xdsl.interpret(two_views, 1, x, out, kind)
    messages = [each.message for each in result.warnings]
    assert (
        messages
        == ["'view' is read with another layout than it is written with: its elements are at other places"] * warns
    )
    assert (x == out).all() == (not warns)
