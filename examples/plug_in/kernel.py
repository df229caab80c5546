"""A kernel for the pass: `tlx compile kernel.py:quarter --pass after:frontend=exact-division`."""

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def quarter(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n, other=0.0) / 4.0, mask=at < n)


TLX_COMPILE = {"quarter": {"signature": {"x": "*fp32", "out": "*fp32", "n": "i32"}, "constexprs": {"BLOCK": 256}}}
