"""Ties of dimensions: the parts of the operands give the parts of the results."""

import pytest
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, TensorType, UnitAttr, f32, i32
from xdsl.ir import Block

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.dimensions import Side, ties


def value(*shape: int):
    return Block(arg_types=[TensorType(f32, shape)]).args[0]


def pairs(op) -> list[tuple[int | None, int]]:
    """The dimensions of the operand and of the result of each tie."""
    sides = [{side.is_result: side.dim for side in tie} for tie in ties(op)]
    return sorted((each.get(False), each[True]) for each in sides)


@pytest.mark.parametrize(
    ("source", "result", "expected"),
    [
        ((128, 64), (128, 2, 32), [(0, 0), (1, 1)]),
        ((128, 2, 32), (128, 64), [(0, 0), (1, 1)]),
        ((8, 16), (128,), [(0, 0)]),
        ((128,), (1, 128, 1), [(0, 1)]),
        ((4, 6), (6, 4), [(0, 0)]),
    ],
    ids=["split", "merged", "rows of rows", "ones", "mixed"],
)
def test_the_slowest_dimensions_of_a_reshape_are_tied(source, result, expected):
    op = tt.ReshapeOp(operands=[value(*source)], result_types=[TensorType(f32, result)])
    assert pairs(op) == expected


def test_elements_in_any_order_are_not():
    properties = {"allow_reorder": UnitAttr()}
    op = tt.ReshapeOp(operands=[value(128, 64)], properties=properties, result_types=[TensorType(f32, [8192])])
    assert ties(op) == ()


def test_a_transpose_maps_dimensions():
    order = DenseArrayBase.from_list(i32, [2, 0, 1])
    op = tt.TransOp(operands=[value(2, 4, 8)], properties={"order": order}, result_types=[TensorType(f32, [8, 2, 4])])
    assert pairs(op) == [(0, 1), (1, 2), (2, 0)]


def test_what_a_product_sums_over_is_in_no_tie():
    a, b, c = value(64, 32), value(32, 128), value(64, 128)
    op = tt.DotOp(operands=[a, b, c], result_types=[c.type])
    rows = {Side(False, 0, 0), Side(False, 2, 0), Side(True, 0, 0)}
    columns = {Side(False, 1, 1), Side(False, 2, 1), Side(True, 0, 1)}
    assert list(ties(op)) == [rows, columns]


def test_a_repeated_dimension_is_cut_in_the_result_alone():
    op = tt.BroadcastOp(operands=[value(64, 1)], result_types=[TensorType(f32, [64, 32])])
    assert ties(op) == [{Side(False, 0, 0), Side(True, 0, 0)}, {Side(True, 0, 1)}]


def test_a_gather_picks_from_all_of_its_axis():
    indices = Block(arg_types=[TensorType(i32, [64, 16])]).args[0]
    properties = {"axis": IntegerAttr(1, i32)}
    op = tt.GatherOp(operands=[value(64, 32), indices], properties=properties, result_types=[TensorType(f32, [64, 16])])
    assert ties(op) == [{Side(False, 0, 0), Side(False, 1, 0), Side(True, 0, 0)}]
