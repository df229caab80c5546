"""Each CTA of a program gathers what the other one has."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.defects import as_one_cta


@tlx_xdsl.jit
def kernel(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.gather(tl.load(x + i), N - 1 - i, 0))


def run(**options):
    """Compare with a kernel of one CTA."""
    as_one_cta(kernel, **options)
