"""Names and bounds of a run that command lines list: importing this loads nothing."""

from __future__ import annotations

POLICIES = ("round-robin", "random", "adversarial")
"""The names of the policies that choose who goes on (`scheduler.py`)."""
SEEDED = ("random", "adversarial")
"""Those that a seed makes different."""

MAX_TURNS = 10_000_000
"""Turns of a cluster after which it counts as one that never ends."""
MAX_OPERATIONS = 1_000_000_000
"""Operations in loops, of one cluster."""
MAX_SECONDS = 300.0
"""Seconds of a processor for one cluster."""
