"""The machine code that ptxas 12.8 made of a kernel, as `nvdisasm` printed it, with its PTX, and changes to it."""

import gzip
import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from tlx_xdsl.ptx.read.reader import read
from tlx_xdsl.sass.accesses import accessed
from tlx_xdsl.sass.check import validate_kernel
from tlx_xdsl.sass.integers import INTEGERS
from tlx_xdsl.sass.machine import steps_of
from tlx_xdsl.sass.text import Code, parse


def text_of(name: str) -> str:
    """A recorded text: wy_grad.ptx by stock Triton 3.6.0, blocks of 32, 4 warps, 2 stages, or wy_grad.sass of it."""
    return gzip.decompress((Path(__file__).parent / f"{name}.gz").read_bytes()).decode()


@cache
def ptx():
    return read(text_of("wy_grad.ptx"), "wy_grad.ptx")


def code() -> Code:
    return parse(text_of("wy_grad.sass"))["wy_grad"]


def report(changed: Code):
    return validate_kernel(ptx(), ptx().functions["wy_grad"], changed)


def changed_at(place: int, chance: random.Random, of: Code) -> str:
    """Change an operand of an instruction, a number or a register; return what it is now, or nothing without one."""
    item = of.instructions[place]
    places = [
        number for number, text in enumerate(item.operands) if number and re.match(r"-?0x[0-9a-f]+$|[-~]?U?R\d+$", text)
    ]
    if not places:
        return ""
    number = chance.choice(places)
    text = item.operands[number]
    if (register := re.match(r"([-~]?U?R)(\d+)$", text)) is not None:
        made = f"{register[1]}{int(register[2]) + chance.choice((-1, 1, 2)) & 63}"
    else:
        made = hex(int(text, 0) ^ 1 << chance.randrange(6))
    operands = (*item.operands[:number], made, *item.operands[number + 1 :])
    of.instructions[place] = replace(item, operands=operands)
    return f"{item} -> {', '.join(operands)}"


def that_matter(of: Code) -> list[int]:
    """The numbers of the instructions that operands are made of: the nearest before each that write what it reads."""
    steps, _, _ = steps_of(of, accessed)
    found: set[int] = set()
    waiting = [
        (number, register) for number, step in enumerate(steps) for register in re.findall(r"U?[RP]\d+", step.event)
    ]
    while waiting:
        number, register = waiting.pop()
        before = next((at for at in range(number - 1, -1, -1) if register in steps[at].targets), None)
        if before is not None and before not in found:
            found.add(before)
            waiting.extend((before, each) for each in steps[before].sources)
    return sorted(each for each in found if of.instructions[each].name in INTEGERS)
