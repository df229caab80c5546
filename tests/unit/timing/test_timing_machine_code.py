"""Estimates from PTX beside what ptxas makes of it: the machine's instructions in loops, by block and by pipe."""

from functools import cache

import pytest

from tests.unit.sass.recorded import text_of
from tests.unit.timing.assembled import kernel, machine_code, program, total
from tlx_xdsl.ptx.program import prepare
from tlx_xdsl.ptx.read.reader import read
from tlx_xdsl.sass.text import parse
from tlx_xdsl.timing.blocks import costs, unknown
from tlx_xdsl.timing.instructions import PIPES
from tlx_xdsl.timing.loops import find_loops
from tlx_xdsl.timing.pieces import NO_EVENT

pytestmark = pytest.mark.backend


def numbered(text, count, **names):
    """Lines for each number, with registers that are `%f{...}` of it."""
    return "".join(text.format(each, **names) for each in range(10, 10 + count))


SOFTMAX = (
    "mov.f32 %f2, 0f00000000;\nmov.b32 %r3, 0;\n$L_loop:\n"
    + "".join(f"ld.global.f32 %f{each}, [%rd3+{4096 * (each - 10)}];\n" for each in range(10, 42))
    + "".join(f"max.f32 %f2, %f2, %f{each};\n" for each in range(10, 42))
    + "".join(f"fma.rn.f32 %f{each}, %f{each}, %f1, %f1;\n" for each in range(10, 42))
    + "".join(f"sub.f32 %f{each}, %f{each}, %f2;\n" for each in range(10, 42))
    + "".join(f"ex2.approx.ftz.f32 %f{each}, %f{each};\n" for each in range(10, 42))
    + "".join(f"add.f32 %f3, %f3, %f{each};\n" for each in range(10, 42))
    + "mov.b32 %r4, %f3;\nshfl.sync.bfly.b32 %r5, %r4, 16, 31, -1;\nmov.b32 %f4, %r5;\nadd.f32 %f3, %f3, %f4;\n"
    "add.s64 %rd3, %rd3, 512;\nadd.s32 %r3, %r3, 1;\nsetp.lt.s32 %p1, %r3, %r1;\n@%p1 bra $L_loop;\n"
    "st.global.f32 [%rd1], %f3;\n"
)
HALVES = (
    "mov.b32 %r3, 0;\n$L_loop:\nbar.sync 0;\n"
    + "".join(f"ld.shared.b32 %r{each}, [buffer+{8 * each}];\nmov.b32 {{%h1, %h2}}, %r{each};\n"
              f"cvt.f32.f16 %f{each}, %h1;\ncvt.f32.f16 %f{each + 30}, %h2;\n" for each in range(10, 40))
    + "".join(f"fma.rn.f32 %f{each}, %f{each}, %f1, %f{each + 30};\ncvt.rn.f16x2.f32 %r{each}, %f{each}, %f1;\n"
              f"st.shared.b32 [buffer+{8 * each}], %r{each};\n" for each in range(10, 40))
    + "add.s32 %r3, %r3, 1;\nsetp.lt.s32 %p1, %r3, %r1;\n@%p1 bra $L_loop;\n"
)  # fmt: skip
UNROLLED = (
    "mov.b32 %r3, 0;\nmov.f32 %f3, 0f00000000;\n$L_loop:\nld.global.f32 %f2, [%rd3];\nfma.rn.f32 %f3, %f2, %f1, %f3;\n"
    "ex2.approx.ftz.f32 %f3, %f3;\nadd.s64 %rd3, %rd3, 512;\nadd.s32 %r3, %r3, 1;\nsetp.lt.s32 %p1, %r3, 64;\n"
    "@%p1 bra $L_loop;\nst.global.f32 [%rd1], %f3;\n"
)
TEXTS = {"softmax": SOFTMAX, "halves": HALVES, "unrolled": UNROLLED}


@cache
def text_named(name):
    text = kernel(TEXTS[name])
    return text.replace(".visible .entry", ".shared .align 16 .b8 buffer[1024];\n.visible .entry")


