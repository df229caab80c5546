"""Warp-specialised tasks with all their options."""
# covers: ttg.warp_specialize
# RUN: tlx compile %s:options --emit ttir -o - | filecheck %s --check-prefix=OPTIONS
# RUN: tlx compile %s:copies_of_the_default --emit ttir -o - | filecheck %s --check-prefix=COPIES
# RUN: tlx compile %s:placed --emit ttir -o - | filecheck %s --check-prefix=PLACED

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def options(out):
    # OPTIONS: ttg.warp_specialize(%out)
    # OPTIONS-SAME: requestedRegisters = array<i32: 232, 232, 24>
    # OPTIONS-SAME: tlx.default_registers = 152 : i32
    # OPTIONS-SAME: tlx.exclusive
    # OPTIONS-SAME: tlx.mbarrier_try_wait_suspend_ns = 500 : i32
    # OPTIONS-SAME: tlx.no_ending_cluster_sync
    with tlx.async_tasks(exclusive=True, no_ending_cluster_sync=True, mbarrier_try_wait_suspend_ns=500):
        # OPTIONS: default {
        # OPTIONS: ttg.warp_yield
        with tlx.async_task("default", num_regs=152):
            tl.store(out, 0)
        # OPTIONS: partition0(%{{.*}}: !tt.ptr<i32>{{.*}}) num_warps(4) {
        # OPTIONS: tt.store %{{.*}}, %c1 :
        # OPTIONS: ttg.warp_return
        # OPTIONS: partition1(%{{.*}}) num_warps(4) {
        # OPTIONS: tt.store %{{.*}}, %c2 :
        with tlx.async_task(num_warps=4, registers=232, replicate=2):
            tl.store(out, 1 + tlx.async_task_replica_id())
        # OPTIONS: partition2(%{{.*}}) num_warps(1) {
        with tlx.async_task(num_warps=1, registers=24):
            tl.store(out, 3)


@tlx_xdsl.jit
def copies_of_the_default(out):
    # The first copy is the default region, the others are partitions with the warps of the kernel.
    # COPIES: default {
    # COPIES: tt.store %{{.*}}, %c0
    # COPIES: partition0({{.*}}) num_warps(8) {
    # COPIES: tt.store %{{.*}}, %c1
    # COPIES: partition1({{.*}}) num_warps(8) {
    # COPIES: tt.store %{{.*}}, %c2
    # COPIES-NOT: partition2
    with tlx.async_tasks():
        with tlx.async_task("default", replicate=3):
            tl.store(out, tlx.async_task_replica_id())


@tlx_xdsl.jit
def placed(out):
    # PLACED: warpGroupStartIds = array<i32: 4, 6, 8>
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(out, 0)
        with tlx.async_task(num_warps=2, replicate=2, warp_group_start_id=4):
            tl.store(out, 1)
        with tlx.async_task(num_warps=4, warp_group_start_id=8):
            tl.store(out, 2)


TLX_COMPILE = {
    "options": {"signature": {"out": "*i32"}},
    "copies_of_the_default": {"signature": {"out": "*i32"}, "num_warps": 8},
    "placed": {"signature": {"out": "*i32"}},
}
