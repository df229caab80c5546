"""Functions for the GPUs of one vendor."""

from . import cuda as cuda, libdevice as libdevice
