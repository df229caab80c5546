"""Numbers that differ between the threads of a task, and branches that only some of its threads take."""

# covers: tlx.utility

import random

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.interpreter.small_texts import pointers, run
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.faults import Fault


def interpreted(kernel, *out_and_values, warps=1, stage="ttgir"):
    tlx_xdsl.interpret(kernel, 1, *out_and_values, num_warps=warps, stage=stage, target="sm_90a", jobs=1)


# Numbers ------------------------------------------------------------------------------------------------------------

THREAD = """
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i32"""


def test_a_thread_computes_with_its_own_number() -> None:
    """Element e of 128 is in thread e: each has its own square, and its own one of two values."""
    out = np.zeros(128, np.int32)
    body = pointers("out", "i32", 128, "os") + THREAD + """
    %square = arith.muli %i, %i : i32
    %limit = arith.constant 40 : i32
    %low = arith.cmpi slt, %i, %limit : i32
    %n = arith.select %low, %square, %i : i32
    %ns = tt.splat %n : i32 -> tensor<128xi32, #b>
    tt.store %os, %ns : tensor<128x!tt.ptr<i32>, #b>"""  # fmt: skip
    run("%out: !tt.ptr<i32>", body, [out])
    own = np.arange(128)
    np.testing.assert_array_equal(out, np.where(own < 40, own * own, own))


def test_a_splat_is_one_element_of_several_threads_only_where_they_agree() -> None:
    """The four warps have each of 32 elements in one thread."""
    body = pointers("out", "i32", 32, "os") + THREAD + """
    %size = arith.constant SIZE : i32
    %lane = arith.remsi %i, %size : i32
    %ns = tt.splat %lane : i32 -> tensor<32xi32, #b>
    tt.store %os, %ns : tensor<32x!tt.ptr<i32>, #b>"""  # fmt: skip
    out = np.zeros(32, np.int32)
    run("%out: !tt.ptr<i32>", body.replace("SIZE", "32"), [out])
    np.testing.assert_array_equal(out, np.arange(32))
    with pytest.raises(Fault, match="threads that hold the same element of the result get different values for it"):
        run("%out: !tt.ptr<i32>", body.replace("SIZE", "64"), [out])


@tlx_xdsl.jit
def turns(out):
    for _ in range(tlx.thread_id(0)):
        tl.store(out, 1)


@tlx_xdsl.jit
def whiles(out):
    n = tlx.thread_id(0)
    while n < 3:
        n += 1
    tl.store(out, n)


@tlx_xdsl.jit
def lanes(out):
    """The first thread's number is stored; a number that all threads have can be anything."""
    tl.store(out, tlx.thread_id(0) + 5)
    warp = tlx.thread_id(0) // 32
    for _ in range(warp + 2):
        tl.store(out + 1, tl.load(out + 1) + 1)


@pytest.mark.parametrize("kernel", [turns, whiles])
def test_threads_make_the_same_turns(kernel) -> None:
    with pytest.raises(Fault, match="one number for all threads of the task, and theirs differ: ") as found:
        interpreted(kernel, np.zeros(2, np.int32))
    assert found.value.location is not None


def test_numbers_that_agree_are_one() -> None:
    out = np.zeros(2, np.int32)
    interpreted(lanes, out)
    assert out.tolist() == [5, 2]
    with pytest.raises(Fault, match="theirs differ: 2, 3, 4, 5"):
        interpreted(lanes, out, warps=4)


# Branches -----------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def stores_of_some(out, FIRST: tl.constexpr, LAST: tl.constexpr, N: tl.constexpr):
    i, t = tl.arange(0, N), tlx.thread_id(0)
    if t >= FIRST and t < LAST:
        tl.store(out + i, 7)
    else:
        tl.store(out + i, 1, mask=i < 20)


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize(("first", "last"), [(0, 1), (3, 9), (0, 32), (40, 50)])
def test_a_thread_stores_the_elements_that_it_holds(warps, first, last) -> None:
    """Thread t of the first warp holds element t of 32; those of the others hold copies, and store nothing."""
    out = np.zeros(32, np.int32)
    interpreted(stores_of_some, out, first, last, 32, warps=warps)
    own = np.arange(32)
    np.testing.assert_array_equal(out, np.where((own >= first) & (own < last), 7, own < 20))


def test_without_a_layout_it_is_unknown_what_is_stored() -> None:
    with pytest.raises(Fault, match="without a layout it is unknown which holds what"):
        interpreted(stores_of_some, np.zeros(32, np.int32), 0, 1, 32, stage="frontend")


@tlx_xdsl.jit
def nested(out):
    """Each thread has a number of its own, by two branches."""
    i, t = tl.arange(0, 64), tlx.thread_id(0)
    n = 0
    if t < 20:
        n = t
        if t % 2 == 0:
            n = 100 + t
    elif t == 50:
        n = -1
    if n == 104:
        tl.store(out + i, 2)
    if n < 0:
        tl.store(out + i, 3)


def test_branches_bring_back_the_number_of_each_thread() -> None:
    out = np.zeros(64, np.int32)
    interpreted(nested, out, warps=2)
    assert {int(at): int(out[at]) for at in np.flatnonzero(out)} == {4: 2, 50: 3}


@tlx_xdsl.jit
def once(out):
    if tlx.thread_id(0) == 0:
        tl.store(out, tl.load(out) + 1)
        tl.atomic_add(out + 1, 5)
    else:
        tl.store(out, 9)


