"""Costs of blocks: estimated from PTX, and counted in machine code that was written by hand."""

import gc
import time
from collections import Counter
from dataclasses import replace

import pytest

from tests.unit.timing.assembled import kernel, program, total
from tlx_xdsl.ptx.semantics import MEANINGS
from tlx_xdsl.timing.blocks import costs, unknown
from tlx_xdsl.timing.expansions import RULES, expansion_of, is_known
from tlx_xdsl.timing.instructions import PIPES, PipeRates, unknown_in, use_of
from tlx_xdsl.timing.loops import OUTSIDE, find_chains, find_loops
from tlx_xdsl.timing.pieces import NO_EVENT

pytestmark = pytest.mark.quick


def cycles(pipe, work):
    return work.pipes[PIPES.index(pipe)]


def body_of(costs):
    """The costs of the blocks that have work."""
    return [cost for cost in costs if any(piece.slots for piece in cost.pieces)]


# Graphs ---------------------------------------------------------------------------------------------------------------


def test_loops():
    """1 to 3 is a loop, and 2 one in it that runs again and again by itself."""
    found = find_loops([[1], [2], [2, 3], [1, 4], [-1]])
    inner, outer = found.loops
    assert (inner.blocks, outer.blocks) == ({2}, {1, 2, 3})
    assert (inner.parent, outer.parent) == (1, OUTSIDE)
    assert found.innermost == [OUTSIDE, 1, 0, 1, OUTSIDE]


def test_chains():
    """Block 3 has two ways to it, so that none goes on in it; 5 and 6 are a circle that nothing leads to."""
    assert find_chains([[1], [2, 3], [3], [4], [-1], [6], [5]]) == [[0, 1], [2], [3, 4], [5], [6]]
    assert find_chains([[1], [0]]) == [[0, 1]]


# Instructions ---------------------------------------------------------------------------------------------------------


def test_pipes():
    rates = PipeRates()
    taken = [(PIPES[pipe], cycles) for name in ("FFMA", "IMAD", "MUFU.EX2", "LOP3.LUT")
             for pipe, cycles in use_of(name, rates).pipes]  # fmt: skip
    assert taken == [("fma", 1.0), ("fma", 1.0), ("heavy", 2.0), ("xu", 8.0), ("alu", 2.0)]


def test_rates_can_be_changed():
    assert use_of("MUFU.EX2", PipeRates(xu=16.0)).pipes == ((PIPES.index("xu"), 16.0),)


def test_what_is_not_known_is_counted():
    assert unknown_in(["FFMA", "FROB.X", "FROB.Y"], PipeRates()) == Counter(FROB=2)
    assert use_of("FROB.X", PipeRates()).pipes == use_of("IADD3", PipeRates()).pipes
    text = kernel("add.s32 %r3, %r1, 1;\n")
    assert unknown(program(text)) == Counter()


def test_each_instruction_that_the_ptx_machine_knows_has_an_estimate():
    assert set(MEANINGS) <= {each.partition(".")[0] for each in RULES}
    made = program(kernel("cvt.f32.f16 %f2, %h1;\nex2.approx.ftz.f32 %f3, %f1;\nmov.b32 %r3, %r4;\n"))
    assert all(is_known(each) for each in made.function.instructions)
    assert not is_known(replace(made.function.instructions[0], opcode="frob.b32"))


@pytest.mark.parametrize(("line", "expected"), [
    ("ex2.approx.ftz.f32 %f3, %f1;", ["MUFU"]),
    ("ex2.approx.f32 %f3, %f1;", ["FSETP", "FMUL", "MUFU"]),
    ("mov.b32 %r3, %r4;", []),
    ("setp.lt.f32 %p1, %f1, %f2;", ["FSETP"]),
    ("cvt.rn.f16x2.f32 %r3, %f1, %f2;", ["F2FP"]),
    ("mul.wide.u32 %rd4, %r1, 4;", ["IMAD.WIDE"]),
    ("rcp.approx.ftz.f32 %f3, %f1;", ["MUFU"]),
])  # fmt: skip
def test_expansions(line, expected):
    made = program(kernel(f"{line}\n"))
    assert [name for name, _ in expansion_of(made.function.instructions[-2])] == expected


