"""The handlers of `linalg-lower-tensors` for each operation, by topic; they register when they are imported."""

from . import dots, elementwise, reductions, scans, shapes

__all__ = ["dots", "elementwise", "reductions", "scans", "shapes"]
