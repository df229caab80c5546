"""Verdicts on the protocol of circular buffers, and the order of lifetimes, against a search through all schedules."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations

import pytest

from tests.unit import volume
from tests.unit.ttl.ttl_protocols import Program, flat, kernel_of, random_programs
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.ttl.analysis.core_values import ThreadWalk, cores_of
from tlx_xdsl.ttl.analysis.protocol import check_protocol
from tlx_xdsl.ttl.analysis.protocol_run import End, ordered_lifetimes, run_of
from tlx_xdsl.ttl.analysis.trip_counts import totals_of
from tlx_xdsl.ttl.dialects.ttl import CBOp, KernelOp

COUNT = 1500 if volume.is_full() else 120


class Oracle:
    """The protocol by its definition: a state is how far each thread has come."""

    def __init__(self, programs: list[Program], factors: list[int]):
        self.threads = [list(flat(program)) for program in programs]
        self.factors = factors
        self.before = [self._counts(thread) for thread in self.threads]

    @staticmethod
    def _counts(thread):
        """Count the blocks of each buffer that a thread has given back, for each place in it."""
        found, counts = [Counter()], Counter()
        for kind, buffer, blocks in thread:
            if kind in ("push", "pop"):
                counts[kind, buffer] += blocks
            found.append(Counter(counts))
        return found

    def enabled(self, state):
        """The threads whose next step can happen."""
        total = sum((self.before[t][place] for t, place in enumerate(state)), Counter())
        for thread, place in enumerate(state):
            if place == len(self.threads[thread]):
                continue
            kind, buffer, blocks = self.threads[thread][place]
            full = total["push", buffer] - total["pop", buffer]
            if kind in ("push", "pop") or (
                full + blocks <= self.factors[buffer] if kind == "reserve" else full >= blocks
            ):
                yield thread

    def ends(self):
        """All states in which no thread can go on, by any schedule."""
        start = (0,) * len(self.threads)
        pending, seen, ends = [start], {start}, set()
        while pending:
            state = pending.pop()
            moves = list(self.enabled(state))
            if not moves:
                ends.add(state)
            for thread in moves:
                after = (*state[:thread], state[thread] + 1, *state[thread + 1 :])
                if after not in seen:
                    seen.add(after)
                    pending.append(after)
        return ends

    def finishes(self):
        return self.ends() == {tuple(map(len, self.threads))}

    def is_balanced(self):
        total = sum((counts[-1] for counts in self.before), Counter())
        return all(total["push", b] == total["pop", b] for b in range(len(self.factors)))

    def can_start_before_end(self, late: int, early: int) -> bool:
        """Return whether a use of buffer `late` can happen while one of buffer `early` has not."""
        for owner, thread in enumerate(self.threads):
            uses = [place for place, step in enumerate(thread) if step[1] == early]
            if not uses:
                continue
            # Everything runs, but for this thread, which stops before its last use.
            state = [0] * len(self.threads)
            while True:
                moves = [t for t in self.enabled(tuple(state)) if t != owner or state[t] < uses[-1]]
                if not moves:
                    break
                state[moves[0]] += 1
            for other, place in enumerate(state):
                if any(step[1] == late for step in self.threads[other][:place]):
                    return True
        return False


def verdict(kernel: KernelOp) -> str | None:
    try:
        check_protocol(kernel)
    except CompilationError as error:
        return error.message
    return None


def test_verdicts_are_those_of_a_search_through_all_schedules() -> None:
    rng, seen = random.Random(7), Counter()
    for _ in range(COUNT):
        programs, factors = random_programs(rng)
        oracle, message = Oracle(programs, factors), verdict(kernel_of(programs, factors))
        finishes, balanced = oracle.finishes(), oracle.is_balanced()
        assert (message is None) == (finishes and balanced), (programs, factors, message)
        if balanced and not finishes:
            assert (message or "").startswith("deadlock"), (programs, factors, message)
        seen[finishes, balanced] += 1
    print(dict(seen))
    assert all(seen[kind] > COUNT // 50 for kind in ((True, True), (False, True), (False, False)))


def test_lifetimes_are_ordered_if_no_schedule_says_otherwise() -> None:
    rng, ordered, pairs = random.Random(3), 0, 0
    while pairs < COUNT:
        programs, factors = random_programs(rng)
        oracle = Oracle(programs, factors)
        if len(factors) < 2 or not oracle.finishes():
            continue
        kernel = kernel_of(programs, factors)
        buffers = [op.results[0] for op in kernel.body.block.ops if op.name == "ttl.create_cb"]
        found = ordered_lifetimes(kernel)
        for a, b in permutations(range(len(factors)), 2):
            expected = not oracle.can_start_before_end(b, a)
            assert ((buffers[a], buffers[b]) in found) == expected, (programs, factors, a, b)
            ordered, pairs = ordered + expected, pairs + 1
    print(ordered, "of", pairs)
    assert ordered > pairs // 100


def parse(text: str) -> KernelOp:
    text = text.replace(": CB", f": {CB}")
    return next(op for op in parse_module(text, filename="k.mlir").walk() if isinstance(op, KernelOp))


CB = "!ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>"
VIEW = "tensor<1x1x!ttcore.tile<32x32, f32>>"
HEAD = """
ttl.kernel @k() attributes {{grid = #ttcore.grid<{grid}>}} {{
  %a = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, f32>, buffer_factor=2 : CB
  %x, %y = ttl.core(dims = 2)
  %n = ttl.core(dims = 1)
  ttl.datamovement_thread @write {{
{write}
    ttl.thread_return
  }}
  ttl.compute_thread @read {{
{read}
    ttl.thread_return
  }}
  ttl.kernel_return
}}
"""
PUSH = f"%v = ttl.cb_reserve %a : {CB} -> {VIEW}\nttl.cb_push %a"
POP = f"%w = ttl.cb_wait %a : {CB} -> {VIEW}\nttl.cb_pop %a"


def loops(bounds: list[str], body: str) -> str:
    for depth, bound in reversed(list(enumerate(bounds))):
        body = f"affine.for %i{depth} = {bound} {{\n{body}\n}}"
    return body


NESTS = {
    "rectangle": (["0 to 3", "0 to 4"], lambda x, y: 12),
    "triangle": (["0 to 5", "0 to affine_map<(d0) -> (d0)> (%i0)"], lambda x, y: 10),
    "by core": (["0 to affine_map<(d0) -> (d0 * 2 + 1)> (%x)"], lambda x, y: 2 * x + 1),
    "rows and columns": (
        ["affine_map<(d0) -> (d0)> (%y) to 4 step 2", "0 to affine_map<(d0) -> (d0 + 1)> (%n)"],
        lambda x, y: len(range(y, 4, 2)) * (x + 2 * y + 1),
    ),
    "several bounds": (
        ["0 to 7", "max affine_map<(d0) -> (d0 - 2, 0)> (%i0) to min affine_map<(d0) -> (d0 + 1, 5)> (%i0)"],
        lambda x, y: sum(len(range(max(i - 2, 0), min(i + 1, 5))) for i in range(7)),
    ),
    "never": (["5 to 5", "0 to 3"], lambda x, y: 0),
}


@pytest.mark.parametrize("nest", NESTS)
def test_trip_counts(nest: str) -> None:
    bounds, expected = NESTS[nest]
    kernel = parse(HEAD.format(grid="2x2", write=loops(bounds, PUSH), read=loops(bounds, POP)))
    for core in cores_of(kernel.grid):
        totals = totals_of(kernel.threads[0], core)
        assert totals is not None
        assert {key[1].__name__: number for key, number in totals.items() if number} == (
            {name: expected(core.x, core.y) for name in ("CBReserveOp", "CBPushOp")} if expected(core.x, core.y) else {}
        )
        steps = [op for op in ThreadWalk(kernel.threads[0], core).steps() if isinstance(op, CBOp)]
        assert len(steps) == 2 * expected(core.x, core.y)
    assert verdict(kernel) is None


def test_long_loops_are_counted_though_they_are_not_followed() -> None:
    kernel = parse(HEAD.format(grid="1x1", write=loops(["0 to 1000000"], PUSH), read=loops(["0 to 999999"], POP)))
    assert run_of(kernel, most_steps=1000).end is End.UNDECIDED
    assert "1000000 blocks of 'a' are pushed, the consumer pops 999999" in (verdict(kernel) or "")
    assert not ordered_lifetimes(kernel)


def test_one_core_that_differs_is_named() -> None:
    by_core = "0 to affine_map<(d0) -> (d0 floordiv 3 + 2)> (%n)"
    kernel = parse(HEAD.format(grid="4x1", write=loops(["0 to 2"], PUSH), read=loops([by_core], POP)))
    assert "waits for 3 blocks of 'a', the producer pushes 2 on core (3, 0)" in (verdict(kernel) or "")


def test_what_is_unknown_is_accepted() -> None:
    unknown = "%u = arith.divui %x, %y : index\n%c = arith.cmpi eq, %u, %x : index\nscf.if %c {\n" + POP + "\n}"
    assert verdict(parse(HEAD.format(grid="1x1", write=PUSH, read=unknown))) is None
    core = "%zero = arith.constant 0 : index\n%u = arith.cmpi eq, %x, %zero : index\nscf.if %u {\n" + POP + "\n}"
    assert verdict(parse(HEAD.format(grid="1x1", write=PUSH, read=core))) is None
    assert "on core (1, 0)" in (verdict(parse(HEAD.format(grid="2x1", write=PUSH, read=core))) or "")