# Estimates ------------------------------------------------------------------------------------------------------------


def test_pieces_end_at_events():
    text = kernel(
        "ld.global.f32 %f2, [%rd3];\nadd.f32 %f3, %f2, %f1;\nbar.sync 0;\nmul.f32 %f4, %f3, %f3;\n"
        "st.global.f32 [%rd3], %f4;\n"
    )
    made = program(text)
    opcodes = [each.opcode for each in made.function.instructions]
    ats = [opcodes.index(each) for each in ("ld.global.f32", "bar.sync", "st.global.f32")]
    found = costs(made)
    assert [at for cost in found for at in cost.ats] == ats
    for cost in found:
        assert len(cost.pieces) == len(cost.ats) + 1 == len(cost.needs) == len(cost.results) + 1
    (filled,) = [each for cost in found for each in cost.results if each]
    assert {each for cost in found for needs in cost.needs for each in needs} == set(filled)


def test_a_load_is_waited_for_where_it_is_used():
    """Sums of other registers go on before the first use of the load; parts of what it gives wait for it, too."""
    text = kernel(
        "ld.global.b32 %r3, [%rd3];\n" + "add.f32 %f3, %f1, %f1;\n" * 9 + "mov.b32 {%h1, %h2}, %r3;\n"
        "cvt.f32.f16 %f2, %h1;\nadd.f32 %f3, %f3, %f2;\nst.global.f32 [%rd3], %f3;\n"
    )
    (cost,) = body_of(costs(program(text)))
    waits = next(number for number, needs in enumerate(cost.needs) if needs)
    assert cost.ats[waits - 1] == NO_EVENT
    assert sum(piece.slots for piece in cost.pieces[:waits]) >= 9


