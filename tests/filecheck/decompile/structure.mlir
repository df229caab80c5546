// RUN: tlx-opt %s -p tlx-print-ttgir-to-tlx -o /dev/null | filecheck %s

// After the last pass: layouts are left to the compiler, and so are the ends of barriers.

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#odd = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, ttg.target = "cuda:90"} {

  // Values with a name keep it, others stand where they are used, but not loads; a loop assigns what it carries.
  // CHECK-LABEL: def loop(x, n):
  // CHECK-NEXT:    at = tl.arange(0, 64)
  // CHECK-NEXT:    acc = tl.zeros((64,), tl.float32)
  // CHECK-NEXT:    for i in range(0, n, 2):
  // CHECK-NEXT:        v0 = tl.load(x + (at + i * 64), mask=at < n)
  // CHECK-NEXT:        acc += v0
  // CHECK-NEXT:    tl.store(x + at, acc)
  tt.func public @loop(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c2 = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %at = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #blocked>
    %zero = arith.constant dense<0.0> : tensor<64xf32, #blocked>
    %limit = tt.splat %n : i32 -> tensor<64xi32, #blocked>
    %base = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #blocked>
    %acc = scf.for %i = %c0 to %n step %c2 iter_args(%acc = %zero) -> (tensor<64xf32, #blocked>) : i32 {
      %0 = arith.muli %i, %c64 : i32
      %1 = tt.splat %0 : i32 -> tensor<64xi32, #blocked>
      %2 = arith.addi %at, %1 : tensor<64xi32, #blocked>
      %3 = tt.addptr %base, %2 : tensor<64x!tt.ptr<f32>, #blocked>, tensor<64xi32, #blocked>
      %4 = arith.cmpi slt, %at, %limit : tensor<64xi32, #blocked>
      %5 = tt.load %3, %4 : tensor<64x!tt.ptr<f32>, #blocked>
      %6 = arith.addf %acc, %5 : tensor<64xf32, #blocked>
      scf.yield %6 : tensor<64xf32, #blocked>
    }
    %7 = tt.addptr %base, %at : tensor<64x!tt.ptr<f32>, #blocked>, tensor<64xi32, #blocked>
    tt.store %7, %acc : tensor<64x!tt.ptr<f32>, #blocked>
    tt.return
  }

  // A branch that passes a value on, and one that returns.
  // CHECK-LABEL: def branches(x, n):
  // CHECK-NEXT:    if n < 0:
  // CHECK-NEXT:        return
  // CHECK-NEXT:    if n > 5:
  // CHECK-NEXT:        value = n * 2
  // CHECK-NEXT:    else:
  // CHECK-NEXT:        value = 7
  // CHECK-NEXT:    tl.store(x, value)
  tt.func public @branches(%x: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c2 = arith.constant 2 : i32
    %c5 = arith.constant 5 : i32
    %c7 = arith.constant 7 : i32
    %0 = arith.cmpi slt, %n, %c0 : i32
    cf.cond_br %0, ^bb1, ^bb2
  ^bb1:
    tt.return
  ^bb2:
    %1 = arith.cmpi sgt, %n, %c5 : i32
    %value = scf.if %1 -> (i32) {
      %2 = arith.muli %n, %c2 : i32
      scf.yield %2 : i32
    } else {
      scf.yield %c7 : i32
    }
    tt.store %x, %value : !tt.ptr<i32>
    tt.return
  }

  // Barriers are an array with a count, a layout is named where it is not the usual one, a task knows what is outside.
  // CHECK-LABEL: def tasks(x):
  // CHECK-NEXT:    plain = tlx.local_alloc((64,), tl.float32, 2)
  // CHECK-NEXT:    odd = tlx.local_alloc(
  // CHECK-NEXT:        (64,), tl.float32, 1, layout=tlx.swizzled_shared_layout_encoding(4, 1, 8, (0,))
  // CHECK-NEXT:    )
  // CHECK-NEXT:    full = tlx.alloc_barriers(1, arrive_count=3)
  // CHECK-EMPTY:
  // CHECK-NEXT:    with tlx.async_tasks():
  // CHECK-NEXT:        with tlx.async_task("default"):
  // CHECK-NEXT:            tlx.local_store(plain[1], tl.full((64,), 1.0, tl.float32))
  // CHECK-NEXT:            tlx.barrier_arrive(full[0], 3)
  // CHECK-EMPTY:
  // CHECK-NEXT:        with tlx.async_task(num_warps=2, registers=40):
  // CHECK-NEXT:            tlx.barrier_wait(full[0], 0)
  // CHECK-NEXT:            y = tlx.local_load(plain[1])
  // CHECK-NEXT:            tlx.local_store(odd[0], y)
  // CHECK-NOT:     inval
  tt.func public @tasks(%x: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %plain = ttg.local_alloc : () -> !ttg.memdesc<2x64xf32, #shared, #smem, mutable>
    %odd = ttg.local_alloc : () -> !ttg.memdesc<1x64xf32, #odd, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<1x1xi64, #shared, #smem, mutable>
    %0 = ttg.memdesc_index %full[%c0] : !ttg.memdesc<1x1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttng.init_barrier %0, 3 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttg.warp_specialize(%plain, %odd, %full) attributes {requestedRegisters = array<i32: 40>}
    default {
      %c1 = arith.constant 1 : i32
      %one = arith.constant dense<1.0> : tensor<64xf32, #blocked>
      %1 = ttg.memdesc_index %plain[%c1] : !ttg.memdesc<2x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
      ttg.local_store %one, %1 : tensor<64xf32, #blocked> -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
      %2 = ttg.memdesc_index %full[%c0] : !ttg.memdesc<1x1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
      ttng.arrive_barrier %2, 3 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
      ttg.warp_yield
    }
    partition0(%a: !ttg.memdesc<2x64xf32, #shared, #smem, mutable>, %b: !ttg.memdesc<1x64xf32, #odd, #smem, mutable>, %c: !ttg.memdesc<1x1xi64, #shared, #smem, mutable>) num_warps(2) {
      %c0_1 = arith.constant 0 : i32
      %c1_1 = arith.constant 1 : i32
      %3 = ttg.memdesc_index %c[%c0_1] : !ttg.memdesc<1x1xi64, #shared, #smem, mutable> -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
      ttng.wait_barrier %3, %c0_1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
      %4 = ttg.memdesc_index %a[%c1_1] : !ttg.memdesc<2x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
      %y = ttg.local_load %4 : !ttg.memdesc<64xf32, #shared, #smem, mutable> -> tensor<64xf32>
      %5 = ttg.memdesc_index %b[%c0_1] : !ttg.memdesc<1x64xf32, #odd, #smem, mutable> -> !ttg.memdesc<64xf32, #odd, #smem, mutable>
      ttg.local_store %y, %5 : tensor<64xf32> -> !ttg.memdesc<64xf32, #odd, #smem, mutable>
      ttg.warp_return
    } : (!ttg.memdesc<2x64xf32, #shared, #smem, mutable>, !ttg.memdesc<1x64xf32, #odd, #smem, mutable>, !ttg.memdesc<1x1xi64, #shared, #smem, mutable>) -> ()
    ttng.inval_barrier %0 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    tt.return
  }

  // CHECK:      TLX_COMPILE = {
  // CHECK-NEXT:     "loop": {
  // CHECK-NEXT:         "signature": {
  // CHECK-NEXT:             "x": "*fp32:16",
  // CHECK-NEXT:             "n": "i32",
}
