"""Handling of a reader of the output that has gone, as in `tlx map ... | head`."""

from __future__ import annotations

import contextlib
import os
import sys


def reader_has_gone() -> None:
    """Send the rest of standard output nowhere: Python would report at its end that it can't be written."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
