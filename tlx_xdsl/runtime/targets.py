"""GPU targets: `sm_90a` and its kin."""

from __future__ import annotations

import re


def capability_of(target: str) -> int:
    """The compute capability of a target: 90 for `sm_90` and `sm_90a`, 100 for `sm_100a`.

    Raises ValueError for any other spelling.
    """
    match = re.fullmatch(r"sm_(\d{2,3})[af]?", target)
    if match is None:
        raise ValueError(f"unknown target '{target}': expected a spelling such as sm_90a or sm_100a")
    return int(match[1])
