"""The clock on kernels: predicted cycles and timelines of a launch, and what limits it (docs/clock.md)."""
