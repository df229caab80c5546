"""Kernels of the oracle that are not equal to stock's, and why. Every entry must be true, so the list only shrinks."""

DELIBERATE: dict[str, str] = {
    "control.exchanged_aliases": "Triton 3.9.0 carries one of two names that stand for the same value before a loop, "
    "and keeps the first value for the other one: wrong results, so the frontend carries both",
    "calls.order_of_arguments": "Triton evaluates the keyword arguments of a call before the others, the frontend from "
    "left to right, as Python does",
}
"""Kernels whose IR is meant to differ from stock's, with the reason: at most one in twenty."""
