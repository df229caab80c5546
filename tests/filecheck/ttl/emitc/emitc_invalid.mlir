// RUN: tlx-opt -p convert-ttkernel-to-emitc --split-input-file --verify-diagnostics %s

// expected-error @below {{thread 'f' takes arguments: run ttl-lower-synchronization first}}
func.func @f(%i: index) attributes {ttkernel.thread = #ttkernel.thread<noc>} {
  func.return
}

// -----

func.func @f() attributes {ttkernel.thread = #ttkernel.thread<noc>} {
  // expected-error @below {{there is no C++ for the constant 1.000000e+00 : f32}}
  %0 = arith.constant 1.0 : f32
  func.return
}

// -----

func.func @f() attributes {ttkernel.thread = #ttkernel.thread<noc>} {
  // expected-error @below {{there is no C++ for memref.alloc: lower it to ttkernel, scf and arith first}}
  %0 = memref.alloc() : memref<4xf32>
  func.return
}

// -----

func.func @f() attributes {ttkernel.thread = #ttkernel.thread<noc>} {
  %0 = arith.constant 1 : i32
  // expected-error @below {{there is no C++ for an unsigned comparison of i32, which is a signed type}}
  %1 = arith.cmpi ult, %0, %0 : i32
  func.return
}
