// RUN: tlx-opt %s -p "tlx-ws-make-persistent{cluster=2},tlx-ws-form-tasks{depth=2},tlx-ws-share-loads{cluster=2}" --split-input-file --verify-diagnostics | filecheck %s

// Tiles that follow each other have another row and most often the same column: A is loaded by each CTA, B by one for
// both. A CTA without a tile does the last one, and stores nothing.

// CHECK:         "ttg.cluster-dim-x" = 2 : i32
// CHECK-LABEL: @product
// CHECK:         %cluster = arith.divsi %first
// CHECK:         %joined = arith.divsi
// CHECK:         %rank = tlx.cluster_cta_rank
// CHECK:         %far = ttg.local_alloc {tlx.note = "the other CTA's consumers arrive here: one CTA loads a slot for both"} : () -> !ttg.memdesc<2x1xi64
// CHECK:         default {
// CHECK:           scf.for %joined_tile = %cluster to %joined
// CHECK:             %program = arith.addi {{%.*}}, %rank
// CHECK:             [[N:%n.*]] = arith.divsi
// CHECK:             %other_rank = arith.subi {{%.*}}, %rank
// CHECK:             [[THERE:%n.*]] = arith.divsi
// CHECK:             %is_same = arith.cmpi eq, {{%.*}}, {{%.*}} : i32
// CHECK:             scf.for
// CHECK:               %is_owner = arith.cmpi eq, %owner, %rank
// CHECK:               ttng.wait_barrier
// CHECK:               scf.if %is_owner {
// CHECK-NEXT:            [[FAR:%.*]] = ttg.memdesc_index %far
// CHECK-NEXT:            ttng.wait_barrier [[FAR]]
// CHECK:               ttng.barrier_expect {{%.*}}, 16384
// CHECK:               ttng.async_tma_copy_global_to_local %a[
// CHECK:               scf.if %is_owner {
// CHECK-NEXT:            scf.if %is_same {
// CHECK:                   [[BOTH:%.*]] = arith.constant 3 : i32
// CHECK:                   tlx.async_tma_load %b[{{.*}}] {{.*}} multicast [[BOTH]]
// CHECK:                 } else {
// CHECK:                   [[OTHER:%.*]] = arith.shli {{%.*}}, %other_rank
// CHECK:                   tlx.async_tma_load %b[{{.*}}] {{.*}} multicast [[OTHER]]
// CHECK:                   ttng.async_tma_copy_global_to_local %b[
// CHECK:         partition0
// CHECK:               [[IS_FAR:%.*]] = arith.cmpi ne, [[OWNER:%owner.*]], %rank
// CHECK:               scf.if [[IS_FAR]] {
// CHECK:                 [[REMOTE:%.*]] = tlx.map_to_remote {{%.*}}, [[OWNER]]
// CHECK:                 tlx.arrive_remote [[REMOTE]], 1
// CHECK:               ttng.arrive_barrier
// CHECK:             scf.if {{%.*}} {
// CHECK:               tt.store
builtin.module {
  tt.func public @product(%a: !tt.tensordesc<64x64xf16>, %b: !tt.tensordesc<64x64xf16>, %out: !tt.ptr<f32>, %rows: i32, %turns: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %pid = tt.get_program_id x : i32
    %m = arith.remsi %pid, %rows : i32
    %n = arith.divsi %pid, %rows : i32
    %row = arith.muli %m, %c64 : i32
    %acc = scf.for %k = %c0 to %turns step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
      %i = arith.muli %k, %c64 : i32
      %column = arith.muli %n, %c64 : i32
      %x = tt.descriptor_load %a[%row, %i] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
      %y = tt.descriptor_load %b[%i, %column] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
      %next = tt.dot %x, %y, %sum : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    %ps = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    tt.store %ps, %acc : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// Of two tiles one may have more turns: a CTA would wait for what the other one does not load.

builtin.module {
  tt.func public @uneven(%a: !tt.tensordesc<64x64xf16>, %b: !tt.tensordesc<64x64xf16>, %out: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %pid = tt.get_program_id x : i32
    // expected-error @+1 {{not warp-specialised: the tiles of a cluster may turn in a loop, or take a branch, differently}}
    %acc = scf.for %k = %c0 to %pid step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
      %i = arith.muli %k, %c64 : i32
      %x = tt.descriptor_load %a[%pid, %i] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
      %y = tt.descriptor_load %b[%i, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
      %next = tt.dot %x, %y, %sum : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    %ps = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    tt.store %ps, %acc : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// Each tile has blocks of its own.

builtin.module {
  tt.func public @apart(%a: !tt.tensordesc<64x64xf16>, %out: !tt.ptr<f32>, %turns: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %pid = tt.get_program_id x : i32
    %acc = scf.for %k = %c0 to %turns step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
      %i = arith.muli %k, %c64 : i32
      // expected-error @+1 {{not warp-specialised: tiles that follow each other load no block alike in a loop}}
      %x = tt.descriptor_load %a[%pid, %i] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
      %next = tt.dot %x, %x, %sum : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    %ps = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    tt.store %ps, %acc : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
