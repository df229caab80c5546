"""The `tt` dialect: functions, tensors, pointers and descriptors."""

from __future__ import annotations

from ..base import dialect_of
from .atomic import *
from .attrs import *
from .block_pointer import *
from .debug import *
from .descriptor import *
from .dot import *
from .elementwise import *
from .func import *
from .joining import *
from .memory import *
from .reduce import *
from .shape import *
from .types import *

TT = dialect_of("tt", globals())
