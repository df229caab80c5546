"""Type checkers accept what users write, and know the types of what the language returns."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests import user_code
from tests.gallery import user_kernels as kernels
from tests.unit.volume import is_full
from tlx_xdsl.runtime.check import run as check_module
from tlx_xdsl.runtime.simulate.options import ORDERS, Options

needs_pyright = pytest.mark.skipif(not user_code.has("pyright"), reason="pyright is not installed")
SOURCE = Path(kernels.__file__).read_text(encoding="utf-8")
EXPECTED = re.compile(r"^(\s+)(\w+).* = .*# -> (.*)$")

# --- the six kinds of kernel ----------------------------------------------------------------------------------------


def questions() -> tuple[str, dict[int, tuple[str, str]]]:
    """The kernels for a strict checker, with a `reveal_type` for each `# ->`.

    The second is what is expected, by the line of the question.
    """
    lines = ["# pyright: strict"]
    expected: dict[int, tuple[str, str]] = {}
    for line in annotated(SOURCE).splitlines():
        lines.append(line)
        if match := EXPECTED.match(line):
            indent, name, type_ = match.groups()
            lines.append(f"{indent}reveal_type({name})")
            expected[len(lines) - 1] = (name, type_)
    return "\n".join(lines), expected


def annotated(text: str) -> str:
    """The kernels with a type for every parameter: what is left for a strict checker is not the user's."""
    lines = text.splitlines()
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    parameters = [each for node in functions for each in node.args.args if each.annotation is None]
    for each in sorted(parameters, key=lambda each: (each.lineno, -each.col_offset)):
        line = lines[each.lineno - 1]
        type_ = "tl.tensor_descriptor" if each.arg.endswith("_desc") else "tl.tensor"
        lines[each.lineno - 1] = f"{line[: each.end_col_offset]}: {type_}{line[each.end_col_offset :]}"
    return "\n".join(lines)


MISTAKES = {
    "tl.load(x).astype(tl.float16)": 'Cannot access attribute "astype"',
    "tlx.local_alloc((64, 64), tl.float16)": 'Argument missing for parameter "num"',
    "tlx.barrier_wait(tl.program_id(0), 0)": '"tensor" is not assignable to "mbarrier"',
    "tl.zeros((64,), 'fp16')": '"Literal[\'fp16\']" is not assignable to "dtype"',
    "helper(x)": 'Argument missing for parameter "y"',
    "a, b, c = helper(x, x)": "size mismatch",
}
"""Lines of a kernel that are wrong, and what pyright says."""

WRONG = """\
import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
@tlx_xdsl.jit
def helper(x, y): return tl.load(x), tl.load(y)
@tlx_xdsl.jit
def kernel(x):
"""


@pytest.fixture(scope="module")
def answers() -> dict[str, list[dict[str, Any]]]:
    """Return pyright's diagnostics by file; one run, of which starting is the most."""
    files = {
        "plain.py": SOURCE,
        "asked.py": questions()[0],
        "wrong.py": WRONG + "".join(f"    {line}\n" for line in MISTAKES),
    }
    found = user_code.pyright(files)
    return {name: [each for each in found if each["file"] == name] for name in files}


@needs_pyright
def test_pyright_accepts_six_kinds_of_kernel(answers: dict[str, list[dict[str, Any]]]):
    assert not user_code.shown(answers["plain.py"])


@needs_pyright
def test_a_strict_pyright_knows_all_types_where_parameters_have_one(answers: dict[str, list[dict[str, Any]]]):
    text, expected = questions()
    assert text.count(": tl.tensor") > 40
    assert not user_code.shown(answers["asked.py"])
    revealed: dict[int, tuple[str, ...]] = {}
    for each in answers["asked.py"]:
        if match := re.fullmatch(r'Type of "(\w+)" is "(.*)"', each["message"]):
            revealed[each["range"]["start"]["line"]] = match.groups()
    assert len(expected) > 35
    assert revealed == expected


