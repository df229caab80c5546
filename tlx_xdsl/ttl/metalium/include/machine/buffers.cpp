// Circular buffers: who may touch which page when.
#include <algorithm>
#include <cstring>

#include "state.h"

namespace machine {

Buffer &buffer(Site site, uint32_t index) {
  if (index >= MAX_BUFFERS || !current->core->buffers[index].pages) fail(site, "there is no circular buffer %u", index);
  return current->core->buffers[index];
}

static void only(Site site, Thread *&owner, const char *role, uint32_t index) {
  if (owner && owner != current)
    fail(site, "circular buffer %u has two %ss, %s and %s: it can have one", index, role, owner->label().c_str(),
         current->label().c_str());
  owner = current;
}

static void check_block(Site site, const Buffer &b, uint32_t index, uint32_t pages, uint64_t position) {
  if (!pages || pages > b.pages) fail(site, "circular buffer %u has %u pages, not %u", index, b.pages, pages);
  if (position % b.pages + pages > b.pages)
    fail(site, "a block of %u pages starts at page %u of the %u of circular buffer %u: it would wrap around inside",
         pages, uint32_t(position % b.pages), b.pages, index);
}

void cb_reserve_back(Site site, uint32_t index, uint32_t pages) {
  Buffer &b = buffer(site, index);
  only(site, b.producer, "producer", index);
  check_block(site, b, index, pages, b.received);
  wait_until(site, text("%u free pages of circular buffer %u, which has %u of them", pages, index, b.pages),
             [&b, pages] { return b.pages - (b.received - b.acknowledged) >= pages; });
  for (Transfer &open : current->in_flight)
    if (open.kind == Transfer::write && open.touches_local(b.begin(), pages * b.page_bytes))
      fail(site, "circular buffer %u: the write issued at %s:%d still reads these pages: noc_async_write_barrier is missing",
           index, open.site.file, open.site.line);
  if (pages > b.reserved) {
    b.reserved = pages;
    b.reserved_at = site;
  }
}

void cb_push_back(Site site, uint32_t index, uint32_t pages) {
  Buffer &b = buffer(site, index);
  only(site, b.producer, "producer", index);
  if (pages > b.reserved)
    fail(site, "%u pages of circular buffer %u are pushed, but %u are reserved", pages, index, b.reserved);
  for (Transfer &open : current->in_flight)
    if (open.kind == Transfer::read && open.touches_local(b.begin(), pages * b.page_bytes))
      fail(site, "circular buffer %u: the read issued at %s:%d has not arrived: noc_async_read_barrier is missing", index,
           open.site.file, open.site.line);
  b.received += pages;
  b.reserved -= pages;
  b.packed = b.packed > pages ? b.packed - pages : 0;
  b.pushed_at = site;
  maybe_switch();
}

void cb_wait_front(Site site, uint32_t index, uint32_t pages) {
  Buffer &b = buffer(site, index);
  only(site, b.consumer, "consumer", index);
  check_block(site, b, index, pages, b.acknowledged);
  wait_until(site, text("%u pages in circular buffer %u", pages, index),
             [&b, pages] { return b.received - b.acknowledged >= pages; });
  if (pages > b.waited) {
    b.waited = pages;
    b.waited_at = site;
  }
}

void cb_pop_front(Site site, uint32_t index, uint32_t pages) {
  Buffer &b = buffer(site, index);
  only(site, b.consumer, "consumer", index);
  if (pages > b.waited)
    fail(site, "%u pages of circular buffer %u are popped, but %u have been waited for", pages, index, b.waited);
  for (Transfer &open : current->in_flight)
    if (open.kind == Transfer::write && open.touches_local(b.front(), pages * b.page_bytes))
      fail(site, "circular buffer %u: the write issued at %s:%d has not read these pages yet: noc_async_write_barrier is missing",
           index, open.site.file, open.site.line);
  memset(&current->core->written[b.front()], 0, size_t(pages) * b.page_bytes);
  b.acknowledged += pages;
  b.waited -= pages;
  maybe_switch();
}

uint32_t get_write_ptr(Site site, uint32_t index) {
  Buffer &b = buffer(site, index);
  if (!b.reserved || b.producer != current) fail(site, "no page of circular buffer %u is reserved", index);
  return b.begin();
}

uint32_t get_read_ptr(Site site, uint32_t index) {
  Buffer &b = buffer(site, index);
  if (!b.waited || b.consumer != current) fail(site, "no page of circular buffer %u has been waited for", index);
  return b.front();
}

static bool inside(uint32_t address, uint32_t bytes, uint32_t begin, uint32_t size) {
  return address >= begin && uint64_t(address) + bytes <= uint64_t(begin) + size;
}

static bool overlaps(uint32_t address, uint32_t bytes, uint32_t begin, uint64_t size) {
  return address < begin + size && begin < uint64_t(address) + bytes;
}

void require_written(Site site, const Core &core, uint32_t address, uint32_t bytes, const char *what) {
  const void *hole = memchr(&core.written[address], 0, bytes);
  if (!hole) return;
  for (Transfer &open : current->in_flight)
    if (open.kind == Transfer::read && open.touches_local(address, bytes))
      fail(site, "%s is read, but the read issued at %s:%d has not arrived: noc_async_read_barrier is missing", what,
           open.site.file, open.site.line);
  fail(site, "%s is read, but was never written", what);
}

// What a transfer reads must lie in pages that this thread has waited for, or has reserved and filled.
void require_source(Site site, uint32_t address, uint32_t bytes) {
  for (uint32_t i = 0; i < MAX_BUFFERS; i++) {
    Buffer &b = current->core->buffers[i];
    if (!b.pages) continue;
    bool waited = b.consumer == current && inside(address, bytes, b.front(), b.waited * b.page_bytes);
    bool reserved = b.producer == current && inside(address, bytes, b.begin(), b.reserved * b.page_bytes);
    if (!waited && !reserved) continue;
    require_written(site, *current->core, address, bytes, text("circular buffer %u", i).c_str());
    return;
  }
  fail(site, "%u bytes at L1 address %u are sent, which are no pages that %s has waited for or reserved", bytes, address,
       current->label().c_str());
}

// What a transfer writes must lie in reserved pages; `own`: those of this thread.
void require_destination(Site site, Core &core, uint32_t address, uint32_t bytes, bool own) {
  bool found = false;
  for (uint32_t i = 0; i < MAX_BUFFERS && !found; i++) {
    Buffer &b = core.buffers[i];
    found = b.pages && (!own || b.producer == current) && inside(address, bytes, b.begin(), b.reserved * b.page_bytes);
  }
  if (!found)
    fail(site, "%u bytes at L1 address %u of core (%u, %u) are written, which are no reserved pages of a circular buffer",
         bytes, address, core.x, core.y);
  for (uint32_t i = 0; i < MAX_BUFFERS; i++) {
    Buffer &b = core.buffers[i];
    if (!b.pages || !overlaps(address, bytes, b.address, uint64_t(b.pages) * b.page_bytes)) continue;
    for (uint64_t page = b.acknowledged; page < b.received; page++)
      if (overlaps(address, bytes, b.address + uint32_t(page % b.pages) * b.page_bytes, b.page_bytes))
        fail(site, "%u bytes at L1 address %u are written, where circular buffer %u holds data", bytes, address, i);
  }
}

void mark_written(Core &core, uint32_t address, uint32_t bytes) { memset(&core.written[address], 1, bytes); }

const uint8_t *tile_to_read(Site site, uint32_t index, uint32_t tile) {
  Buffer &b = buffer(site, index);
  if (b.consumer != current || tile >= b.waited)
    fail(site, "tile %u of circular buffer %u is read, but %u have been waited for", tile, index,
         b.consumer == current ? b.waited : 0);
  uint32_t address = b.front() + tile * b.page_bytes;
  require_written(site, *current->core, address, b.page_bytes, text("tile %u of circular buffer %u", tile, index).c_str());
  return &current->core->l1[address];
}

uint32_t tile_to_write(Site site, uint32_t index, uint32_t tile) {
  Buffer &b = buffer(site, index);
  if (b.producer != current || tile >= b.reserved)
    fail(site, "tile %u of circular buffer %u is written, but %u are reserved", tile, index,
         b.producer == current ? b.reserved : 0);
  uint32_t address = b.begin() + tile * b.page_bytes;
  require_destination(site, *current->core, address, b.page_bytes, true);
  return address;
}

// 32 rows of elements, each a page, from a row on.
static void check_rows(Site site, const Buffer &b, uint32_t index, uint32_t row, uint32_t have, uint32_t row_bytes) {
  if (b.page_bytes != row_bytes)
    fail(site, "rows of %u bytes are in circular buffer %u, whose pages have %u", row_bytes, index, b.page_bytes);
  if (row + TILE > have)
    fail(site, "rows %u to %u of circular buffer %u are used, of %u", row, row + TILE - 1, index, have);
}

const uint8_t *rows_to_read(Site site, uint32_t index, uint32_t row, uint32_t row_bytes) {
  Buffer &b = buffer(site, index);
  check_rows(site, b, index, row, b.consumer == current ? b.waited : 0, row_bytes);
  uint32_t address = b.front() + row * row_bytes;
  require_written(site, *current->core, address, TILE * row_bytes, text("circular buffer %u", index).c_str());
  return &current->core->l1[address];
}

uint32_t rows_to_write(Site site, uint32_t index, uint32_t row_bytes) {
  Buffer &b = buffer(site, index);
  check_rows(site, b, index, 0, b.producer == current ? b.reserved : 0, row_bytes);
  require_destination(site, *current->core, b.begin(), TILE * row_bytes, true);
  return b.begin();
}

void check_end() {
  for (Core &core : chip.cores)
    for (uint32_t i = 0; i < MAX_BUFFERS; i++) {
      Buffer &b = core.buffers[i];
      if (!b.pages) continue;
      if (b.received != b.acknowledged)
        fail(b.pushed_at, "circular buffer %u of core (%u, %u) still holds %u pages at the end: cb_pop_front is missing", i,
             core.x, core.y, uint32_t(b.received - b.acknowledged));
      if (b.reserved)
        fail(b.reserved_at, "%u pages of circular buffer %u of core (%u, %u) are never pushed: cb_push_back is missing",
             b.reserved, i, core.x, core.y);
    }
}

}  // namespace machine
