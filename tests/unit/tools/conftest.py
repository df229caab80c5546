"""Command lines keep what they compile: each test in a folder of its own."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tlx_xdsl.runtime import compile_many


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps compile in a thread of this process."""

    def in_threads(jobs, workers=None, **options):
        with ThreadPoolExecutor(1) as pool:
            return compile_many(jobs, pool, **options)

    monkeypatch.setattr("tlx_xdsl.runtime.sweep.compile_many", in_threads)
