// Transfers over the NoC: they land at the barrier, in any order; semaphores.
#include <cstring>

#include "state.h"

namespace machine {

static void only_data_movement(Site site) {
  if (current->is_compute) fail(site, "%s is a compute thread, which has no access to the NoC", current->label().c_str());
}

static uint8_t *page_of(Site site, const Accessor &accessor, uint32_t id, uint32_t count) {
  Tensor &tensor = chip.tensors[accessor.tensor];
  if ((uint64_t(id) + count) * tensor.page_bytes > tensor.bytes)
    fail(site, "page %u of tensor '%s' is accessed, which has %llu pages", id + count - 1, tensor.name.c_str(),
         (unsigned long long)(tensor.bytes / tensor.page_bytes));
  return tensor.data + uint64_t(id) * tensor.page_bytes;
}

Accessor tensor_accessor(Site site, uint32_t compile_time, uint64_t base, uint32_t page_bytes) {
  only_data_movement(site);
  uint32_t number = compile_time - chip.buffer_count;
  if (compile_time < chip.buffer_count || number >= chip.tensors.size())
    fail(site, "compile-time argument %u holds no TensorAccessorArgs: they start at %u, one for each of %zu tensors",
         compile_time, chip.buffer_count, chip.tensors.size());
  Tensor &tensor = chip.tensors[number];
  if (base != tensor.base)
    fail(site, "the arguments are those of tensor '%s', the address is not", tensor.name.c_str());
  if (page_bytes != tensor.page_bytes)
    fail(site, "a page of tensor '%s' has %u bytes, not %u", tensor.name.c_str(), tensor.page_bytes, page_bytes);
  return {number};
}

static Transfer with_tensor(Site site, Transfer::Kind kind, uint32_t id, const Accessor &accessor, uint32_t local,
                            uint32_t offset, bool shard) {
  only_data_movement(site);
  Tensor &tensor = chip.tensors[accessor.tensor];
  uint32_t pages = shard ? tensor.shard_pages : 1;
  if (shard && !pages) fail(site, "tensor '%s' has no shards", tensor.name.c_str());
  if (!shard && tensor.shard_pages) {
    // A page of a tensor in shards is a tile: they are counted row by row over the tensor, and lie shard by shard.
    if (id >= tensor.rows * tensor.columns)
      fail(site, "page %u of tensor '%s' is accessed, which has %u pages", id, tensor.name.c_str(), tensor.rows * tensor.columns);
    uint32_t row = id / tensor.columns, column = id % tensor.columns;
    id = (row / tensor.shard_rows * tensor.grid_columns + column / tensor.shard_columns) * tensor.shard_pages +
         row % tensor.shard_rows * tensor.shard_columns + column % tensor.shard_columns;
  }
  if (offset) fail(site, "offset %u: a transfer of a page from there would go past its end", offset);
  Transfer transfer;
  transfer.kind = kind;
  transfer.site = site;
  transfer.local = local;
  transfer.bytes = pages * tensor.page_bytes;
  transfer.tensor = page_of(site, accessor, id * pages, pages);
  return transfer;
}

void noc_read(Site site, uint32_t id, const Accessor &accessor, uint32_t local, uint32_t offset, bool shard) {
  Transfer transfer = with_tensor(site, Transfer::read, id, accessor, local, offset, shard);
  require_destination(site, *current->core, local, transfer.bytes, true);
  memset(&current->core->written[local], 0, transfer.bytes);
  current->in_flight.push_back(transfer);
}

void noc_write(Site site, uint32_t id, const Accessor &accessor, uint32_t local, uint32_t offset, bool shard) {
  Transfer transfer = with_tensor(site, Transfer::write, id, accessor, local, offset, shard);
  require_source(site, local, transfer.bytes);
  current->in_flight.push_back(transfer);
}

static bool is_column(uint32_t x) {
  for (uint32_t column : chip.columns)
    if (x == column + VIRTUAL_X) return true;
  return false;
}

uint32_t virtual_column(uint32_t logical) {
  if (logical >= chip.columns.size()) fail({"metalium.h", __LINE__, "column"}, "the grid has no column %u", logical);
  return chip.columns[logical] + VIRTUAL_X;
}

uint64_t get_noc_addr(Site site, uint32_t x, uint32_t y, uint32_t address) {
  return get_noc_multicast_addr(site, x, y, x, y, address);
}

uint64_t get_noc_multicast_addr(Site site, uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1, uint32_t address) {
  only_data_movement(site);
  uint32_t end_y = VIRTUAL_Y + chip.height - 1;
  if (!is_column(x0) || !is_column(x1) || y0 < VIRTUAL_Y || y1 < VIRTUAL_Y || y0 > end_y || y1 > end_y)
    fail(site, "no cores at the NoC coordinates (%u, %u) to (%u, %u): the kernel's are (%u, %u) to (%u, %u), which are not the "
         "logical ones", x0, y0, x1, y1, VIRTUAL_X, VIRTUAL_Y, VIRTUAL_X + chip.columns.back(), end_y);
  if (current->noc) std::swap(x0, x1), std::swap(y0, y1);
  if (x0 > x1 || y0 > y1)
    fail(site, "the corners of a multicast are in the other order: NOC_%u goes from %s coordinates", current->noc,
         current->noc ? "larger to smaller" : "smaller to larger");
  return uint64_t(x0) << 56 | uint64_t(y0) << 48 | uint64_t(x1) << 40 | uint64_t(y1) << 32 | address;
}

// The cores of an address; `loopback`: a multicast that includes this core, 0 one that leaves it out, -1 no multicast.
static void set_cores(Site site, Transfer &transfer, uint64_t address, uint32_t count, int loopback) {
  uint32_t x0 = uint8_t(address >> 56), y0 = uint8_t(address >> 48), x1 = uint8_t(address >> 40), y1 = uint8_t(address >> 32);
  transfer.remote = uint32_t(address);
  if (loopback < 0 && (x0 != x1 || y0 != y1)) fail(site, "expected the NoC address of one core, found that of a range");
  bool contains = false;
  for (uint32_t y = y0; y <= y1; y++)
    for (uint32_t x = 0; x < chip.width; x++) {
      if (virtual_column(x) < x0 || virtual_column(x) > x1) continue;
      Core *core = chip.at(x, y - VIRTUAL_Y);
      contains |= core == current->core;
      if (loopback != 0 || core != current->core) transfer.cores.push_back(core);
    }
  if (loopback < 0) return;
  if (loopback && !contains) fail(site, "the range does not contain this core: use the form without loopback");
  if (transfer.cores.empty()) fail(site, "the range is this core only, to which a multicast does not write");
  if (count != transfer.cores.size())
    fail(site, "num_dests is %u, but the multicast has %zu destinations: it would hang", count, transfer.cores.size());
}

void noc_send(Site site, uint32_t local, uint64_t address, uint32_t bytes, uint32_t count, int loopback) {
  only_data_movement(site);
  Transfer transfer;
  transfer.kind = Transfer::write;
  transfer.site = site;
  transfer.local = local;
  transfer.bytes = bytes;
  set_cores(site, transfer, address, count, loopback);
  require_source(site, local, bytes);
  for (Core *core : transfer.cores)
    // A core's own block that it sends to itself lies there already.
    if (core != current->core || transfer.remote != local) require_destination(site, *core, transfer.remote, bytes, false);
  current->in_flight.push_back(transfer);
}

void check_semaphore_range(Site site, uint32_t address) {
  if (address < SEMAPHORES || address >= SEMAPHORES + MAX_SEMAPHORES * SEMAPHORE_STRIDE || address % SEMAPHORE_STRIDE)
    fail(site, "%u is not the address of a semaphore", address);
  if (!current->core->written[address]) fail(site, "semaphore %u was not created", (address - SEMAPHORES) / SEMAPHORE_STRIDE);
}

static uint32_t &word(Core &core, uint32_t address) { return *reinterpret_cast<uint32_t *>(&core.l1[address]); }

uint32_t get_semaphore(Site site, uint32_t index) {
  only_data_movement(site);
  if (index >= MAX_SEMAPHORES) fail(site, "there are %u semaphores, no %u", MAX_SEMAPHORES, index);
  check_semaphore_range(site, SEMAPHORES + index * SEMAPHORE_STRIDE);
  return SEMAPHORES + index * SEMAPHORE_STRIDE;
}

void semaphore_send(Site site, uint32_t local, uint64_t address, uint32_t count, int loopback) {
  only_data_movement(site);
  check_semaphore_range(site, local);
  check_semaphore_range(site, uint32_t(address));
  Transfer transfer;
  transfer.kind = Transfer::write;
  transfer.semaphore = true;
  transfer.site = site;
  transfer.local = local;
  transfer.bytes = 4;
  set_cores(site, transfer, address, count, loopback);
  current->in_flight.push_back(transfer);
  maybe_switch();
}

void semaphore_inc(Site site, uint64_t address, uint32_t value) {
  only_data_movement(site);
  check_semaphore_range(site, uint32_t(address));
  Transfer transfer;
  transfer.kind = Transfer::atomic;
  transfer.semaphore = true;
  transfer.site = site;
  transfer.addend = value;
  set_cores(site, transfer, address, 1, -1);
  current->in_flight.push_back(transfer);
  maybe_switch();
}

void semaphore_set(Site site, uint32_t address, uint32_t value) {
  only_data_movement(site);
  check_semaphore_range(site, address);
  for (Transfer &open : current->in_flight)
    if (open.kind == Transfer::write && open.semaphore && open.local == address && word(*current->core, address) != value)
      fail(site, "the word changes while the transfer issued at %s:%d sends it: noc_async_write_barrier is missing",
           open.site.file, open.site.line);
  word(*current->core, address) = value;
  maybe_switch();
}

uint32_t semaphore_value(Site site, uint32_t address) {
  only_data_movement(site);
  check_semaphore_range(site, address);
  return word(*current->core, address);
}

void semaphore_wait(Site site, uint32_t address, uint32_t value, bool at_least) {
  only_data_movement(site);
  check_semaphore_range(site, address);
  uint32_t &held = word(*current->core, address);
  wait_until(site, text("semaphore %u to be %s%u", (address - SEMAPHORES) / SEMAPHORE_STRIDE, at_least ? "at least " : "", value),
             [&held, value, at_least] { return at_least ? held >= value : held == value; });
}

void land(Thread &by, size_t index) {
  Transfer transfer = by.in_flight[index];
  by.in_flight.erase(by.in_flight.begin() + long(index));
  Thread *before = current;
  current = &by;  // Messages name the thread whose transfer it is.
  uint8_t *local = &by.core->l1[transfer.local];
  if (transfer.kind == Transfer::read) {
    require_destination(transfer.site, *by.core, transfer.local, transfer.bytes, true);
    memcpy(local, transfer.tensor, transfer.bytes);
    mark_written(*by.core, transfer.local, transfer.bytes);
  } else if (transfer.tensor) {
    memcpy(transfer.tensor, local, transfer.bytes);
  }
  for (Core *core : transfer.cores) {
    if (transfer.kind == Transfer::atomic) {
      word(*core, transfer.remote) += transfer.addend;
    } else if (transfer.semaphore) {
      word(*core, transfer.remote) = word(*by.core, transfer.local);
    } else if (core != by.core || transfer.remote != transfer.local) {
      require_destination(transfer.site, *core, transfer.remote, transfer.bytes, false);
      memcpy(&core->l1[transfer.remote], local, transfer.bytes);
      mark_written(*core, transfer.remote, transfer.bytes);
    }
  }
  current = before;
}

void noc_barrier(Site site, int kind) {
  only_data_movement(site);
  for (;;) {
    std::vector<size_t> open;
    for (size_t i = 0; i < current->in_flight.size(); i++)
      if (current->in_flight[i].kind == kind) open.push_back(i);
    if (open.empty()) break;
    land(*current, open[random_below(uint32_t(open.size()))]);
    maybe_switch();
  }
}

uint32_t coordinate(int axis, bool logical) {
  Core &core = *current->core;
  if (logical) return axis == 0 ? core.x : core.y;
  return axis == 0 ? virtual_column(core.x) : core.y + VIRTUAL_Y;
}

uint32_t common_argument(Site site, uint32_t index) {
  if (index >= current->tensors.size())
    fail(site, "%s has %zu common runtime arguments, no number %u", current->label().c_str(), current->tensors.size(), index);
  return uint32_t(chip.tensors[current->tensors[index]].base);
}

}  // namespace machine
