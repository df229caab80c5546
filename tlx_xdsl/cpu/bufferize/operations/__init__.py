"""How operations on tensors look on memory, by dialect; the handlers register when they are imported."""

from . import control as control, memory as memory, structured as structured, tensors as tensors
