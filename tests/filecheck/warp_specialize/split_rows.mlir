// RUN: tlx-opt %s -p tlx-ws-split-rows --split-input-file --verify-diagnostics | filecheck %s

// The rows of the product are 64 for each group: those of A, and of what is computed of its offsets. The columns are
// all there, though both ranges are one value before.

// CHECK-LABEL: @product
// CHECK-SAME:    tlx.replicas = 2 : i32
// CHECK:         [[GROUP:%.*]] = tlx.replica_id
// CHECK:         [[ALL:%.*]] = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
// CHECK-DAG:     [[NUMBERS:%.*]] = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
// CHECK-DAG:     [[BEFORE:%.*]] = arith.muli [[GROUP]], {{%.*}} : i32