def test_chains_take_their_latency_and_pipes_their_cycles():
    chain = costs(program(kernel("fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 50)))
    apart = costs(program(kernel("".join(f"fma.rn.f32 %f{each}, %f1, %f1, %f1;\n" for each in range(2, 52)))))
    assert total(chain)[0] == total(apart)[0]
    assert total(chain)[1] - total(apart)[1] == pytest.approx(3 * 49, abs=4)
    special = costs(program(kernel("".join(f"ex2.approx.ftz.f32 %f{each}, %f1;\n" for each in range(2, 52)))))
    assert total(special)[1] == pytest.approx(50 * 8, rel=0.1)


def test_labels_do_not_end_the_schedule():
    """Operations that follow from nothing in an earlier block fill the gaps in it."""
    parts = [
        "fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 40,
        "".join(f"add.f32 %f{each}, %f90, %f90;\n" for each in range(2, 42)),
    ]
    split = costs(program(kernel("$L_here:\n".join(parts))))
    assert len(split) == 2
    assert total(split) == total(costs(program(kernel("".join(parts)))))
    assert total(split)[1] < total(costs(program(kernel(parts[0]))))[1] + 20


def test_fused_products_cost_nothing():
    together = total(costs(program(kernel("mul.f32 %f2, %f1, %f1;\nadd.f32 %f3, %f2, %f1;\n"))))[0]
    apart = total(costs(program(kernel("mul.f32 %f2, %f1, %f1;\nadd.rn.f32 %f3, %f2, %f1;\n"))))[0]
    assert together == apart - 1


def test_time_is_linear():
    """5,000 instructions, of which each is used by the next one, and all of a register that lives long."""
    made = program(kernel("fma.rn.f32 %f2, %f2, %f1, %f1;\nex2.approx.ftz.f32 %f3, %f1;\n" * 2500))
    gc.disable()  # it would look through all that the tests before have left
    try:
        begun = time.process_time()
        costs(made)
        assert time.process_time() - begun < 1.0
    finally:
        gc.enable()


# Machine code ---------------------------------------------------------------------------------------------------------

LOOP = kernel(
    "mov.b32 %r3, 0;\n$L_loop:\nld.global.f32 %f2, [%rd3];\nadd.s32 %r4, %r2, %r2;\nfma.rn.f32 %f3, %f2, %f1, %f3;\n"
    "add.s32 %r3, %r3, 1;\nsetp.lt.s32 %p1, %r3, %r1;\n@%p1 bra $L_loop;\nst.global.f32 [%rd3], %f3;\n"
)


def line_of(text):
    return next(number for number, line in enumerate(LOOP.split("\n"), 1) if text in line)


def machine_code(*instructions):
    """A disassembly: texts of instructions, each with a line of `LOOP` and the bits that schedule it, and labels."""
    found, address = ['\t.section\t.text.kernel,"ax",@progbits'], 0
    for each in instructions:
        if isinstance(each, str):
            found.append(f"{each}:")
            continue
        text, line, stall, *bits = each
        control = stall | (7 << 5) | (7 << 8) if not bits else stall | bits[0] << 5 | 7 << 8 | bits[1] << 11
        place = line if isinstance(line, int) else line_of(line)
        found.append(f'\t//## File ".nv_debug_ptx_txt", line {place}')
        found.append(f"        /*{address:04x}*/   {text} ;   /* 0x0000000000000000 */")
        found.append(f"                              /* 0x{control << 41:016x} */")
        address += 16
    return "\n".join(found) + "\n"


BEFORE = [("S2R R2, SR_TID.X", "%tid", 1), ("IADD3 R4, R2, R2, RZ", "%r4, %r2", 1)]
TURN = [
    ("LDG.E R5, [R6]", "ld.global", 1, 0, 0),
    ("VIADD R3, R3, 0x1", "add.s32 %r3", 2),
    ("ISETP.LT P0, R3, R1", "setp", 5),
    ("FFMA R8, R5, R7, R8", "fma", 4, 7, 1),
]
AFTER = [("@P0 BRA `(.L_1)", "bra", 5), ("STG.E [R6], R8", "st.global", 1), ("EXIT", "ret;", 5)]


def loop_cost(made, found):
    (block,) = [each for each in made.blocks if each.number in each.successors]
    return found[block.number]


def test_a_block_costs_what_the_machine_has_for_it():
    """The sum that ptxas has moved out of the loop does not count in it; the product waits for the load."""
    made = program(LOOP)
    found = costs(made, machine_code(*BEFORE, ".L_1", *TURN, *AFTER))
    cost = loop_cost(made, found)
    assert [each for each in cost.ats if each != NO_EVENT] == [cost.ats[0]]
    assert [(piece.slots, piece.latency) for piece in cost.pieces] == [(1, 1), (2, 7), (2, 9)]
    assert [bool(each) for each in cost.needs] == [False, False, True]
    assert cost.needs[2] == set(cost.results[0])
    assert cycles("alu", cost.pieces[1]) == 4
    assert total(found)[0] == len(BEFORE) + len(TURN) + len(AFTER)


def test_a_load_is_waited_for_once():
    """A wait for the same scoreboard, after the wait in the loop, is for something else."""
    made = program(LOOP)
    after = [AFTER[0], ("STG.E [R6], R8", "st.global", 1, 7, 1), AFTER[2]]
    found = costs(made, machine_code(*BEFORE, ".L_1", *TURN, *after))
    assert sum(bool(needs) for cost in found for needs in cost.needs) == 1


def test_a_loop_that_ptxas_has_unrolled():
    made = program(LOOP)
    once = loop_cost(made, costs(made, machine_code(*BEFORE, ".L_1", *TURN, *AFTER)))
    turns = loop_cost(made, costs(made, machine_code(*BEFORE, ".L_1", *TURN, *TURN, *TURN, *TURN, *AFTER)))
    assert turns.ats == once.ats
    # One branch for four turns.
    assert sum(piece.slots for piece in turns.pieces) == sum(piece.slots for piece in once.pieces) - 0.75


def test_loads_of_several_turns_at_once():
    """Four loads are under way when the first is waited for: a turn waits for what was loaded three turns before."""
    made = program(LOOP)
    loads = [("LDG.E R5, [R6]", "ld.global", 1, board, 0) for board in range(4)]
    rest = [(text, line, stall, 7, 1 << board) for board in range(4) for text, line, stall, *_ in TURN[1:]]
    cost = loop_cost(made, costs(made, machine_code(*BEFORE, ".L_1", *loads, *rest, *AFTER)))
    assert cost.lag == 3
    assert loop_cost(made, costs(made, machine_code(*BEFORE, ".L_1", *TURN, *TURN, *AFTER))).lag == 0


def test_machine_code_of_another_kind():
    """The cost is estimated without lines of the PTX, as in a disassembly with lines of Python."""
    made = program(LOOP)
    text = machine_code(*BEFORE, ".L_1", *TURN, *AFTER)
    assert costs(made, text.replace(".nv_debug_ptx_txt", "kernel.py")) == costs(made) != costs(made, text)
    assert costs(made, text.replace(".text.kernel", ".text.other")) == costs(made)


def test_unknown_instructions_of_the_machine():
    made = program(LOOP)
    text = machine_code(*BEFORE, ("FROB.X R1, R2", "setp", 1), ".L_1", *TURN, *AFTER)
    assert unknown(made, text) == Counter(FROB=1)


def test_spilled_registers():
    """Spilled registers go to memory, and what uses one waits for it, though the PTX has no such event."""
    made = program(LOOP)
    spilled = [*TURN[:-1], ("STL [R1], R8", "add.s32 %r3", 1), ("LDL R8, [R1]", "fma", 1, 1, 0),
               ("FFMA R8, R5, R7, R8", "fma", 4, 7, 3)]  # fmt: skip
    cost = loop_cost(made, costs(made, machine_code(*BEFORE, ".L_1", *spilled, *AFTER)))
    assert sum(cycles("lsu", piece) for piece in cost.pieces) == 2 * PipeRates().local
    assert sum(piece.latency for piece in cost.pieces) >= PipeRates().local_latency
    assert [each for each in cost.ats if each != NO_EVENT] == [cost.ats[0]]
    far = [(text.replace("[R1]", "[R1+0x800]"), *rest) for text, *rest in spilled]
    cost = loop_cost(made, costs(made, machine_code(*BEFORE, ".L_1", *far, *AFTER)))
    assert sum(cycles("lsu", piece) for piece in cost.pieces) == 2 * PipeRates().far_local


def test_products_without_a_line_of_their_own():
    """ptxas gives some products the line of what comes before them: they are named by their order."""
    registers = ", ".join(f"%f{each}" for each in range(10, 14))
    wgmma = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{registers}}}, %rd4, %rd5, 1, 1, 1, 0, 0;\n"
    text = kernel(
        f"wgmma.fence.sync.aligned;\n{wgmma}{wgmma}{wgmma}wgmma.commit_group.sync.aligned;\n"
        "wgmma.wait_group.sync.aligned 0;\n"
    )
    lines = text.split("\n")
    first = next(number for number, line in enumerate(lines, 1) if line.startswith("wgmma.mma"))
    made = program(text)
    code = machine_code(
        ("WARPGROUP.ARRIVE", first - 1, 1), ("HGMMA.64x8x16.F32 R24, gdesc[UR8], R24", first - 1, 1),
        ("UMOV UR8, 0x1", first + 1, 3), ("HGMMA.64x8x16.F32 R24, gdesc[UR8], R24", first + 1, 1),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR8], R24, gsb0", first - 1, 1),
        ("WARPGROUP.DEPBAR.LE gsb0, 0x0", first + 4, 2), ("EXIT", first + 5, 5),
    )  # fmt: skip
    (cost,) = body_of(costs(made, code))
    products = [number for number, each in enumerate(made.function.instructions) if "mma_async" in each.opcode]
    assert list(cost.ats[:3]) == products
    assert [piece.slots for piece in cost.pieces[:3]] == [2, 2, 1]
