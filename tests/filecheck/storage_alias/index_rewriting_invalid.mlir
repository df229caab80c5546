// RUN: tlx-opt %s --split-input-file -p tlx-storage-alias-allocation --verify-diagnostics

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>

// Either array may come out of the `scf.if`, and no single index fits both.
tt.func @joined(%c: i1) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 32768>} : !spec
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64, group_size = 1 : i64} : !spec -> !a
  %b = tlx.storage_alias_local_alloc %s {buffer_offset = 8192 : i64, bytes_between_buffers = 16384 : i64, group_size = 1 : i64} : !spec -> !a
  // expected-error @below {{'scf.if' may get either of two arrays whose buffers lie differently: buffer i of a is number i * 2 of its region, that of b is number i * 2 + 1}}
  %r = scf.if %c -> (!a) {
    scf.yield %a : !a
  } else {
    scf.yield %b : !a
  }
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>

// A partition argument stands for the captured array, under the error as well.
tt.func @whole(%i: i32) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 24576>} : !spec
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64, group_size = 1 : i64} : !spec -> !a
  ttg.warp_specialize(%a)
  default {
    ttg.warp_yield
  }
  partition0(%p: !a) num_warps(4) {
    // expected-error @below {{the buffers of a do not lie one after the other from the start of their storage_alias_spec (buffer i is number i * 2), and 'ttg.local_dealloc' needs the whole array in one piece}}
    ttg.local_dealloc %p : !a
    ttg.warp_return
  } : (!a) -> ()
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>

// Two buffers seen as one would have another array's buffer in their middle.
tt.func @cut() {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 24576>} : !spec
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64, group_size = 1 : i64} : !spec -> !a
  // expected-error @below {{and 'ttg.memdesc_reinterpret' cannot see them that way}}
  %v = ttg.memdesc_reinterpret %a : !a -> !ttg.memdesc<1x128x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>

// The slot after the last buffer belongs to another allocation.
tt.func @outside() {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 32768>} : !spec
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64, group_size = 1 : i64} : !spec -> !a
  %c2 = arith.constant 2 : i32
  // expected-error @below {{buffer 2 of a does not exist, it has 2}}
  %a_2 = ttg.memdesc_index %a[%c2] : !a -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.return
}