@needs_pyright
def test_pyright_finds_what_is_wrong(answers: dict[str, list[dict[str, Any]]]):
    messages = dict.fromkeys(MISTAKES, "")
    lines = list(MISTAKES)
    for each in answers["wrong.py"]:
        messages[lines[each["range"]["start"]["line"] - WRONG.count("\n")]] += each["message"]
    for line, message in MISTAKES.items():
        assert message in messages[line], (line, messages[line])


@needs_pyright
@pytest.mark.skipif(not is_full(), reason="`make typecheck` does it")
def test_type_checkers_accept_all_that_users_are_shown():
    files = user_code.user_code()
    assert len(files) > 50
    assert not user_code.shown(user_code.pyright(files))
    if user_code.has("mypy"):
        assert not user_code.mypy({**files, "six.py": SOURCE})


# --- what they compute ----------------------------------------------------------------------------------------------


def test_rms_norm():
    rng = np.random.default_rng(0)
    x, residual = (rng.standard_normal((3, 100)).astype(np.float16) for _ in range(2))
    weight, out = rng.standard_normal(100).astype(np.float16), np.zeros((3, 100), np.float16)
    total = residual.astype(np.float32) + x
    kernels.rms_norm.interpret(3, x, residual, weight, out, 100, 1e-5, BLOCK=128)
    expected = total / np.sqrt((total**2).mean(1, keepdims=True) + 1e-5) * weight
    np.testing.assert_allclose(out, expected, rtol=2e-2, atol=2e-2)


def test_rope():
    rng = np.random.default_rng(0)
    q = rng.standard_normal((2, 3, 32)).astype(ml_dtypes.bfloat16)
    angle = rng.standard_normal((2, 16)).astype(np.float32)
    before = q.astype(np.float32)
    kernels.rope.interpret((2, 3), q, np.cos(angle), np.sin(angle), 3, 32)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    low, high = before[..., :16], before[..., 16:]
    expected = np.concatenate([low * cos - high * sin, high * cos + low * sin], -1)
    np.testing.assert_allclose(q.astype(np.float32), expected, atol=3e-2)


def test_cross_entropy():
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((3, 50)).astype(np.float32)
    labels, losses = np.array([4, -100, 49], np.int64), np.full(3, np.nan, np.float32)
    kernels.cross_entropy.interpret(3, logits, labels, losses, 50, IGNORED=-100, BLOCK=16)
    rows = np.log(np.exp(logits).sum(1)) - logits[np.arange(3), np.maximum(labels, 0)]
    np.testing.assert_allclose(losses, np.where(labels == -100, 0, rows), rtol=1e-5)


def test_grouped_gemm():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((60, 40)).astype(np.float16), rng.standard_normal((2, 40, 48)).astype(np.float16)
    c, ends = np.full((60, 48), np.nan, np.float32), np.array([0, 37, 60], np.int32)
    kernels.grouped_gemm.interpret((6, 2), a, b, c, ends, 48, 40, BM=16, BN=32, BK=16)
    expected = np.concatenate([a[:37].astype(np.float32) @ b[0], a[37:].astype(np.float32) @ b[1]])
    np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-3)


def test_gemm_with_gelu():
    from math import erf

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) * np.float16(0.1) for shape in ((128, 96), (96, 64)))
    c, bias = np.full((128, 64), np.nan, np.float16), rng.standard_normal(64).astype(np.float32)
    descriptors = [
        tlx_xdsl.TensorDescriptor.from_tensor(array, block)
        for array, block in ((a, [64, 32]), (b, [32, 64]), (c, [64, 64]))
    ]
    kernels.gemm_gelu.interpret((1, 1), *descriptors, bias, 96, BM=64, BN=64, BK=32)
    x = a.astype(np.float32) @ b.astype(np.float32) + bias
    expected = 0.5 * x * (1 + np.vectorize(erf)(x * 0.5**0.5))
    np.testing.assert_allclose(c, expected, rtol=1e-2, atol=1e-2)


