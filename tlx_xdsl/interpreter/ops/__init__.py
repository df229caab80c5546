"""What runs each operation, by topic; importing this package registers all of it."""

from tlx_xdsl.interpreter.ops import (
    arith as arith,
    barriers as barriers,
    buffers as buffers,
    control as control,
    copies as copies,
    program as program,
    tma as tma,
    views as views,
    wgmma as wgmma,
)
