"""An extension of griffe, which reads the sources for mkdocstrings: signatures without what says nothing."""

from __future__ import annotations

from typing import Any

import griffe


class WithoutAny(griffe.Extension):
    """Drops the annotation `Any`: in the language it stands for every value of a kernel."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Take it from the parameters and the result."""
        for parameter in func.parameters:
            if str(parameter.annotation) == "Any":
                parameter.annotation = None
        if str(func.returns) == "Any":
            func.returns = None
