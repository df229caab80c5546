"""IR back to Python: our frontend makes the same IR of it, or IR that computes the same."""

# covers: tlx-print-ttgir-to-tlx

import ast
import functools
import re

import numpy as np
import pytest

from tests.gallery.synchronisation import example_runs
from tests.oracle import ours
from tests.oracle.compare import difference_of_modules
from tests.unit import volume
from tests.unit.decompile.reversing import there_and_back, written
from tests.unit.interpreter.oracle import checking, running
from tests.unit.interpreter.oracle.test_oracle_by_value import REFERENCES
from tlx_xdsl.decompile.print_ttgir_to_tlx import python_of
from tlx_xdsl.decompile.wrapping import WIDTH, wrapped
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.runtime.steps import first_step
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.tools.tlx import main

OTHERWISE = {
    "nested_aggregates": "both sides of an `if` pass on one value, and the frontend sees that",
    "integer_atomics": "unsigned atomics go through a pointer to unsigned integers, and a cast of the pointer stays",
    "float_atomics": "the same",
    "bit_casts": "a cast between integers that differ in their sign makes no operation",
    "small_helpers": "the same",
    "random_numbers": "the same",
    "early_return_of_values": "ways that return a value and meet again are an `if` with two sides",
}
"""Kernels of the oracle whose IR comes back different, and why; what they compute is the same."""

RUN = sorted((set(OTHERWISE) - {"random_numbers"}) | {"digit_sums", "while_in_while", "guards", "exchanged_aliases"})


def test_references_are_registered():
    assert REFERENCES


@pytest.mark.quick
@pytest.mark.parametrize("name", running.cases())
@pytest.mark.filterwarnings("ignore:tl.softmax")
def test_kernels_of_the_oracle_come_back(name, tmp_path):
    module = ours.launchable(running.cases()[name])
    again = there_and_back(module, tmp_path / f"{name}.py")
    found = difference_of_modules(module, again)
    assert (found is not None) == (name in OTHERWISE), found


@pytest.mark.quick
@pytest.mark.parametrize("name", sorted(checking.CHECKS) if volume.is_full() else RUN)
@pytest.mark.filterwarnings("ignore:tl.softmax")
def test_what_comes_back_computes_the_same(name, tmp_path, monkeypatch):
    @functools.cache
    def plan_of(kernel, stage):
        return make_plan(there_and_back(ours.launchable(running.cases()[kernel]), tmp_path / f"{kernel}.py"))

    monkeypatch.setattr(running, "plan_of", plan_of)
    for check in checking.CHECKS[name]:
        checking.run_check(check, 0, "frontend")


# Kernels of TLX ------------------------------------------------------------------------------------------------------

SOME = [("ws-gemm-small-tiles", True), ("ws-attention-causal", True), ("pipelined-gemm", False)]
EXAMPLES = [(name, last) for name in example_runs.CASES for last in (False, True)] if volume.is_full() else SOME


@pytest.mark.parametrize(("name", "last"), EXAMPLES)
def test_examples_come_back_from_the_first_and_the_last_step(name, last, tmp_path):
    """The Python that is written for a module runs as a kernel, with the right numbers and without a fault."""
    case = example_runs.CASES[name]()
    _, defaults = example_runs.load_kernel(f"{example_runs.EXAMPLES / _file(case)}:{case.kernel.source.name}")
    options = {key: value for key, value in defaults.options.items() if key in ("target", "num_warps")}
    signature = {key: _retyped(case, key, type_) for key, type_ in defaults.signature.items()}
    step = first_step(case.kernel, signature, case.constexprs, **options)
    kernel, written_defaults = written((step.finish() if last else step).module(), tmp_path / "again.py")
    case.kernel, case.constexprs = kernel, {}
    case.options = {"num_warps": written_defaults.options["num_warps"], "target": written_defaults.options["target"]}
    with collected_diagnostics():
        case.run(jobs=1)


def _file(case):
    return case.kernel.source.filename


def _retyped(case, name, type_):
    """The type of an argument of this call: blocks follow the constexprs, elements the arrays."""
    position = [each.name for each in case.kernel.source.parameters].index(name)
    value = case.arguments[position]
    element = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}
    if hasattr(value, "block_shape"):
        return f"tensordesc<{element[str(value.base.dtype)]}[{', '.join(map(str, value.block_shape))}]>"
    if isinstance(value, np.ndarray):
        return f"*{element[str(value.dtype)]}"
    return type_.partition(":")[0]


