"""Random kernels: nearly all are equal to stock's, and none ends in a traceback."""

import os

import pytest

from tests.oracle import fuzz, mistakes
from tests.oracle.report import verdict
from tests.oracle.stock import Stock
from tests.versions import NEWEST, why_not_installed

FULL = os.environ.get("TLX_TEST_VOLUME") == "full"
PROGRAMS = range(300 if FULL else 40)

if reason := why_not_installed(NEWEST, "the language is that of"):
    pytest.skip(reason, allow_module_level=True)

pytestmark = pytest.mark.backend


def test_random_kernels_are_equal(tmp_path, capsys):
    programs = [fuzz.program(number) for number in PROGRAMS]
    path = tmp_path / "programs.py"
    fuzz.write(path, programs)
    stock = Stock()
    reasons = {program.name: verdict(stock, path, program.name, library=False)[0] for program in programs}
    stock.close()
    failed = {name: reason for name, reason in reasons.items() if reason}
    tracebacks = [f"{name}: {reason}" for name, reason in failed.items() if reason.startswith("TRACEBACK")]
    assert not tracebacks, "\n".join(tracebacks)
    refused = [name for name, reason in failed.items() if reason.startswith("stock refuses the kernel")]
    assert len(refused) * 20 <= len(programs), "the grammar makes too many kernels that stock refuses"
    accepted = len(programs) - len(refused)
    equal = len(programs) - len(failed)
    with capsys.disabled():
        print(f"\n{equal} of {accepted} random kernels equal, {len(refused)} that stock refuses")
    others = "\n".join(f"{name}: {reason}" for name, reason in failed.items() if name not in refused)
    assert equal * 10 >= accepted * 9, others


def test_programs_are_always_the_same():
    assert fuzz.program(5).text == fuzz.program(5).text
    assert fuzz.program(5).text != fuzz.program(6).text


def test_the_mistakes_are_mistakes(tmp_path):
    """Stock refuses each of them too."""
    stock = Stock()
    accepted: list[str] = []
    for number in range(len(mistakes.MISTAKES)) if FULL else range(0, len(mistakes.MISTAKES), 8):
        made = mistakes.mistake(number)
        path = tmp_path / f"mistake_{number}.py"
        path.write_text(made.text, encoding="utf-8")
        if not stock.kernel(path, made.program.name).error:
            accepted.append(made.what)
    stock.close()
    assert accepted == []
