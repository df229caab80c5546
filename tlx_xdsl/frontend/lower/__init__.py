"""What the functions of the language become, one module per topic; the modules register themselves when imported."""

from tlx_xdsl.frontend.lower import basics as basics
from tlx_xdsl.frontend.lower import tlx as tlx
from tlx_xdsl.frontend.lower import tlx_storage as tlx_storage
