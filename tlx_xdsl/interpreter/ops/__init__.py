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
    bulk as bulk,
)
from tlx_xdsl.interpreter.ops import (
    clc as clc,
)
from tlx_xdsl.interpreter.ops import (
    cluster as cluster,
)
from tlx_xdsl.interpreter.ops import (
    cluster_barrier as cluster_barrier,
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
    multicast as multicast,
)
from tlx_xdsl.interpreter.ops import (
    program as program,
)
from tlx_xdsl.interpreter.ops import (
    rounding as rounding,
)
from tlx_xdsl.interpreter.ops import (
    tcgen05 as tcgen05,
)
from tlx_xdsl.interpreter.ops import (
    tma as tma,
)
from tlx_xdsl.interpreter.ops import (
    tmem as tmem,
)
from tlx_xdsl.interpreter.ops import (
    views as views,
)
from tlx_xdsl.interpreter.ops import (
    votes as votes,
)
from tlx_xdsl.interpreter.ops import (
    wgmma as wgmma,
)
