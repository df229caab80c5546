"""The annotations of functions and classes of users, which Python 3.14 and later compute when they are asked for.

An annotation may name what exists for type checkers only. Earlier versions refuse it where the function is defined,
unless annotations are kept as text; from 3.14 on it would be an error of our question.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any


def annotations_of(of: type | Callable[..., Any]) -> dict[str, Any]:
    """Return what a class itself annotates, or a function; text, or an `annotationlib.ForwardRef`, if not computed."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(of, format=annotationlib.Format.FORWARDREF)
    return inspect.get_annotations(of)


def annotated_signature(of: Callable[..., Any]) -> inspect.Signature:
    """Return what `inspect.signature` does, with the annotations of `annotations_of`."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(of, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(of)


def text_of(annotation: object) -> str | None:
    """Return the text of an annotation that is not computed; None for another."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", None)
    return text if isinstance(text, str) else None
