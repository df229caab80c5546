"""Specialised kernels from which one synchronisation is taken, or that count one wrong: each is found.

What the proof of the whole kernel says is worth as much as what it would say of the kernel without any part of it.
"""

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation

from tests.gallery.plain import matmul
from tests.gallery.plain.numpy_arrays import NumpyArrays
from tests.gallery.plain.specialized import Made, make
from tests.unit.volume import is_full
from tlx_xdsl import CompilationError
from tlx_xdsl.analysis.protocol.prove import prove
from tlx_xdsl.dialects import ttng
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

COUNTS = {ttng.InitBarrierOp: "count", ttng.BarrierExpectOp: "size", ttng.WarpGroupDotWaitOp: "pendings"}
REMOVED = (
    ttng.WaitBarrierOp,
    ttng.ArriveBarrierOp,
    ttng.BarrierExpectOp,
    ttng.WarpGroupDotWaitOp,
    ttng.FenceAsyncSharedOp,
    ttng.AsyncTMAStoreWaitOp,
)
SHAPE, CONFIG = {"M": 130, "N": 72, "K": 200}, {**matmul.CONFIG, "BLOCK_N": 64}


@pytest.fixture(scope="module")
def made() -> Made:
    family = matmul.FAMILY
    problem = family.problem(SHAPE, NumpyArrays(0), CONFIG)
    constexprs = family.constexprs(SHAPE, CONFIG)
    return make(family.kernel, problem, constexprs, 4, Decisions(groups=2, depth=2))


def without(op: Operation) -> None:
    """Let the results of an operation be what it takes."""
    for result, operand in zip(op.results, op.operands, strict=False):
        result.replace_all_uses_with(operand)
    op.detach()
    op.erase()


def one_more(op: Operation) -> None:
    name = COUNTS[type(op)]
    count = op.properties[name]
    assert isinstance(count, IntegerAttr)
    op.properties[name] = IntegerAttr(count.value.data + 1, i32)


def is_found(made: Made, module) -> bool:
    """Return whether the proof or a run finds a fault. The proof is of barriers; fences are the interpreter's."""
    if prove(module, seconds=10.0)[0].answer == "refuted":
        return True
    mutant = Made(made.plain, module, made.num_warps, made.constexprs)
    problem = matmul.FAMILY.problem(SHAPE, NumpyArrays(0), CONFIG)
    try:
        mutant.run_specialized(problem, schedule="adversarial")
    except CompilationError:
        return True
    return False


def test_each_synchronisation_is_needed(made):
    text = print_module(made.specialized, locations=False)
    assert prove(parse_module(text), seconds=10.0)[0].answer == "proved"
    changes = [(without, REMOVED), (one_more, tuple(COUNTS))]
    missed: list[str] = []
    for change, kinds in changes:
        number = sum(isinstance(op, kinds) for op in made.specialized.walk())
        # Both consumers are copies of each other.
        for index in range(number) if is_full() else range(0, number, 2):
            module = parse_module(text)
            op = [each for each in module.walk() if isinstance(each, kinds)][index]
            what = f"{change.__name__} {index} {op.name}"
            change(op)
            if not is_found(made, module):
                missed.append(what)
    assert not missed


def test_the_whole_kernel_is_right(made):
    problem = matmul.FAMILY.problem(SHAPE, NumpyArrays(0), CONFIG)
    made.run_specialized(problem, schedule="adversarial")
    expected = problem.reference(np, {name: value.astype(np.float32) for name, value in problem.arrays.items()})
    np.testing.assert_allclose(problem.arrays["c"], expected["c"], rtol=1e-2, atol=1e-1)