@cache
def both(name):
    """The program, and its costs estimated and counted."""
    made = program(text_named(name))
    return made, costs(made), costs(made, machine_code(text_named(name)))


def in_loop(name):
    made, estimated, counted = both(name)
    (loop,) = find_loops([each.successors for each in made.blocks]).loops
    return [(*total(found, loop.blocks), pipes(found, loop.blocks)) for found in (estimated, counted)]


def pipes(costs, blocks):
    works = [work for block in blocks for work in costs[block].pieces]
    return {pipe: sum(work.pipes[place] for work in works) for place, pipe in enumerate(PIPES)}


@pytest.mark.parametrize("name", ["softmax", "halves"])
def test_estimates_of_loops(name):
    (slots, latency, pipes), (real_slots, real_latency, real_pipes) = in_loop(name)
    assert slots == pytest.approx(real_slots, rel=0.1)
    assert latency == pytest.approx(real_latency, rel=0.4)
    for pipe in ("fma", "xu", "lsu"):
        assert pipes[pipe] == pytest.approx(real_pipes[pipe], rel=0.1)


def test_each_instruction_of_the_machine_counts_once():
    for name in ("softmax", "halves"):
        items = parse(machine_code(text_named(name)))["kernel"].instructions
        ends = max(number for number, each in enumerate(items) if each.name == "EXIT")
        filling = len(items) - ends - 1
        assert total(both(name)[2])[0] == pytest.approx(len(items), abs=filling + 1)


def test_a_loop_that_ptxas_unrolls():
    """64 turns of 6 instructions are fewer turns in the machine's code: one costs not as much as all of those."""
    items = parse(machine_code(text_named("unrolled")))["kernel"].instructions
    copies = sum(each.name == "MUFU" for each in items)
    assert copies >= 4
    (slots, _, _), (real_slots, _, real_pipes) = in_loop("unrolled")
    assert real_pipes["xu"] == 8
    assert 3 <= real_slots <= slots + 1


def test_loads_are_waited_for():
    """The loads of a turn begin before the first of them is used."""
    made, _, counted = both("softmax")
    (loop,) = find_loops([each.successors for each in made.blocks]).loops
    (block,) = loop.blocks
    cost = counted[block]
    events = [each for each in cost.ats if each != NO_EVENT]
    assert len(events) == 32
    first = next(number for number, each in enumerate(cost.needs) if each)
    assert sum(each != NO_EVENT for each in cost.ats[:first]) > 4
    results = {register for each in cost.results for register in each}
    assert {register for each in cost.needs for register in each} == results


def test_a_kernel_of_stock_triton():
    """The kernel has 1,000 instructions, with products of warp groups; its assembler may be another one than ours."""
    text = text_of("wy_grad.ptx")
    made = prepare(read(text, "wy_grad.ptx"))
    code = machine_code(text)
    assert unknown(made) == unknown(made, code) == {}
    estimated, counted = total(costs(made)), total(costs(made, code))
    assert estimated[0] == pytest.approx(counted[0], rel=0.25)
    for found in (costs(made), costs(made, code)):
        placed = sorted(each for cost in found for each in cost.ats if each != NO_EVENT)
        assert len(set(placed)) == len(placed)
        blocks = {each: block.number for block in made.blocks for each in range(block.first, block.last)}
        assert all(blocks[each] == number for number, cost in enumerate(found) for each in cost.ats if each != NO_EVENT)


def test_fences_wait_for_loads_under_way():
    """A fence between a load and its use: the warp waits for the load there, which no scoreboard says."""
    body = "ld.global.f32 %f2, [%rd3];\nbar.sync 0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
    text = kernel(body + "st.global.f32 [%rd3+512], %f2;\n")
    code = parse(machine_code(text))["kernel"].instructions
    assert [each.name for each in code if each.name in ("LDG", "MEMBAR", "BAR")] == ["LDG", "BAR", "MEMBAR", "BAR"]
    found = costs(program(text), machine_code(text))
    (loaded,) = {registers for cost in found for registers in cost.results if registers}
    (after,) = [cost for cost in found if cost.ats and not any(cost.results) and len(cost.ats) > 1]
    assert set(loaded) <= after.needs[0], "it waits before the second barrier"
