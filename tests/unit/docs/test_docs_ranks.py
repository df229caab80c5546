"""The page about kernels on several GPUs shows what happens: its kernel runs, and the report is what is printed."""

from pathlib import Path

import pytest

from tests.unit.docs.documents import blocks, consoles, printed, shows, stable

PAGE = "docs/check-ranks.md"


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_page_shows_what_is_printed():
    (kernel,) = blocks(PAGE, "python")
    ((command, output),) = consoles(PAGE)
    Path("sums.py").write_text(kernel)
    assert shows(stable(output), stable(printed(command)))

    shown, proved, remark = blocks(PAGE, "text")
    check, _, report = proved.partition("\n")
    assert shows(stable(report), stable(printed(f"{check.removeprefix('$ tlx ')} --seconds 0")))

    check, _, report = shown.partition("\n")
    Path("sums.py").write_text("".join(kernel.splitlines(keepends=True)[:-3]))
    assert shows(report, printed(f"{check.removeprefix('$ tlx ')} --seconds 0"))
    assert remark.rstrip() in printed(f"{check.removeprefix('$ tlx ')} --seconds 0 --prove")
