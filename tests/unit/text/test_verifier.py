"""`Verifier`: what has changed since the last time is verified again, and nothing else is."""

import pytest
from xdsl.dialects.builtin import UnitAttr, f32
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl import CompilationError
from tlx_xdsl.text import verify
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.transforms.rewriting import retype

pytestmark = pytest.mark.quick

TEXT = """
tt.func @k(%x: tensor<4xf32>, %i: tensor<4xi32>, %c: i1) {
  %0 = arith.addf %x, %x : tensor<4xf32>
  %1 = arith.mulf %0, %x : tensor<4xf32>
  %n = arith.constant dense<1> : tensor<4xi32>
  cf.cond_br %c, ^a, ^b(%1 : tensor<4xf32>)
^a:
  cf.br ^d
^b(%y: tensor<4xf32>):
  %2 = arith.subf %y, %y : tensor<4xf32>
  cf.br ^c
^c:
  %3 = arith.divf %2, %2 : tensor<4xf32>
  tt.return
^d:
  tt.return
}
"""


class Parts:
    """The parts of `TEXT` that a fault is put in."""

    def __init__(self, module):
        named = {op.name: op for op in module.walk()}
        self.add, self.multiply, self.constant = (
            named[name] for name in ("arith.addf", "arith.mulf", "arith.constant")
        )
        self.function = named["tt.func"]
        self.entry, self.first, self.second, self.third, self.last = self.function.regions[0].blocks

    def swap(self):
        self.multiply.detach()
        Rewriter.insert_op(self.multiply, InsertPoint.before(self.add))


FAULTS = {
    "operand": lambda parts: parts.multiply.operands.__setitem__(1, parts.entry.args[1]),
    "type of a result": lambda parts: retype(parts.constant.results[0], f32),
    "type of an argument": lambda parts: retype(parts.second.args[0], f32),
    "property that is gone": lambda parts: parts.constant.properties.pop("value"),
    "property with another value": lambda parts: parts.constant.properties.update(value=UnitAttr()),
    "attribute that is new": lambda parts: parts.function.properties.update(nothing=UnitAttr()),
    "successor": lambda parts: parts.first.last_op.successors.__setitem__(0, parts.third),
    "order": Parts.swap,
    "operation that is gone": lambda parts: parts.last.last_op.detach(),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_any_part_is_found_after_a_module_without_one(fault):
    module, verifier = parse_module(TEXT), verify.Verifier()
    verifier.verify(module)
    FAULTS[fault](Parts(module))
    for _ in range(2):  # a module with a fault is not one that was verified
        with pytest.raises(CompilationError):
            verifier.verify(module)


def test_only_a_change_is_verified(monkeypatch):
    seen = []
    monkeypatch.setattr(verify, "verify_module", seen.append)
    module, verifier = parse_module(TEXT), verify.Verifier()
    verifier.verify(module)
    verifier.verify(module)
    assert len(seen) == 1
    parts = Parts(module)
    parts.multiply.operands[0] = parts.entry.args[0]
    verifier.verify(module)
    assert len(seen) == 2
    verifier.verify(parse_module(TEXT))
    assert len(seen) == 3
