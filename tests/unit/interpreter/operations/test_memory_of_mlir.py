"""Memory of upstream MLIR in the interpreter: views, copies, updates, lifetimes, and the functions that take it."""

import numpy as np
import pytest
from xdsl.dialects.builtin import UnrealizedConversionCastOp

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.interpreter.memref import MemRef
from tlx_xdsl.runtime.simulate.interpret import interpret_text

OP = UnrealizedConversionCastOp.get([], [])
"""Any operation, which faults are of."""
ROW = "memref<8xf32, strided<[1], offset: ?>>"


def function(body, arguments="%p: memref<*xf32>, %q: memref<*xf32>", *, coordinates=3, kind="func.func", end="return"):
    """A kernel with constants `%c0` to `%c8`, and a row of 8 elements of `%p` at 8 times the program's index."""
    ids = ", ".join(f"%id{axis}: i32" for axis in range(coordinates))
    constants = "\n".join(f"%c{number} = arith.constant {number} : index" for number in range(9))
    return f"""
{kind} @kernel({arguments}, {ids}) {{
  {constants}
  %program = arith.index_cast %id0 : i32 to index
  %start = arith.muli %program, %c8 : index
  %row = memref.reinterpret_cast %p to offset: [%start], sizes: [8], strides: [1] : memref<*xf32> to {ROW}
  {body}
  {end}
}}"""


def numbers(count, first=0):
    return np.arange(first, first + count, dtype=np.float32)


def run(body, *arrays, grid=1, **options):
    interpret_text(function(body, **options), grid, arrays, filename="kernel.mlir")
    return arrays[-1]


def fault(body, *arrays, **options):
    with pytest.raises(Fault) as caught:
        run(body, *arrays, **options)
    return caught.value


# --- views and copies -------------------------------------------------------------------------------------------------


def test_each_program_has_its_row():
    body = f"""
  %to = memref.reinterpret_cast %q to offset: [%start], sizes: [8], strides: [1] : memref<*xf32> to {ROW}
  memref.copy %row, %to : {ROW} to {ROW}"""
    assert run(body, numbers(24), np.zeros(24, np.float32), grid=3).tolist() == numbers(24).tolist()


def test_views_compose_and_run_backwards():
    body = """
  %box = memref.reinterpret_cast %p to offset: [1], sizes: [4, 3], strides: [8, 2]
    : memref<*xf32> to memref<4x3xf32, strided<[8, 2], offset: 1>>
  %line = memref.subview %box[%c1, 0] [1, 3] [1, 1]
    : memref<4x3xf32, strided<[8, 2], offset: 1>> to memref<3xf32, strided<[2], offset: ?>>
  %back = memref.reinterpret_cast %q to offset: [2], sizes: [3], strides: [-1]
    : memref<*xf32> to memref<3xf32, strided<[-1], offset: 2>>
  memref.copy %line, %back : memref<3xf32, strided<[2], offset: ?>> to memref<3xf32, strided<[-1], offset: 2>>"""
    assert run(body, numbers(32), np.zeros(3, np.float32)).tolist() == [13, 11, 9]


def test_a_tensor_keeps_the_elements_that_it_was_made_of():
    body = f"""
  %values = bufferization.to_tensor %row : {ROW} to tensor<8xf32>
  %seven = arith.constant 7.0 : f32
  memref.store %seven, %row[%c0] : {ROW}
  %to = memref.reinterpret_cast %q to offset: [0], sizes: [8], strides: [1]
    : memref<*xf32> to memref<8xf32, strided<[1]>>
  bufferization.materialize_in_destination %values in writable %to
    : (tensor<8xf32>, memref<8xf32, strided<[1]>>) -> ()"""
    p = numbers(8)
    assert run(body, p, np.zeros(8, np.float32)).tolist() == numbers(8).tolist()
    assert p[0] == 7


def test_a_box_must_be_inside_of_its_source():
    body = f"""
  %part = memref.subview %row[%c4] [%c5] [1] : {ROW} to memref<?xf32, strided<[1], offset: ?>>"""
    found = fault(body, numbers(64), numbers(8))
    assert found.message == "5 elements from 4 on in steps of 1 are not inside of dimension 0, which has 8"
    assert str(found.location).startswith("kernel.mlir:16:")


