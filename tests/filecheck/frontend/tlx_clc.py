"""Cluster launch control of Blackwell GPUs."""
# covers: ttng.cluster
# RUN: tlx compile %s:clusters --emit ttir -o - | filecheck %s --check-prefix=CLUSTERS
# RUN: tlx compile %s:alone --emit ttir -o - | filecheck %s --check-prefix=ALONE
# RUN: tlx compile %s:clusters_of_one --emit ttir -o - | filecheck %s --check-prefix=ONE

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def clusters(out, phase):
    # CLUSTERS: [[EMPTY:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64,
    # CLUSTERS-COUNT-2: ttng.init_barrier %{{.*}}, 4 :
    # CLUSTERS: [[FULL:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64,
    # CLUSTERS-COUNT-2: ttng.init_barrier %{{.*}}, 1 :
    # CLUSTERS: [[RESPONSES:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<2x2xi64,
    context = tlx.clc_create_context(num_consumers=4, num_stages=2)
    # All CTAs expect the response that the first one asks for.
    # CLUSTERS: [[E:%.*]] = ttg.memdesc_index [[EMPTY]][%c1]
    # CLUSTERS: [[F:%.*]] = ttg.memdesc_index [[FULL]][%c1]
    # CLUSTERS: [[R:%.*]] = ttg.memdesc_index [[RESPONSES]][%c1] : {{.*}} -> !ttg.memdesc<2xi64,
    # CLUSTERS: [[RANK:%.*]] = tlx.cluster_cta_rank
    # CLUSTERS: [[FIRST:%.*]] = arith.cmpi eq, [[RANK]], %c0
    # CLUSTERS: ttng.wait_barrier [[E]], %phase, [[FIRST]] :
    # CLUSTERS: ttng.barrier_expect [[F]], 16, %true :
    # CLUSTERS: tlx.clc_try_cancel [[R]], [[F]], [[FIRST]] :
    tlx.clc_producer(context, phase, k=1)
    # CLUSTERS: [[E:%.*]] = ttg.memdesc_index [[EMPTY]][%c1]
    # CLUSTERS: [[F:%.*]] = ttg.memdesc_index [[FULL]][%c1]
    # CLUSTERS: [[R:%.*]] = ttg.memdesc_index [[RESPONSES]][%c1]
    # CLUSTERS: ttng.wait_barrier [[F]], %phase, %true :
    # CLUSTERS: [[RESULT:%.*]] = ttng.clc_load_result [[R]] : {{.*}} -> i128
    # CLUSTERS: [[MORE:%.*]] = ttng.clc_is_canceled [[RESULT]] : i128 -> i1
    # CLUSTERS: [[X:%.*]] = ttng.clc_get_program_id [[RESULT]], x : i128 -> i32
    # CLUSTERS: [[RANK:%.*]] = tlx.cluster_cta_rank
    # CLUSTERS: [[MINE:%.*]] = arith.addi [[X]], [[RANK]]
    # CLUSTERS: %tile = arith.select [[MORE]], [[MINE]], %cm1 : i32
    # CLUSTERS: ttng.fence_async_shared
    # CLUSTERS: [[GO_ON:%.*]] = arith.cmpi sge, %tile, %c0
    # CLUSTERS: [[LEADER:%.*]] = tlx.map_to_remote [[E]], %c0
    # CLUSTERS: tlx.arrive_remote [[LEADER]], 1, [[GO_ON]] :
    tile = tlx.clc_consumer(context, phase, k=1)
    tl.store(out, tile)


@tlx_xdsl.jit
def clusters_of_one(out, phase):
    # No other CTA is there to share with: this is what `multi_ctas=False` says.
    # ONE-NOT: {{cluster_cta_rank|map_to_remote}}
    # ONE: ttng.clc_try_cancel
    context = tlx.clc_create_context(1)
    tlx.clc_producer(context, phase)
    # ONE: ttng.arrive_barrier
    tl.store(out, tlx.clc_consumer(context, phase))


@tlx_xdsl.jit
def alone(out, phase):
    context = tlx.clc_create_context(1)
    # ALONE: ttng.wait_barrier %{{.*}}, %phase, %true :
    # ALONE: ttng.barrier_expect %{{.*}}, 16, %true :
    # ALONE: ttng.clc_try_cancel %{{.*}}, %{{.*}} : !ttg.memdesc<2xi64,
    tlx.clc_producer(context, phase, multi_ctas=False)
    # ALONE: [[RESULT:%.*]] = ttng.clc_load_result
    # ALONE: ttng.clc_get_program_id [[RESULT]], x
    # ALONE: %x = arith.select
    # ALONE: ttng.clc_get_program_id [[RESULT]], y
    # ALONE: %y = arith.select
    # ALONE: ttng.clc_get_program_id [[RESULT]], z
    # ALONE: %z = arith.select
    # ALONE: ttng.arrive_barrier %{{.*}}, 1, %{{.*}} :
    x, y, z = tlx.clc_consumer(context, phase, multi_ctas=False, return_3d=True)
    # ALONE: %responses = ttg.local_alloc : () -> !ttg.memdesc<3x2xi64,
    responses = tlx._alloc_clc_responses(3)
    bars = tlx.alloc_barriers(1)
    # ALONE: [[R:%.*]] = ttg.memdesc_index %responses[%c2]
    # ALONE: ttng.clc_try_cancel [[R]],
    tlx._clc_issue(responses[2], bars[0])
    # ALONE: [[RESULT:%.*]] = ttng.clc_load_result
    # ALONE: ttng.clc_is_canceled [[RESULT]]
    tl.store(out, tlx._clc_query(responses[2]) + x + y + z)


TLX_COMPILE = {
    "clusters": {"signature": {"out": "*i32", "phase": "i32"}, "target": "sm_100a", "cluster": (2, 1, 1)},
    "clusters_of_one": {"signature": {"out": "*i32", "phase": "i32"}, "target": "sm_100a"},
    "alone": {"signature": {"out": "*i32", "phase": "i32"}, "target": "sm_100a"},
}
