"""Functions that kernels call: inlining, calls that stay, arguments, aggregates, and errors inside of them."""

# covers: tl.compile_time, tt.func

import pytest

from tests.unit.frontend.kernels import body, compile_source, load
from tlx_xdsl import CompilationError
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.text.printer import print_module

pytestmark = pytest.mark.quick

SIGNATURE = {"out": "*i32", "n": "i32"}


def kernel_body(tmp_path, source: str, **constexprs) -> list[str]:
    return body(compile_source(tmp_path, source, SIGNATURE, **constexprs))


def test_a_call_is_inlined_and_its_location_names_both_places(tmp_path):
    source = """
@tlx_xdsl.jit
def double(x):
    return x * 2

@tlx_xdsl.jit
def kernel(out, n):
    tl.store(out, double(n))
"""
    text = print_module(build_module(load(tmp_path, source).kernel.source, SIGNATURE, {}))
    assert "tt.call" not in text
    double = next(line for line in text.splitlines() if "arith.muli" in line)
    name = double.split("loc(")[1].rstrip(")")
    definition = next(line for line in text.splitlines() if line.startswith(f"{name} = "))
    assert definition.startswith(f"{name} = loc(callsite(")


def test_arguments_bind_as_in_python(tmp_path):
    source = """
@tlx_xdsl.jit
def mix(a, b=10, *rest, scale: tl.constexpr = 1):
    for item in tl.static_range(len(rest)):
        a += rest[item]
    return (a + b) * scale

@tlx_xdsl.jit
def kernel(out, n):
    tl.store(out, mix(n))
    tl.store(out, mix(n, b=n, scale=3))
    tl.store(out, mix(n, 1, n, *(2, 3), scale=5))
"""
    operations = [line.split("= ")[-1] for line in kernel_body(tmp_path, source) if "constant" not in line]
    assert operations == [
        "arith.addi %n, %c10 : i32",
        "arith.muli %0, %c1 : i32",
        "tt.store %out, %1 : !tt.ptr<i32>",
        "arith.addi %n, %n : i32",
        "arith.muli %2, %c3 : i32",
        "tt.store %out, %3 : !tt.ptr<i32>",
        "arith.addi %n, %n : i32",
        "arith.addi %a, %c2 : i32",
        "arith.addi %a_1, %c3 : i32",
        "arith.addi %a_2, %c1 : i32",
        "arith.muli %4, %c5 : i32",
        "tt.store %out, %5 : !tt.ptr<i32>",
    ]


def test_several_values_return_as_a_tuple(tmp_path):
    source = """
@tlx_xdsl.jit
def both(a, b):
    return a + b, a - b

@tlx_xdsl.jit
def kernel(out, n):
    total, difference = both(n, 1)
    tl.store(out, total * difference)
"""
    assert kernel_body(tmp_path, source)[1:] == [
        "%total = arith.addi %n, %c1 : i32",
        "%difference = arith.subi %n, %c1 : i32",
        "%0 = arith.muli %total, %difference : i32",
        "tt.store %out, %0 : !tt.ptr<i32>",
    ]


NOINLINE = """
@tlx_xdsl.jit(noinline=True)
def twice(x, factor: tl.constexpr):
    return x * factor

@tlx_xdsl.jit
def kernel(out, n):
    tl.store(out, twice(n, 2))
    tl.store(out, twice(n + 1, 2))
    tl.store(out, twice(n, 3))
"""


def test_noinline_functions_stay_calls_one_function_per_kind_of_arguments(tmp_path):
    text = compile_source(tmp_path, NOINLINE, SIGNATURE)
    assert text.count("tt.call @twice__0(") == 2
    assert text.count("tt.call @twice__1(") == 1
    assert text.count("tt.func private @twice__") == 2
    assert text.count("noinline = true") == 2


EARLY = """
@tlx_xdsl.jit
def clamp(x):
    if x < 0:
        return 0
    return x

@tlx_xdsl.jit
def kernel(out, n):
    {use}
"""


