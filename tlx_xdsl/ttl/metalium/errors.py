"""What is reported of a kernel that does not compile, or does what it must not."""

from __future__ import annotations


class MetaliumError(Exception):
    """An error in a kernel, or what keeps the machine from running it; `line` is 0 where there is no place."""

    def __init__(self, message: str, file: str = "", line: int = 0):
        super().__init__(message, file, line)
        self.message = message
        self.file = file
        self.line = line

    def __str__(self) -> str:
        """Return `file:line: error: message`."""
        place = f"{self.file}:{self.line}: " if self.file else ""
        return f"{place}error: {self.message}"
