// RUN: tlx-opt %s --split-input-file --verify-diagnostics

#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @memory_of_another_kind() {
  %s = tlx.storage_alias_spec storage = tmem : !tlx.storage_alias_spec<tmem>
  // expected-error @below {{storage_alias_spec has tmem storage but result is not in tensor memory}}
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<tmem> -> !ttg.memdesc<2x64xi32, #line, #smem, mutable>
  tt.return
}

// -----

#tiles = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, colStride = 1>
tt.func @tensor_memory_from_shared() {
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  // expected-error @below {{storage_alias_spec has smem storage but result is not in shared memory}}
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !ttg.memdesc<2x128x32xf32, #tiles, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @no_array() {
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  // expected-error @below {{must be an array of buffers}}
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !ttg.memdesc<64xi32, #line, #ttg.shared_memory, mutable>
  tt.return
}

// -----

tt.func @shape_in_shared_memory() {
  // expected-error @below {{SMEM storage_alias_spec must have 1D shape, got 2D}}
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 128, 64>} : !tlx.storage_alias_spec<smem>
  tt.return
}

// -----

tt.func @shape_in_tensor_memory() {
  // expected-error @below {{TMEM storage_alias_spec must have 2D shape, got 1D}}
  %s = tlx.storage_alias_spec storage = tmem {buffer_shape = array<i64: 128>} : !tlx.storage_alias_spec<tmem>
  tt.return
}

// -----

#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @half_a_place() {
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  // expected-error @below {{buffer_offset, bytes_between_buffers and group_size are set together}}
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64} : !tlx.storage_alias_spec<smem> -> !ttg.memdesc<2x64xi32, #line, #ttg.shared_memory, mutable>
  tt.return
}

// -----

#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @before_the_start() {
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  // expected-error @below {{buffer_offset must not be negative, got -256}}
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = -256 : i64, bytes_between_buffers = 256 : i64, group_size = 1 : i64} : !tlx.storage_alias_spec<smem> -> !ttg.memdesc<2x64xi32, #line, #ttg.shared_memory, mutable>
  tt.return
}

// -----

#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @groups_of_nothing() {
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  // expected-error @below {{group_size must be positive, got 0}}
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 256 : i64, group_size = 0 : i64} : !tlx.storage_alias_spec<smem> -> !ttg.memdesc<2x64xi32, #line, #ttg.shared_memory, mutable>
  tt.return
}