def test_an_early_return_branches_where_the_kernel_can(tmp_path):
    text = compile_source(tmp_path, EARLY.format(use="tl.store(out, clamp(n))"), SIGNATURE)
    assert "tt.call" not in text
    assert text.count("cf.br ^bb3(") == 2


def test_an_early_return_in_a_loop_keeps_the_call(tmp_path):
    use = "for i in range(n):\n        tl.store(out, clamp(i))\n        tl.store(out, clamp(n))"
    text = compile_source(tmp_path, EARLY.format(use=use), SIGNATURE)
    assert text.count("tt.call @clamp__0(") == 2
    assert text.count("tt.func private @clamp__0") == 1
    loop = text.split("scf.for")[1].split("scf.for")[0].split("tt.return")[0]
    assert "arith.cmpi" not in loop, "nothing of the first attempt may stay"


def test_a_kernel_returns_early(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n):
    if n < 0:
        tl.store(out, 1)
        return
    elif n == 3:
        return
    else:
        m = n + 1
    tl.store(out, m)
"""
    text = compile_source(tmp_path, source, SIGNATURE)
    assert text.count("tt.return") == 3
    assert text.count("cf.cond_br") == 2


def test_a_name_may_be_none_on_one_side_of_a_branch_where_nothing_reads_it_afterwards(tmp_path):
    source = """
@tlx_xdsl.jit
def kernel(out, n):
    x = None
    if n > 3:
        x = out + n
        tl.store(x, 1)
    x = out
    tl.store(x, 2)
"""
    text = compile_source(tmp_path, source, SIGNATURE)
    assert text.count("tt.store") == 2
    # Nothing leaves the branch.
    assert "scf.if" in text
    assert "scf.yield" not in text


def test_aggregates_travel_as_one_value(tmp_path):
    source = """
@tl.core._aggregate
class Counter:
    value: tl.tensor
    step: tl.constexpr

    @tlx_xdsl.jit
    def __init__(self, value, step):
        self.value = value
        self.step = step

    @tlx_xdsl.jit
    def next(self):
        return Counter(self.value + self.step, self.step)

@tlx_xdsl.jit
def kernel(out, n):
    counter = Counter(n, 4)
    for _ in range(n):
        counter = counter.next()
    tl.store(out, counter.value)
"""
    text = compile_source(tmp_path, source, SIGNATURE)
    assert "iter_args(%counter_1 = %n) -> (i32)" in text
    assert "arith.addi %counter_1, %c4" in text


def test_named_tuples_are_read_by_name(tmp_path):
    source = """
from typing import NamedTuple

class Pair(NamedTuple):
    first: object
    second: object

@tlx_xdsl.jit
def kernel(out, n):
    pair = Pair(n, second=n + 1)
    while pair.first < 10:
        pair = Pair(pair.second, pair.first + 2)
    tl.store(out, pair[1] - pair.first)
"""
    text = compile_source(tmp_path, source, SIGNATURE)
    assert "scf.while" in text
    assert "arith.subi %pair_1, %pair" in text


def test_python_helpers_run_at_compile_time(tmp_path):
    source = """
def columns(rows, width=2):
    return rows * width

@tlx_xdsl.constexpr_function
def label(rows):
    return f"rows={rows:03d}"

@tlx_xdsl.jit
def kernel(out, n, ROWS: tl.constexpr):
    name: tl.constexpr = label(ROWS)
    assert name == "rows=008"
    assert f"{name!r}" == "'rows=008'"
    sizes: tl.constexpr = [size * 2 for size in (1, 2, 3) if size != 2]
    block = tl.arange(0, columns(ROWS)) + sizes[1]
    tl.store(out + block, block)
"""
    lines = kernel_body(tmp_path, source, ROWS=8)
    assert any("end = 16 : i32" in line for line in lines)
    assert any("constant 6 : i32" in line for line in lines)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            """
