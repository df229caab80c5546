// RUN: tlx-opt %s -p tlx-dump-layout --split-input-file --verify-diagnostics

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#wider = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @tensors(%a: tensor<256xf32, #blocked>, %b: tensor<256xf32, #wider>) {
  // expected-error @below {{layout assertion failed: LinearLayouts differ}}
  tlx.assert_same_layout %a, %b : tensor<256xf32, #blocked>, tensor<256xf32, #wider>
  tt.return
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#wider = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @expected(%a: tensor<256xf32, #blocked>) {
  // expected-error @below {{layout assertion failed: LinearLayouts differ}}
  tlx.assert_same_layout_expected %a {expected = #wider} : tensor<256xf32, #blocked>
  tt.return
}

// -----

// The linear layouts are the same, the paddings are not.
#none = #ttg.padded_shared<[64:+4] {order = [0], shape = [256]}>
#some = #ttg.padded_shared<[64:+8] {order = [0], shape = [256]}>
#smem = #ttg.shared_memory
tt.func @paddings(%a: !ttg.memdesc<256xf32, #none, #smem, mutable>, %b: !ttg.memdesc<256xf32, #some, #smem, mutable>) {
  // expected-error @below {{layout assertion failed: LinearLayouts differ}}
  tlx.assert_same_layout %a, %b : !ttg.memdesc<256xf32, #none, #smem, mutable>, !ttg.memdesc<256xf32, #some, #smem, mutable>
  tt.return
}

// -----

// Tensors of two shapes never have one layout.
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @shapes(%a: tensor<256xf32, #blocked>, %b: tensor<512xf32, #blocked>) {
  // expected-error @below {{layout assertion failed: LinearLayouts differ}}
  tlx.assert_same_layout %a, %b : tensor<256xf32, #blocked>, tensor<512xf32, #blocked>
  tt.return
}

// -----

#rows = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func @rank(%a: tensor<256xf32>) {
  // expected-error @below {{tensor<256xf32> has no layout yet: convert-triton-to-tritongpu gives it one}}
  tlx.dump_layout %a : tensor<256xf32>
  tt.return
}

// -----

tt.func @placeholder(%a: tensor<64x64xf32, #tlx.dummy_register_layout<64x64xf32, tmem_compatible = true>>) {
  // expected-error @below {{is not chosen yet: tlx-resolve-placeholder-layouts does that}}
  tlx.dump_layout %a : tensor<64x64xf32, #tlx.dummy_register_layout<64x64xf32, tmem_compatible = true>>
  tt.return
}

// -----

#bases = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []}>
#rows = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func @another_rank(%a: tensor<128xf32, #bases>) {
  // expected-error @below {{layout assertion failed: a 'blocked' layout of rank 2, used for shape (128,)}}
  tlx.assert_same_layout_expected %a {expected = #rows} : tensor<128xf32, #bases>
  tt.return
}
