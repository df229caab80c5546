"""The `tt` dialect: functions, tensors, pointers and descriptors."""

from __future__ import annotations

from tlx_xdsl.dialects.base.operation import dialect_of
from tlx_xdsl.dialects.tt.atomic import *
from tlx_xdsl.dialects.tt.attrs import *
from tlx_xdsl.dialects.tt.debug import *
from tlx_xdsl.dialects.tt.descriptor import *
from tlx_xdsl.dialects.tt.dot import *
from tlx_xdsl.dialects.tt.elementwise import *
from tlx_xdsl.dialects.tt.func import *
from tlx_xdsl.dialects.tt.joining import *
from tlx_xdsl.dialects.tt.memory import *
from tlx_xdsl.dialects.tt.reduce import *
from tlx_xdsl.dialects.tt.shape import *
from tlx_xdsl.dialects.tt.types import *

TT = dialect_of("tt", globals())
