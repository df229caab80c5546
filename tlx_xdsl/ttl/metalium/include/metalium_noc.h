// Transfers over the NoC and semaphores, as kernels see them.
#pragma once
#include "metalium.h"

template <size_t compile_time, size_t common_runtime = 0>
struct TensorAccessorArgs {};

// Each tensor has one word here; on a device, as many as its layout takes.
namespace tensor_accessor::detail {
template <uint32_t tensor, uint32_t first>
constexpr uint32_t get_tensor_accessor_args_cta_offset() {
  return first + tensor;
}
}  // namespace tensor_accessor::detail

template <class Arguments>
struct TensorAccessor;

template <size_t compile_time, size_t common_runtime>
struct TensorAccessor<TensorAccessorArgs<compile_time, common_runtime>> : machine::Accessor {
  TensorAccessor(const TensorAccessorArgs<compile_time, common_runtime> &, size_t base, uint32_t page_bytes, METALIUM_SITE)
      : machine::Accessor(machine::tensor_accessor({file, line, "TensorAccessor"}, compile_time, base, page_bytes)),
        bytes(page_bytes) {}
  uint32_t bytes;
  uint32_t get_aligned_page_size() const { return bytes; }
};
template <size_t compile_time, size_t common_runtime>
TensorAccessor(const TensorAccessorArgs<compile_time, common_runtime> &, size_t, uint32_t)
    -> TensorAccessor<TensorAccessorArgs<compile_time, common_runtime>>;

template <class A>
void noc_async_read_page(uint32_t id, const A &accessor, uint32_t l1, uint32_t offset = 0, uint8_t = 0, METALIUM_SITE) {
  machine::noc_read(METALIUM_HERE, id, accessor, l1, offset, false);
}
template <class A>
void noc_async_read_tile(uint32_t id, const A &accessor, uint32_t l1, uint32_t offset = 0, uint8_t = 0, METALIUM_SITE) {
  machine::noc_read(METALIUM_HERE, id, accessor, l1, offset, false);
}
template <class A>
void noc_async_read_shard(uint32_t id, const A &accessor, uint32_t l1, uint8_t = 0, METALIUM_SITE) {
  machine::noc_read(METALIUM_HERE, id, accessor, l1, 0, true);
}
// A size of 0 is that of a page.
template <class A>
void noc_async_write_page(uint32_t id, const A &accessor, uint32_t l1, uint32_t = 0, uint32_t offset = 0, uint8_t = 0,
                          METALIUM_SITE) {
  machine::noc_write(METALIUM_HERE, id, accessor, l1, offset, false);
}
template <class A>
void noc_async_write_tile(uint32_t id, const A &accessor, uint32_t l1, uint8_t = 0, METALIUM_SITE) {
  machine::noc_write(METALIUM_HERE, id, accessor, l1, 0, false);
}
template <class A>
void noc_async_write_shard(uint32_t id, const A &accessor, uint32_t l1, uint8_t = 0, METALIUM_SITE) {
  machine::noc_write(METALIUM_HERE, id, accessor, l1, 0, true);
}

inline uint64_t get_noc_addr(uint32_t x, uint32_t y, uint32_t address, uint8_t = 0, METALIUM_SITE) {
  return machine::get_noc_addr(METALIUM_HERE, x, y, address);
}
inline uint64_t get_noc_multicast_addr(uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1, uint32_t address, uint8_t = 0,
                                       METALIUM_SITE) {
  return machine::get_noc_multicast_addr(METALIUM_HERE, x0, y0, x1, y1, address);
}
inline void noc_async_write(uint32_t l1, uint64_t address, uint32_t bytes, uint8_t = 0, uint32_t = 0, METALIUM_SITE) {
  machine::noc_send(METALIUM_HERE, l1, address, bytes, 1, -1);
}
inline void noc_async_write_multicast(uint32_t l1, uint64_t address, uint32_t bytes, uint32_t count, bool = false,
                                      uint8_t = 0, uint8_t = 0, METALIUM_SITE) {
  machine::noc_send(METALIUM_HERE, l1, address, bytes, count, 0);
}
inline void noc_async_write_multicast_loopback_src(uint32_t l1, uint64_t address, uint32_t bytes, uint32_t count,
                                                   bool = false, uint8_t = 0, METALIUM_SITE) {
  machine::noc_send(METALIUM_HERE, l1, address, bytes, count, 1);
}
inline void noc_async_read_barrier(uint8_t = 0, METALIUM_SITE) { machine::noc_barrier(METALIUM_HERE, 0); }
inline void noc_async_write_barrier(uint8_t = 0, METALIUM_SITE) { machine::noc_barrier(METALIUM_HERE, 1); }
inline void noc_async_atomic_barrier(uint8_t = 0, METALIUM_SITE) { machine::noc_barrier(METALIUM_HERE, 2); }

// A pointer into L1 is its address: a kernel may not follow it, but hand it to the calls below.
inline uintptr_t get_semaphore(uint32_t id, METALIUM_SITE) { return machine::get_semaphore(METALIUM_HERE, id); }
inline void noc_semaphore_set(volatile uint32_t *word, uint32_t value, METALIUM_SITE) {
  machine::semaphore_set(METALIUM_HERE, uint32_t(uintptr_t(word)), value);
}
inline void noc_semaphore_wait(volatile uint32_t *word, uint32_t value, METALIUM_SITE) {
  machine::semaphore_wait(METALIUM_HERE, uint32_t(uintptr_t(word)), value, false);
}
inline void noc_semaphore_wait_min(volatile uint32_t *word, uint32_t value, METALIUM_SITE) {
  machine::semaphore_wait(METALIUM_HERE, uint32_t(uintptr_t(word)), value, true);
}
// Of places in a core's memory, words of semaphores are all that a kernel may read itself.
template <class T>
struct CoreLocalMem {
  uint32_t address;
  machine::Site site;
  CoreLocalMem(uint32_t at, METALIUM_SITE) : address(at), site(METALIUM_HERE) {}
  explicit CoreLocalMem(T *word, METALIUM_SITE) : address(uint32_t(uintptr_t(word))), site(METALIUM_HERE) {}
  uint32_t operator*() const { return machine::semaphore_value(site, address); }
};
namespace experimental {
using ::CoreLocalMem;
}
inline void noc_semaphore_inc(uint64_t address, uint32_t value, uint8_t = 0, uint8_t = 0, METALIUM_SITE) {
  machine::semaphore_inc(METALIUM_HERE, address, value);
}
inline void noc_semaphore_set_remote(uint32_t l1, uint64_t address, uint8_t = 0, METALIUM_SITE) {
  machine::semaphore_send(METALIUM_HERE, l1, address, 1, -1);
}
inline void noc_semaphore_set_multicast(uint32_t l1, uint64_t address, uint32_t count, bool = false, uint8_t = 0,
                                        uint8_t = 0, METALIUM_SITE) {
  machine::semaphore_send(METALIUM_HERE, l1, address, count, 0);
}
inline void noc_semaphore_set_multicast_loopback_src(uint32_t l1, uint64_t address, uint32_t count, bool = false,
                                                     uint8_t = 0, METALIUM_SITE) {
  machine::semaphore_send(METALIUM_HERE, l1, address, count, 1);
}
