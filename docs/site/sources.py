"""An extension of griffe, which reads the sources for mkdocstrings: docstrings and signatures."""

from __future__ import annotations

from typing import Any

import griffe

from docs.site.docstrings import as_markdown


class Sources(griffe.Extension):
    """Makes Markdown of docstrings, and drops the annotation `Any`: in the language it stands for every value."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Take a docstring as our other pages do."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Take `Any` from the parameters and the result."""
        for parameter in func.parameters:
            if str(parameter.annotation) == "Any":
                parameter.annotation = None
        if str(func.returns) == "Any":
            func.returns = None
