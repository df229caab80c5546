"""Operations of `linalg` on memory in the interpreter: reshaped memory, bodies that load, and results over operands."""

# covers: linalg-bufferize

import numpy as np
import pytest

from tests.unit.interpreter.operations.test_memory_of_mlir import fault, numbers, run

HEAD = """
  %a = memref.alloc() : memref<8xf32>
  memref.copy %row, %a : memref<8xf32, strided<[1], offset: ?>> to memref<8xf32>
  %out = memref.reinterpret_cast %q to offset: [0], sizes: [8], strides: [1] : memref<*xf32> to memref<8xf32>
"""
ROW = 'indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]'


def test_memory_with_other_dimensions():
    body = f"""{HEAD}
  %b = memref.expand_shape %a [[0, 1]] output_shape [2, 4] : memref<8xf32> into memref<2x4xf32>
  %right = memref.subview %b[0, 2] [2, 2] [1, 1] : memref<2x4xf32> to memref<2x2xf32, strided<[4, 1], offset: 2>>
  %four = arith.constant 4.0 : f32
  linalg.fill ins(%four : f32) outs(%right : memref<2x2xf32, strided<[4, 1], offset: 2>>)
  %c = memref.collapse_shape %b [[0, 1]] : memref<2x4xf32> into memref<8xf32>
  memref.copy %c, %out : memref<8xf32> to memref<8xf32>"""
    assert run(body, numbers(8), np.zeros(8, np.float32)).tolist() == [0, 1, 4, 4, 4, 5, 4, 4]


def _reads(index):
    return f"""{HEAD}
  linalg.generic {{{ROW}}} ins(%a : memref<8xf32>) outs(%out : memref<8xf32>) {{
  ^bb0(%x: f32, %o: f32):
    %i = linalg.index 0 : index
    {index}
    %t = memref.load %a[%j] : memref<8xf32>
    linalg.yield %t : f32
  }}"""


def test_a_body_loads_elements_each_at_its_own_index():
    body = _reads("%seven = arith.constant 7 : index\n%j = arith.subi %seven, %i : index")
    assert run(body, numbers(8), np.zeros(8, np.float32)).tolist() == numbers(8)[::-1].tolist()


def test_an_index_of_a_body_is_inside():
    found = fault(_reads("%j = arith.addi %i, %c1 : index"), numbers(8), np.zeros(8, np.float32))
    assert found.message == "an index is out of bounds: dimension 0 has 8 elements"


def _negated(source, target, first="(i) -> (i)", rank=1):
    kinds = ", ".join(['"parallel"'] * rank)
    last = "(i) -> (i)" if rank == 1 else "(i, j) -> (i, j)"
    return f"""
  linalg.generic {{indexing_maps = [affine_map<{first}>, affine_map<{last}>], iterator_types = [{kinds}]}}
      ins({source}) outs({target}) {{
  ^bb0(%x: f32, %o: f32):
    %n = arith.negf %x : f32
    linalg.yield %n : f32
  }}"""


def test_a_result_takes_the_place_of_its_operand():
    body = f"""{HEAD}{_negated("%a : memref<8xf32>", "%a : memref<8xf32>")}
  memref.copy %a, %out : memref<8xf32> to memref<8xf32>"""
    assert run(body, numbers(8), np.zeros(8, np.float32)).tolist() == (-numbers(8)).tolist()


def test_columns_of_one_buffer_are_apart():
    column = "memref<4xf32, strided<[2], offset: {}>>"
    first, second = column.format(0).replace(", offset: 0", ""), column.format(1)
    body = f"""{HEAD}
  %b = memref.expand_shape %a [[0, 1]] output_shape [4, 2] : memref<8xf32> into memref<4x2xf32>
  %left = memref.subview %b[0, 0] [4, 1] [1, 1] : memref<4x2xf32> to {first}
  %right = memref.subview %b[0, 1] [4, 1] [1, 1] : memref<4x2xf32> to {second}
  {_negated(f"%left : {first}", f"%right : {second}")}
  memref.copy %a, %out : memref<8xf32> to memref<8xf32>"""
    assert run(body, numbers(8), np.zeros(8, np.float32)).tolist() == [0, 0, 2, -2, 4, -4, 6, -6]


_SHIFTED = "memref<7xf32, strided<[1], offset: 1>>"


@pytest.mark.parametrize(
    "body",
    [
        f"""%front = memref.subview %a[0] [7] [1] : memref<8xf32> to memref<7xf32, strided<[1]>>
  %rest = memref.subview %a[1] [7] [1] : memref<8xf32> to {_SHIFTED}
  {_negated("%front : memref<7xf32, strided<[1]>>", f"%rest : {_SHIFTED}")}""",
        f"""%part = memref.subview %a[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  %b = memref.expand_shape %part [[0, 1]] output_shape [2, 2]
    : memref<4xf32, strided<[1]>> into memref<2x2xf32, strided<[2, 1]>>
  {_negated(*["%b : memref<2x2xf32, strided<[2, 1]>>"] * 2, "(i, j) -> (j, i)", 2)}""",
    ],
    ids=["shifted", "transposed"],
)
def test_what_is_read_later_must_not_be_written(body):
    found = fault(HEAD + body, numbers(8), np.zeros(8, np.float32))
    assert found.message == "operand 0 is in memory that operand 1 is written to"
