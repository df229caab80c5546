"""What the functions of the language become, one module per topic; the modules register themselves when imported."""

from tlx_xdsl.frontend.lower import asm as asm
from tlx_xdsl.frontend.lower import atomics as atomics
from tlx_xdsl.frontend.lower import basics as basics
from tlx_xdsl.frontend.lower import casts as casts
from tlx_xdsl.frontend.lower import creation as creation
from tlx_xdsl.frontend.lower import cuda as cuda
from tlx_xdsl.frontend.lower import debug as debug
from tlx_xdsl.frontend.lower import descriptors as descriptors
from tlx_xdsl.frontend.lower import dot_scaled as dot_scaled
from tlx_xdsl.frontend.lower import hints as hints
from tlx_xdsl.frontend.lower import libdevice as libdevice
from tlx_xdsl.frontend.lower import math as math
from tlx_xdsl.frontend.lower import matrix as matrix
from tlx_xdsl.frontend.lower import memory as memory
from tlx_xdsl.frontend.lower import shape as shape
from tlx_xdsl.frontend.lower import tlx as tlx
from tlx_xdsl.frontend.lower import tlx_storage as tlx_storage
