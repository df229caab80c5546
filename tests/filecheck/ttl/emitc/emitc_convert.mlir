// RUN: tlx-opt -p convert-ttkernel-to-emitc --split-input-file %s | filecheck %s

// A file for each thread: what it is, its arguments, the headers of what it calls, and its function. The order of the
// startup is that of the API: before anything else.
// CHECK-LABEL: emitc.file "copy.cpp" {
// CHECK-NEXT:    emitc.verbatim "// copy: compute thread"
// CHECK-NEXT:    emitc.verbatim "// Compile-time arguments: 0: circular buffer in; 1: circular buffer out"
// CHECK-NEXT:    emitc.include <"cstdint">
// CHECK-NEXT:    emitc.include "api/compute/common.h"
// CHECK-NEXT:    emitc.include "api/compute/eltwise_unary/negative.h"
// CHECK-NEXT:    emitc.include "api/compute/tile_move_copy.h"
// CHECK-NEXT:    emitc.verbatim ""
// CHECK-NEXT:    emitc.func @kernel_main() {
// CHECK-NEXT:      %[[IN:\S+]] = emitc.call_opaque "get_compile_time_arg_val"() {args = [0 : i32]} : () -> !emitc.opaque<"constexpr uint32_t">
// CHECK-NEXT:      %[[OUT:\S+]] = emitc.call_opaque "get_compile_time_arg_val"() {args = [1 : i32]}
// CHECK-NEXT:      emitc.call_opaque "compute_kernel_hw_startup"(%[[IN]], %[[OUT]])
// CHECK:           emitc.call_opaque "cb_wait_front"(%[[IN]], %{{.*}})
// CHECK:           emitc.call_opaque "copy_init"(%[[IN]])
// CHECK:           emitc.call_opaque "negative_tile"
// CHECK:           emitc.call_opaque "pack_tile"{{.*}} {template_args = [#emitc.opaque<"true">]}
// CHECK:           emitc.return

!t = !ttcore.tile<32x32, f32>
!cb = !ttkernel.cb<2, !t>
func.func @copy() attributes {ttkernel.thread = #ttkernel.thread<compute>} {
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %in = ttkernel.get_compile_time_arg_val() {index = 0 : i32} : () -> !cb
  %out = ttkernel.get_compile_time_arg_val() {index = 1 : i32} : () -> !cb
  ttkernel.cb_wait_front(%in, %one) : (!cb, i32) -> ()
  ttkernel.cb_reserve_back(%out, %one) : (!cb, i32) -> ()
  ttkernel.init_sfpu(%in, %out) : (!cb, !cb) -> ()
  ttkernel.tile_regs_acquire() : () -> ()
  ttkernel.copy_tile_init(%in) : (!cb) -> ()
  ttkernel.copy_tile(%in, %c0, %c0) : (!cb, index, index) -> ()
  ttkernel.negative_tile_init() : () -> ()
  ttkernel.negative_tile(%c0) : (index) -> ()
  ttkernel.tile_regs_commit() : () -> ()
  ttkernel.tile_regs_wait() : () -> ()
  ttkernel.pack_tile(%c0, %out, %c0) : (index, !cb, index) -> ()
  ttkernel.tile_regs_release() : () -> ()
  ttkernel.cb_pop_front(%in, %one) : (!cb, i32) -> ()
  ttkernel.cb_push_back(%out, %one) : (!cb, i32) -> ()
  func.return
}

// -----

// Loops count in the API's size_t. A bound that may be negative is compared with its sign.
// CHECK-LABEL: emitc.file "loops.cpp"
// CHECK:         emitc.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} : !emitc.size_t {
// CHECK:         %[[LESS:.*]] = emitc.sub %{{.*}} : (!emitc.size_t, !emitc.size_t) -> !emitc.size_t
// CHECK:         %[[SIGNED:.*]] = emitc.cast %[[LESS]] : !emitc.size_t to !emitc.ptrdiff_t
// CHECK:         emitc.for %{{.*}} = %{{.*}} to %[[SIGNED]] step %{{.*}} : !emitc.ptrdiff_t {
func.func @loops() attributes {ttkernel.thread = #ttkernel.thread<noc>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    ttkernel.noc_async_read_barrier() : () -> ()
  }
  %x = ttkernel.my_logical_x() : () -> i32
  %core = arith.index_cast %x : i32 to index
  %less = arith.subi %core, %c4 : index
  scf.for %i = %c0 to %less step %c1 {
    ttkernel.noc_async_read_barrier() : () -> ()
  }
  func.return
}

// -----

// What a loop and a condition give is in variables.
// CHECK-LABEL: emitc.file "carried.cpp"
// CHECK:         %[[SUM:.*]] = "emitc.variable"() : () -> !emitc.lvalue<i32>
// CHECK-NEXT:    emitc.assign %{{.*}}, %[[SUM]] : i32, !emitc.lvalue<i32>
// CHECK-NEXT:    emitc.for
// CHECK-NEXT:      %[[OLD:.*]] = emitc.load %[[SUM]] : !emitc.lvalue<i32> -> i32
// CHECK:           %[[NEW:.*]] = emitc.add %[[OLD]]
// CHECK:           emitc.assign %[[NEW]], %[[SUM]]
// CHECK:         %[[RESULT:.*]] = emitc.load %[[SUM]]
// CHECK:         %[[CHOSEN:.*]] = "emitc.variable"()
// CHECK-NEXT:    emitc.if
// CHECK-NEXT:      emitc.assign %[[RESULT]], %[[CHOSEN]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      emitc.assign %{{.*}}, %[[CHOSEN]]
func.func @carried() attributes {ttkernel.thread = #ttkernel.thread<noc>} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%old = %zero) -> (i32) {
    %new = arith.addi %old, %one : i32
    scf.yield %new : i32
  }
  %c = arith.cmpi eq, %sum, %one : i32
  %chosen = scf.if %c -> (i32) {
    scf.yield %sum : i32
  } else {
    scf.yield %zero : i32
  }
  %s = ttkernel.get_semaphore() {index = 0 : i32} : () -> !ttkernel.semaphore
  %p = ttkernel.cast_to_l1_ptr(%s) : (!ttkernel.semaphore) -> !ttkernel.l1_addr_ptr
  ttkernel.noc_semaphore_set(%p, %chosen) : (!ttkernel.l1_addr_ptr, i32) -> ()
  func.return
}
