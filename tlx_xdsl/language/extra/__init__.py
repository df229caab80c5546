"""Functions for the GPUs of one vendor."""

from tlx_xdsl.language.extra import cuda as cuda, libdevice as libdevice
