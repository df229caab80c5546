"""Errors in a bundle, or in a launch of it."""

from __future__ import annotations

from pathlib import Path

from tlx_xdsl.errors import CompilationError, SourceLocation


class BundleError(CompilationError):
    """A bundle that can't be used: damaged, foreign, too new, for another GPU, or launched with wrong arguments.

    It is a CompilationError, located in one of the bundle's files: so it reads like every other error of ours, and
    who catches those catches it, too. Where another exception is its cause (the launcher's TypeError for a wrong
    argument), that is its `__cause__`.
    """


def bundle_error(path: Path, message: str, *notes: str, line: int = 0, column: int = 0) -> BundleError:
    """The error `message` at a file or folder of a bundle."""
    return BundleError(message, SourceLocation(str(path), line, column), notes=notes)
