"""Every launch of these tests runs between fences, but for those of a test with the mark `unfenced`."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def fences(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays between fences, and temporary values that begin as NaN."""
    if request.node.get_closest_marker("unfenced") is None:
        pytest.importorskip("llvmlite")
        from tests.unit.cpu import fences

        fences.put_up(monkeypatch)
