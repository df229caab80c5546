// The compute engine, as kernels see it: unpacker and matrix unit, vector unit, packer.
#pragma once
#include "metalium.h"

// --- setting up: 0.81 has one startup, and inits that leave data formats alone; before, some inits did both

template <SrcOrder order = SrcOrder::Regular>
void compute_kernel_hw_startup(uint32_t a, uint32_t b, uint32_t out, METALIUM_SITE) {
  machine::startup(METALIUM_HERE, order == SrcOrder::Reverse ? b : a, order == SrcOrder::Reverse ? a : b, out, true);
}
inline void compute_kernel_hw_startup(uint32_t a, uint32_t out, METALIUM_SITE) {
  machine::startup(METALIUM_HERE, a, a, out, true);
}
template <SrcOrder order = SrcOrder::Regular>
void reconfig_data_format(uint32_t a, uint32_t b, METALIUM_SITE) {
  machine::reconfigure(METALIUM_HERE, order == SrcOrder::Reverse ? b : a, order == SrcOrder::Reverse ? a : b, -1);
}
inline void reconfig_data_format_srca(uint32_t a, METALIUM_SITE) { machine::reconfigure(METALIUM_HERE, a, -1, -1); }
inline void pack_reconfig_data_format(uint32_t out, METALIUM_SITE) { machine::reconfigure(METALIUM_HERE, -1, -1, out); }

inline void copy_init(uint32_t cb, METALIUM_SITE) { machine::set_up_unit(METALIUM_HERE, "copy_tile", 0, cb, -1); }
inline void copy_tile_init(uint32_t cb, METALIUM_SITE) { machine::set_up_unit(METALIUM_HERE, "copy_tile", 0, cb, -1); }
inline void init_sfpu(uint32_t cb, uint32_t out, METALIUM_SITE) {
  machine::startup(METALIUM_HERE, cb, cb, out, false);
  machine::set_up_unit(METALIUM_HERE, "copy_tile", 0, cb, -1);
}
inline void binary_op_init_common(uint32_t a, uint32_t b, uint32_t out, METALIUM_SITE) {
  machine::startup(METALIUM_HERE, a, b, out, false);
}
#define METALIUM_MATRIX_BINARY(name)                                                                    \
  inline void name##_init(uint32_t a, uint32_t b, METALIUM_SITE) {                                      \
    machine::set_up_unit(METALIUM_HERE, #name "_tiles", 0, a, b);                                       \
  }                                                                                                     \
  inline void name##_tiles_init(uint32_t a, uint32_t b, METALIUM_SITE) {                                \
    machine::set_up_unit(METALIUM_HERE, #name "_tiles", 0, a, b);                                       \
  }                                                                                                     \
  inline void name##_tiles(uint32_t a, uint32_t b, uint32_t i, uint32_t j, uint32_t dst, METALIUM_SITE) { \
    machine::matrix_binary(METALIUM_HERE, #name "_tiles", a, b, i, j, dst);                             \
  }
METALIUM_MATRIX_BINARY(add)
METALIUM_MATRIX_BINARY(sub)
METALIUM_MATRIX_BINARY(mul)