# What is written -----------------------------------------------------------------------------------------------------


def body(*lines):
    """The Python of a function with some IR in it."""
    text = "\n".join(f"    {line}" for line in lines)
    module = parse_module(
        f"module {{\n  tt.func public @f(%x: !tt.ptr<i32>, %n: i32) {{\n{text}\n    tt.return\n  }}\n}}\n"
    )
    with collected_diagnostics() as said:
        python, refused = python_of(module)
    found = re.search(r"def f\(x, n\):\n(.*?)\n\n\nTLX_COMPILE", python, re.DOTALL)
    assert found is not None
    return [line.removeprefix("    ") for line in found[1].splitlines()], refused, said


STORE = "tt.store %x, %r : !tt.ptr<i32>"


@pytest.mark.parametrize(
    ("lines", "python"),
    [
        (["%s = arith.addi %n, %n : i32", "%r = arith.muli %s, %n : i32"], ["s = n + n", "tl.store(x, s * n)"]),
        (["%0 = arith.addi %n, %n : i32", "%r = arith.muli %0, %n : i32"], ["tl.store(x, (n + n) * n)"]),
        (["%0 = arith.subi %n, %n : i32", "%r = arith.subi %n, %0 : i32"], ["tl.store(x, n - (n - n))"]),
        (["%c = arith.constant -3 : i32", "%r = arith.addi %n, %c : i32"], ["tl.store(x, n + -3)"]),
        (["%r = arith.divui %n, %n : i32"], ["tl.store(x, (n.to(tl.uint32) // n.to(tl.uint32)).to(tl.int32))"]),
    ],
)
def test_expressions(lines, python):
    # A value with a name of its own keeps it; `%r` has none in the Python, as nothing else uses it.
    found, refused, _ = body(*(line.replace("%r", "%9") for line in lines), STORE.replace("%r", "%9"))
    assert (found, refused) == (python, [])


def test_a_loop_that_exchanges_two_values():
    found, _, _ = body(
        "%zero = arith.constant 0 : i32",
        "%one = arith.constant 1 : i32",
        "%a, %b = scf.for %i = %zero to %n step %one iter_args(%a = %zero, %b = %n) -> (i32, i32) : i32 {",
        "  scf.yield %b, %a : i32, i32",
        "}",
        "tt.store %x, %a : !tt.ptr<i32>",
    )
    assert found == ["a = 0", "b = n", "for i in range(n):", "    a, b = b, a", "tl.store(x, a)"]


def test_a_loop_keeps_the_old_value_while_it_is_needed():
    lines = (
        "%zero = arith.constant 0 : i32",
        "%one = arith.constant 1 : i32",
        "%a = scf.for %i = %zero to %n step %one iter_args(%a = %zero) -> (i32) : i32 {",
        "  %next = arith.addi %a, %i : i32",
        "  {}",
        "  scf.yield %next : i32",
        "}",
    )
    found, _, _ = body(*(line.replace("{}", "tt.store %x, %next : !tt.ptr<i32>") for line in lines))
    assert found[1:] == ["for i in range(n):", "    a += i", "    tl.store(x, a)"]
    found, _, _ = body(*(line.replace("{}", "tt.store %x, %a : !tt.ptr<i32>") for line in lines))
    assert found[1:] == ["for i in range(n):", "    next = a + i", "    tl.store(x, a)", "    a = next"]


def test_a_name_is_taken_again_where_its_value_ends():
    found, _, _ = body(
        "%zero = arith.constant 0 : i32",
        "%one = arith.constant 1 : i32",
        "%a = arith.addi %n, %n : i32",
        "%a_1 = arith.muli %a, %a : i32",
        "%a_2 = arith.subi %a, %a_1 : i32",
        "scf.for %i = %zero to %n step %one : i32 {",
        # In a loop that would be another value of the loop: `a` exists before it.
        "  %a_3 = arith.addi %a_2, %i : i32",
        "  tt.store %x, %a_3 : !tt.ptr<i32>",
        "  %b = arith.addi %i, %i : i32",
        "  tt.store %x, %b : !tt.ptr<i32>",
        "}",
        "%b = arith.muli %a_2, %n : i32",
        "tt.store %x, %b : !tt.ptr<i32>",
    )
    assert found == [
        "a = n + n", "a_1 = a * a", "a -= a_1", "for i in range(n):", "    a_2 = a + i", "    tl.store(x, a_2)",
        "    b = i + i", "    tl.store(x, b)", "b = a * n", "tl.store(x, b)",
    ]  # fmt: skip


