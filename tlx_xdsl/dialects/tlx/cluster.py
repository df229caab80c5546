"""Thread-block clusters whose CTAs each have tensors of their own: shared memory of other CTAs, and who is who.

In stock Triton the CTAs of a cluster hold one tensor together. Here a CTA names another one of its
cluster by its rank, `%cluster_ctarank` of PTX, and reaches that CTA's copy of a buffer through a view of it.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, i1, i32, i64
from xdsl.ir import ParametrizedAttribute
from xdsl.irdl import (
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..base import (
    ANY_TENSOR,
    BULK_COPY,
    Effects,
    EnumNumber,
    Feature,
    Keyword,
    Needs,
    Space,
    TritonOp,
    View,
    ViewLayout,
    arrives,
    keyword_directive,
    reads,
    writes,
)
from ..ttg import MemDescType, memdesc_type, verify_mutable, verify_same_elements, verify_shared
from ..ttng import MAX_ARRIVALS


@irdl_attr_definition
class SharedClusterMemoryAttr(ParametrizedAttribute):
    """`#tlx.shared_cluster_memory`: the shared memory of another CTA of the cluster (PTX: .shared::cluster)."""

    name = "tlx.shared_cluster_memory"
    SPACE: ClassVar = Space.CLUSTER


class Releases(Keyword):
    """The earlier accesses that an arrival at another CTA's mbarrier releases (PTX ISA, "mbarrier.arrive").

    Asynchronous accesses that were waited for are complete: no arrival needs to release them.
    """

    CLUSTER = 0
    """All of them, to the threads of the cluster."""
    SHARED = 1
    """Accesses to the own CTA's shared memory, to the threads of the cluster."""
    CTA = 2
    """All of them, to the threads of the own CTA alone."""


def verify_remote(buffer: MemDescType) -> None:
    """Check that a buffer is another CTA's, and mutable."""
    if not isinstance(buffer.memory_space, SharedClusterMemoryAttr):
        raise VerifyException(f"the buffer must be a view of another CTA's, found {buffer}")
    verify_mutable(buffer)


def verify_remote_barrier(barrier: MemDescType) -> None:
    """Check that a buffer is one mbarrier of another CTA."""
    verify_remote(barrier)
    if barrier.element_type != i64 or barrier.shape != (1,):
        raise VerifyException(f"an mbarrier is a memdesc of shape 1xi64, found {barrier}")


@irdl_op_definition
class ClusterCTARankOp(TritonOp):
    """The rank of this CTA in its cluster (PTX: %cluster_ctarank): `%r = tlx.cluster_cta_rank`."""

    name = "tlx.cluster_cta_rank"
    NEEDS: ClassVar = Needs("tlx.cluster_cta_rank", Feature.CLUSTER)

    result = result_def(i32)

    traits = traits_def(Pure())
    assembly_format = "attr-dict"


@irdl_op_definition
class ClusterSizeOp(TritonOp):
    """The number of CTAs of the cluster (PTX: %cluster_nctarank): `%n = tlx.cluster_size`."""

    name = "tlx.cluster_size"
    NEEDS: ClassVar = Needs("tlx.cluster_size_1d", Feature.CLUSTER)

    result = result_def(i32)

    traits = traits_def(Pure())
    assembly_format = "attr-dict"


@irdl_op_definition
class MapToRemoteOp(TritonOp):
    """The CTA `rank`'s copy of a buffer or mbarrier of this kernel (PTX: mapa).

    Example: `%r = tlx.map_to_remote %b, %rank : !ttg.memdesc<64xf32, #s, #smem, mutable> -> !ttg.memdesc<64xf32, ...>`,
    whose memory is `#tlx.shared_cluster_memory`.
    """

    name = "tlx.map_to_remote"
    NEEDS: ClassVar = Needs("tlx.remote_view", Feature.CLUSTER)
    VIEW: ClassVar = View(ViewLayout.SAME)

    src = operand_def(MemDescType)
    rank = operand_def(i32)
    result = result_def(MemDescType)

    traits = traits_def(Pure())
    assembly_format = "$src `,` $rank attr-dict `:` type($src) `->` type($result)"

    @staticmethod
    def remote_type(source: MemDescType) -> MemDescType:
        """The type of another CTA's copy of `source`."""
        return MemDescType.get(
            source.shape,
            source.element_type,
            source.encoding,
            SharedClusterMemoryAttr(),
            mutable=source.is_mutable,
            alloc_shape=source.alloc_shape,
        )

    def verify_(self) -> None:
        """Check that only the memory space changes."""
        source = memdesc_type(self.src.type)
        verify_shared(source)
        if self.result.type != self.remote_type(source):
            raise VerifyException(f"expected {self.remote_type(source)}, found {self.result.type}")


