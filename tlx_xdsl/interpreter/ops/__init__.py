"""What runs each operation, by topic; importing this package registers all of it."""

from tlx_xdsl.interpreter.ops import (
    arith as arith,
)
from tlx_xdsl.interpreter.ops import (
    atomics as atomics,
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
    debug as debug,
)
from tlx_xdsl.interpreter.ops import (
    descriptors as descriptors,
)
from tlx_xdsl.interpreter.ops import (
    dot as dot,
)
from tlx_xdsl.interpreter.ops import (
    elementwise as elementwise,
)
from tlx_xdsl.interpreter.ops import (
    global_access as global_access,
)
from tlx_xdsl.interpreter.ops import (
    hints as hints,
)
from tlx_xdsl.interpreter.ops import (
    mapping as mapping,
)
from tlx_xdsl.interpreter.ops import (
    math as math,
)
from tlx_xdsl.interpreter.ops import (
    program as program,
)
from tlx_xdsl.interpreter.ops import (
    reduction as reduction,
)
from tlx_xdsl.interpreter.ops import (
    tensors as tensors,
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
