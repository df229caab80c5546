// RUN: tlx-opt %s -p tlx-print-ttgir-to-tlx -o /dev/null | filecheck %s

// Tasks before `tlx-ws-replicate-tasks`: one text for all copies, reasons as comments, slots and phases as one call.

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, ttg.target = "cuda:90"} {

  // CHECK-LABEL: def tasks(x, n):
  // CHECK-NEXT:    # two slots, because
  // CHECK-NEXT:    full = tlx.alloc_barriers(2, arrive_count=2)
  // CHECK-EMPTY:
  // CHECK-NEXT:    with tlx.async_tasks():
  // CHECK-NEXT:        with tlx.async_task("default"):
  // CHECK-NEXT:            for k in range(n):
  // CHECK-NEXT:                stage, phase = tlx.get_bufidx_phase(k, 2)
  // CHECK-NEXT:                tlx.barrier_wait(full[stage], phase)
  // CHECK-EMPTY:
  // CHECK-NEXT:        with tlx.async_task(num_warps=4, replicate=2, registers=232):
  // CHECK-NEXT:            half = tlx.async_task_replica_id()
  // CHECK-NEXT:            for k in range(n):
  // A phase alone stays a division.
  // CHECK-NEXT:                tlx.barrier_wait(full[half], k // 2 & 1)
  // CHECK-NEXT:                tl.store(x, half)
  tt.func public @tasks(%x: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %true = arith.constant true
    %full = ttg.local_alloc {tlx.note = "two slots, because"} : () -> !ttg.memdesc<2x1xi64, #shared, #smem, mutable>
    %0 = ttg.memdesc_index %full[%c0] : !ttg.memdesc<2x1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttng.init_barrier %0, 2 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    %1 = ttg.memdesc_index %full[%c1] : !ttg.memdesc<2x1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttng.init_barrier %1, 2 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttg.warp_specialize(%x, %n, %full) attributes {requestedRegisters = array<i32: 232>, tlx.replicas = array<i32: 2>}
    default {
      scf.for %k = %c0 to %n step %c1 : i32 {
        %2 = arith.remsi %k, %c2 : i32
        %3 = arith.divsi %k, %c2 : i32
        %4 = arith.andi %3, %c1 : i32
        %5 = ttg.memdesc_index %full[%2] : !ttg.memdesc<2x1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
        ttng.wait_barrier %5, %4, %true : !ttg.memdesc<1xi64, #shared, #smem, mutable>
      }
      ttg.warp_yield
    }
    partition0(%y: !tt.ptr<i32>, %m: i32, %held: !ttg.memdesc<2x1xi64, #shared, #smem, mutable>) num_warps(4) {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %yes = arith.constant true
      scf.for %k = %zero to %m step %one : i32 {
        %half = tlx.replica_id
        %2 = arith.divsi %k, %two : i32
        %3 = arith.andi %2, %one : i32
        %4 = ttg.memdesc_index %held[%half] : !ttg.memdesc<2x1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
        ttng.wait_barrier %4, %3, %yes : !ttg.memdesc<1xi64, #shared, #smem, mutable>
        tt.store %y, %half : !tt.ptr<i32>
      }
      ttg.warp_return
    } : (!tt.ptr<i32>, i32, !ttg.memdesc<2x1xi64, #shared, #smem, mutable>) -> ()
    tt.return
  }
}
