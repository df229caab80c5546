"""Choices on disk, by what they were made from: the next process neither searches nor proves.

The key covers the plain kernel with all that it reaches, its types and constants, the target, the settings, the class
of the launch (`launch_class`), this package, and Triton with the GPU where they have a say.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tlx_xdsl.backend.options import installed_triton_version
from tlx_xdsl.errors import CompilationError, SourceLocation

from ..driver import cache
from ..driver.fingerprint import compiler_changed, compiler_fingerprint, kernel_fingerprint, values_fingerprint
from ..simulate.interpret import source_of_kernel
from .decision import Alternative, Decision, NotSpecialisedError
from .host_part import HostPart
from .search import Wanted
from .settings import Settings
from .specialized import Specialized, restored
from .turns import Turns
from .verdict import Verdict

KIND = "specialised-choices"
"""The folder of such entries in the cache."""

_FORM = 1
"""Of the entry; another number is another key."""


def key_of(wanted: Wanted, settings: Settings, classes: Sequence[Any], device: str = "") -> str:
    """The hash of all that a choice depends on.

    Raises CompilationError where the text of something that the kernel calls is not available.
    """
    source = source_of_kernel(wanted.kernel)
    parts = (
        _FORM,
        kernel_fingerprint(source).digest,
        sorted((name, str(type_)) for name, type_ in wanted.signature.items()),
        values_fingerprint(wanted.constexprs),
        wanted.target,
        wanted.num_warps,
        sorted(wanted.options.items(), key=str),
        settings.key(),
        tuple(classes),
        compiler_fingerprint(),
        "" if settings.by == "rules" else installed_triton_version(),
        device,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def load(key: str, kernel: Any) -> Specialized | None:
    """Return the choice that was kept under a key; None where there is none, or nothing whole."""
    body = cache.load(key, KIND)
    if body is None:
        return None
    try:
        return _read(json.loads(body), kernel)
    except (LookupError, TypeError, ValueError):
        return None


def store(key: str, choice: Specialized) -> None:
    """Keep a choice in which no defect of the compiler had a part.

    Where this package has changed since it was loaded, it is not what the key says.
    """
    if not choice.is_defect and not compiler_changed():
        cache.store(key, json.dumps(_record(choice), default=str).encode(), KIND)


def _record(choice: Specialized) -> dict[str, Any]:
    refused = choice.refused
    return {
        "source": choice.source,
        "host": choice.host.as_json(),
        "turns": [vars(each) for each in choice.turns],
        "decisions": [_decision(each) for each in choice.decisions],
        "verdict": None if choice.verdict is None else vars(choice.verdict),
        "milliseconds": choice.milliseconds,
        "refused": None if refused is None else {"message": refused.message, "place": _place(refused.location)},
    }


def _decision(decision: Decision) -> dict[str, Any]:
    return {**vars(decision), "alternatives": [vars(each) for each in decision.alternatives]}


def _place(place: SourceLocation | None) -> list[Any] | None:
    return None if place is None else [place.filename, place.line, place.column]


def _read(known: Mapping[str, Any], kernel: Any) -> Specialized:
    decisions = tuple(
        replace(Decision(**each), alternatives=tuple(Alternative(**other) for other in each["alternatives"]))
        for each in known["decisions"]
    )
    verdict = known["verdict"]
    found = None
    if verdict is not None:
        found = Verdict(
            verdict["answer"], tuple(verdict["details"]), tuple(verdict["assumed"]), tuple(verdict["lines"])
        )
    if (refused := known["refused"]) is not None:
        place = None if refused["place"] is None else SourceLocation(*refused["place"])
        error: CompilationError = NotSpecialisedError(refused["message"], place)
        return Specialized(kernel, kernel, known["source"], decisions=decisions, verdict=found, refused=error)
    host = HostPart.of_json(known["host"])
    made = restored(kernel, known["source"], host, decisions)
    turns = tuple(Turns(**each) for each in known["turns"])
    return replace(made, verdict=found, milliseconds=known["milliseconds"], turns=turns)


# --- classes of launches ----------------------------------------------------------------------------------------------


def launch_class(sizes: Sequence[int], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what launches have in common that share a choice: their numbers and their grids to an eighth of an octave.

    Conditions, such as multiples of 16, are in the types.
    """
    numbers = [_rounded(value) for value in named.values() if type(value) is int]
    return (_rounded(prod(sizes)), *numbers)


def _rounded(number: int) -> int:
    """A number with its first four binary digits; small ones, where each counts, as they are."""
    shift = max(0, abs(number).bit_length() - 4)
    return number if abs(number) < 64 else number >> shift << shift
