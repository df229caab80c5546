"""The `ttng` dialect: mbarriers, TMA, wgmma, tcgen05 and tensor memory of NVIDIA GPUs."""

from __future__ import annotations

from ..base import dialect_of
from .attrs import *
from .barrier import *
from .cluster import *
from .mma import *
from .packed import *
from .tcgen05 import *
from .tensormap import *
from .tma import *
from .tmem import *

TTNG = dialect_of("ttng", globals())
