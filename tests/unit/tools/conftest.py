"""Command lines keep what they compile: each test in a folder of its own."""

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
