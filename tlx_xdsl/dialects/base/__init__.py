"""Base of all dialects: tensor types and pointers, layout attributes, enumerations, constraints, assembly formats.

Nothing in here imports a dialect, so that every dialect may import it.
"""

from .assembly import *
from .constraints import *
from .effects import *
from .enums import *
from .layouts import *
from .operation import *
from .pointer import *
from .ptx import *
from .tensors import *
