"""A kernel that ptxas 12.8 assembles wrongly: what a GPU computes of it was seen to be wrong in each of 2,000 launches.

Its last product has four steps along K. The descriptors of three of them are computed of a register that holds the
counter of the loop at that time.
"""

import random
import subprocess
from dataclasses import replace

import pytest

from tests.unit import volume
from tests.unit.sass.recorded import changed_at, code, ptx, report, text_of, that_matter
from tlx_xdsl.sass.check import validate
from tlx_xdsl.sass.hazards import hazards
from tlx_xdsl.sass.text import find_nvdisasm


def test_the_wrong_descriptors():
    found = report(code())
    assert found.undecided == 0
    assert found.compared > 200
    assert [(str(each.location), each.sass_address) for each in found.findings] == [
        ("wy_grad.py:45:38", address) for address in ("/*4240*/", "/*4250*/", "/*4260*/")
    ]
    first = found.findings[0]
    assert first.message == (
        "the descriptor of B of this wgmma is 0x8000004000000040 in the cubin and 0x8000002000000280 in its PTX"
    )
    assert first.ptx_expression == "((shared + 0x2000) >> 4) + 0x8000002000000040 = 0x8000002000000280"
    line = ptx().lines[first.ptx_line - 1]
    assert "wgmma.mma_async.sync.aligned.m64n32k16" in line


@pytest.mark.backend
def test_a_later_assembler_makes_it_right(tmp_path):
    """ptxas 12.9 and later, of Triton 3.8 and 3.9: seen to be right in 2,000 of 2,000 launches."""
    ptxas = find_nvdisasm().parent / "ptxas"
    if "V12.8" in subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout:
        pytest.skip("this Triton has ptxas 12.8")
    text, cubin = text_of("wy_grad.ptx"), tmp_path / "cubin"
    (tmp_path / "ptx").write_text(text)
    subprocess.run([ptxas, "-arch", "sm_90a", tmp_path / "ptx", "-o", cubin], check=True)
    found = validate(text, cubin.read_bytes())
    assert found.findings == ()
    assert found.undecided == 0


def test_changed_operands_are_found():
    """Change operands in chains of uniform registers, which make descriptors; the rest is equal, or never used."""
    known = {(each.sass_address, each.message) for each in report(code()).findings}
    chance, tried, found = random.Random(5), 0, 0
    made = code()
    uniform = [
        each for each in that_matter(made) if made.instructions[each].name in ("UIADD3", "USHF", "ULEA", "USGXT")
    ]
    while tried < (100 if volume.is_full() else 3):
        changed = code()
        if changed_at(chance.choice(uniform), chance, changed):
            tried += 1
            found += {(each.sass_address, each.message) for each in report(changed).findings} != known
    assert found >= 0.6 * tried


def test_waits():
    """The code has all of its waits; without those of one instruction, what it takes too early is named."""
    assert hazards(code()) == []
    changed = code()
    place = next(number for number, each in enumerate(changed.instructions) if each.waits and each.name == "HMUL2")
    item = changed.instructions[place]
    changed.instructions[place] = replace(item, control=item.control & ~(0x3F << 11))
    found = hazards(changed)
    assert found
    assert {each.instruction.address for each in found} >= {item.address}
    assert all("before the wait for scoreboard" in each.message for each in found)


def test_registers_of_products():
    """The sums of products are taken before they are there without the wait for them."""
    changed = code()
    places = [number for number, each in enumerate(changed.instructions) if each.opcode.startswith("WARPGROUP.DEPBAR")]
    del changed.instructions[places[1]]
    found = hazards(changed)
    assert found
    assert all("before the wait for the product" in each.message for each in found)


def changed_instruction(text, **changes):
    """The code with one instruction changed."""
    made = code()
    place = next(number for number, each in enumerate(made.instructions) if text in str(each))
    made.instructions[place] = replace(made.instructions[place], **changes)
    return made


def test_a_descriptor_that_is_made_of_data():
    """Results of the floating-point units are other numbers than any address.

    ptxas 12.8 makes descriptors of a factor of the sums, in blocks of 32 of 128 rows, with Triton 3.7.1: an illegal
    memory access on a GPU, where T = 128, K = 64 or 128, fp16, 4 warps and 2 stages.
    """
    made = changed_instruction("R2UR UR12, R23", operands=("UR12", "R93"))
    found = {each.sass_address: each.sass_expression for each in report(made).findings}
    assert "[HADD2.F32 at /*0900*/]" in found["/*4260*/"]


def test_each_operand_counts_for_itself():
    """An operand that is not known is undecided, whatever the other operands of the product are."""
    made = changed_instruction("R2UR UR12, R23", opcode="UNHEARDOF")
    before, after = report(code()), report(made)
    assert 0 < after.undecided < 8
    assert after.compared == before.compared - after.undecided
