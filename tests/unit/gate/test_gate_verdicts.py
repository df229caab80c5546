"""Verdicts on kernels: right code, code that stock Triton is made to get wrong, kernels that are wrong themselves."""

# covers: tlx gate

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from kernels_to_judge import beyond, cancelling, early, elementwise, product, products, quantized, refused, scale

from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendResult, Toolchain, installed_toolchain
from tlx_xdsl.backend.compile import compile_ttgir
from tlx_xdsl.errors import InputError
from tlx_xdsl.gate import Manner, Subject, Verdict, gate, judge as judge_module
from tlx_xdsl.gate.judge import judge

pytestmark = pytest.mark.backend

LACKS_FENCE = INSTALLED in ("3.6.0", "3.7.0")
"""Whether the installed Triton leaves out the proxy fence of a pipelined product (triton-lang/triton#10537)."""


def manner(seconds: float = 10.0) -> Manner:
    found = installed_toolchain()
    assert found is not None
    return Manner([found], seconds)


def verdict(subject: Subject, seconds: float = 10.0) -> Verdict:
    (found,) = judge(subject, manner(seconds), {}, ())
    return found


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Has stock Triton write something else into the PTX, where it matches a pattern."""

    def change(before: str, after: str) -> None:
        def compiled(*args: object, **options: object) -> BackendResult:
            result = compile_ttgir(*args, **options)  # pyright: ignore[reportArgumentType]
            assert re.search(before, result.ptx)
            return replace(result, ptx=re.sub(before, after, result.ptx))

        monkeypatch.setattr(judge_module, "compile_ttgir", compiled)

    return change


def line_of(kernel: object, text: str) -> int:
    lines = Path(__file__).with_name("kernels_to_judge.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_right_code_is_clean():
    subjects = (elementwise(scale), elementwise(early), products(num_stages=1))
    assert [verdict(each).outcome for each in subjects] == ["clean"] * 3


def test_a_fence_that_stock_triton_leaves_out_is_its_fault_at_the_product(changed: Callable[[str, str], None]):
    if not LACKS_FENCE:
        changed(r"fence\.proxy\.async\.shared::cta;", "")
    found = verdict(products(num_stages=3))
    assert (found.outcome, found.fault, found.line) == ("finding", "Triton", line_of(product, "tl.dot("))
    assert "without a proxy fence" in found.message


@pytest.mark.skipif(LACKS_FENCE, reason="the fence is not there")
def test_a_pipelined_product_is_clean_with_its_fence():
    assert verdict(products(num_stages=3)).outcome == "clean"


def test_wrong_numbers_differ_from_the_interpreter(changed: Callable[[str, str], None]):
    changed(r"\b(?:add|mul)\.(?:rn\.)?f32\b", "sub.f32")
    found = verdict(elementwise(scale))
    assert (found.outcome, found.fault) == ("differs", "Triton")
    assert "of 200 elements of 'y' by more than 0.0001" in found.message
    assert found.line == line_of(scale, "tl.store(y + at, 2 * tl.load(x + at, at < n), at < n)")


def test_digits_that_cancel_are_not_compared(changed: Callable[[str, str], None]):
    found = verdict(cancelling())
    assert (found.outcome, found.message) == ("clean", "")
    assert found.notes == ("the last bits of what goes in change 'y' as much",)
    # What is wrong is wrong there, too.
    changed(r"\bex2\.approx", "rcp.approx")
    assert verdict(cancelling()).outcome == "differs"


def test_numbers_out_of_an_integer_s_range_are_no_fault(changed: Callable[[str, str], None]):
    """Stock Triton's code keeps 16 of 228 and more as 8 bits."""
    found = verdict(elementwise(quantized, n=250))
    assert found.outcome == "clean"
    said = "the kernel converts numbers that are out of range to integers, which may be anything, at "
    assert found.notes[0].startswith(said)
    assert found.notes[0].endswith(f":{line_of(quantized, '.to(tl.int8)')}:22")
    assert verdict(elementwise(quantized)).notes == ()
    # What is in range is wrong where it is wrong.
    changed(r"\b(?:add|sub)\.(?:rn\.)?f32\b", "mul.f32")
    assert verdict(elementwise(quantized, n=250)).outcome == "differs"


def test_a_kernel_that_leaves_its_array_is_at_fault_itself():
    found = verdict(elementwise(beyond))
    assert (found.outcome, found.fault) == ("finding", "kernel")
    assert found.line == line_of(beyond, "tl.store(y + at, 2 * tl.load(x + at))")


def test_what_is_not_run_says_why():
    found = verdict(elementwise(refused))
    assert found.outcome == "not run"
    assert found.message.startswith("the kernel does not compile")


def test_a_run_has_a_limit_of_time():
    found = verdict(products(1 << 14, num_stages=1), seconds=0.2)
    assert found.outcome == "not run"
    assert found.message == "the PTX machine ran for 0.2 s"


def test_equal_ptx_is_run_once(monkeypatch: pytest.MonkeyPatch):
    runs: list[object] = []
    run = judge_module.run_result
    monkeypatch.setattr(judge_module, "run_result", lambda *args: runs.append(args) or run(*args))
    installed = manner().toolchains[0]
    both = Manner([installed, installed])
    verdicts = list(judge(elementwise(scale), both, {}, ()))
    assert [each.outcome for each in verdicts] == ["clean"] * 2
    assert len(runs) == 1


def test_a_process_that_dies_costs_its_verdict(monkeypatch: pytest.MonkeyPatch):
    def dies(*args: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(judge_module, "run_result", dies)
    (found,) = gate([elementwise(scale)], manner()).verdicts
    assert (found.outcome, found.message) == ("not run", "its process ended: signal 9")


def test_a_triton_in_a_folder_compiles(tmp_path: Path):
    installed = manner().toolchains[0]
    assert installed.package is not None
    for each in (installed.package, *installed.package.parent.glob("triton-*.dist-info")):
        (tmp_path / each.name).symlink_to(each)
    there = Toolchain(installed.version, tmp_path)
    (found,) = judge(elementwise(scale), Manner([there]), {}, ())
    assert found.outcome == "clean"
    with pytest.raises(InputError, match=r"expected Triton 3\.5\.0 in"):
        Toolchain("3.5.0", tmp_path)
