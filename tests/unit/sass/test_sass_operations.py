"""Integer arithmetic on both sides, by what ptxas makes of each operation of PTX."""

import subprocess
from dataclasses import replace

import pytest

from tests.unit.sass.operations import FROM_MEMORY, FROM_PARAMETERS, kernel
from tlx_xdsl.ptx.read.reader import read
from tlx_xdsl.sass.check import validate, validate_kernel
from tlx_xdsl.sass.text import disassemble, find_nvdisasm

pytestmark = pytest.mark.backend


def assembled(text, folder):
    tools = find_nvdisasm().parent
    (folder / "kernel.ptx").write_text(text)
    command = [tools / "ptxas", "-arch", "sm_90a", folder / "kernel.ptx", "-o", folder / "kernel.cubin"]
    subprocess.run(command, check=True)
    return (folder / "kernel.cubin").read_bytes()


@pytest.mark.parametrize("begin", [FROM_MEMORY, FROM_PARAMETERS], ids=["vector", "uniform"])
def test_each_operation(begin, tmp_path):
    """Compare words in registers of threads, and words that all threads have, for which there are other units."""
    text = kernel(begin)
    report = validate(text, assembled(text, tmp_path))
    assert report.findings == ()
    assert report.compared > 150
    assert report.undecided == 0


def test_a_wrong_number(tmp_path):
    text = kernel(FROM_MEMORY)
    module = read(text)
    (code,) = disassemble(assembled(text, tmp_path), find_nvdisasm()).values()
    place = next(number for number, each in enumerate(code.instructions) if "-0x3" in each.operands)
    item = code.instructions[place]
    code.instructions[place] = replace(
        item, operands=tuple("-0x5" if each == "-0x3" else each for each in item.operands)
    )
    report = validate_kernel(module, module.functions["operations"], code)
    (found,) = report.findings
    assert "the cubin has a store to global memory at" in found.message
    assert found.sass_address
