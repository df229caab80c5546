"""The handlers of `linalg-lower-tensors` for each operation, by topic; they register when they are imported."""

from . import dots, elementwise, libdevice, reductions, scaled_dots, scans, shapes

__all__ = ["dots", "elementwise", "libdevice", "reductions", "scaled_dots", "scans", "shapes"]
