"""The tensor cores: wgmma on Hopper, tcgen05 on Blackwell."""
# covers: ttng.tcgen05
# RUN: tlx compile %s:hopper --emit ttir -o - | filecheck %s --check-prefix=HOPPER
# RUN: tlx compile %s:blackwell --emit ttir -o - | filecheck %s --check-prefix=BLACKWELL
# RUN: tlx compile %s:scaled --emit ttir -o - | filecheck %s --check-prefix=SCALED

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def hopper(n):
    a = tlx.local_alloc((64, 32), tl.float16, 1)[0]
    b = tlx.local_alloc((32, 128), tl.float16, 1)[0]
    # Without an accumulator there is nothing to add.
    # HOPPER: %acc = ttng.warp_group_dot [[A:%.*]], [[B:%.*]], %cst, %false {inputPrecision = 0 : i32, isAsync = true} : {{.*}} -> tensor<64x128xf32>
    acc = tlx.async_dot(a, b)
    # HOPPER: %acc{{.*}} = ttng.warp_group_dot [[A]], [[B]], %acc, %{{[0-9]+}} {inputPrecision = 0 : i32, isAsync = true} :
    acc = tlx.async_dot(a, b, acc, use_acc=n > 0)
    # HOPPER: [[DONE:%.*]] = ttng.warp_group_dot_wait %{{.*}} {pendings = 1 : i32} : tensor<64x128xf32>
    done = tlx.async_dot_wait(1, acc)
    # HOPPER: [[REGS:%.*]] = ttg.local_load [[A]]
    # HOPPER: ttng.warp_group_dot [[REGS]], [[B]], [[DONE]] {inputPrecision = 0 : i32, isAsync = true} : tensor<64x32xf16> *
    from_registers = tlx.async_dot(tlx.local_load(a), b, done)
    a8 = tlx.local_alloc((64, 32), tl.int8, 1)[0]
    b8 = tlx.local_alloc((32, 128), tl.int8, 1)[0]
    # HOPPER: ttng.warp_group_dot {{.*}} -> tensor<64x128xi32>
    integers = tlx.async_dot(a8, b8)
    # HOPPER: ttng.warp_group_dot {{.*}} -> tensor<64x128xf16>
    halves = tlx.async_dot(a, b, out_dtype=tl.float16, input_precision="ieee")
    e4 = tlx.local_alloc((64, 32), tl.float8e4nv, 1)[0]
    e5 = tlx.local_alloc((128, 32), tl.float8e5, 1)[0]
    # The tensor cores sum 8-bit floats up in less than f32.
    # HOPPER: ttng.warp_group_dot {{.*}}maxNumImpreciseAcc = 1073741824 : i32{{.*}} -> tensor<64x128xf32>
    eighths = tlx.async_dot(e4, tlx.local_trans(e5))


