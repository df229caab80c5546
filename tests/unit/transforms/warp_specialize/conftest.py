"""Choice of cases in this folder: every third one of a test runs in CI, and all at full volume."""

from collections import Counter

import pytest

from tests.unit.volume import is_full

ONE_IN = 3
"""Cases of which one runs: each specialises and interprets a kernel, which takes a second or more."""


def pytest_collection_modifyitems(items):
    """Skip the other cases, which are chosen by their order."""
    if is_full():
        return
    seen: Counter[str] = Counter()
    folder = __file__.rpartition("/")[0]
    for item in items:
        if not str(item.path).startswith(folder) or not hasattr(item, "callspec"):
            continue
        name = f"{item.path}::{item.originalname}"
        if seen[name] % ONE_IN:
            item.add_marker(pytest.mark.skip(reason="at full volume (TLX_TEST_VOLUME=full)"))
        seen[name] += 1
