"""Faults in a kernel are one located line with the source and a caret."""

import re

import pytest

from tests.unit.frontend.kernels import compile_source, load
from tlx_xdsl import CompilationError
from tlx_xdsl.frontend.compile import build_module

pytestmark = pytest.mark.quick

FAULTS = [
    ("tl.store(out, undefined)", "name 'undefined' is not defined", 19),
    ("tl.store(out, nn)", "did you mean 'n'?", 19),
    ("at = 1\n    tl.store(out, math.pi)", "name 'math' is not defined\n", 19),
    (
        "for i in range(n):\n        acc = acc + i",
        "'acc' has no value here: this line is the first that assigns it",
        15,
    ),
    ("tl.stor(out, n)", "has no attribute 'stor'", 5),
    ("tl.store(out)", "missing a required argument: 'value'", 5),
    ("tl.store(out, n, msk=1)", "unexpected keyword argument 'msk' (did you mean 'mask'?)", 22),
    ("tl.arange(0, 3)", "power of two", 5),
    ("tl.arange(0, n)", "'end' must be a constexpr integer of at least 1, found a runtime value of type int32", 18),
    ("tl.program_id(3)", "axis must be 0, 1, or 2 but got 3", 19),
    ("x = n @ n", "unsupported operator", 9),
    ("x = {i for i in range(3)}", "a set comprehension", 9),
    ("while tl.arange(0, 4):\n        pass", "a loop needs a scalar condition", 11),
    ("return n", "returns nothing", 5),
    ("x = tl.load(n)", "'pointer' must be a pointer", 17),
    ("x = n.foo", "has no attribute 'foo'", 9),
    ("x = n[0]", "can't be indexed", 9),
    ("x, y = n", "cannot unpack", 5),
    ("x = GLOBAL + n", "Cannot access global variable 'GLOBAL'", 9),
    ("x = open('f')", "'open' can't be called in a kernel", 9),
    ("x = tl.arange(0, 4) + tl.arange(0, 8)", "do not broadcast", 9),
    ("for i in range(0, n, 0):\n        pass", "must be an integer other than 0", 14),
    ("for i in n:\n        pass", "runs over range(...)", 14),
    ("x = out * 2", "does not exist for pointers", 9),
    ("x = n + 99999999999999999999", "does not fit in 64 bits", 9),
    ("b = tlx.local_alloc((3, 4), tl.float16, 1)", "must hold powers of two", 25),
    ("b = tlx.local_alloc((4, 4), 7, 1)", "'dtype' must be an element type", 33),
    ("tlx.barrier_wait(n, 0)", "'bar' must be an mbarrier", 22),
    ("b = tlx.alloc_barriers(2)\n    tlx.barrier_wait(b, 0)", "one mbarrier, such as bars[i]", 22),
    ("b = tlx.alloc_barriers(2)\n    tlx.barrier_wait(b[2], 0)", "index 2 is outside of an array of 2 mbarriers", 22),
    ("g = tlx.reuse_group()", "reuse_group requires at least one element", 9),
    ("s = tlx.storage_alias_spec(buffer_size_bytes=0)", "buffer_size_bytes must be positive, got 0", 50),
    (
        "s = tlx.storage_alias_spec(storage=tlx.storage_kind.smemCluster)",
        "smemCluster storage is not supported for storage_alias_spec",
        40,
    ),
    ("x = n.too(tl.float32)", "did you mean 'to'?", 9),
    ("x = tl.program_id(0, 1)", "too many positional arguments, expected tl.program_id(axis)", 26),
    ("x = n + 'a'", "'+' takes numbers and blocks, found the constexpr 'a'", 9),
    ("x = tl.load + 1", "cannot compute tl.load + 1 at compile time", 9),
    ("x = 2 ** 100000", "... does not fit in 64 bits", 9),
    ("x = tl.arange(0, 2 ** 40)", "'end' must be a constexpr integer of at least 1 that fits in 32 bits", 22),
    ("x = later\n    later = n", "'later' has no value here: it is assigned later, in line 11", 9),
    ("if n is None:\n        x = n\n    y = x", "'x' has no value here: line 11 is not compiled", 9),
    (
        "x = None\n    if n > 3:\n        x = n\n    y = x",
        "'x' has no value here: it is None on one side only of the 'if' in line 11",
        9,
    ),
    (
        "x = None\n    for i in range(n):\n        if i > 3:\n            x = i",
        "'x' has no value for the next turn of the loop: it is None on one side only of the 'if' in line 12",
        13,
    ),
    ("x = n if n > 0 else 1.5", "has inconsistent type: found a runtime value of type int32 and", 9),
    ("for i in (1, 2):\n        pass", "found the constexpr (1, 2): index it in a tl.static_range(len(...))", 14),
    ("for i in tl.static_range(10 ** 12):\n        pass", "repeats the body at most 16384 times", 14),
    ("for i in tl.range(None):\n        pass", "'arg1' must be an integer, found None", 23),
    ("x = isinstance(n, 3)", "isinstance takes a value and a class, found the constexpr 3", 9),
    ("b = tlx.alloc_barriers(2 ** 20)", "shared memory has room for 29056 mbarriers, found 1048576", 28),
    ("b = tlx.alloc_barriers(1, 2 ** 20)", "the arrival count must be at least 1 and at most 1048575", 9),
    ("s = tlx.storage_alias_spec(buffer_size_bytes=2 ** 70)", "that fits in 32 bits", 50),
    ("with open('f'):\n        pass", "opens tlx.async_tasks()", 5),
    ("with tlx.async_task('default'):\n        pass", "must stand directly inside", 5),
]


