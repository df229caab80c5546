"""The `ttg` dialect: layouts, buffers in shared memory, warp specialisation."""

from __future__ import annotations

from ..base import dialect_of
from .asynchronous import *
from .attrs import *
from .local import *
from .registers import *
from .types import *
from .views import *
from .warp_specialize import *

TTG = dialect_of("ttg", globals())