inline void matmul_init(uint32_t a, uint32_t b, uint32_t = 0, METALIUM_SITE) {
  machine::set_up_unit(METALIUM_HERE, "matmul_tiles", 0, b, a);
}
inline void mm_init(uint32_t a, uint32_t b, uint32_t out, uint32_t = 0, METALIUM_SITE) {
  machine::startup(METALIUM_HERE, b, a, out, false);
  machine::set_up_unit(METALIUM_HERE, "matmul_tiles", 0, b, a);
}
inline void matmul_tiles(uint32_t a, uint32_t b, uint32_t i, uint32_t j, uint32_t dst, METALIUM_SITE) {
  machine::matmul(METALIUM_HERE, a, b, i, j, dst);
}
// A product of blocks is set up for its size; a call is for one column of tiles and one row of tiles.
inline void matmul_block_init(uint32_t a, uint32_t b, uint32_t = 0, uint32_t ct = 1, uint32_t rt = 1, uint32_t kt = 1,
                              METALIUM_SITE) {
  machine::set_up_unit(METALIUM_HERE, "matmul_block", machine::block_variant(ct, rt, kt), b, a);
}
inline void mm_block_init(uint32_t a, uint32_t b, uint32_t out, uint32_t = 0, uint32_t ct = 1, uint32_t rt = 1,
                          uint32_t kt = 1, METALIUM_SITE) {
  machine::startup(METALIUM_HERE, b, a, out, false);
  machine::set_up_unit(METALIUM_HERE, "matmul_block", machine::block_variant(ct, rt, kt), b, a);
}
inline void matmul_block(uint32_t a, uint32_t b, uint32_t i, uint32_t j, uint32_t dst, uint32_t, uint32_t ct,
                         uint32_t rt, uint32_t kt, METALIUM_SITE) {
  int variant = machine::block_variant(ct, rt, kt);
  for (uint32_t row = 0; row < rt; row++)
    for (uint32_t column = 0; column < ct; column++)
      machine::matmul(METALIUM_HERE, a, b, i + row * kt, j + column, dst + row * ct + column, variant);
}
template <BroadcastType type>
void unary_bcast_init(uint32_t cb, METALIUM_SITE) {
  machine::set_up_unit(METALIUM_HERE, "unary_bcast", int(type), cb, -1);
  machine::keep_broadcast(METALIUM_HERE, true);
}
template <BroadcastType type>
void unary_bcast_uninit(uint32_t, METALIUM_SITE) {
  machine::keep_broadcast(METALIUM_HERE, false);
}
template <BroadcastType type>
void unary_bcast_init(uint32_t cb, uint32_t out, METALIUM_SITE) {
  machine::startup(METALIUM_HERE, cb, cb, out, false);
  machine::set_up_unit(METALIUM_HERE, "unary_bcast", int(type), cb, -1);
}
template <BroadcastType type>
void unary_bcast(uint32_t cb, uint32_t tile, uint32_t dst, METALIUM_SITE) {
  machine::broadcast(METALIUM_HERE, type, cb, tile, dst);
}
inline void transpose_init(uint32_t cb, METALIUM_SITE) { machine::set_up_unit(METALIUM_HERE, "transpose_tile", 0, cb, -1); }
inline void transpose_tile(uint32_t cb, uint32_t tile, uint32_t dst, METALIUM_SITE) {
  machine::transpose(METALIUM_HERE, "transpose_tile", cb, tile, dst);
}
inline void transpose_wh_init(uint32_t cb, uint32_t out, METALIUM_SITE) {
  machine::startup(METALIUM_HERE, cb, cb, out, false);
  machine::set_up_unit(METALIUM_HERE, "transpose_wh_tile", 0, cb, -1);
}
inline void transpose_wh_tile(uint32_t cb, uint32_t tile, uint32_t dst, METALIUM_SITE) {
  machine::transpose(METALIUM_HERE, "transpose_wh_tile", cb, tile, dst);
}
template <PoolType pool, ReduceDim dim>
void reduce_init(uint32_t cb, uint32_t scaler, uint32_t, METALIUM_SITE) {
  // Sums along rows are products with the scaler, whose operands are exchanged.
  bool swapped = dim == REDUCE_ROW && pool != MAX;
  machine::set_up_unit(METALIUM_HERE, "reduce_tile", int(pool) * 4 + int(dim), swapped ? scaler : cb, swapped ? cb : scaler);
  machine::set_reduce_mask(METALIUM_HERE, int(dim));
}
template <PoolType pool, ReduceDim dim>
void reduce_tile(uint32_t cb, uint32_t scaler, uint32_t tile, uint32_t scaler_tile, uint32_t dst, METALIUM_SITE) {
  machine::reduce(METALIUM_HERE, pool, dim, cb, scaler, tile, scaler_tile, dst);
}
inline void reduce_uninit(uint32_t = 0, METALIUM_SITE) { machine::set_reduce_mask(METALIUM_HERE, -1); }

