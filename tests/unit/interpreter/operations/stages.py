"""The stages at which a kernel is run: all mean the same."""

import pytest

STAGES = ["ttir", "ttgir", pytest.param("ptx", marks=pytest.mark.backend)]
"""As the frontend made it, as stock Triton gets it, and what stock Triton makes of it."""


def at(stage: str) -> dict[str, str]:
    """The options of a run at a stage."""
    return {} if stage == "ttir" else {"stage": stage}
