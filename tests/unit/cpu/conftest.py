"""Every launch of these tests runs between fences."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def fences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays between fences, and temporary values that begin as NaN."""
    pytest.importorskip("llvmlite")
    from tests.unit.cpu import fences

    fences.put_up(monkeypatch)
