// What a kernel sees of the machine: the part of Metalium's kernel API that our C++ uses, of both profiles.
//
// Each call also takes where it was made, so that an error names the user's line where the text has #line directives.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <string>

#define tt_l1_ptr
#define ALWI inline __attribute__((always_inline))
#define FORCE_INLINE inline __attribute__((always_inline))
// A zone of the profiler, whose name is a literal; no time is measured here.
#define DeviceZoneScopedN(name) static_assert(sizeof(name) > 1)
#define METALIUM_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define METALIUM_HERE (machine::Site{file, line, __func__})

enum class BroadcastType { NONE, COL, ROW, SCALAR };
enum PoolType { SUM, AVG, MAX };
enum ReduceDim { REDUCE_ROW, REDUCE_COL, REDUCE_SCALAR };
enum class SrcOrder : uint8_t { Regular, Reverse };
enum class DataFormat : uint8_t {
  Float32 = 0, Float16_b = 5, Bfp8_b = 6, Bfp4_b = 7, Int32 = 8, UInt16 = 9, UInt32 = 24
};

namespace machine {

struct Site {
  const char *file;
  int line;
  const char *call;
};

struct Accessor {
  uint32_t tensor;
};

void cb_reserve_back(Site, uint32_t, uint32_t);
void cb_push_back(Site, uint32_t, uint32_t);
void cb_wait_front(Site, uint32_t, uint32_t);
void cb_pop_front(Site, uint32_t, uint32_t);
uint32_t get_write_ptr(Site, uint32_t);
uint32_t get_read_ptr(Site, uint32_t);

Accessor tensor_accessor(Site, uint32_t compile_time, uint64_t base, uint32_t page_bytes);
void noc_read(Site, uint32_t id, const Accessor &, uint32_t local, uint32_t offset, bool shard);
void noc_write(Site, uint32_t id, const Accessor &, uint32_t local, uint32_t offset, bool shard);
uint64_t get_noc_addr(Site, uint32_t x, uint32_t y, uint32_t address);
uint64_t get_noc_multicast_addr(Site, uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1, uint32_t address);
void noc_send(Site, uint32_t local, uint64_t address, uint32_t bytes, uint32_t count, int loopback);
void noc_barrier(Site, int kind);
uint32_t get_semaphore(Site, uint32_t);
void semaphore_send(Site, uint32_t local, uint64_t address, uint32_t count, int loopback);
void semaphore_inc(Site, uint64_t address, uint32_t value);
void semaphore_set(Site, uint32_t address, uint32_t value);
uint32_t semaphore_value(Site, uint32_t address);
void semaphore_wait(Site, uint32_t address, uint32_t value, bool at_least);
uint32_t coordinate(int axis, bool logical);
uint32_t virtual_column(uint32_t logical);
uint32_t common_argument(Site, uint32_t);

void startup(Site, uint32_t a, uint32_t b, uint32_t out, bool once);
void reconfigure(Site, int64_t a, int64_t b, int64_t out);
void set_up_unit(Site, const char *name, int variant, int64_t a, int64_t b);
void set_up_vector_unit(Site, const char *name);
void tile_regs(Site, int step);
void copy_tile(Site, uint32_t cb, uint32_t tile, uint32_t dst);
void matrix_binary(Site, const char *name, uint32_t a, uint32_t b, uint32_t i, uint32_t j, uint32_t dst);
void broadcast(Site, BroadcastType, uint32_t cb, uint32_t tile, uint32_t dst);
void keep_broadcast(Site, bool);
void transpose(Site, const char *name, uint32_t cb, uint32_t tile, uint32_t dst);
void matmul(Site, uint32_t a, uint32_t b, uint32_t i, uint32_t j, uint32_t dst, int block = 0);
inline int block_variant(uint32_t ct, uint32_t rt, uint32_t kt) { return int((kt * 32 + rt) * 32 + ct); }
void reduce(Site, PoolType, ReduceDim, uint32_t cb, uint32_t scaler, uint32_t tile, uint32_t scaler_tile, uint32_t dst);
void set_reduce_mask(Site, int dim);
void vector_binary(Site, const char *name, uint32_t a, uint32_t b, uint32_t out);
void vector_where(Site, uint32_t condition, uint32_t a, uint32_t b, uint32_t out);
void vector_unary(Site, const char *unit, const char *name, uint32_t dst, uint32_t a, uint32_t b, uint32_t c);
void fill(Site, uint32_t dst, float value);
void fill_integer(Site, DataFormat, uint32_t dst, uint32_t value);
void integers(Site, const char *name, DataFormat, uint32_t a, uint32_t b, uint32_t out);
void integer_unary(Site, const char *name, uint32_t dst);
void set_up_typecast(Site, uint32_t from, uint32_t to);
void typecast(Site, uint32_t from, uint32_t to, uint32_t dst);
void copy_dst(Site, DataFormat, uint32_t source, uint32_t target);
void pack(Site, bool at_index, uint32_t dst, uint32_t cb, uint32_t tile);
void pack_accumulate(Site, uint32_t enabled);
void tilize_init(Site, uint32_t rows, uint32_t width);
void tilize(Site, uint32_t rows, uint32_t width, uint32_t tiles, uint32_t source, uint32_t target);
void tilize_uninit(Site);
void untilize_init(Site, uint32_t width, uint32_t full_width);
void untilize(Site, uint32_t width, uint32_t full_width, uint32_t rows, uint32_t height, uint32_t part);
void untilize_uninit(Site);

// Text for the host: `{}` stands for a value.
void print(const std::string &);
std::string tile_text(Site, uint32_t cb, uint32_t tile, bool written);
inline std::string shown(const std::string &value) { return value; }
template <class T>
std::string shown(T value) { return std::to_string(value); }
inline void print_format(std::string text) { print(text); }
template <class First, class... Rest>
void print_format(const std::string &text, const First &first, const Rest &...rest) {
  size_t at = text.find("{}");
  print_format(text.substr(0, at) + shown(first) + text.substr(at + 2), rest...);
}

}  // namespace machine