@irdl_op_definition
class ArriveRemoteOp(TritonOp):
    """Arrive `count` times on another CTA's mbarrier, once for all threads of the region.

    What was done before is released as `releases` says: without it all of it, to the cluster (PTX: mbarrier.arrive.
    release.cluster.shared::cluster).
    Example: `tlx.arrive_remote %bar, 1, %pred releases cta : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, ..>`
    """

    name = "tlx.arrive_remote"
    NEEDS: ClassVar = Needs("tlx.barrier_arrive on another CTA", Feature.CLUSTER)
    EFFECTS: ClassVar = Effects(arrives("alloc"))

    alloc = operand_def(MemDescType)
    count = prop_def(IntegerAttr.constr(i32))
    pred = opt_operand_def(i1)
    releases = opt_prop_def(EnumNumber(Releases))

    custom_directives = (keyword_directive(Releases),)
    assembly_format = (
        "$alloc `,` $count (`,` $pred^)? (`releases` custom<Releases>($releases)^)? attr-dict `:` type($alloc)"
    )

    @property
    def released(self) -> Releases:
        """The earlier accesses that the arrival releases."""
        return Releases.CLUSTER if self.releases is None else Releases(self.releases.value.data)

    def verify_(self) -> None:
        """The operand is one barrier of another CTA, and the count is legal."""
        verify_remote_barrier(memdesc_type(self.alloc.type))
        if not 1 <= self.count.value.data <= MAX_ARRIVALS:
            raise VerifyException(
                f"the arrival count must be at least 1 and at most {MAX_ARRIVALS}, found {self.count.value.data}"
            )


@irdl_op_definition
class RemoteStoreOp(TritonOp):
    """Write a tensor to another CTA's buffer (PTX: st.shared::cluster): `tlx.remote_store %v, %r : ... -> ...`."""

    name = "tlx.remote_store"
    NEEDS: ClassVar = Needs("tlx.remote_shmem_store", Feature.CLUSTER)
    EFFECTS: ClassVar = Effects(writes("dst"))

    src = operand_def(ANY_TENSOR)
    dst = operand_def(MemDescType)

    assembly_format = "$src `,` $dst attr-dict `:` type($src) `->` type($dst)"

    def verify_(self) -> None:
        """The buffer is another CTA's and takes just the elements."""
        verify_remote(memdesc_type(self.dst.type))
        verify_same_elements(memdesc_type(self.dst.type), self.src.type)


@irdl_op_definition
class AsyncRemoteStoreOp(TritonOp):
    """Start to write a tensor to another CTA's buffer; its bytes complete on that CTA's `barrier` (PTX: st.async).

    Example: `tlx.async_remote_store %v, %r, %bar : tensor<..> -> !ttg.memdesc<..>, !ttg.memdesc<1xi64, ..>`
    """

    name = "tlx.async_remote_store"
    NEEDS: ClassVar = Needs("tlx.async_remote_shmem_store", Feature.CLUSTER)
    EFFECTS: ClassVar = Effects(writes("dst"), completes_on="barrier")

    src = operand_def(ANY_TENSOR)
    dst = operand_def(MemDescType)
    barrier = operand_def(MemDescType)

    assembly_format = "$src `,` $dst `,` $barrier attr-dict `:` type($src) `->` type($dst) `,` type($barrier)"

    def verify_(self) -> None:
        """Buffer and barrier are another CTA's, and the buffer takes just the elements."""
        verify_remote(memdesc_type(self.dst.type))
        verify_remote_barrier(memdesc_type(self.barrier.type))
        verify_same_elements(memdesc_type(self.dst.type), self.src.type)


@irdl_op_definition
class AsyncRemoteCopyOp(TritonOp):
    """Start to copy a buffer to another CTA's; its bytes complete on that CTA's `barrier`.

    One thread issues it (PTX: cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes).
    Example: `tlx.async_remote_copy %b, %r, %bar : !ttg.memdesc<..> -> !ttg.memdesc<..>, !ttg.memdesc<1xi64, ..>`
    """

    name = "tlx.async_remote_copy"
    NEEDS: ClassVar = Needs("tlx.async_remote_shmem_copy", Feature.CLUSTER)
    EFFECTS: ClassVar = Effects(reads("src"), writes("dst"), by=BULK_COPY, completes_on="barrier")

    src = operand_def(MemDescType)
    dst = operand_def(MemDescType)
    barrier = operand_def(MemDescType)

    assembly_format = "$src `,` $dst `,` $barrier attr-dict `:` type($src) `->` type($dst) `,` type($barrier)"

    def verify_(self) -> None:
        """Source and destination are one kind of buffer, here and there."""
        source, target = memdesc_type(self.src.type), memdesc_type(self.dst.type)
        verify_shared(source)
        verify_remote(target)
        verify_remote_barrier(memdesc_type(self.barrier.type))
        if (source.shape, source.element_type, source.encoding) != (target.shape, target.element_type, target.encoding):
            raise VerifyException(f"the buffers must agree in shape, elements and layout: {source} and {target}")
