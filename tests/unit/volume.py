"""How many examples the tests try that stock Triton has no part in."""

import os

from tests.versions import INSTALLED, NEWEST, is_installed


def is_full() -> bool:
    """Whether such a test runs at full volume: where TLX_TEST_VOLUME asks for it, but on one version of Triton only."""
    if os.environ.get("TLX_TEST_VOLUME") != "full":
        return False
    return INSTALLED is None or is_installed(NEWEST)
