"""The `tlx` dialect: what TLX has and no version of stock Triton's dialects has an operation for.

Storage aliasing (`storage_alias`), layouts that the user asks for (`layouts`), named barriers and fences (`barriers`),
clusters of CTAs with tensors of their own (`cluster`), signals between GPUs (`signals`), bulk copies and prefetches
(`copies`), and single instructions (`special`).
"""

from __future__ import annotations

from ..base import dialect_of
from .barriers import *
from .cluster import *
from .copies import *
from .layouts import *
from .signals import *
from .special import *
from .storage_alias import *
from .types import *

TLX = dialect_of("tlx", globals())
