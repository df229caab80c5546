"""Section 5.4 of the TTL design document: the four categories of errors, each at its line with a suggestion."""

import pytest

from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.ttl.language import TensorSpec
from tlx_xdsl.ttl.runtime import Options, compile_kernel
from tlx_xdsl.ttl.tools.kernels import load_ttl_kernel

KERNEL = """\
import tlx_xdsl.ttl.language as ttl

@ttl.kernel(grid=(1, 1))
def eltwise_add(a, b, out):
    a_in_cb = ttl.make_circular_buffer_like(a, shape=SHAPE, buffer_factor=2)
    b_in_cb = ttl.make_circular_buffer_like(b, shape=SHAPE, buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(out, shape=SHAPE, buffer_factor=2)

    @ttl.compute()
    def compute():
        for _ in range(4):
            a_block = a_in_cb.wait()
            b_block = b_in_cb.wait()
            o = out_cb.reserve()
            o.store(EXPRESSION)
            a_in_cb.pop()
            b_in_cb.pop()
            out_cb.push()

    @ttl.datamovement()
    def read():
        for row in range(COUNT):
            ttl.copy(a[row, 0], a_in_cb.reserve()).wait()
            a_in_cb.push()
            ttl.copy(b[row, 0], b_in_cb.reserve()).wait()
            b_in_cb.push()

    @ttl.datamovement()
    def write():
        for row in range(4):
            ttl.copy(out_cb.wait(), out[row, 0]).wait()
            out_cb.pop()
"""


def failure(
    tmp_path, *, shape="(1, 1)", expression="a_block + b_block", count="4", edits=(), options=None, dtype="f32"
):
    """The error that compiling the kernel gives."""
    text = KERNEL.replace("SHAPE", shape).replace("EXPRESSION", expression).replace("COUNT", count)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "eltwise_add.py"
    path.write_text(text)
    with pytest.raises(CompilationError) as caught:
        compile_kernel(load_ttl_kernel(str(path)), [TensorSpec((128, 32), dtype)] * 3, options)
    return caught.value


def test_a_consumer_that_waits_indefinitely(tmp_path):
    error = failure(tmp_path, count="3")
    assert (error.location.line, error.source_line.strip()) == (12, "a_block = a_in_cb.wait()")
    assert "consumer waits indefinitely" in error.message
    (note,) = error.notes
    assert "corresponding producer" in note
    assert "eltwise_add.py:2" in note


def test_validation_a_step_without_the_one_before(tmp_path):
    error = failure(
        tmp_path, edits=[("            a_in_cb.pop()\n", "            a_in_cb.pop()\n            a_in_cb.pop()\n")]
    )
    assert "circular buffer protocol violation: pop without a matching" in error.message
    assert error.location.line == 17


def test_validation_threads_are_restricted(tmp_path):
    error = failure(
        tmp_path,
        edits=[("            out_cb.push()", "            ttl.copy(a[0, 0], a_block)\n            out_cb.push()")],
    )
    assert "datamovement threads" in error.message
    assert error.location.line == 18


def test_resources_l1(tmp_path):
    edits = [("a[row, 0]", "a[0:4, 0:1]"), ("b[row, 0]", "b[0:4, 0:1]"), ("out[row, 0]", "out[0:4, 0:1]")]
    edits += [
        (f"{name}, shape=(4, 1), buffer_factor=2", f"{name}, shape=(4, 1), buffer_factor=80") for name in ("a", "b")
    ]
    error = failure(tmp_path, shape="(4, 1)", edits=edits)
    assert "of a core's memory" in error.message
    text = str(error)
    # Every buffer with its size, and what to do about it.
    for name in ("a_in_cb", "b_in_cb", "out_cb"):
        assert name in text
    assert "buffer_factor" in text


def test_resources_destination_registers(tmp_path):
    products = " * ".join(f"(a_block + ttl.math.exp(b_block * {n}.0))" for n in range(2, 9))
    deep = "ttl.math.exp(a_block) - (ttl.math.exp(b_block) - ("
    expression = f"({deep}(a_block - b_block) * (b_block + a_block)) / {products}))"
    error = failure(tmp_path, expression=expression, options=Options(capacity=1))
    assert "insufficient DST registers" in error.message
    assert error.location.line == 15
    assert "store" in str(error) or "intermediate" in str(error)


def test_types_of_blocks(tmp_path):
    error = failure(tmp_path, edits=[("(b, shape=(1, 1)", "(b, shape=(1, 2)"), ("b[row, 0]", "b[row : row + 1, 0:2]")])
    assert "expected" in error.message or "found" in error.message
    assert error.location.line == 15


def test_types_of_elements(tmp_path):
    # The vector unit has no exponential of integers.
    error = failure(tmp_path, expression="ttl.math.exp(a_block) + b_block", dtype="i32")
    assert error.location.line == 15
    assert "ttl.math.exp is for tiles of floats, found i32: ttl.math.typecast converts" in error.message


def test_lowering_what_has_no_counterpart():
    # Values of blocks have no calls: bufferization was left out.
    text = """
    ttl.kernel @k() {
      %cb = ttl.create_cb shape=[1, 1], element_type=TILE, buffer_factor=2 : CB
      ttl.compute_thread {
        %a = ttl.cb_wait %cb : CB -> BLOCK
        %b = ttl.exp %a : BLOCK -> BLOCK
        ttl.require_dst %b : BLOCK
        ttl.cb_pop %cb
        ttl.thread_return
      }
      ttl.kernel_return
    }
    """
    text = text.replace("CB", "!ttl.cb<[1, 1], TILE, 2>").replace("BLOCK", "tensor<1x1xTILE>")
    module = parse_module(text.replace("TILE", "!ttcore.tile<32x32, f32>"))
    pass_class("ttl-expand-threads")().apply(make_context(), module)
    with pytest.raises(CompilationError) as caught:
        pass_class("ttl-lower-synchronization")().apply(make_context(), module)
    assert caught.value.location.line == 6
    assert "'ttl.exp'" in str(caught.value)
    assert "ttl-bufferize" in str(caught.value) or "ttl-lower-compute" in str(caught.value)


LATER_POP = """\
import tlx_xdsl.ttl.language as ttl

@ttl.kernel()
def late(a, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=1)
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=FACTOR)

    @ttl.datamovement()
    def move():
        for row in range(3):
            ttl.copy(a[row, 0], a_cb.reserve()).wait()
            a_cb.push()
        for row in range(3):
            ttl.copy(out_cb.wait(), out[row, 0]).wait()
            out_cb.pop()

    @ttl.compute()
    def compute():
        for _ in range(3):
            value = ttl.math.exp(a_cb.wait())
            a_cb.pop()
            out_cb.reserve().store(value)
            out_cb.push()
"""


def test_a_pop_that_bufferization_moves_may_make_a_deadlock(tmp_path):
    # The value is computed where it is stored, so the block of `a` is popped after the second reserve of `out`, for
    # which the one thread that moves data has not made room: it still waits to push the third block of `a`.
    def compiled(factor, **options):
        path = tmp_path / f"late{factor}.py"
        path.write_text(LATER_POP.replace("FACTOR", str(factor)))
        return compile_kernel(load_ttl_kernel(str(path)), [TensorSpec((96, 32))] * 2, Options(**options))

    compiled(2, schedule=False)
    # One loop of the two that move data would do: loop fusion makes it.
    compiled(1)
    with pytest.raises(CompilationError, match="deadlock: 'move', 'compute' wait for each other"):
        compiled(1, schedule=False)
