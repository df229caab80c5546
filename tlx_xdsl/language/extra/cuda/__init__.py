"""Functions of NVIDIA GPUs beyond the language."""

from .. import libdevice
from . import gdc, utils
from .gdc import *
from .utils import *

__all__ = ["libdevice"]
__all__ += gdc.__all__
__all__ += utils.__all__
