"""Names that versions of Triton call differently in Gluon, each under one name."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, TensorMemoryScalesLayout
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

from tests.versions import RELEASE

if RELEASE >= (3, 8):
    copy_async = async_copy.async_load
    tma_load = tma.async_load
    tma_store = tma.async_store
else:
    copy_async = async_copy.async_copy_global_to_shared
    tma_load = tma.async_copy_global_to_shared
    tma_store = tma.async_copy_shared_to_global

barrier = gl.barrier if RELEASE >= (3, 7) else gl.thread_barrier


if hasattr(gl.shared_memory_descriptor, "reinterpret"):

    @gluon.jit
    def reinterpret(desc, dtype: gl.constexpr, shape: gl.constexpr, layout: gl.constexpr):
        return desc.reinterpret(dtype, shape, layout)

else:

    @gluon.jit
    def reinterpret(desc, dtype: gl.constexpr, shape: gl.constexpr, layout: gl.constexpr):
        return desc._reinterpret(dtype, shape, layout)


@gluon.constexpr_function
def split_tmem_layout(block, two_ctas=False):
    """Tensor memory whose rows are split over the two CTAs of a cluster, which multiply as a pair or separately."""
    if RELEASE >= (3, 8):
        return TensorMemoryLayout(block, col_stride=1, cga_layout=[[1, 0]], two_ctas=two_ctas)
    return TensorMemoryLayout(block, col_stride=1, cta_split_num=(2, 1), two_ctas=two_ctas)


@gluon.constexpr_function
def scales_layout():
    return TensorMemoryScalesLayout()


PAIR_BARRIER_SHAPE = gl.constexpr([2] if RELEASE >= (3, 7) else [1])
PAIR_BARRIER = gl.constexpr(mbarrier.MBarrierLayout(cga_layout=[[1] if RELEASE >= (3, 7) else [0]]))
"""The layout of the barriers of two CTAs; there are two of them, but Triton 3.6 counts them as one."""
