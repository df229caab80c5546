// RUN: tlx-opt %s -p linalg-bufferize,memref-plan-arena --split-input-file --verify-diagnostics

func.func @unknown(%x: tensor<8xf32>, %i: index) -> f32 {
  // expected-error @below {{'tensor.splat' has no form on memory: bufferization does not know it}}
  %0 = tensor.splat %i : tensor<8xindex>
  %1 = tensor.extract %x[%i] : tensor<8xf32>
  func.return %1 : f32
}

// -----

func.func @size(%n: index, %m: f32) -> f32 {
  %e = tensor.empty(%n) : tensor<?xf32>
  // expected-error @below {{'linalg.fill' needs memory for tensor<?xf32>, whose size is not known when compiling}}
  %0 = linalg.fill ins(%m : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %1 = tensor.extract %0[%n] : tensor<?xf32>
  func.return %1 : f32
}

// -----

func.func @again() {
  // expected-error @below {{'again' is called from itself, and so needs memory without end}}
  func.call @again() : () -> ()
  func.return
}
