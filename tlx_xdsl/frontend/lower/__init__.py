"""What the functions of the language become, one module per topic; the modules register themselves when imported."""

from tlx_xdsl.frontend.lower import asm as asm
from tlx_xdsl.frontend.lower import atomics as atomics
from tlx_xdsl.frontend.lower import basics as basics
from tlx_xdsl.frontend.lower import debug as debug
from tlx_xdsl.frontend.lower import descriptors as descriptors
from tlx_xdsl.frontend.lower import dot_scaled as dot_scaled
from tlx_xdsl.frontend.lower import hints as hints
from tlx_xdsl.frontend.lower import matrix as matrix
from tlx_xdsl.frontend.lower import memory as memory
from tlx_xdsl.frontend.lower import tlx_access as tlx_access
from tlx_xdsl.frontend.lower import tlx_barriers as tlx_barriers
from tlx_xdsl.frontend.lower import tlx_clc as tlx_clc
from tlx_xdsl.frontend.lower import tlx_cluster as tlx_cluster
from tlx_xdsl.frontend.lower import tlx_copies as tlx_copies
from tlx_xdsl.frontend.lower import tlx_layouts as tlx_layouts
from tlx_xdsl.frontend.lower import tlx_mma as tlx_mma
from tlx_xdsl.frontend.lower import tlx_storage as tlx_storage
from tlx_xdsl.frontend.lower import tlx_tasks as tlx_tasks
from tlx_xdsl.frontend.lower import tlx_tma as tlx_tma
from tlx_xdsl.frontend.lower import tlx_utility as tlx_utility
from tlx_xdsl.frontend.lower import tlx_views as tlx_views
