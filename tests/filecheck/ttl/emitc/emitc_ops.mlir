// RUN: tlx-opt %s | tlx-opt | filecheck %s

// CHECK:       emitc.file "reader.cpp" {
// CHECK-NEXT:    emitc.include <"cstdint">
// CHECK-NEXT:    emitc.include "api/dataflow/dataflow_api.h"
// CHECK-NEXT:    emitc.verbatim "// A comment"
// CHECK-NEXT:    emitc.func @kernel_main() {
emitc.file "reader.cpp" {
  emitc.include <"cstdint">
  emitc.include "api/dataflow/dataflow_api.h"
  emitc.verbatim "// A comment"
  emitc.func @kernel_main() {
    // CHECK-NEXT:  %0 = "emitc.constant"() <{value = 4 : index}> : () -> !emitc.size_t
    // CHECK-NEXT:  %1 = emitc.literal "my_x[noc_index]" : i32
    // CHECK-NEXT:  %2 = emitc.cast %1 : i32 to !emitc.size_t
    // CHECK-NEXT:  %3 = emitc.add %0, %2 : (!emitc.size_t, !emitc.size_t) -> !emitc.size_t
    // CHECK-NEXT:  %4 = emitc.cmp "<" %0, %3 : (!emitc.size_t, !emitc.size_t) -> i1
    // CHECK-NEXT:  %5 = emitc.conditional %4, %0, %3 : (i1, !emitc.size_t, !emitc.size_t) -> !emitc.size_t
    %0 = "emitc.constant"() <{value = 4 : index}> : () -> !emitc.size_t
    %1 = emitc.literal "my_x[noc_index]" : i32
    %2 = emitc.cast %1 : i32 to !emitc.size_t
    %3 = emitc.add %0, %2 : (!emitc.size_t, !emitc.size_t) -> !emitc.size_t
    %4 = emitc.cmp "<" %0, %3 : (!emitc.size_t, !emitc.size_t) -> i1
    %5 = emitc.conditional %4, %0, %3 : (i1, !emitc.size_t, !emitc.size_t) -> !emitc.size_t
    // CHECK-NEXT:  %v = "emitc.variable"() : () -> !emitc.lvalue<i32>
    // CHECK-NEXT:  emitc.for %i = %0 to %5 step %0 : !emitc.size_t {
    // CHECK-NEXT:    emitc.if %4 {
    // CHECK-NEXT:      %6 = emitc.call_opaque "f"(%i) {template_args = [#emitc.opaque<"A::B">]} : (!emitc.size_t) -> i32
    // CHECK-NEXT:      emitc.assign %6, %v : i32, !emitc.lvalue<i32>
    // CHECK-NEXT:    } else {
    // CHECK-NEXT:      %7 = emitc.load %v : !emitc.lvalue<i32> -> i32
    // CHECK-NEXT:    }
    // CHECK-NEXT:  }
    // CHECK-NEXT:  emitc.return
    %v = "emitc.variable"() : () -> !emitc.lvalue<i32>
    emitc.for %i = %0 to %5 step %0 : !emitc.size_t {
      emitc.if %4 {
        %6 = emitc.call_opaque "f"(%i) {template_args = [#emitc.opaque<"A::B">]} : (!emitc.size_t) -> i32
        emitc.assign %6, %v : i32, !emitc.lvalue<i32>
      } else {
        %7 = emitc.load %v : !emitc.lvalue<i32> -> i32
      }
    }
    emitc.return
  }
}
