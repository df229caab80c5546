"""Handlers that bufferize the operations of each dialect; they register when they are imported."""

from . import control as control, memory as memory, structured as structured, tensors as tensors
