"""Kernels of the oracle that are not equal to stock's, and why. Every entry must be true, so the lists only shrink."""

DELIBERATE: dict[str, str] = {
    "control.exchanged_aliases": "Triton 3.9.0 carries one of two names that stand for the same value before a loop, "
    "and keeps the first value for the other one: wrong results, so the frontend carries both",
}
"""Kernels whose IR is meant to differ from stock's, with the reason: at most one in twenty."""

PENDING: dict[str, str] = {
    "calls.order_of_arguments": "Triton evaluates the keyword arguments of a call before the others, the frontend "
    "from left to right",
}
"""Kernels whose IR is not stock's yet, with what is missing."""