@tlx_xdsl.jit
def loop(x):
    return again(x)

@tlx_xdsl.jit
def again(x):
    return loop(x)  # here

@tlx_xdsl.jit
def kernel(out, n):
    tl.store(out, loop(n))
""",
            "recursion is not possible in a kernel: loop -> again -> loop",
        ),
        (
            """
@tlx_xdsl.jit
def helper(x, y):
    return x

@tlx_xdsl.jit
def kernel(out, n):
    tl.store(out, helper(n))  # here
""",
            "helper: missing a required argument: 'y', expected helper(x, y)",
        ),
        (
            """
@tlx_xdsl.jit
def helper(x, B: tl.constexpr):
    return tl.sum(tl.arange(0, B)) + x

@tlx_xdsl.jit
def kernel(out, n):
    tl.store(out, helper(n, n))  # here
""",
            "the parameter 'B' of 'helper' is a constexpr, found a runtime value",
        ),
        (
            """
@tlx_xdsl.jit
def kernel(out, n):
    for i in range(n):
        if i > 3:
            return  # here
""",
            "can't return from inside a loop",
        ),
        (
            """
@tlx_xdsl.jit
def kernel(out, n):
    if n > 3:
        x = n
    tl.store(out, x)  # here
""",
            "'x' has no value here: it is assigned on one side only of the 'if' in line 8",
        ),
        (
            """
@tlx_xdsl.jit
def kernel(out, n):
    x = None
    if n > 3:
        x = out
    tl.store(x, 1)  # here
""",
            "'x' has no value here: it is None on one side only of the 'if' in line 9",
        ),
        (
            """
@tlx_xdsl.jit
def kernel(out, n):
    x = None
    if n > 3:
        if n > 5:
            x = out
    if x is None:  # here
        tl.store(out, 1)
""",
            "'x' has no value here: it is assigned on one side only of the 'if' in line 9",
        ),
        (
            """
@tlx_xdsl.jit
def kernel(out, n):
    x = None
    for i in range(n):
        if x is None:
            tl.store(out, 1)
        if i > 3:
            x = out  # here
""",
            "'x' has no value for the next turn of the loop: it is None on one side only of the 'if' in line 12",
        ),
        (
            """
@tlx_xdsl.jit
def kernel(out, n):
    for i in range(n):
        pass
    tl.store(out, i)  # here
""",
            "'i' has no value here: it counts the loop in line 8",
        ),
        (
            """
@tlx_xdsl.jit
def helper(x):
    if x > 0:
        return x
    return x > 0  # here

@tlx_xdsl.jit
def kernel(out, n):
    tl.store(out, helper(n))
""",
            "Return type mismatch: ",
        ),
        (
            """
@tlx_xdsl.jit
def kernel(out, n):
    size = 16
    tl.store(out + tl.arange(0, size), n)  # here
""",
            "a plain assignment makes a number a runtime value",
        ),
    ],
)
def test_faults_are_located(tmp_path, source, message):
    with pytest.raises(CompilationError) as error:
        compile_source(tmp_path, source, SIGNATURE)
    assert message in error.value.message
    assert error.value.source_line.endswith("# here")


def test_an_error_in_a_helper_shows_the_calls_that_led_there(tmp_path):
    source = """
@tlx_xdsl.jit
def inner(x):
    return x + undefined

@tlx_xdsl.jit
def outer(x):
    return inner(x)

@tlx_xdsl.jit
def kernel(out, n):
    tl.store(out, outer(n))
"""
    with pytest.raises(CompilationError) as error:
        compile_source(tmp_path, source, SIGNATURE)
    lines = str(error.value).splitlines()
    assert lines[0].endswith("error: name 'undefined' is not defined")
    assert lines[1].strip() == "return x + undefined"
    assert [line.rsplit("kernels", 1)[0].split(":")[1] for line in lines if line.startswith("note:")] == [
        " 'inner' is called here",
        " 'outer' is called here",
    ]