@tlx_xdsl.jit
def blackwell(n):
    # BLACKWELL-DAG: #[[ACC:.*]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
    # BLACKWELL-DAG: #[[PAIR:.*]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1, twoCTAs = true>
    # BLACKWELL-DAG: #[[HALF:.*]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 2>
    bars = tlx.alloc_barriers(2)
    a = tlx.local_alloc((128, 64), tl.float16, 1)[0]
    b = tlx.local_alloc((64, 128), tl.float16, 1)[0]
    a_tmem = tlx.local_alloc((128, 64), tl.float16, 1, tlx.storage_kind.tmem)[0]
    acc = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)[0]
    # A product that arrives somewhere is asynchronous.
    # BLACKWELL: [[USE:%.*]] = arith.cmpi sgt
    # BLACKWELL: ttng.tc_gen5_mma [[A:%.*]], [[B:%.*]], [[D:%.*]], [[USE]], %true, %{{.*}}[%true], %{{.*}}[%true] {is_async} : {{.*}} !ttg.memdesc<128x128xf32, #[[ACC]], #ttng.tensor_memory, mutable>
    tlx.async_dot(a, b, acc, use_acc=n > 0, mBarriers=[bars[0], bars[1]])
    # BLACKWELL: [[PRED:%.*]] = arith.cmpi slt
    # BLACKWELL: ttng.tc_gen5_mma %{{.*}}, [[B]], [[D]], %true, [[PRED]] {is_async} : !ttg.memdesc<128x64xf16, #{{.*}}, #ttng.tensor_memory, mutable>
    tlx.async_dot(a_tmem, b, acc, pred=n < 0, force_async=True)
    # BLACKWELL: ttng.tc_gen5_mma [[A]], [[B]], [[D]], %true, %true :
    tlx.async_dot(a, b, acc)
    # A pair of CTAs lays out its accumulator differently.
    # BLACKWELL: [[D2:%.*]] = tlx.require_layout [[D]] : {{.*}} -> !ttg.memdesc<128x128xf32, #[[PAIR]], #ttng.tensor_memory, mutable>
    # BLACKWELL: ttng.tc_gen5_mma [[A]], %{{.*}}, [[D2]], %true, %true {two_ctas} : {{.*}}, !ttg.memdesc<64x64xf16,
    half_of_b = tlx.local_alloc((64, 64), tl.float16, 1)[0]
    tlx.async_dot(a, half_of_b, acc, two_ctas=True)
    # An accumulator of 16 bits is not packed.
    acc16 = tlx.local_alloc((128, 128), tl.float16, 1, tlx.storage_kind.tmem)[0]
    # BLACKWELL: [[D3:%.*]] = tlx.require_layout %{{.*}} : {{.*}} -> !ttg.memdesc<128x128xf16, #[[HALF]], #ttng.tensor_memory, mutable>
    # BLACKWELL: ttng.tc_gen5_mma [[A]], [[B]], [[D3]], %true, %true :
    tlx.async_dot(a, b, acc16)
    # BLACKWELL: ttng.tc_gen5_commit %{{.*}} : !ttg.memdesc<1xi64,
    tlx.tcgen05_commit(bars[0])
    # BLACKWELL: [[RANK:%.*]] = tlx.cluster_cta_rank
    # BLACKWELL: [[ODD:%.*]] = arith.remsi [[RANK]], %c2
    # BLACKWELL: [[EVEN:%.*]] = arith.cmpi eq, [[ODD]], %c0
    # BLACKWELL: ttng.tc_gen5_commit %{{.*}}, [[EVEN]] :
    tlx.tcgen05_commit(bars[1], two_ctas=True)


@tlx_xdsl.jit
def scaled():
    bars = tlx.alloc_barriers(1)
    a = tlx.local_alloc((128, 128), tl.float8e4nv, 1)[0]
    b = tlx.local_alloc((128, 128), tl.float8e5, 1)[0]
    b4 = tlx.local_alloc((64, 128), tl.uint8, 1)[0]
    acc = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)[0]
    sa = tlx.local_alloc((128, 4), tl.uint8, 1, tlx.storage_kind.tmem)[0]
    sb = tlx.local_alloc((128, 4), tl.uint8, 1, tlx.storage_kind.tmem)[0]
    # SCALED: ttng.tc_gen5_mma_scaled %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %false, %true lhs = e4m3 rhs = e5m2, %{{.*}}[%true] {is_async} :
    tlx.async_dot_scaled(a, b, acc, sa, "e4m3", sb, "e5m2", use_acc=False, mBarriers=[bars[0]])
    # Next to bytes, pairs of fp4 take the space of two bytes.
    # SCALED: [[B4:%.*]] = tlx.require_layout %{{.*}} : !ttg.memdesc<64x128xi8, {{.*}} -> !ttg.memdesc<64x128xi8, #[[PADDED:shared[0-9]*]], #smem, mutable>
    # SCALED: ttng.tc_gen5_mma_scaled %{{.*}}, [[B4]], %{{.*}}, %{{.*}}, %{{.*}}, %true, %true lhs = e4m3 rhs = e2m1 :
    tlx.async_dot_scaled(a, b4, acc, sa, "e4m3", sb, "e2m1")
    x = tlx.local_load(a)
    s = tlx.zeros((128, 4), tl.uint8)
    # SCALED: tt.dot_scaled %x scale %{{.*}}, %{{.*}} scale %{{.*}}, %{{.*}} lhs = e4m3 rhs = e4m3 {{.*}} -> tensor<128x128xf32>
    y = tlx.dot_scaled(x, s, "e4m3", x, s, "e4m3")
    # SCALED: tt.dot %{{.*}}, %{{.*}}, %y{{.*}} : tensor<128x128xf8E4M3FN> * tensor<128x128xf8E4M3FN> -> tensor<128x128xf32>
    z = tlx.dot(x, x, y)


TLX_COMPILE = {
    "hopper": {"signature": {"n": "i32"}},
    "blackwell": {"signature": {"n": "i32"}, "target": "sm_100a"},
    "scaled": {"target": "sm_100a"},
}
