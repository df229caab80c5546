"""Sparse conditional constants: how the work grows where states change one after the other."""

import pytest

from tlx_xdsl.analysis.constants import Constants
from tlx_xdsl.dialects import tt
from tlx_xdsl.text.parser import parse_module


def blocks(count: int) -> str:
    """Blocks that control goes through from the last one to the first."""
    lines = [f"%0 = arith.constant 1 : i32\ncf.br ^b{count - 1}(%0 : i32)"]
    for i in range(1, count):
        lines.append(f"^b{i}(%x{i}: i32):\n%y{i} = arith.addi %x{i}, %0 : i32\ncf.br ^b{i - 1}(%y{i} : i32)")
    return "\n".join([*lines, "^b0(%last: i32):\ntt.return %last : i32"])


def shifted(count: int) -> str:
    """A loop in which each turn hands every number on to the next variable."""
    types, names = ", ".join(["i32"] * count), [f"%x{i}" for i in range(count)]
    initial = ", ".join(f"{name} = %0" for name in names)
    return f"""%0 = arith.constant 0 : i32
%r:{count} = scf.for %i = %0 to %n step %n iter_args({initial}) -> ({types}) : i32 {{
  scf.yield {", ".join(["%n", *names[:-1]])} : {types}
}}
tt.return %r#{count - 1} : i32"""


def constants(body: str) -> tuple[Constants, tt.FuncOp]:
    (func,) = parse_module(f"tt.func public @f(%n: i32) -> i32 {{\n{body}\n}}").body.block.ops
    assert isinstance(func, tt.FuncOp)
    return Constants(func), func


@pytest.mark.parametrize(("text", "expected"), [(blocks, "count"), (shifted, None)])
def test_the_result_of_a_long_chain(text, expected):
    found, func = constants(text(50))
    (value,) = next(end for block in func.body.blocks if isinstance(end := block.last_op, tt.ReturnOp)).srcs
    assert found.of(value) == (50 if expected else None)
    assert all(found.reaches(block) for block in func.body.blocks)


@pytest.mark.parametrize("text", [blocks, shifted])
def test_each_operation_is_visited_a_few_times(text, monkeypatch):
    visits: list[object] = []
    visit = Constants._visit
    monkeypatch.setattr(Constants, "_visit", lambda self, op: (visits.append(op), visit(self, op)))
    _, func = constants(text(300))
    assert len(visits) <= 3 * sum(1 for _ in func.walk())
