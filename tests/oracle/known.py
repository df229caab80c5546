"""Kernels of the oracle that are not equal to stock's, and why. Every entry must be true, so the lists only shrink."""

DELIBERATE: dict[str, str] = {}
"""Kernels whose IR is meant to differ from stock's, with the reason: at most one in twenty."""

PENDING: frozenset[str] = frozenset(())
"""Kernels that use what the frontend doesn't have yet."""
