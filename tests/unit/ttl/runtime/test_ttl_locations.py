"""Section 5.3 of the TTL design document: every stage knows the lines of the Python source."""

import pytest

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import source_location
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.ttl.language import TensorSpec
from tlx_xdsl.ttl.runtime import compile_kernel, frontend_module
from tlx_xdsl.ttl.tools.kernels import load_ttl_kernel

pytestmark = pytest.mark.quick

ADD = """\
import tlx_xdsl.ttl.language as ttl

@ttl.kernel(grid=(1, 1))
def add(a, b, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(2, 1))
    b_cb = ttl.make_circular_buffer_like(b, shape=(2, 1))
    out_cb = ttl.make_circular_buffer_like(out, shape=(2, 1))

    @ttl.datamovement()
    def read():
        for column in range(2):
            with a_cb.reserve() as x, b_cb.reserve() as y:
                ttl.copy(a[0:2, column : column + 1], x)
                ttl.copy(b[0:2, column : column + 1], y)

    @ttl.compute()
    def compute():
        for column in range(2):
            with a_cb.wait() as x, b_cb.wait() as y, out_cb.reserve() as o:
                o.store(
                    ttl.math.exp(x)
                    + y
                )

    @ttl.datamovement()
    def write():
        for column in range(2):
            with out_cb.wait() as o:
                ttl.copy(o, out[0:2, column : column + 1])
"""
SPECS = [TensorSpec((64, 64))] * 3


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "add.py"
    path.write_text(ADD)
    return load_ttl_kernel(f"{path}:add")


def test_the_kernel_names_its_file_and_line(kernel, tmp_path):
    module = frontend_module(kernel, SPECS)
    (op,) = module.body.block.ops
    assert op.attributes["python_source_file"].data == str(tmp_path / "add.py")
    assert op.attributes["python_source_line"].value.data == 4


def test_every_operation_of_every_stage_has_a_line_of_the_kernel(kernel, tmp_path):
    stages = {}
    compile_kernel(kernel, SPECS, on_stage=stages.__setitem__)
    lines = len(ADD.splitlines())
    for name, text in stages.items():
        for op in parse_module(text).walk():
            # The ends of loops and branches are implied in text.
            if op.name in ("builtin.module", "affine.yield", "scf.yield", "ttl.pipe_yield"):
                continue
            place = source_location(op.location)
            assert place is not None, f"{op.name} after {name} has no location"
            assert place.filename == str(tmp_path / "add.py")
            assert 3 <= place.line <= lines, f"{op.name} after {name} is at {place}"


def test_calls_have_the_lines_of_what_they_do(kernel):
    compiled = compile_kernel(kernel, SPECS)
    lines = {}
    for op in compiled.module.walk():
        if op.name.startswith("ttkernel."):
            lines.setdefault(op.name.removeprefix("ttkernel."), set()).add(source_location(op.location).line)
    assert lines["exp_tile"] == {21}
    assert lines["add_binary_tile"] <= {21, 22}
    assert lines["noc_async_read_tile"] == {13, 14}
    assert lines["noc_async_write_tile"] == {29}
    assert lines["cb_wait_front"] == {19, 28}


def test_the_c_plus_plus_names_the_python_lines(kernel, tmp_path):
    compute = compile_kernel(kernel, SPECS).sources["compute.cpp"].splitlines()
    at = next(number for number, line in enumerate(compute) if "exp_tile(" in line)
    directives = [line for line in compute[:at] if line.startswith("#line")]
    assert directives[-1] == f'#line 21 "{tmp_path / "add.py"}"'


BAD = """\
import tlx_xdsl.ttl.language as ttl
@ttl.kernel(grid=(1,1))
def bad_kernel():
    cb = ttl.CircularBuffer(shape=(1,1))
    @ttl.compute()
    def compute():
        cb.pop()
"""


def test_an_error_points_to_the_line_of_the_pop(tmp_path):
    path = tmp_path / "bad_kernel.py"
    path.write_text(BAD)
    with pytest.raises(CompilationError) as caught:
        frontend_module(load_ttl_kernel(str(path)), [])
    assert "bad_kernel.py:7" in str(caught.value)
    assert "pop without a matching" in str(caught.value)
    assert "        cb.pop()\n            ^" in str(caught.value)
