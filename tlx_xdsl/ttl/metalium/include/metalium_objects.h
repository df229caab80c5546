// Circular buffers, the network and semaphores as objects: what they do is what the functions do.
#pragma once
#include "metalium_noc.h"

struct CircularBuffer {
  uint32_t cb;
  explicit CircularBuffer(uint32_t id) : cb(id) {}
  void reserve_back(int32_t pages, METALIUM_SITE) { machine::cb_reserve_back(METALIUM_HERE, cb, uint32_t(pages)); }
  void push_back(int32_t pages, METALIUM_SITE) { machine::cb_push_back(METALIUM_HERE, cb, uint32_t(pages)); }
  void wait_front(int32_t pages, METALIUM_SITE) { machine::cb_wait_front(METALIUM_HERE, cb, uint32_t(pages)); }
  void pop_front(int32_t pages, METALIUM_SITE) { machine::cb_pop_front(METALIUM_HERE, cb, uint32_t(pages)); }
  uint32_t get_write_ptr(METALIUM_SITE) const { return machine::get_write_ptr(METALIUM_HERE, cb); }
  uint32_t get_read_ptr(METALIUM_SITE) const { return machine::get_read_ptr(METALIUM_HERE, cb); }
};

struct UnicastEndpoint {};
struct MulticastEndpoint {};

enum class NocOptions : uint32_t { DEFAULT = 0, MCAST_INCL_SRC = 16 };

struct Nothing {};
struct Page {
  uint32_t page_id;
  uint32_t offset_bytes = 0;
};
struct Core {
  uint32_t noc_x, noc_y, addr;
};
struct Cores {
  uint32_t noc_x_start, noc_y_start, noc_x_end, noc_y_end, addr;
};

struct Noc {
  // A transfer of a page has its size.
  template <class A, class T>
  void async_read(const A &accessor, CoreLocalMem<T> to, uint32_t, Page page, Nothing, METALIUM_SITE) const {
    machine::noc_read(METALIUM_HERE, page.page_id, accessor, to.address, page.offset_bytes, false);
  }
  template <class A, class T>
  void async_write(CoreLocalMem<T> from, const A &accessor, uint32_t, Nothing, Page page, METALIUM_SITE) const {
    machine::noc_write(METALIUM_HERE, page.page_id, accessor, from.address, page.offset_bytes, false);
  }
  template <class T>
  void async_write(CoreLocalMem<T> from, UnicastEndpoint, uint32_t bytes, Nothing, Core to, METALIUM_SITE) const {
    const uint64_t there = machine::get_noc_addr(METALIUM_HERE, to.noc_x, to.noc_y, to.addr);
    machine::noc_send(METALIUM_HERE, from.address, there, bytes, 1, -1);
  }
  template <NocOptions options = NocOptions::DEFAULT, class T>
  void async_write_multicast(CoreLocalMem<T> from, MulticastEndpoint, uint32_t bytes, uint32_t count, Nothing, Cores to,
                             METALIUM_SITE) const {
    const uint64_t there = machine::get_noc_multicast_addr(METALIUM_HERE, to.noc_x_start, to.noc_y_start, to.noc_x_end,
                                                           to.noc_y_end, to.addr);
    machine::noc_send(METALIUM_HERE, from.address, there, bytes, count, options == NocOptions::MCAST_INCL_SRC);
  }
  void async_read_barrier(METALIUM_SITE) const { machine::noc_barrier(METALIUM_HERE, 0); }
  void async_write_barrier(METALIUM_SITE) const { machine::noc_barrier(METALIUM_HERE, 1); }
  void async_atomic_barrier(METALIUM_SITE) const { machine::noc_barrier(METALIUM_HERE, 2); }
};

template <int core_type = 0>
struct Semaphore {
  uint32_t address;
  explicit Semaphore(uint32_t id, METALIUM_SITE) : address(machine::get_semaphore(METALIUM_HERE, id)) {}
  uint32_t value(METALIUM_SITE) const { return machine::semaphore_value(METALIUM_HERE, address); }
  void set(uint32_t value, METALIUM_SITE) { machine::semaphore_set(METALIUM_HERE, address, value); }
  void wait(uint32_t value, METALIUM_SITE) const { machine::semaphore_wait(METALIUM_HERE, address, value, false); }
  void wait_min(uint32_t value, METALIUM_SITE) const { machine::semaphore_wait(METALIUM_HERE, address, value, true); }
  void up(const Noc &, uint32_t x, uint32_t y, uint32_t value, METALIUM_SITE) {
    machine::semaphore_inc(METALIUM_HERE, machine::get_noc_addr(METALIUM_HERE, x, y, address), value);
  }
  void relay_unicast(const Noc &, const Semaphore &to, uint32_t x, uint32_t y, METALIUM_SITE) {
    machine::semaphore_send(METALIUM_HERE, address, machine::get_noc_addr(METALIUM_HERE, x, y, to.address), 1, -1);
  }
  template <NocOptions options = NocOptions::DEFAULT>
  void relay_multicast(const Noc &, const Semaphore &to, uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1,
                       uint32_t count, METALIUM_SITE) {
    const uint64_t there = machine::get_noc_multicast_addr(METALIUM_HERE, x0, y0, x1, y1, to.address);
    machine::semaphore_send(METALIUM_HERE, address, there, count, options == NocOptions::MCAST_INCL_SRC);
  }
};
