"""`jit(warp_specialize=...)` on the CPU: what runs in the interpreter, is checked, compiled, and kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tlx_xdsl
from tests.unit.runtime.specialize.plain_kernels import BLOCKS, TYPES, add_one, arguments, grid, product
from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.runtime.specialize import choice, equality, search
from tlx_xdsl.runtime.specialize.decision import ComparisonError
from tlx_xdsl.runtime.specialize.equality import Comparison
from tlx_xdsl.runtime.specialize.settings import Settings
from tlx_xdsl.runtime.specialize.verdict import Verdict

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One cache for all tests here: each specialisation is made once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def kernel(folder, monkeypatch):
    monkeypatch.setenv("TLX_CACHE_DIR", str(folder))
    return tlx_xdsl.jit(warp_specialize=True)(product)


def test_the_interpreter_runs_the_specialised_kernel(kernel, folder):
    args, expected = arguments()
    plain = tlx_xdsl.jit(product).interpret(grid, *args, **BLOCKS)
    wanted = args[2].copy()
    args[2].fill(np.nan)
    found = kernel.interpret(grid, *args, **BLOCKS)
    assert found.turns > plain.turns
    assert np.array_equal(args[2], wanted)
    np.testing.assert_allclose(wanted.astype(np.float32), expected.astype(np.float32), atol=0.05)
    made = kernel.specialized(*args, **BLOCKS)
    assert made.verdict.answer.startswith("proved")
    assert made.path.is_relative_to(folder)
    assert "tlx.async_task" in made.path.read_text(encoding="utf-8") == made.source


def test_on_arrays_the_plain_kernel_is_machine_code(kernel):
    pytest.importorskip("llvmlite")
    args, expected = arguments()
    kernel[grid](*args, **BLOCKS)
    np.testing.assert_allclose(args[2].astype(np.float32), expected.astype(np.float32), atol=0.05)
    assert not vars(kernel).get("choices")


def test_a_check_proves_it(kernel):
    args, _ = arguments()
    report = kernel.check(grid, *args, seconds=0.0, stages=["frontend"], prove=True, **BLOCKS)
    assert report
    (proof,) = report.proofs
    assert proof.answer.startswith("proved")
    assert proof.proof.tasks > 1
    with pytest.raises(InputTypeError, match="checked at one size"):
        kernel.check(1, sizes={"M": (1, 2)}, arguments=lambda M: args)


def test_it_is_compiled(kernel):
    args, _ = arguments()
    assert "ttg.warp_specialize" in kernel.compile(*args, **BLOCKS).ttgir
    assert "ttg.warp_specialize" not in kernel.compile(TYPES, BLOCKS, target="sm_80").ttgir


def test_a_choice_is_on_disk_for_the_next_process(kernel, monkeypatch):
    args, _ = arguments()
    first = kernel.specialized(*args, **BLOCKS)
    monkeypatch.setattr(choice, "searched", lambda *rest: pytest.fail("it is on disk"))
    second = tlx_xdsl.jit(warp_specialize=True)(product).specialized(*args, **BLOCKS)
    assert (second.source, second.host, second.verdict) == (first.source, first.host, first.verdict)
    assert second.decisions == first.decisions
    assert second.arguments(grid, *args, **BLOCKS)[0] == first.arguments(grid, *args, **BLOCKS)[0]


def test_what_can_not_be_specialised_is_as_before(tmp_path, monkeypatch):
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path))
    kernel = tlx_xdsl.jit(warp_specialize=True)(add_one.fn)
    x = np.zeros(64, np.float32)
    kernel.interpret(1, x, 64, BLOCK=64)
    assert x.min() == 1
    made = kernel.specialized(x, 64, BLOCK=64)
    assert not made
    assert "not warp-specialised" in str(made)
    assert made.refused.location.filename == kernel.source.filename
    monkeypatch.setattr(choice, "searched", lambda *rest: pytest.fail("it is on disk"))
    again = tlx_xdsl.jit(warp_specialize=True)(add_one.fn).specialized(x, 64, BLOCK=64)
    assert again.refused.message == made.refused.message
    assert again.refused.location == made.refused.location


def test_what_is_not_proved_is_explored_where_there_is_a_launch(kernel, monkeypatch):
    monkeypatch.setattr(search, "proof_of", lambda kernel, specialization: Verdict("unknown", ("no reason",)))
    monkeypatch.setattr(search, "misfit", lambda specialized: "")
    args, _ = arguments()
    wanted = search.Wanted(kernel, TYPES, BLOCKS)
    assert "neither proved nor explored: no reason" in str(search.searched(wanted, Settings(by="rules")))
    named = {**dict(zip(TYPES, args, strict=True)), **BLOCKS}
    found = search.searched(replace(wanted, grid=grid, named=named), Settings(by="rules"))
    assert found.verdict.answer == "explored"


def test_a_difference_is_raised_where_it_is_checked(kernel, monkeypatch):
    args, _ = arguments()
    kernel = tlx_xdsl.jit(warp_specialize={"check": True})(product)
    kernel.interpret(grid, *args, **BLOCKS)
    monkeypatch.setattr(equality, "compared", lambda *rest: Comparison("c_ptr[0, 0] is 1"))
    with pytest.raises(ComparisonError, match="'product' computes something else when it is specialised: c_ptr"):
        kernel.interpret(grid, *args, **BLOCKS)


def test_a_launch_that_does_not_fit_takes_the_plain_kernel(kernel):
    # No stride is a multiple of 16 bytes.
    args, expected = arguments(k=113, n=81)
    kernel.interpret(grid, *args, **BLOCKS)
    np.testing.assert_allclose(args[2].astype(np.float32), expected.astype(np.float32), atol=0.05)
    fitting, _ = arguments()
    made = kernel.specialized(*fitting, **BLOCKS)
    assert made.arguments(grid, *fitting, **BLOCKS)
    assert made.why_not(grid, *fitting, **BLOCKS) == ""
