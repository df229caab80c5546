// RUN: tlx-opt -p 'convert-ttkernel-to-emitc{profile="2025-12"}' %s | filecheck %s

// In 2025 the inits of operations configure the hardware, and compute threads have MAIN.
// CHECK-LABEL: emitc.file "copy.cpp" {
// CHECK:         emitc.include "compute_kernel_api/common.h"
// CHECK:         emitc.include "compute_kernel_api/eltwise_unary/eltwise_unary.h"
// CHECK:         emitc.verbatim "namespace NAMESPACE {"
// CHECK-NEXT:    emitc.func @kernel_main() {
// CHECK:           emitc.call_opaque "init_sfpu"
// CHECK:           emitc.call_opaque "copy_tile_init"
// CHECK:         emitc.verbatim "void MAIN { kernel_main(); }"
// CHECK-NEXT:    emitc.verbatim "}  // namespace NAMESPACE"
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