inline void copy_tile(uint32_t cb, uint32_t tile, uint32_t dst, METALIUM_SITE) {
  machine::copy_tile(METALIUM_HERE, cb, tile, dst);
}

// --- the vector unit works on the DST registers

#define METALIUM_BINARY(name)                                                                            \
  inline void name##_tile_init(METALIUM_SITE) { machine::set_up_vector_unit(METALIUM_HERE, #name); }     \
  inline void name##_tile(uint32_t a, uint32_t b, uint32_t out, METALIUM_SITE) {                         \
    machine::vector_binary(METALIUM_HERE, #name, a, b, out);                                             \
  }
METALIUM_BINARY(add_binary)
METALIUM_BINARY(sub_binary)
METALIUM_BINARY(mul_binary)
METALIUM_BINARY(div_binary)
METALIUM_BINARY(binary_max)
METALIUM_BINARY(binary_min)

METALIUM_BINARY(remainder_binary)
inline void where_tile_init(METALIUM_SITE) { machine::set_up_vector_unit(METALIUM_HERE, "where"); }
template <DataFormat>
void where_tile(uint32_t condition, uint32_t a, uint32_t b, uint32_t out, METALIUM_SITE) {
  machine::vector_where(METALIUM_HERE, condition, a, b, out);
}

// With template arguments a function trades precision for time; the machine has the precise form only.
#define METALIUM_VECTOR_INIT(name)                                                                             \
  template <bool approximate = false>                                                                          \
  void name##_tile_init(METALIUM_SITE) {                                                                       \
    static_assert(!approximate, "the machine has no approximate form of " #name);                              \
    machine::set_up_vector_unit(METALIUM_HERE, #name);                                                         \
  }
#define METALIUM_VECTOR(name, unit)                                                                            \
  template <bool approximate = false>                                                                          \
  void name##_tile(uint32_t dst, METALIUM_SITE) {                                                              \
    static_assert(!approximate, "the machine has no approximate form of " #name);                              \
    machine::vector_unary(METALIUM_HERE, unit, #name, dst, 0, 0, 0);                                           \
  }
#define METALIUM_UNARY(name)                                                                                   \
  METALIUM_VECTOR_INIT(name)                                                                                   \
  METALIUM_VECTOR(name, #name)
METALIUM_UNARY(exp)
METALIUM_UNARY(exp2)
METALIUM_UNARY(expm1)
METALIUM_UNARY(log)
METALIUM_UNARY(log1p)
METALIUM_UNARY(sqrt)
METALIUM_UNARY(rsqrt)
METALIUM_UNARY(recip)
METALIUM_UNARY(square)
METALIUM_UNARY(negative)
METALIUM_UNARY(abs)
METALIUM_UNARY(sign)
METALIUM_UNARY(signbit)
METALIUM_UNARY(sin)
METALIUM_UNARY(cos)
METALIUM_UNARY(tan)
METALIUM_UNARY(asin)
METALIUM_UNARY(acos)
METALIUM_UNARY(atan)
METALIUM_UNARY(asinh)
METALIUM_UNARY(acosh)
METALIUM_UNARY(atanh)
METALIUM_UNARY(tanh)
METALIUM_UNARY(relu)
METALIUM_UNARY(gelu)
METALIUM_UNARY(sigmoid)
METALIUM_UNARY(silu)
METALIUM_UNARY(softsign)
METALIUM_UNARY(hardsigmoid)

METALIUM_VECTOR_INIT(rounding_op)
METALIUM_VECTOR(floor, "rounding_op")
METALIUM_VECTOR(ceil, "rounding_op")
METALIUM_VECTOR(trunc, "rounding_op")
METALIUM_VECTOR(frac, "rounding_op")
inline void round_tile(uint32_t dst, int32_t decimals, METALIUM_SITE) {
  machine::vector_unary(METALIUM_HERE, "rounding_op", "round", dst, uint32_t(decimals), 0, 0);
}

// Numbers are the bits of an f32.
#define METALIUM_UNARY_1(name)                                                                                 \
  METALIUM_VECTOR_INIT(name)                                                                                   \
  inline void name##_tile(uint32_t dst, uint32_t a, METALIUM_SITE) {                                           \
    machine::vector_unary(METALIUM_HERE, #name, #name, dst, a, 0, 0);                                          \
  }
#define METALIUM_UNARY_2(name)                                                                                 \
  METALIUM_VECTOR_INIT(name)                                                                                   \
  inline void name##_tile(uint32_t dst, uint32_t a, uint32_t b, METALIUM_SITE) {                               \
    machine::vector_unary(METALIUM_HERE, #name, #name, dst, a, b, 0);                                          \
  }
METALIUM_UNARY_1(power)
METALIUM_UNARY_1(elu)
METALIUM_UNARY_1(leaky_relu)
METALIUM_UNARY_1(unary_gt)
METALIUM_UNARY_2(celu)
METALIUM_UNARY_2(selu)
METALIUM_UNARY_2(clamp)
METALIUM_VECTOR_INIT(softplus)
inline void softplus_tile(uint32_t dst, uint32_t beta, uint32_t reciprocal, uint32_t threshold, METALIUM_SITE) {
  machine::vector_unary(METALIUM_HERE, "softplus", "softplus", dst, beta, reciprocal, threshold);
}

inline void fill_tile_init(METALIUM_SITE) { machine::set_up_vector_unit(METALIUM_HERE, "fill"); }
inline void fill_tile(uint32_t dst, float value, METALIUM_SITE) { machine::fill(METALIUM_HERE, dst, value); }
inline void copy_dest_values_init(METALIUM_SITE) { machine::set_up_vector_unit(METALIUM_HERE, "copy_dest_values"); }
template <DataFormat format>
void copy_dest_values(uint32_t source, uint32_t target, METALIUM_SITE) {
  machine::copy_dst(METALIUM_HERE, format, source, target);
}
// The form of 2025: the target comes first.
inline void copy_dest_values(uint32_t target, uint32_t source, METALIUM_SITE) {
  machine::copy_dst(METALIUM_HERE, DataFormat::Float32, source, target);
}

// --- integers, and conversions between formats

template <DataFormat format>
void fill_tile_int(uint32_t dst, uint32_t value, METALIUM_SITE) { machine::fill_integer(METALIUM_HERE, format, dst, value); }
#define METALIUM_INTEGERS(name)                                                                          \
  template <DataFormat format>                                                                           \
  void name##_tile(uint32_t a, uint32_t b, uint32_t out, METALIUM_SITE) {                                \
    machine::integers(METALIUM_HERE, #name, format, a, b, out);                                          \
  }
METALIUM_INTEGERS(add_int)
METALIUM_INTEGERS(sub_int)
METALIUM_INTEGERS(mul_int)
inline void add_int_tile_init(METALIUM_SITE) { machine::set_up_vector_unit(METALIUM_HERE, "add_int"); }
inline void sub_int_tile_init(METALIUM_SITE) { machine::set_up_vector_unit(METALIUM_HERE, "sub_int"); }
template <DataFormat>
void mul_int_tile_init(METALIUM_SITE) { machine::set_up_vector_unit(METALIUM_HERE, "mul_int"); }
#define METALIUM_EXTREMES(name, format)                                                                  \
  inline void name##_tile_init(METALIUM_SITE) { machine::set_up_vector_unit(METALIUM_HERE, #name); }     \
  inline void name##_tile(uint32_t a, uint32_t b, uint32_t out, METALIUM_SITE) {                         \
    machine::integers(METALIUM_HERE, #name, DataFormat::format, a, b, out);                              \
  }
METALIUM_EXTREMES(binary_max_int32, Int32)
METALIUM_EXTREMES(binary_min_int32, Int32)
METALIUM_EXTREMES(binary_max_uint32, UInt32)
METALIUM_EXTREMES(binary_min_uint32, UInt32)
inline void negative_tile_int32(uint32_t dst, METALIUM_SITE) { machine::integer_unary(METALIUM_HERE, "negative", dst); }
inline void abs_tile_int32(uint32_t dst, METALIUM_SITE) { machine::integer_unary(METALIUM_HERE, "abs", dst); }
inline void relu_tile_int32(uint32_t dst, METALIUM_SITE) { machine::integer_unary(METALIUM_HERE, "relu", dst); }
template <uint32_t from, uint32_t to>
void typecast_tile_init(METALIUM_SITE) { machine::set_up_typecast(METALIUM_HERE, from, to); }
template <uint32_t from, uint32_t to>
void typecast_tile(uint32_t dst, METALIUM_SITE) { machine::typecast(METALIUM_HERE, from, to, dst); }

// --- DST registers and the packer

inline void tile_regs_acquire(METALIUM_SITE) { machine::tile_regs(METALIUM_HERE, 0); }
inline void tile_regs_commit(METALIUM_SITE) { machine::tile_regs(METALIUM_HERE, 1); }
inline void tile_regs_wait(METALIUM_SITE) { machine::tile_regs(METALIUM_HERE, 2); }
inline void tile_regs_release(METALIUM_SITE) { machine::tile_regs(METALIUM_HERE, 3); }
template <bool out_of_order = false>
void pack_tile(uint32_t dst, uint32_t cb, uint32_t tile = 0, METALIUM_SITE) {
  machine::pack(METALIUM_HERE, out_of_order, dst, cb, tile);
}
inline void pack_block(uint32_t dst, uint32_t cb, uint32_t tiles, METALIUM_SITE) {
  for (uint32_t tile = 0; tile < tiles; tile++) machine::pack(METALIUM_HERE, false, dst + tile, cb, 0);
}
inline void pack_tile_block(uint32_t dst, uint32_t cb, uint32_t tiles, METALIUM_SITE) {
  pack_block(dst, cb, tiles, file, line);
}

// --- rows of elements: tilize_block takes the registers itself, pack_untilize_dest packs the first ones

inline void tilize_init(uint32_t rows, uint32_t width, uint32_t, METALIUM_SITE) {
  machine::tilize_init(METALIUM_HERE, rows, width);
}
inline void tilize_block(uint32_t rows, uint32_t width, uint32_t tiles, uint32_t source = 0, uint32_t target = 0,
                         METALIUM_SITE) {
  machine::tilize(METALIUM_HERE, rows, width, tiles, source, target);
}
inline void tilize_uninit(uint32_t, uint32_t, METALIUM_SITE) { machine::tilize_uninit(METALIUM_HERE); }
template <uint32_t width, uint32_t full_width = width>
void pack_untilize_dest_init(uint32_t, METALIUM_SITE) {
  machine::untilize_init(METALIUM_HERE, width, full_width);
}
template <uint32_t width, uint32_t full_width = width>
void pack_untilize_dest(uint32_t rows, uint32_t height = 1, uint32_t part = 0, METALIUM_SITE) {
  machine::untilize(METALIUM_HERE, width, full_width, rows, height, part);
}
inline void pack_untilize_uninit(uint32_t, METALIUM_SITE) { machine::untilize_uninit(METALIUM_HERE); }

inline void pack_reconfig_l1_acc(uint32_t enabled, METALIUM_SITE) { machine::pack_accumulate(METALIUM_HERE, enabled); }