def test_one_side_of_a_branch_keeps_the_value_before_it():
    lines = (
        "%zero = arith.constant 0 : i32",
        "%a = arith.addi %n, %n : i32",
        "%c = arith.cmpi slt, %n, %zero : i32",
        "%a_1 = scf.if %c -> (i32) {",
        "  %a_2 = arith.muli %a, %n : i32",
        "  scf.yield %a_2 : i32",
        "} else {",
        "  scf.yield %a : i32",
        "}",
        "tt.store %x, %a_1 : !tt.ptr<i32>",
    )
    found, _, _ = body(*lines)
    assert found[1:] == ["c = n < 0", "if c:", "    a *= n", "tl.store(x, a)"]
    # It is needed afterwards: the result has a name of its own.
    found, _, _ = body(*lines, "tt.store %x, %a : !tt.ptr<i32>")
    assert found[2:6] == ["if c:", "    a_1 = a * n", "else:", "    a_1 = a"]


@pytest.mark.parametrize(
    ("lines", "python"),
    [
        (["%8 = arith.addi %n, %c127 : i32", "%9 = arith.divsi %8, %c128 : i32"], "tl.store(x, tl.cdiv(n, 128))"),
        # Another number, or a sum that is used elsewhere, is none.
        (["%8 = arith.addi %n, %c128 : i32", "%9 = arith.divsi %8, %c128 : i32"], "tl.store(x, (n + 128) // 128)"),
        (["%s = arith.addi %n, %c127 : i32", "%9 = arith.divsi %s, %c128 : i32"], "tl.store(x, s // 128)"),
    ],
)
def test_divisions_that_round_up(lines, python):
    constants = [f"%c{number} = arith.constant {number} : i32" for number in (127, 128)]
    found, _, _ = body(*constants, *lines, STORE.replace("%r", "%9"))
    assert found[-1] == python


@pytest.mark.parametrize(
    ("type_", "number", "python"),
    [
        ("f32", "0x3FB8AA3B", "1.442695"),
        ("f32", "0xFF800000", 'float("-inf")'),
        ("f64", "1.44269502", "tl.full((), 1.44269502, tl.float64)"),
    ],
)
def test_numbers_have_the_digits_that_their_type_needs(type_, number, python):
    module = parse_module(
        f"tt.func public @f(%x: !tt.ptr<{type_}>) {{\n  %c = arith.constant {number} : {type_}\n"
        f"  tt.store %x, %c : !tt.ptr<{type_}>\n  tt.return\n}}\n"
    )
    assert f"tl.store(x, {python})" in python_of(module)[0]


def test_long_lines_are_several():
    call = f"    value = tl.load({', '.join(f'pointer_{number}' for number in range(12))}, 'a, (b', [{'x' * 60}])"
    lines = wrapped(call)
    assert max(map(len, lines)) <= WIDTH
    assert ast.unparse(ast.parse("\n".join(line[4:] for line in lines))) == ast.unparse(ast.parse(call.strip()))
    assert lines[0] == "    value = tl.load("
    # Nothing to break: it stays.
    assert wrapped(f"name = {'x' * 100}") == [f"name = {'x' * 100}"]
    assert wrapped(f"    # {'word ' * 25}".rstrip())[1].startswith("    # word")


def test_ways_that_meet_with_values():
    found, _, _ = body(
        "%zero = arith.constant 0 : i32",
        "%c = arith.cmpi slt, %n, %zero : i32",
        "cf.cond_br %c, ^meet(%n : i32), ^meet(%zero : i32)",
        "^meet(%value: i32):",
        "tt.store %x, %value : !tt.ptr<i32>",
    )
    assert found == [
        "c = n < 0", "if c:", "    value = n", "else:", "    value = 0", "tl.store(x, value)",
    ]  # fmt: skip


