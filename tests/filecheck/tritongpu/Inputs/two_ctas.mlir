builtin.module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 2 : i32} {
  tt.func public @shared_by_two() {
    %line = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %column = tt.expand_dims %line {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    tt.return
  }
}
