"""Results of an H200, as they are kept: a hash of each output's bytes, and its first elements."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

FILE = Path(__file__).parent / "h200.json"
FIRST = 4
"""Elements that are kept of each output, for the eye."""


@dataclass
class Kept:
    """Results of a case on the GPU."""

    ptx: str
    """The digest of its PTX, without debug information."""
    hashes: list[str]
    first: list[list[float]]
    cause: str = ""
    """Why the machine gives something else; empty where it gives the same bits."""
    distance: float = 0.0
    """The largest difference then, next to the largest finite magnitude of its array."""
    part: float = 0.0
    """The part of the elements that differ."""


@dataclass
class Results:
    """All cases, and where they ran."""

    gpu: str = ""
    triton: str = ""
    cases: dict[str, Kept] = field(default_factory=dict)


def load() -> Results:
    """The kept results."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return Results(found["gpu"], found["triton"], {name: Kept(**each) for name, each in found["cases"].items()})


def save(results: Results) -> None:
    """Keep results."""
    cases = ",\n".join(f"{json.dumps(name)}: {json.dumps(asdict(kept))}" for name, kept in results.cases.items())
    head = f'"gpu": {json.dumps(results.gpu)}, "triton": {json.dumps(results.triton)}'
    FILE.write_text(f'{{{head}, "cases": {{\n{cases}\n}}}}\n', encoding="utf-8")


def canonical(array: np.ndarray) -> np.ndarray:
    """The array without gaps; all NaN are one, for PTX keeps neither their sign nor their payload."""
    dense = np.ascontiguousarray(array)
    if dense.dtype.kind not in "fV":
        return dense
    wide = dense.astype(np.float64)
    return np.where(np.isnan(wide), dense.dtype.type(np.nan), dense) if np.isnan(wide).any() else dense


def digest(array: np.ndarray) -> str:
    """The hash of an output."""
    return hashlib.sha256(canonical(array).tobytes()).hexdigest()[:16]


def first(array: np.ndarray) -> list[float]:
    """The first elements of an output, rounded."""
    return [float(f"{float(each):.6g}") for each in np.ascontiguousarray(array).ravel()[:FIRST]]


def dtype_named(name: str) -> np.dtype[Any]:
    """The type with this name in numpy or ml_dtypes."""
    return np.dtype(getattr(ml_dtypes, name, name))


def distance(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> tuple[float, float]:
    """The largest difference next to the largest magnitude of its array, and the part of the elements that differ."""
    worst, different, count = 0.0, 0, 0
    for mine, theirs in zip(found, wanted, strict=True):
        a, b = canonical(mine), canonical(theirs)
        differ = a.view(np.uint8).reshape(a.size, -1) != b.view(np.uint8).reshape(a.size, -1)
        different, count = different + int(differ.any(axis=1).sum()), count + a.size
        x, y = a.astype(np.float64), b.astype(np.float64)
        scale = np.abs(y[np.isfinite(y)]).max(initial=0) or 1.0
        with np.errstate(invalid="ignore"):
            gap = np.where((x == y) | np.isnan(x) & np.isnan(y), 0, np.abs(x - y))
        worst = max(worst, float(np.nan_to_num(gap / scale, nan=np.inf).max(initial=0)))
    return worst, different / max(count, 1)
