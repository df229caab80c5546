"""A call that the compiler would leave out is found in each kernel that it has lowered, in the thread that lacks it.

All calls without a result are left out, one after the other. Those that prepare a unit have no effect on this machine;
those that compute in registers alone leave the protocol right, and numbers wrong.
"""

from functools import cache

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tests.unit.ttl.interpreter.ttl_kernels import CASES, copied, stages
from tlx_xdsl.errors import shown_path
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.text.diagnostics import source_location
from tlx_xdsl.transforms.rewriting import ops_of
from tlx_xdsl.ttl.dialects.ttl.kernel import KernelDriverOp
from tlx_xdsl.ttl.interpreter.ttkernel import explore, make_plan, run

KERNELS = ("scaled", "shared", "matmul")

ONLY_NUMBERS = ("ttkernel.sqrt_tile", "ttkernel.matmul_tiles")
"""Computing in place, or one of several sums: what the register has is another number, but it has one."""

EQUIVALENT = {
    "ttkernel.noc_async_atomic_barrier":
        "the source waits for the increment before it answers, and the thread for the answer",
    "ttkernel.pack_reconfig_l1_acc":
        "the last one sets what is set before each block again",
}  # fmt: skip
"""Calls that change nothing in these kernels, with the reason."""


@cache
def lowered(name: str) -> ModuleOp:
    """The calls of a kernel, for the chip whose network keeps no order that barriers do not make."""
    module = stages(CASES[name])["ttl-lower-affine"]
    for driver in ops_of(module, KernelDriverOp):
        driver.attributes["arch"] = StringAttr("blackhole")
    return module


def calls(name: str) -> list[int]:
    """Numbers of the operations that are left out."""
    return [
        number
        for number, op in enumerate(lowered(name).walk())
        if op.name.startswith("ttkernel.") and not op.results and "init" not in op.name
    ]


def without(name: str, number: int) -> tuple[ModuleOp, Operation, FuncOp]:
    """The kernel without an operation, that operation, and the function that it was in."""
    module = copied(lowered(name))
    op = [*module.walk()][number]
    function = op.parent_op()
    while not isinstance(function, FuncOp):
        assert function is not None
        function = function.parent_op()
    op.detach()
    return module, op, function


def lines_of(function: FuncOp, op: Operation) -> set[str]:
    places = (source_location(each.location) for each in (*function.body.walk(), op))
    return {f"{shown_path(place.filename)}:{place.line}:" for place in places if place is not None}


@pytest.mark.parametrize("name", KERNELS)
def test_a_call_that_is_left_out_is_found(name: str):
    expected = CASES[name].arrays()
    run(lowered(name), expected)
    silent: list[str] = []
    for number in calls(name):
        module, op, function = without(name, number)
        arrays = CASES[name].arrays()
        try:
            plan = make_plan(module)
            report = run(plan, arrays)
            fault = explore(plan, CASES[name].arrays(), 100).fault
            text = "\n".join(map(str, report.warnings)) if fault is None else str(fault)
        except Fault as caught:
            text = str(caught)
        if text:
            assert any(line in text for line in lines_of(function, op)), f"{op}\n{text}"
        elif op.name in EQUIVALENT:
            np.testing.assert_array_equal(arrays[-1], expected[-1])
        elif op.name in ONLY_NUMBERS:
            assert not np.array_equal(arrays[-1], expected[-1])
        else:
            silent.append(f"{op} at {source_location(op.location)}")
    assert silent == []
