"""A cache of compiled kernels for these tests alone."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def cpu_cache(tmp_path_factory: pytest.TempPathFactory):
    """The folder of the cache, empty at the beginning."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cpu-cache")
        patch.setenv("TLX_CACHE_DIR", str(folder))
        # That the files of the package may change meanwhile is not what these tests are about.
        patch.setattr("tlx_xdsl.cpu.runtime.build.compiler_changed", lambda: False)
        yield folder
