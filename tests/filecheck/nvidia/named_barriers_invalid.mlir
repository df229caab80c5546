// RUN: tlx-opt %s -p tlx-lower-named-barriers --verify-diagnostics

builtin.module {
  tt.func public @too_many(%id: i32) {
    %c13 = arith.constant 13 : i32
    %c14 = arith.constant 14 : i32
    tlx.named_barrier_wait %id, 128
    tlx.named_barrier_wait %c13, 128
    // expected-error @+1 {{a thread block has 16 named barriers: Triton uses 2, 0 partitions one each, and the kernel asks for 2 (13, 14)}}
    tlx.named_barrier_wait %c14, 128
    tt.return
  }
}
