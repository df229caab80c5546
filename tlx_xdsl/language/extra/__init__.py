"""Functions for the GPUs of one vendor."""

from tlx_xdsl.language.extra import cuda as cuda
from tlx_xdsl.language.extra import libdevice as libdevice
