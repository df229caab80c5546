"""The CTAs of a program reduce together."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.defects import as_one_cta


@tlx_xdsl.jit
def kernel(x, y, N: tl.constexpr):
    rows = tl.load(x + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(y + tl.arange(0, 16), tl.sum(rows, 0))


def run(**options):
    """Compare with a kernel of one CTA."""
    as_one_cta(kernel, **options)
