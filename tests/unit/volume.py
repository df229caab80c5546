"""How many examples the tests try that stock Triton has no part in."""

import os
from importlib import metadata

NEWEST_TRITON = "3.9"


def is_full() -> bool:
    """Whether such a test runs at full volume: where TLX_TEST_VOLUME asks for it, but on one version of Triton only."""
    if os.environ.get("TLX_TEST_VOLUME") != "full":
        return False
    try:
        return metadata.version("triton").startswith(f"{NEWEST_TRITON}.")
    except metadata.PackageNotFoundError:
        return True
