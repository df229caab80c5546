"""Output on the page of the clock: findings are those of the command above them, whatever the constants are today."""

import re

import pytest

from tests.unit import volume
from tests.unit.docs.documents import ROOT, blocks, printed

pytestmark = pytest.mark.backend


def without_numbers(text: str) -> str:
    return re.sub(r"\d[\d,.]*", "N", text)


def test_what_is_slow_is_named_as_the_page_shows(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path))
    (shown,) = [block for block in blocks("docs/clock.md", "console") if "--why-slow" in block]
    command, _, expected = shown.partition("\n")
    if not volume.is_full_for_each_version():
        # With fewer steps the same is found, and more.
        command = command.replace("--size K=8192", "--size K=2048")
    found = printed(command.removeprefix("$ tlx "))
    # Places of lines are exact.
    assert "examples/hopper_gemm_ws.py:70:17: warning: the ring is too shallow" in found
    finding = expected[expected.index("examples/") :]
    assert without_numbers(finding) in without_numbers(found)
    assert without_numbers(expected.partition(";")[0]) == without_numbers(found.partition(";")[0])


def test_the_files_that_the_page_names_are_there():
    text = (ROOT / "docs/clock.md").read_text()
    for path in re.findall(r"`((?:examples|benchmarks|tlx_xdsl)/[\w/]+(?:\.py|/)?)`", text):
        assert (ROOT / path).exists(), path
