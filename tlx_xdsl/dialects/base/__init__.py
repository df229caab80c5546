"""Base of all dialects: tensor types and pointers, layout attributes, enumerations, constraints, assembly formats.

Nothing in here imports a dialect, so that every dialect may import it.
"""

from tlx_xdsl.dialects.base.assembly import *
from tlx_xdsl.dialects.base.budget import *
from tlx_xdsl.dialects.base.capability import *
from tlx_xdsl.dialects.base.constraints import *
from tlx_xdsl.dialects.base.effects import *
from tlx_xdsl.dialects.base.enums import *
from tlx_xdsl.dialects.base.layouts import *
from tlx_xdsl.dialects.base.memory import *
from tlx_xdsl.dialects.base.operation import *
from tlx_xdsl.dialects.base.pointer import *
from tlx_xdsl.dialects.base.ptx import *
from tlx_xdsl.dialects.base.spelling import *
from tlx_xdsl.dialects.base.tensors import *
from tlx_xdsl.dialects.base.views import *
