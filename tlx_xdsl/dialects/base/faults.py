"""Faults that the verifier of an operation finds in an operation inside of it."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException


class FaultAt(VerifyException):
    """A fault that shows at `op`, which the operation that is verified contains."""

    def __init__(self, op: Operation, message: str, other: Operation | None = None, about_other: str = "") -> None:
        super().__init__(message)
        self.op = op
        self.other = other
        """Another operation that has a part in it, for a note which says `about_other`."""
        self.about_other = about_other
