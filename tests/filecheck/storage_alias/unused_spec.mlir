// RUN: tlx-opt %s -p tlx-storage-alias-lowering 2>&1 >/dev/null | filecheck %s

// CHECK: kernel.py:7:3: warning: storage_alias_spec has no referencing storage_alias_local_alloc operations
tt.func @unused() {
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem> loc("kernel.py":7:3)
  tt.return
}
