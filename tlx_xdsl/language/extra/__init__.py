"""What belongs to one vendor's GPUs."""

from tlx_xdsl.language.extra import cuda as cuda
from tlx_xdsl.language.extra import libdevice as libdevice