def test_an_empty_box_may_be_anywhere():
    body = f"""
  %part = memref.subview %row[%c8] [%c0] [1] : {ROW} to memref<?xf32, strided<[1], offset: ?>>
  memref.copy %part, %part : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>"""
    run(body, numbers(8), numbers(8))


def test_what_a_cast_states_must_be_so():
    body = f"""
  %some = memref.subview %row[0] [%c4] [1] : {ROW} to memref<?xf32, strided<[1], offset: ?>>
  %five = memref.cast %some : memref<?xf32, strided<[1], offset: ?>> to memref<5xf32, strided<[1], offset: ?>>"""
    assert fault(body, numbers(8), numbers(8)).message == "the sizes are [4], its type says [5]"


def test_copies_of_other_shapes_are_found():
    body = f"""
  %some = memref.subview %row[0] [%c4] [1] : {ROW} to memref<?xf32, strided<[1], offset: ?>>
  memref.copy %some, %row : memref<?xf32, strided<[1], offset: ?>> to {ROW}"""
    assert fault(body, numbers(8), numbers(8)).message == "values of the shape [4] are written to one of [8]"


def test_boxes_of_boxes_are_slices_of_arrays():
    random = np.random.default_rng(0)
    for _ in range(200):
        shape = tuple(random.integers(1, 6, random.integers(1, 4)).tolist())
        array = random.integers(0, 100, shape).astype(np.int32)
        view = MemRef.allocate(OP, array.dtype, shape, array)
        for _ in range(2):
            boxes = [one_box(random, size) for size in array.shape]
            kept = [dim for dim, (_, count, _) in enumerate(boxes) if count != 1 or random.integers(2)]
            array = array[tuple(slice(first, first + count * step, step) for first, count, step in boxes)]
            array = array.reshape([array.shape[dim] for dim in kept])
            view = view.box(OP, *zip(*boxes, strict=True), kept) if boxes else view
            np.testing.assert_array_equal(view.read(None, OP), array)
        view.write(None, OP, -array)
        np.testing.assert_array_equal(view.read(None, OP), -array)


