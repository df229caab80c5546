// RUN: not tlx-opt %s 2>&1 | filecheck %s

// Memory of the cluster is no kind of a region.
tt.func @cluster() {
  // CHECK: error: Expected `smem`, or `tmem`.
  %0 = tlx.storage_alias_spec storage = smemCluster : !tlx.storage_alias_spec<smemCluster>
  tt.return
}
