"""The CTAs of a program count together."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.defects import as_one_cta


@tlx_xdsl.jit
def kernel(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + tl.arange(0, 16), tl.histogram(tl.load(x + i), 16))


def run(**options):
    """Compare with a kernel of one CTA."""
    as_one_cta(kernel, **options)
