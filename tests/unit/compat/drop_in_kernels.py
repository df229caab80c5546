"""Functions as scripts for Meta's TLX have them, not decorated yet; the first lines are theirs, too."""

# The tests import this file with the drop-in in place.
import triton
import triton.language as tl
import triton.language.extra.tlx as tlx
from triton.language.extra.tlx import local_alloc

KIND = tlx.storage_kind.smem
PAIR = (1, tlx.local_load)


def add(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < N)
    tl.store(y_ptr + offs, twice(x), mask=offs < N)


def direct(x_ptr):
    tl.store(x_ptr, tlx.thread_id(0))


def by_full_name(x_ptr):
    tl.store(x_ptr, triton.language.extra.tlx.thread_id(0))


def by_imported_name(x_ptr):
    local_alloc((64,), tl.float32, 1)


def by_constant(x_ptr):
    tl.static_assert(KIND is not None)


def by_tuple(x_ptr):
    PAIR[1](x_ptr)


def by_default(x_ptr, kind: tl.constexpr = tlx.storage_kind.smem):
    pass


def by_annotation(x: tlx.mbarrier):
    pass


def by_lambda(x_ptr):
    tl.store(x_ptr, tl.cat(*[tlx.thread_id(each) for each in (0, 1)]))


def through_helper(x_ptr):
    offs = tl.arange(0, 64)
    tl.store(x_ptr + offs, staged(tl.load(x_ptr + offs)))


def through_two_helpers(x_ptr):
    through_helper(x_ptr)


def through_method(x_ptr):
    Stage(x_ptr).load()


def recursive(x_ptr):
    recursive(x_ptr)


def shadowed(tlx):
    tlx.anything(0)


def mentions_an_enum(x_ptr):
    tl.store(x_ptr, tl.minimum(tl.load(x_ptr), 1.0, tl.PropagateNan.ALL))


def mentions_in_a_string(x_ptr):
    """Does not use tlx.thread_id."""
    tl.store(x_ptr, 0)


def applies(x_ptr, FN: tl.constexpr):
    tl.store(x_ptr, FN(tl.load(x_ptr)))


def hands_on(x_ptr, FN: tl.constexpr):
    applied(x_ptr, FN)


def twice(x):
    return x * 2


def staged(x):
    buffer = tlx.local_alloc((64,), tl.float32, 1)
    tlx.local_store(buffer[0], twice(x))
    return tlx.local_load(buffer[0])


def applied(x_ptr, FN: tl.constexpr):
    tl.store(x_ptr, FN(tl.load(x_ptr)))


def in_a_closure(tlx):
    def kernel(x_ptr):
        tl.store(x_ptr, tlx.thread_id(0))

    return kernel


class Stage:
    def __init__(self, x_ptr):
        self.x_ptr = x_ptr

    def load(self):
        return staged(self.x_ptr)