def test_decoding():
    rng = np.random.default_rng(0)
    q, (k, v) = rng.standard_normal((2, 32)).astype(np.float32), rng.standard_normal((2, 2, 40, 32)).astype(np.float32)
    lengths = np.array([40, 19], np.int32)
    parts, lse, out = np.zeros((2, 4, 32), np.float32), np.zeros((2, 4), np.float32), np.zeros((2, 32), np.float32)
    kernels.decode_part.interpret((2, 4), q, k, v, parts, lse, lengths, 40, 0.2, DIM=32, BLOCK=8, SPLITS=4)
    kernels.decode_sum.interpret(2, parts, lse, out, DIM=32, SPLITS=4)
    for head, length in enumerate(lengths):
        scores = np.exp(k[head, :length] @ q[head] * 0.2)
        np.testing.assert_allclose(out[head], scores @ v[head, :length] / scores.sum(), rtol=1e-4, atol=1e-5)


# --- signatures, names ----------------------------------------------------------------------------------------------


def options(call: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """The options of a call, with their defaults and types."""
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = inspect.signature(call).parameters.items()
    return {name: (each.default, each.annotation) for name, each in parameters if each.kind is kind}


def test_the_signatures_of_runs_have_all_options_with_their_defaults_and_types():
    known = {each.name: (each.default, each.type) for each in fields(Options)}
    named = {"options": (None, "Mapping[str, Any] | None")}
    assert options(kernels.rope.interpret) == {**named, **known}
    own = options(check_module.check)
    known = {name: each for name, each in known.items() if name not in ORDERS}
    assert options(kernels.rope.check) == {**known, **own}


def test_the_signature_of_a_launch_has_the_parameters_and_the_options():
    found = list(inspect.signature(kernels.rope[(1,)]).parameters)
    assert found[:5] == ["q_ptr", "cos_ptr", "sin_ptr", "heads", "HEAD_DIM"]
    assert {"num_warps", "num_stages", "maxnreg", "ctas_per_cga", "target", "checks"} <= set(found)
    assert "signature" in inspect.signature(kernels.rope.compile).parameters


def test_a_kernel_shows_its_parameters():
    parameters = "q_ptr, cos_ptr, sin_ptr, heads, HEAD_DIM: constexpr"
    assert repr(kernels.rope) == f"<tlx_xdsl.Kernel rope({parameters}) of {kernels.__file__}>"


def test_the_package_lists_its_names():
    names = dir(tlx_xdsl)
    assert {"jit", "interpret", "TensorDescriptor", "show", "first_step", "Config"} <= set(names)
    assert not {"Any", "TYPE_CHECKING", "annotations"} & set(names)
    assert set(tlx_xdsl.__all__) <= set(names)


@pytest.mark.parametrize("module", ["tlx_xdsl.runtime", "tlx_xdsl.language", "tlx_xdsl.language.tlx"])
def test_other_modules_list_their_public_names(module):
    found = import_module(module)
    assert dir(found) == sorted(found.__all__)
    assert all(hasattr(found, name) for name in dir(found))


def test_signatures_say_types():
    shown = str(inspect.signature(tlx.async_dot))
    assert "Any" not in shown
    assert "A: 'tensor | buffered_tensor', B: 'buffered_tensor'" in shown


def test_the_host_has_a_division_that_rounds_up():
    assert [tlx_xdsl.cdiv(n, 256) for n in (0, 1, 256, 257)] == [0, 1, 1, 2]
    with pytest.raises(RuntimeError, match=r"outside, tlx_xdsl\.cdiv is"):
        tl.cdiv(3, 2)


def test_a_misspelt_name_has_a_suggestion():
    with pytest.raises(AttributeError, match="has no attribute 'jitt', did you mean 'jit'"):
        _ = tlx_xdsl.jitt  # pyright: ignore
    assert not hasattr(tlx_xdsl, "__wrapped__")