def one_box(random, size):
    first, step = int(random.integers(max(size, 1))), int(random.integers(1, 3))
    return first, int(random.integers((size - first + step - 1) // step + 1)), step


# --- bounds and lifetimes ---------------------------------------------------------------------------------------------


def test_accesses_outside_of_an_array_are_found():
    found = fault(f"%v = memref.load %row[%c0] : {ROW}", numbers(8), numbers(8), grid=2)
    assert found.message.startswith("load out of bounds: 4 bytes at byte 32 of 'p', which has 32")
    assert "program (1, 0, 0)" in found.notes[0]


def test_an_index_outside_of_its_dimension_is_found_where_the_memory_goes_on():
    found = fault(f"%v = memref.load %row[%c8] : {ROW}", numbers(64), numbers(8))
    assert found.message == "index 8 is out of bounds: dimension 0 has 8 elements"


def test_accesses_outside_of_an_allocation_are_found():
    body = """
  %a = memref.alloc() : memref<4xf32>
  %more = memref.reinterpret_cast %a to offset: [0], sizes: [8], strides: [1]
    : memref<4xf32> to memref<8xf32, strided<[1]>>
  %v = memref.load %more[%c5] : memref<8xf32, strided<[1]>>"""
    found = fault(body, numbers(8), numbers(8))
    assert found.message == ("load out of bounds: element 5 of the memory allocated at kernel.mlir:16:8, which has 4")


@pytest.mark.parametrize(
    ("use", "verb"),
    [
        ("%v = memref.load %a[%c0] : memref<4xf32>", "load"),
        ("memref.store %x, %a[%c0] : memref<4xf32>", "store"),
        ("memref.dealloc %a : memref<4xf32>", "free"),
    ],
)
def test_freed_memory_is_not_used(use, verb):
    body = f"""
  %x = arith.constant 1.0 : f32
  %a = memref.alloc() : memref<4xf32>
  memref.dealloc %a : memref<4xf32>
  {use}"""
    found = fault(body, numbers(8), numbers(8))
    assert found.message == (
        f"{verb} of freed memory: the memory allocated at kernel.mlir:17:8 was freed at kernel.mlir:18:3"
    )


def test_arrays_are_not_freed():
    found = fault(f"memref.dealloc %row : {ROW}", numbers(8), numbers(8))
    assert found.message == "memory is freed that no function has allocated"


def test_what_nothing_has_written_is_poison():
    body = """
  %a = memref.alloc() : memref<2xf32>
  %one = arith.constant 1.0 : f32
  memref.store %one, %a[%c1] : memref<2xf32>
  %to = memref.reinterpret_cast %q to offset: [0], sizes: [2], strides: [1]
    : memref<*xf32> to memref<2xf32, strided<[1]>>
  memref.copy %a, %to : memref<2xf32> to memref<2xf32, strided<[1]>>"""
    found = run(body, numbers(8), np.zeros(2, np.float32))
    assert np.isnan(found[0])
    assert found[1] == 1


# --- updates ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "type_", "old", "value", "new"),
    [
        ("addf", "f32", 1.5, 2.0, 3.5), ("mulf", "f32", 1.5, 2.0, 3.0), ("assign", "f32", 1.5, 2.0, 2.0),
        ("maximumf", "f32", 1.5, np.nan, np.nan), ("minimumf", "f32", 1.5, 2.0, 1.5),
        ("maxnumf", "f32", 1.5, np.nan, 1.5), ("minnumf", "f32", 1.5, 2.0, 1.5),
        ("addi", "i32", 2**31 - 1, 1, -(2**31)), ("muli", "i32", 3, -2, -6), ("maxs", "i32", -1, 1, 1),
        ("maxu", "i32", -1, 1, -1), ("mins", "i32", -1, 1, -1), ("minu", "i32", -1, 1, 1),
        ("ori", "i32", 5, 3, 7), ("andi", "i32", 5, 3, 1), ("xori", "i32", 5, 3, 6), ("assign", "i32", 5, 3, 3),
    ],
)  # fmt: skip
def test_updates(kind, type_, old, value, new):
    row = f"memref<1x{type_}, strided<[1]>>"
    body = f"""
  %m = memref.reinterpret_cast %q to offset: [0], sizes: [1], strides: [1] : memref<*x{type_}> to {row}
  %before = memref.reinterpret_cast %r to offset: [0], sizes: [1], strides: [1] : memref<*x{type_}> to {row}
  %old = memref.atomic_rmw {kind} %v, %m[%c0] : ({type_}, {row}) -> {type_}
  affine.store %old, %before[0] : {row}"""
    arguments = f"%p: memref<*xf32>, %q: memref<*x{type_}>, %r: memref<*x{type_}>, %v: {type_}"
    dtype = np.float32 if type_ == "f32" else np.int32
    q, r = np.array([old], dtype), np.zeros(1, dtype)
    interpret_text(function(body, arguments), 1, [numbers(8), q, r, dtype(value)])
    np.testing.assert_array_equal([q[0], r[0]], np.array([new, old], dtype))


# --- functions --------------------------------------------------------------------------------------------------------

STORE_IDS = """
  %to = memref.reinterpret_cast %q to offset: [0], sizes: [6], strides: [1]
    : memref<*xi32> to memref<6xi32, strided<[1]>>
  affine.store %id0, %to[0] : memref<6xi32, strided<[1]>>
  affine.store %id1, %to[1] : memref<6xi32, strided<[1]>>
  affine.store %id2, %to[2] : memref<6xi32, strided<[1]>>"""
STORE_SIZES = """
  affine.store %id3, %to[3] : memref<6xi32, strided<[1]>>
  affine.store %id4, %to[4] : memref<6xi32, strided<[1]>>
  affine.store %id5, %to[5] : memref<6xi32, strided<[1]>>"""
ARGUMENTS = "%p: memref<*xf32>, %q: memref<*xi32>"


def test_the_last_arguments_are_the_program():
    q = np.full(6, -1, np.int32)
    interpret_text(function(STORE_IDS, ARGUMENTS), (2, 3, 4), [numbers(16), q])
    assert q.tolist() == [1, 2, 3, -1, -1, -1]


def test_six_last_arguments_are_the_program_and_the_grid():
    q = np.full(6, -1, np.int32)
    interpret_text(function(STORE_IDS + STORE_SIZES, ARGUMENTS, coordinates=6), (2, 3, 4), [numbers(16), q])
    assert q.tolist() == [1, 2, 3, 2, 3, 4]


def test_the_attribute_says_how_many_they_are():
    text = function(STORE_IDS, ARGUMENTS).replace(") {", ") attributes {tt.program_ids = 3 : i32} {", 1)
    q = np.full(6, -1, np.int32)
    interpret_text(text, (2, 3, 4), {"p": numbers(16), "q": q})
    assert q.tolist() == [1, 2, 3, -1, -1, -1]
    with pytest.raises(TypeError, match="takes 2 arguments, found 5"):
        interpret_text(text, 1, [numbers(16), q, 0, 0, 0])


@pytest.mark.parametrize(
    ("count", "message"),
    [(2, "'tt.program_ids' must be one of 0, 3, 6, found 2 : i32"), (6, "says that the last 6 arguments are i32")],
)
def test_an_attribute_that_can_not_be_is_refused(count, message):
    text = function("", ARGUMENTS).replace(") {", f") attributes {{tt.program_ids = {count} : i32}} {{", 1)
    with pytest.raises(CompilationError, match=message):
        interpret_text(text, 1, [numbers(8), np.zeros(1, np.int32)])


def test_all_arguments_may_be_given():
    q = np.full(6, -1, np.int32)
    interpret_text(function(STORE_IDS, ARGUMENTS), 1, [numbers(64), q, 3, 4, 5])
    assert q.tolist() == [3, 4, 5, -1, -1, -1]


def test_functions_call_functions_and_choose_memory():
    text = (
        function(
            """
  %is_first = arith.cmpi eq, %id0, %id1 : i32
  %chosen = arith.select %is_first, %p, %q : memref<*xf32>
  func.call @fill(%chosen) : (memref<*xf32>) -> ()"""
        )
        + """
func.func private @fill(%m: memref<*xf32>) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %view = memref.reinterpret_cast %m to offset: [0], sizes: [1], strides: [1]
    : memref<*xf32> to memref<1xf32, strided<[1]>>
  affine.store %one, %view[0] : memref<1xf32, strided<[1]>>
  return
}"""
    )
    p, q = np.zeros(8, np.float32), np.zeros(8, np.float32)
    interpret_text(text, 1, [p, q])
    assert (p[0], q[0]) == (1, 0)
    interpret_text(text, 2, [np.zeros(16, np.float32), q])
    assert q[0] == 1


def test_memory_of_known_rank_has_the_sizes_of_the_array():
    text = """
func.func @kernel(%m: memref<?x4xf32, strided<[?, 1]>>, %x: i32, %y: i32, %z: i32) {
  %c1 = arith.constant 1 : index
  %v = memref.load %m[%c1, %c1] : memref<?x4xf32, strided<[?, 1]>>
  %w = arith.addf %v, %v : f32
  affine.store %w, %m[0, 2] : memref<?x4xf32, strided<[?, 1]>>
  return
}"""
    array = numbers(24).reshape(3, 8)[:, :4]
    interpret_text(text, 1, [array])
    assert array[0, 2] == 18
    with pytest.raises(TypeError, match=r"the shape \[3, 8\] and the strides \[8, 1\], the kernel takes memref"):
        interpret_text(text, 1, [numbers(24).reshape(3, 8)])


def test_pointers_are_memory_and_memory_is_a_pointer():
    text = """
tt.func public @kernel(%p: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : index
  %m = builtin.unrealized_conversion_cast %p : !tt.ptr<f32> to memref<*xf32>
  %row = memref.reinterpret_cast %m to offset: [2], sizes: [2], strides: [1]
    : memref<*xf32> to memref<2xf32, strided<[1], offset: 2>>
  %q = builtin.unrealized_conversion_cast %row : memref<2xf32, strided<[1], offset: 2>> to !tt.ptr<f32>
  %v = tt.load %q : !tt.ptr<f32>
  %w = arith.addf %v, %v : f32
  memref.store %w, %row[%c0] : memref<2xf32, strided<[1], offset: 2>>
  tt.return
}"""
    p = numbers(4)
    interpret_text(text, 1, [p])
    assert p.tolist() == [0, 1, 4, 3]


def test_an_allocation_has_no_address():
    body = """
  %a = memref.alloc() : memref<4xf32>
  %address = memref.extract_aligned_pointer_as_index %a : memref<4xf32> -> index"""
    assert "has no address here" in fault(body, numbers(8), numbers(8)).message


def test_assertions():
    body = """
  %false = arith.cmpi ne, %id0, %id0 : i32
  cf.assert %false, "never" """
    found = fault(body, numbers(8), numbers(8))
    assert (found.message, found.notes[0]) == ("assertion failed: never", "in program (0, 0, 0)")
