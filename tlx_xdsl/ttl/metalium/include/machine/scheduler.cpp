// Threads as fibers: one runs at a time, so that a run is the same for the same seed, and a deadlock is seen at once.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "state.h"

namespace machine {

Chip chip;
Thread *current = nullptr;
static ucontext_t main_context;

std::string text(const char *form, ...) {
  char buffer[4096];
  va_list arguments;
  va_start(arguments, form);
  vsnprintf(buffer, sizeof buffer, form, arguments);
  va_end(arguments);
  return buffer;
}

void fail(Site site, const char *form, ...) {
  char buffer[4096];
  va_list arguments;
  va_start(arguments, form);
  vsnprintf(buffer, sizeof buffer, form, arguments);
  va_end(arguments);
  fprintf(stderr, "%s\t%d\t%s%s%s\n", site.file ? site.file : "", site.line, site.call ? site.call : "",
          site.call ? ": " : "", buffer);
  fflush(stderr);
  _Exit(3);
}

uint32_t random_below(uint32_t bound) {
  chip.random_state = chip.random_state * 6364136223846793005ull + 1442695040888963407ull;
  return uint32_t((chip.random_state >> 33) % bound);
}

std::string Thread::label() const {
  return chip.cores.size() == 1 ? name : text("%s of core (%u, %u)", name.c_str(), core->x, core->y);
}

static void switch_to_main() { swapcontext(&current->context, &main_context); }

void wait_until(Site site, std::string what, std::function<bool()> ready) {
  maybe_switch();
  if (ready()) return;
  current->ready = std::move(ready);
  current->waits_at = site;
  current->waits_for = std::move(what);
  switch_to_main();
  current->ready = nullptr;
}

// A point where another thread may go on, or a write arrive early; only with a seed, else threads run until they block.
void maybe_switch() {
  if (!chip.adversarial) return;
  if (random_below(8) == 0) {
    Thread &other = chip.threads[random_below(uint32_t(chip.threads.size()))];
    if (!other.in_flight.empty()) {
      size_t index = random_below(uint32_t(other.in_flight.size()));
      if (other.in_flight[index].kind != Transfer::read) land(other, index);
    }
  }
  if (random_below(2)) switch_to_main();
}

static void check_thread_end(Thread &thread) {
  if (!thread.in_flight.empty()) {
    Transfer &open = thread.in_flight[0];
    const char *names[] = {"noc_async_read_barrier", "noc_async_write_barrier", "noc_async_atomic_barrier"};
    fail(open.site, "%s ends while this transfer is in flight: %s is missing", thread.label().c_str(),
         names[open.kind]);
  }
  if (thread.compute.phase != Compute::idle)
    fail(thread.compute.acquired_at, "%s ends while it holds the DST registers: tile_regs_release is missing",
         thread.label().c_str());
}

static void start() {
  current->entry();
  check_thread_end(*current);
  current->finished = true;
  switch_to_main();
}

// Without a barrier nothing says when a write lands, but it does: one of them, before anything is called a deadlock.
static bool land_one() {
  std::vector<std::pair<Thread *, size_t>> open;
  for (Thread &thread : chip.threads)
    for (size_t i = 0; i < thread.in_flight.size(); i++)
      if (thread.in_flight[i].kind != Transfer::read) open.push_back({&thread, i});
  if (open.empty()) return false;
  auto [thread, index] = open[random_below(uint32_t(open.size()))];
  land(*thread, index);
  return true;
}

[[noreturn]] static void deadlock() {
  std::string threads;
  Site first{};
  uint32_t count = 0, shown = 0;
  for (Thread &thread : chip.threads) {
    if (thread.finished) continue;
    if (!first.file) first = thread.waits_at;
    count++;
    if (shown++ < 12)
      threads += text("; %s waits at %s:%d in %s: %s", thread.label().c_str(), thread.waits_at.file,
                      thread.waits_at.line, thread.waits_at.call, thread.waits_for.c_str());
  }
  if (shown > 12) threads += text("; and %u more", shown - 12);
  first.call = nullptr;
  fail(first, "deadlock: %u of %zu threads have not ended, and none of them can go on%s", count, chip.threads.size(),
       threads.c_str());
}

void run_all() {
  for (Thread &thread : chip.threads) {
    thread.stack.resize(256 << 10);
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = thread.stack.size();
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, start, 0);
  }
  size_t next = 0, count = chip.threads.size();
  for (;;) {
    std::vector<Thread *> ready;
    bool open = false;
    for (size_t i = 0; i < count; i++) {
      Thread &thread = chip.threads[(next + i) % count];
      if (thread.finished) continue;
      open = true;
      if (!thread.ready || thread.ready()) ready.push_back(&thread);
    }
    if (!open) break;
    if (ready.empty()) {
      if (!land_one()) deadlock();
      continue;
    }
    current = ready[chip.adversarial ? random_below(uint32_t(ready.size())) : 0];
    next = size_t(current - chip.threads.data()) + 1;
    swapcontext(&main_context, &current->context);
  }
  check_end();
}

}  // namespace machine