def test_a_cycle_of_jumps_is_refused():
    module = parse_module("tt.func public @f() {\n  cf.br ^loop\n^loop:\n  cf.br ^loop\n}\n")
    with pytest.raises(CompilationError, match=r":1:1: error: tlx reverse can't express the jumps of 'f'"):
        python_of(module)


def test_names_that_python_lacks():
    found, _, _ = body("%class = arith.addi %n, %n : i32", "%range = arith.addi %class, %class : i32",
                       "%2 = arith.addi %range, %range : i32", "tt.store %x, %2 : !tt.ptr<i32>")  # fmt: skip
    assert found == ["vclass = n + n", "range_1 = vclass + vclass", "tl.store(x, range_1 + range_1)"]


def test_what_the_language_can_not_express_is_reported():
    found, refused, said = body("%w = ttg.warp_id", "tt.store %x, %w : !tt.ptr<i32>")
    assert found == ["# not expressible: 'ttg.warp_id'", "# it makes w", "tl.store(x, w)"]
    assert [op.name for op in refused] == ["ttg.warp_id"]
    assert "tlx reverse can't express 'ttg.warp_id'" in str(said[0])
    assert said[0].location is not None
    assert said[0].location.line == 3


# The command ---------------------------------------------------------------------------------------------------------

GEMM = f"{example_runs.EXAMPLES / 'hopper_gemm_ws.py'}:matmul"


def test_the_command_writes_a_file_that_compiles(tmp_path, capsys):
    path = tmp_path / "folder" / "again.py"
    assert main(["reverse", GEMM, "-o", str(path)]) == 0
    assert main(["compile", f"{path}:matmul", "--emit", "ttgir", "-o", str(tmp_path), "-q"]) == 0
    assert (tmp_path / "matmul.ttgir").read_text().count("ttng.warp_group_dot ") == 2
    assert main(["reverse", str(tmp_path / "matmul.ttgir")]) == 0
    assert "tlx.async_dot(a[" in capsys.readouterr().out
    assert main(["reverse", GEMM, "--stage", "frontend"]) == 0
    assert "tlx.storage_alias_spec(" in capsys.readouterr().out


def test_the_command_ends_with_1_for_what_it_lacks(tmp_path, capsys):
    path = tmp_path / "odd.mlir"
    path.write_text("tt.func public @f() {\n  %w = ttg.warp_id\n  tt.return\n}\n")
    assert main(["reverse", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "# not expressible: 'ttg.warp_id'" in out
    assert f"{path}:2:8: warning: tlx reverse can't express 'ttg.warp_id'" in err
    assert "error: 1 operations could not be expressed: ttg.warp_id" in err
    assert main(["reverse", str(path), "--stage", "frontend"]) == 1
    assert "--stage is for kernels" in capsys.readouterr().err


SPECIAL = """\
import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def special(p, q, d):
    x = tl.arange(0, 128)
    tlx.prefetch(p + x, "L1", x < 100)
    tlx.prefetch(d, tensormap=True)
    start = tlx.clock64()
    tlx.fence("gpu")
    tlx.fence("sys")
    votes = tlx.vote_ballot_sync(-1, x > 3)
    rank = tlx.cluster_cta_rank() + tlx.cluster_size_1d()
    halves = tlx.stoch_round(tl.load(p + x), tl.float16, tl.load(q + x))
    tl.store(p + x, halves.to(tl.float32))
    tl.store(q + rank + x, votes + start.to(tl.int32))


TLX_COMPILE = {
    "special": {
        "signature": {"p": "*fp32:16", "q": "*i32", "d": "tensordesc<fp16[64, 64]>"},
        "target": "sm_100a",
        "cluster": (2, 1, 1),
        "maxnreg": 128,
    }
}
"""


def test_single_instructions_and_the_launch_come_back(tmp_path, capsys):
    path, again = tmp_path / "special.py", tmp_path / "again.py"
    path.write_text(SPECIAL)
    assert main(["reverse", f"{path}:special", "--stage", "frontend", "-o", str(again)]) == 0
    texts = []
    for each in (path, again):
        assert main(["compile", f"{each}:special", "--emit", "ttir", "-o", "-"]) == 0
        texts.append(parse_module(capsys.readouterr().out))
    assert difference_of_modules(*texts) is None
    assert texts[0].attributes == texts[1].attributes
