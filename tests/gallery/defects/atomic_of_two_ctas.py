"""Both CTAs of a program need what an atomic operation found."""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.defects import as_one_cta


@tlx_xdsl.jit
def kernel(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, i + tl.atomic_add(x, 1))


def run(**options):
    """Compare with a kernel of one CTA."""
    as_one_cta(kernel, **options)
