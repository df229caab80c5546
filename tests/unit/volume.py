"""Number of examples that the tests try in which stock Triton has no part."""

import os

from tests.versions import INSTALLED, NEWEST, is_installed


def is_full_for_each_version() -> bool:
    """Return whether a test of what stock Triton makes runs at full volume, on any version of it."""
    return os.environ.get("TLX_TEST_VOLUME") == "full"


def is_full() -> bool:
    """Return whether such a test runs at full volume: where TLX_TEST_VOLUME asks for it, on one version of Triton."""
    if not is_full_for_each_version():
        return False
    return INSTALLED is None or is_installed(NEWEST)
