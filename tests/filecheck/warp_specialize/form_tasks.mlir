// RUN: tlx-opt %s -p "tlx-ws-form-tasks{depth=3}" --split-input-file --verify-diagnostics | filecheck %s

// Both operands of the product fill a slot together; the producer has the loop without the sum, the consumer the sum
// without the offsets.

// CHECK-LABEL: @product
// CHECK:         ttg.local_alloc {tlx.note = "3 slots of 16384 bytes, which TMA fills while the consumers compute"} : () -> !ttg.memdesc<3x64x64xf16
// CHECK:         ttg.warp_specialize
// CHECK-NEXT:    default {
// CHECK-NOT:       iter_args
// CHECK:           ttng.wait_barrier
// CHECK:           ttng.barrier_expect {{%.*}}, 16384
// CHECK-COUNT-2:   ttng.async_tma_copy_global_to_local
// CHECK-NOT:       tt.dot
// CHECK:           ttg.warp_yield
// CHECK:         partition0
// CHECK:           scf.for {{.*}} iter_args
// CHECK:             ttng.wait_barrier
// CHECK:             [[A:%.*]] = ttg.local_load
// CHECK:             [[B:%.*]] = ttg.local_load
// CHECK:             ttng.arrive_barrier {{%.*}}, 1
// CHECK:             tt.dot [[A]], [[B]]
tt.func public @product(%a: !tt.tensordesc<64x64xf16>, %b: !tt.tensordesc<64x64xf16>, %out: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    %i = arith.muli %k, %c64 : i32
    %x = tt.descriptor_load %a[%c0, %i] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %y = tt.descriptor_load %b[%i, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %next = tt.dot %x, %y, %sum : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %ps = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  tt.store %ps, %acc : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// It is not known before the product what the next block's row is.

tt.func public @dependent(%a: !tt.tensordesc<64x64xf16>, %p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %last = scf.for %k = %c0 to %n step %c1 iter_args(%row = %c0) -> (i32) : i32 {
    // expected-error @+1 {{not warp-specialised: its address depends on what the kernel computes from loaded blocks}}
    %x = tt.descriptor_load %a[%row, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %y = arith.extf %x : tensor<64x64xf16> to tensor<64x64xf32>
    %flat = tt.reshape %y : tensor<64x64xf32> -> tensor<4096xf32>
    %sum = "tt.reduce"(%flat) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      tt.reduce.return %s : f32
    }) : (tensor<4096xf32>) -> f32
    %next = arith.fptosi %sum : f32 to i32
    scf.yield %next : i32
  }
  %f = arith.sitofp %last : i32 to f32
  tt.store %p, %f : !tt.ptr<f32>
  tt.return
}

// -----

// The kernel writes through the descriptor that it reads: the producer would read too early.

tt.func public @in_place(%a: !tt.tensordesc<64x64xf16>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.descriptor_load %a[%k, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %y = arith.addf %x, %x : tensor<64x64xf16>
    // expected-error @+1 {{not warp-specialised: it may write what a producer would have loaded before}}
    tt.descriptor_store %a[%k, %c0], %y : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  }
  tt.return
}

// -----

// Loads outside of loops alone are not worth a task.

tt.func public @once(%a: !tt.tensordesc<64x64xf16>, %b: !tt.tensordesc<64x64xf16>) {
  %c0 = arith.constant 0 : i32
  // expected-error @+1 {{not warp-specialised: no load in a loop is one that TMA can do}}
  %x = tt.descriptor_load %a[%c0, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  tt.descriptor_store %b[%c0, %c0], %x : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  tt.return
}

// -----

// Two loops that follow each other fill one ring: the second one goes on where the first one has stopped.

// CHECK-LABEL: @loops
// CHECK-COUNT-1: : () -> !ttg.memdesc<3x64x64xf16
// CHECK-NOT:     : () -> !ttg.memdesc<3x64x64xf16
// CHECK:         partition0
tt.func public @loops(%a: !tt.tensordesc<64x64xf16>, %b: !tt.tensordesc<64x64xf16>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf16>
  %first = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf16>) : i32 {
    %x = tt.descriptor_load %a[%k, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %y = arith.addf %sum, %x : tensor<64x64xf16>
    scf.yield %y : tensor<64x64xf16>
  }
  %second = scf.for %k = %c1 to %n step %c1 iter_args(%sum = %first) -> (tensor<64x64xf16>) : i32 {
    %x = tt.descriptor_load %a[%c0, %k] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %y = arith.mulf %sum, %x : tensor<64x64xf16>
    scf.yield %y : tensor<64x64xf16>
  }
  tt.descriptor_store %b[%c0, %c0], %second : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  tt.return
}

// -----

// Each product waits for the one before, over the turns, too: one barrier is enough for all that a turn loads.

// CHECK-LABEL: @chain
// CHECK:         ttng.barrier_expect {{%.*}}, 16384
// CHECK-COUNT-2: ttng.async_tma_copy_global_to_local
// CHECK:         partition0
// CHECK:           ttng.wait_barrier
// CHECK-NOT:       ttng.wait_barrier
// CHECK:           ttg.warp_return

tt.func public @chain(%w: !tt.tensordesc<64x64xf16>, %k: !tt.tensordesc<64x64xf16>, %out: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %other = arith.constant dense<1.0> : tensor<64x64xf16>
  %acc = scf.for %i = %c0 to %n step %c64 iter_args(%state = %zero) -> (tensor<64x64xf32>) : i32 {
    %half = arith.truncf %state : tensor<64x64xf32> to tensor<64x64xf16>
    %x = tt.descriptor_load %w[%i, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %p = tt.dot %x, %half, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %q = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
    %y = tt.descriptor_load %k[%i, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %next = tt.dot %y, %q, %state : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %ps = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  tt.store %ps, %acc : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// The first product of a turn could be issued while the second one of the turn before is under way: it has its own ring.

// CHECK-LABEL: @ahead
// CHECK-COUNT-2: ttng.barrier_expect {{%.*}}, 8192

tt.func public @ahead(%w: !tt.tensordesc<64x64xf16>, %k: !tt.tensordesc<64x64xf16>, %out: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %other = arith.constant dense<1.0> : tensor<64x64xf16>
  %acc = scf.for %i = %c0 to %n step %c64 iter_args(%state = %zero) -> (tensor<64x64xf32>) : i32 {
    %half = arith.truncf %state : tensor<64x64xf32> to tensor<64x64xf16>
    %x = tt.descriptor_load %w[%i, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %p = tt.dot %x, %other, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %q = arith.truncf %p : tensor<64x64xf32> to tensor<64x64xf16>
    %y = tt.descriptor_load %k[%i, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %next = tt.dot %y, %q, %state : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %ps = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  tt.store %ps, %acc : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// The second of two groups sums more blocks than the first one: the producer fills slots for the longest sum, and a
// consumer gives those back that it has no turn for.

// CHECK-LABEL: @uneven
// CHECK:         default {
// CHECK:           [[MOST:%.*]] = arith.addi %n, %{{.*}} : i32
// CHECK-NEXT:      scf.for %k = %c0 to [[MOST]] step
// CHECK:         partition0(%[[N:[A-Za-z0-9_]*]]: i32
// CHECK:           %end = arith.addi %[[N]], %group : i32
// CHECK:           %turns = arith.maxsi
// CHECK:           scf.for {{.*}} to %end step
// CHECK:             ttg.local_load
// CHECK:           } {tlx.uneven}
// CHECK:           [[OWN:%.*]] = arith.maxsi %end, %{{.*}} : i32
// CHECK-NEXT:      scf.for %rest = [[OWN]] to %turns step
// CHECK:             ttng.wait_barrier
// CHECK-NOT:         ttg.local_load
// CHECK:             ttng.arrive_barrier {{%.*}}, 1
// CHECK-NEXT:      } {tlx.rest
tt.func public @uneven(%a: !tt.tensordesc<64x64xf16>, %out: !tt.ptr<f16>, %n: i32) attributes {tlx.replicas = 2 : i32} {
  %group = tlx.replica_id
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf16>
  %end = arith.addi %n, %group : i32
  %sum = scf.for %k = %c0 to %end step %c1 iter_args(%so_far = %zero) -> (tensor<64x64xf16>) : i32 {
    %x = tt.descriptor_load %a[%k, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %next = arith.addf %so_far, %x : tensor<64x64xf16>
    scf.yield %next : tensor<64x64xf16>
  }
  %there = tt.splat %out : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  tt.store %there, %sum : tensor<64x64x!tt.ptr<f16>>
  tt.return
}

// -----

// Other loops lie in the one that groups of warps do for other times: no one number of turns makes up for that.

tt.func public @uneven_around(%a: !tt.tensordesc<64x64xf16>, %out: !tt.ptr<f16>, %n: i32) attributes {tlx.replicas = 2 : i32} {
  %group = tlx.replica_id
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf16>
  %end = arith.addi %n, %group : i32
  // expected-error @+1 {{groups of warps would do other loops inside of this one, each for another time}}
  %sum = scf.for %j = %c0 to %end step %c1 iter_args(%before = %zero) -> (tensor<64x64xf16>) : i32 {
    %inner = scf.for %k = %c0 to %n step %c1 iter_args(%so_far = %before) -> (tensor<64x64xf16>) : i32 {
      %x = tt.descriptor_load %a[%k, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
      %next = arith.addf %so_far, %x : tensor<64x64xf16>
      scf.yield %next : tensor<64x64xf16>
    }
    scf.yield %inner : tensor<64x64xf16>
  }
  %there = tt.splat %out : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  tt.store %there, %sum : tensor<64x64x!tt.ptr<f16>>
  tt.return
}

// -----

// A group that has nothing to do would not take what the producer loads for all of them.

tt.func public @for_some(%a: !tt.tensordesc<64x64xf16>, %out: !tt.ptr<f16>, %n: i32) attributes {tlx.replicas = 2 : i32} {
  %group = tlx.replica_id
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %has_work = arith.cmpi slt, %group, %n : i32
  // expected-error @+1 {{not warp-specialised: a loop or a branch of the producer depends on the number of the consumer}}
  scf.if %has_work {
    scf.for %k = %c0 to %n step %c1 : i32 {
      %x = tt.descriptor_load %a[%k, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
      %there = tt.splat %out : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
      tt.store %there, %x : tensor<64x64x!tt.ptr<f16>>
    }
  }
  tt.return
}

// -----

// Each group would begin at another block of the ring.

tt.func public @from_its_own(%a: !tt.tensordesc<64x64xf16>, %out: !tt.ptr<f16>, %n: i32) attributes {tlx.replicas = 2 : i32} {
  %group = tlx.replica_id
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @+1 {{not warp-specialised: a loop or a branch of the producer depends on the number of the consumer}}
  scf.for %k = %group to %n step %c1 : i32 {
    %x = tt.descriptor_load %a[%k, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %there = tt.splat %out : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    tt.store %there, %x : tensor<64x64x!tt.ptr<f16>>
  }
  tt.return
}

// -----

// A consumer that stores in each turn fences, and a fence waits for what its warps load. So the producer's threads load
// the row and the number, after TMA was asked for the block, and arrive at the barrier, too. Where nothing fences, in
// the loop after it, the consumer loads its row itself.

// CHECK-LABEL: @rows
// CHECK-DAG:     ttg.local_alloc : () -> !ttg.memdesc<3x64xf32
// CHECK-DAG:     ttg.local_alloc : () -> !ttg.memdesc<3x1xf32
// CHECK-COUNT-3: ttng.init_barrier {{%.*}}, 2
// CHECK:         default {
// CHECK:           ttng.barrier_expect {{%.*}}, 8192
// CHECK:           ttng.async_tma_copy_global_to_local
// CHECK:           [[ROW:%.*]] = tt.load {{.*}} : tensor<64x!tt.ptr<f32>>
// CHECK:           [[NUMBER:%.*]] = tt.load {{.*}} : !tt.ptr<f32>
// CHECK:           ttg.local_store [[ROW]]
// CHECK:           [[SPLAT:%.*]] = tt.splat [[NUMBER]] : f32 -> tensor<1xf32>
// CHECK:           ttg.local_store [[SPLAT]]
// CHECK:           ttng.arrive_barrier
// CHECK-NOT:       tt.load
// CHECK:           ttg.warp_yield
// CHECK:         partition0
// CHECK:           ttng.wait_barrier
// CHECK:           ttg.local_load {{.*}} -> tensor<64xf32>
// CHECK:           [[ONE:%.*]] = ttg.local_load {{.*}} -> tensor<1xf32>
// CHECK:           tt.unsplat [[ONE]]
// CHECK:           ttng.arrive_barrier
// CHECK:           tt.descriptor_store
// CHECK:           tt.load {{.*}} : tensor<64x!tt.ptr<f32>>
tt.func public @rows(%a: !tt.tensordesc<64x64xf16>, %out: !tt.tensordesc<64x64xf32>, %g: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %lanes = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %all = tt.splat %g : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  scf.for %k = %c0 to %n step %c1 : i32 {
    %x = tt.descriptor_load %a[%k, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %here = tt.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %here, %lanes : tensor<64xi32>
    %ps = tt.addptr %all, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %row = tt.load %ps : tensor<64x!tt.ptr<f32>>
    %p = tt.addptr %g, %k : !tt.ptr<f32>, i32
    %number = tt.load %p : !tt.ptr<f32>
    %wide = arith.extf %x : tensor<64x64xf16> to tensor<64x64xf32>
    %column = tt.expand_dims %row {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %factors = tt.broadcast %column : tensor<64x1xf32> -> tensor<64x64xf32>
    %same = tt.splat %number : f32 -> tensor<64x64xf32>
    %y = arith.mulf %wide, %factors : tensor<64x64xf32>
    %z = arith.mulf %y, %same : tensor<64x64xf32>
    tt.descriptor_store %out[%k, %c0], %z : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
  }
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %total = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64xf32>) : i32 {
    %x = tt.descriptor_load %a[%k, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %here = tt.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %here, %lanes : tensor<64xi32>
    %ps = tt.addptr %all, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %row = tt.load %ps : tensor<64x!tt.ptr<f32>>
    %next = arith.addf %sum, %row : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  %wide = tt.expand_dims %total {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %block = tt.broadcast %wide : tensor<64x1xf32> -> tensor<64x64xf32>
  tt.descriptor_store %out[%n, %c0], %block : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
  tt.return
}

// -----

// The number says where the block lies, so that both tasks load it; the row may be written meanwhile by the kernel.

// CHECK-LABEL: @not_rows
// CHECK-COUNT-3: ttng.init_barrier {{%.*}}, 1 :
// CHECK:         default {
// CHECK:           tt.load {{.*}} : !tt.ptr<i32>
// CHECK-NOT:       tt.load
// CHECK:           ttg.warp_yield
// CHECK:         partition0
// CHECK:           tt.load {{.*}} : !tt.ptr<i32>
// CHECK:           tt.load {{.*}} : tensor<64x!tt.ptr<f16>>
tt.func public @not_rows(%a: !tt.tensordesc<64x64xf16>, %out: !tt.tensordesc<64x64xf16>, %table: !tt.ptr<i32>, %g: !tt.ptr<f16>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %lanes = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %all = tt.splat %g : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  scf.for %k = %c0 to %n step %c1 : i32 {
    %p = tt.addptr %table, %k : !tt.ptr<i32>, i32
    %where = tt.load %p : !tt.ptr<i32>
    %x = tt.descriptor_load %a[%where, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    %ps = tt.addptr %all, %lanes : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %row = tt.load %ps : tensor<64x!tt.ptr<f16>>
    %column = tt.expand_dims %row {axis = 1 : i32} : tensor<64xf16> -> tensor<64x1xf16>
    %factors = tt.broadcast %column : tensor<64x1xf16> -> tensor<64x64xf16>
    %y = arith.mulf %x, %factors : tensor<64x64xf16>
    tt.descriptor_store %out[%where, %c0], %y : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
    tt.store %ps, %row : tensor<64x!tt.ptr<f16>>
  }
  tt.return
}