@tlx_xdsl.jit
def sums(out):
    x = tl.load(out + tl.arange(0, 32))
    if tlx.thread_id(0) < 8:
        tl.store(out, tl.sum(x))


@tlx_xdsl.jit
def ballots(out):
    if tlx.thread_id(0) < 8:
        tl.store(out, tlx.vote_ballot_sync(-1, tlx.thread_id(0) < 4))


@tlx_xdsl.jit
def adds_its_number(a, b):
    return a + b + tlx.thread_id(0)


@tlx_xdsl.jit
def in_a_combination(out):
    tl.store(out, tl.reduce(tl.load(out + tl.arange(0, 32)), 0, adds_its_number))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (once, "the first thread of the task does 'tt.store' for all, and it does not run here"),
        (sums, "all threads of the task do 'tt.reshape' together, and only some run here"),
        (ballots, "only some of the task's"),
        (in_a_combination, "it is unknown which thread computes with which element of the tensor"),
    ],
)
@pytest.mark.parametrize("stage", ["frontend", "ttgir"])
def test_what_needs_threads_that_do_not_run_is_a_fault(kernel, message, stage) -> None:
    with pytest.raises(CompilationError, match=message):
        interpreted(kernel, np.zeros(32, np.int32), stage=stage)


@tlx_xdsl.jit
def printed(out):
    t = tlx.thread_id(0)
    if t < 2:
        tl.device_print("t", t)
        tl.device_print("all", t // 32)
        tl.device_print("i", tl.arange(0, 32))
    tl.device_assert(t < 32)
    tl.store(out + tl.arange(0, 32), 0)
    if t == 0:
        tl.store(out + tl.arange(0, 32), 1)


def test_a_thread_prints_what_it_holds(capsys) -> None:
    interpreted(printed, np.zeros(32, np.int32))
    lines = [line.partition("idx ")[2] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["() t: 0", "() t: 1", "() all: 0", "( 0) i: 0", "( 1) i: 1"]


class Program:
    """Branches by chance, as text, and what one thread computes: each statement gives a number of its own."""

    def __init__(self, seed: int):
        self.random, self.lines, self.count = random.Random(seed), [], 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def block(self, known: list[str], depth: int) -> list[tuple]:
        """Some statements; those of a thread as tuples."""
        known, steps = list(known), []
        for _ in range(self.random.randint(1, 3)):
            name, (a, b) = self.name(), self.random.choices(known, k=2)
            if depth and self.random.random() < 0.5:
                condition = self.name()
                self.lines.append(f"%{condition} = arith.cmpi slt, %{a}, %{b} : i32")
                self.lines.append(f"%{name} = scf.if %{condition} -> (i32) {{")
                then = self.block(known, depth - 1)
                self.lines += [f"scf.yield %{then[-1][0]} : i32", "} else {"]
                otherwise = self.block(known, depth - 1)
                self.lines += [f"scf.yield %{otherwise[-1][0]} : i32", "}"]
                steps.append((name, a, b, then, otherwise))
            else:
                op = self.random.choice(["addi", "subi", "xori", "maxsi"])
                self.lines.append(f"%{name} = arith.{op} %{a}, %{b} : i32")
                steps.append((name, a, b, op))
            known.append(name)
        return steps


def of_one_thread(steps: list[tuple], names: dict[str, int]) -> int:
    """The last number of a block."""
    names = dict(names)
    functions = {"addi": int.__add__, "subi": int.__sub__, "xori": int.__xor__, "maxsi": max}
    for name, a, b, *rest in steps:
        if len(rest) == 2:
            names[name] = of_one_thread(rest[0] if names[a] < names[b] else rest[1], names)
        else:
            names[name] = functions[rest[0]](names[a], names[b])
    return names[steps[-1][0]]


@pytest.mark.parametrize("seed", range(12))
def test_branches_by_chance_give_each_thread_its_own_number(seed) -> None:
    program = Program(seed)
    steps = program.block(["i", "limit"], 3)
    body = pointers("out", "i32", 128, "os") + THREAD + "\n%limit = arith.constant 57 : i32\n"
    body += "\n".join(program.lines)
    body += f"""
    %ns = tt.splat %{steps[-1][0]} : i32 -> tensor<128xi32, #b>
    tt.store %os, %ns : tensor<128x!tt.ptr<i32>, #b>"""
    out = np.zeros(128, np.int32)
    run("%out: !tt.ptr<i32>", body, [out])
    assert out.tolist() == [of_one_thread(steps, {"i": thread, "limit": 57}) for thread in range(128)]


# Votes --------------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def votes(out, LIMIT: tl.constexpr):
    t = tlx.thread_id(0)
    bits = tlx.vote_ballot_sync(0xFFFFFFFF, t < LIMIT)
    # The bits of its warp are in each thread.
    tl.store(out + tl.arange(0, 64), bits)


@pytest.mark.parametrize("limit", [0, 16, 40, 64])
def test_threads_vote_with_numbers_of_their_own(limit) -> None:
    out = np.zeros(64, np.uint32)
    interpreted(votes, out, limit, warps=2)
    true = np.arange(64).reshape(2, 32) < limit
    np.testing.assert_array_equal(out, np.repeat((true * 2 ** np.arange(32)).sum(1), 32))


# The clock ----------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def clocks(out):
    first, second = tlx.clock64(), tlx.clock64()
    tl.store(out, second - first)


def test_the_clock_never_stands_still() -> None:
    out = np.zeros(1, np.int64)
    interpreted(clocks, out)
    assert out[0] > 0