@pytest.mark.parametrize(("statement", "message", "column"), FAULTS)
def test_a_fault_is_located(tmp_path, statement, message, column):
    source = f"""
GLOBAL = 5

@tlx_xdsl.jit
def kernel(out, n):
    {statement}
"""
    with pytest.raises(CompilationError, match=re.escape(message)) as error:
        compile_source(tmp_path, source, {"out": "*i32", "n": "i32"})
    rendered = str(error.value).splitlines()
    assert re.match(rf".*kernels_\d+\.py:\d+:{column}: error: ", rendered[0]), rendered[0]
    # Source line and caret stand four columns to the right.
    assert rendered[2] == " " * (4 + column - 1) + "^"


def test_a_nested_definition_keeps_its_columns(tmp_path):
    module = load(
        tmp_path,
        """
def make():
    @tlx_xdsl.jit
    def kernel(out):
        tl.store(out, missing)
    return kernel
""",
    )
    with pytest.raises(CompilationError) as error:
        build_module(module.make().source, {"out": "*i32"}, {})
    assert (error.value.location.line, error.value.location.column) == (9, 23)


@pytest.mark.parametrize(
    ("signature", "constexprs", "message"),
    [
        ({"out": "*i32"}, {}, "the parameter 'n' needs a type (--signature)"),
        ({"out": "*i32", "n": "i32"}, {}, "the parameter 'B' needs a value (--constexpr)"),
        ({"out": "*i32", "n": "i32", "m": "i32"}, {"B": 1}, "has no parameter 'm'"),
        ({"out": "*i32", "n": "i32", "B": "i32"}, {}, "'B' is a constexpr"),
        ({"out": "*i33", "n": "i32"}, {"B": 1}, "unknown type '*i33'"),
        ({"out": "*i32:x", "n": "i32"}, {"B": 1}, "expected a divisibility"),
        ({"out": "tensordesc<fp16[3]>", "n": "i32"}, {"B": 1}, "powers of two"),
    ],
)
def test_arguments_are_checked(tmp_path, signature, constexprs, message):
    module = load(
        tmp_path,
        """
@tlx_xdsl.jit
def kernel(out, n, B: tl.constexpr):
    tl.store(out, n)
""",
    )
    with pytest.raises(CompilationError, match=re.escape(message)) as error:
        build_module(module.kernel.source, signature, constexprs)
    assert error.value.location.line == 7
    assert error.value.source_line is not None


def test_all_arguments_that_are_missing_are_reported_at_once(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n, B: tl.constexpr, C: tl.constexpr = 4):
    tl.store(out, n)
"""
    with pytest.raises(CompilationError) as error:
        compile_source(tmp_path, source, {"n": "i32"})
    note = "missing: --signature out=TYPE --constexpr B=VALUE, on the command line or in the file's TLX_COMPILE"
    assert error.value.notes[0].startswith(note)


def test_defaults_of_parameters_count(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n, B: tl.constexpr = 4):
    tl.store(out, n + B)
"""
    assert "arith.constant 4" in compile_source(tmp_path, source, {"out": "*i32", "n": "i32"})


def test_a_loop_variable_must_keep_its_type(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n):
    x = 0
    for i in range(n):
        x = tl.arange(0, 4)
"""
    with pytest.raises(
        CompilationError, match="'x' is a runtime value of type int32 before the loop in line 9 and a block"
    ):
        compile_source(tmp_path, source, {"out": "*i32", "n": "i32"})


def test_language_functions_refuse_to_run_outside(tmp_path):
    import tlx_xdsl.language as tl

    with pytest.raises(RuntimeError, match="only inside a kernel"):
        tl.arange(0, 4)
