"""Reasons why a specialised kernel can't be compiled for its target: most of all, that it needs more than there is."""

from __future__ import annotations

from tlx_xdsl.errors import CompilationError

from ..driver.compilation import compile_text
from .specialized import Specialized


def misfit(specialized: Specialized) -> str:
    """Return what our compiler has against a candidate; empty where it makes TTGIR of it."""
    try:
        compile_text(specialized.kernel.source, specialized.specialization, keep_ttir=False)
    except CompilationError as error:
        return error.message
    return ""
