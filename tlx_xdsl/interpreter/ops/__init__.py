"""What runs each operation, by topic; importing this package registers all of it."""

from tlx_xdsl.interpreter.ops import (
    arith as arith,
)
from tlx_xdsl.interpreter.ops import (
    barriers as barriers,
)
from tlx_xdsl.interpreter.ops import (
    buffers as buffers,
)
from tlx_xdsl.interpreter.ops import (
    control as control,
)
from tlx_xdsl.interpreter.ops import (
    copies as copies,
)
from tlx_xdsl.interpreter.ops import (
    inline_ptx as inline_ptx,
)
from tlx_xdsl.interpreter.ops import (
    libdevice as libdevice,
)
from tlx_xdsl.interpreter.ops import (
    local_gather as local_gather,
)
from tlx_xdsl.interpreter.ops import (
    program as program,
)
from tlx_xdsl.interpreter.ops import (
    special as special,
)
from tlx_xdsl.interpreter.ops import (
    tensormaps as tensormaps,
)
from tlx_xdsl.interpreter.ops import (
    tma as tma,
)
from tlx_xdsl.interpreter.ops import (
    views as views,
)
from tlx_xdsl.interpreter.ops import (
    wgmma as wgmma,
)