#define DPRINT(...) machine::print_format(__VA_ARGS__)
#define DPRINT_UNPACK(...) DPRINT(__VA_ARGS__)
#define DPRINT_MATH(...) DPRINT(__VA_ARGS__)
#define DPRINT_PACK(...) DPRINT(__VA_ARGS__)
struct SliceRange {
  static SliceRange hw0_32_8() { return {}; }
};
enum { TSLICE_INPUT_CB, TSLICE_OUTPUT_CB };
enum { TSLICE_WR_PTR, TSLICE_RD_PTR };
inline std::string TSLICE(uint32_t cb, uint32_t tile, SliceRange, int type = -1, int = 0, METALIUM_SITE) {
  return machine::tile_text(METALIUM_HERE, cb, tile, type == TSLICE_OUTPUT_CB);
}

// --- arguments and places

template <class T>
FORCE_INLINE T get_common_arg_val(int index, METALIUM_SITE) {
  return T(machine::common_argument(METALIUM_HERE, uint32_t(index)));
}
// `kernel_compile_time_args` is what the harness defines around each kernel.
#define get_compile_time_arg_val(index) (get_ct_arg<index>())

struct Coordinate {
  int axis;
  uint8_t operator[](uint8_t) const { return uint8_t(machine::coordinate(axis, false)); }
};
inline constexpr Coordinate my_x{0}, my_y{1};
struct Columns {
  uint8_t operator[](uint32_t logical) const { return uint8_t(machine::virtual_column(logical)); }
};
inline constexpr Columns worker_logical_col_to_virtual_col{};
inline constexpr uint8_t noc_index = 0;
inline uint8_t get_absolute_logical_x() { return uint8_t(machine::coordinate(0, true)); }
inline uint8_t get_absolute_logical_y() { return uint8_t(machine::coordinate(1, true)); }

// --- circular buffers

FORCE_INLINE void cb_reserve_back(int32_t cb, int32_t pages, METALIUM_SITE) {
  machine::cb_reserve_back(METALIUM_HERE, uint32_t(cb), uint32_t(pages));
}
FORCE_INLINE void cb_push_back(int32_t cb, int32_t pages, METALIUM_SITE) {
  machine::cb_push_back(METALIUM_HERE, uint32_t(cb), uint32_t(pages));
}
FORCE_INLINE void cb_wait_front(int32_t cb, int32_t pages, METALIUM_SITE) {
  machine::cb_wait_front(METALIUM_HERE, uint32_t(cb), uint32_t(pages));
}
FORCE_INLINE void cb_pop_front(int32_t cb, int32_t pages, METALIUM_SITE) {
  machine::cb_pop_front(METALIUM_HERE, uint32_t(cb), uint32_t(pages));
}
FORCE_INLINE uint32_t get_write_ptr(uint32_t cb, METALIUM_SITE) { return machine::get_write_ptr(METALIUM_HERE, cb); }
FORCE_INLINE uint32_t get_read_ptr(uint32_t cb, METALIUM_SITE) { return machine::get_read_ptr(METALIUM_HERE, cb); }

#include "metalium_noc.h"
#include "metalium_compute.h"
