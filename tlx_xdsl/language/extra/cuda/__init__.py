"""Functions of NVIDIA GPUs beyond the language."""

from tlx_xdsl.language.extra import libdevice
from tlx_xdsl.language.extra.cuda import gdc, utils
from tlx_xdsl.language.extra.cuda.gdc import *
from tlx_xdsl.language.extra.cuda.utils import *

__all__ = ["libdevice"]
__all__ += gdc.__all__
__all__ += utils.__all__
