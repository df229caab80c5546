tt.func public @ptx(%x: tensor<8xi32>) -> tensor<8xi32> {
  %0 = tt.elementwise_inline_asm "not.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<8xi32> -> tensor<8xi32>
  tt.return %0 : tensor<8xi32>
}
