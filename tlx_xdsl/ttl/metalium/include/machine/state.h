// What a chip of the machine consists of: cores with L1 memory, circular buffers and DST registers; threads; transfers.
#pragma once
#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../metalium.h"

namespace machine {

constexpr uint32_t L1_BYTES = 1638400;
constexpr uint32_t SEMAPHORES = 1572864;  // The first byte above what kernels can use; a word each, 16 bytes apart.
constexpr uint32_t SEMAPHORE_STRIDE = 16;
constexpr uint32_t MAX_BUFFERS = 32, MAX_SEMAPHORES = 16, DST_TILES = 16, TILE = 32, FACE = 16, ELEMENTS = TILE * TILE;
constexpr uint64_t TENSOR_BASE = 0x10000000, TENSOR_STRIDE = 0x02000000;
// Coordinates of the NoC differ from the logical ones, as on a device, so that mixing the two is found.
constexpr uint32_t VIRTUAL_X = 1, VIRTUAL_Y = 2;

struct Thread;

enum class Format { f32, bf16, bfp8_b, bfp4_b, i32, ui32, ui16, other };

struct Buffer {
  uint32_t address = 0, pages = 0, page_bytes = 0;
  Format format = Format::other;
  uint64_t received = 0, acknowledged = 0;
  uint32_t reserved = 0, waited = 0;
  uint32_t packed = 0;  // Tiles that pack_tile<false> has put into the reservation.
  Thread *producer = nullptr, *consumer = nullptr;
  Site reserved_at{}, waited_at{}, pushed_at{};
  uint32_t begin() const { return address + uint32_t(received % pages) * page_bytes; }
  uint32_t front() const { return address + uint32_t(acknowledged % pages) * page_bytes; }
};

struct Core {
  uint32_t x = 0, y = 0;
  std::vector<uint8_t> l1, written;  // One flag for each byte: what was not written can't be read.
  Buffer buffers[MAX_BUFFERS];
  Core() : l1(L1_BYTES), written(L1_BYTES) {}
};

struct Tensor {
  std::string name;
  uint64_t bytes = 0;
  uint32_t page_bytes = 0, shard_pages = 1;
  // Of a tensor in shards: rows and columns of tiles of the tensor and of a shard, and shards next to each other.
  uint32_t rows = 0, columns = 0, shard_rows = 0, shard_columns = 0, grid_columns = 0;
  uint8_t *data = nullptr;
  uint64_t base = 0;
};

// A transaction of the NoC that has been issued, and has not landed.
struct Transfer {
  enum Kind { read, write, atomic } kind = read;
  Site site{};
  uint32_t local = 0, bytes = 0;     // In the L1 memory of the core that issued it.
  uint8_t *tensor = nullptr;         // The other side: a tensor, or the same address on these cores.
  std::vector<Core *> cores;
  uint32_t remote = 0, addend = 0;
  bool semaphore = false;
  bool touches_local(uint32_t begin, uint32_t size) const {
    return kind != atomic && local < begin + size && begin < local + bytes;
  }
};

struct Compute {
  enum Phase { idle, acquired, committed, packing } phase = idle;
  float dst[DST_TILES][ELEMENTS];
  bool defined[DST_TILES] = {};
  Format held[DST_TILES] = {};  // What elements are: f32 for all floats, or a format of integers.
  bool started = false, called = false;
  Format source_a = Format::other, source_b = Format::other, packer = Format::other;
  std::string unit, vector_unit;  // What the matrix and the vector unit have been set up for.
  bool broadcasts = false;        // The unpacker broadcasts until unary_bcast_uninit.
  int mask = -1;                  // The packer's, a ReduceDim; -1: none.
  bool accumulate = false;        // The packer adds to L1.
  uint32_t tilizes = 0;           // Tiles in a row where the unpacker reads rows of elements; 0: it reads tiles.
  uint32_t untilizes = 0, of = 0; // Tiles of a part, and in a row, where the packer writes rows of elements.
  Site acquired_at{};
};

struct Thread {
  std::string name;
  bool is_compute = false;
  uint32_t noc = 0;
  Core *core = nullptr;
  void (*entry)() = nullptr;
  std::vector<uint32_t> tensors;  // Numbers of those whose addresses are its common runtime arguments.
  std::vector<Transfer> in_flight;
  Compute compute;
  ucontext_t context{};
  std::vector<char> stack;
  bool finished = false;
  std::function<bool()> ready;  // Empty: it can go on.
  Site waits_at{};
  std::string waits_for;
  std::string label() const;
};

struct Chip {
  uint32_t width = 1, height = 1, capacity = 8, buffer_count = 0;
  std::vector<Core> cores;
  std::vector<Thread> threads;
  std::vector<Tensor> tensors;
  std::vector<uint32_t> columns;  // The columns of the grid on the network, counted from the first one.
  uint64_t random_state = 0;
  bool adversarial = false;
  Core *at(uint32_t x, uint32_t y) { return &cores[y * width + x]; }
};

extern Chip chip;
extern Thread *current;

[[noreturn]] void fail(Site site, const char *form, ...) __attribute__((format(printf, 2, 3)));
std::string text(const char *form, ...) __attribute__((format(printf, 1, 2)));
uint32_t random_below(uint32_t bound);

// scheduler.cpp
void wait_until(Site site, std::string what, std::function<bool()> ready);
void maybe_switch();
void run_all();

// formats.cpp
bool is_integer(Format format);
void decode(Site site, Format format, const uint8_t *bytes, float *tile);
void encode(Site site, Format format, const float *tile, uint8_t *bytes);
float convert(Format from, Format to, float element);
uint32_t place(uint32_t row, uint32_t column);
uint32_t element_bytes(Site site, Format format);

inline Format format_of(DataFormat format) {
  switch (format) {
    case DataFormat::Float32: return Format::f32;
    case DataFormat::Float16_b: return Format::bf16;
    case DataFormat::Bfp8_b: return Format::bfp8_b;
    case DataFormat::Bfp4_b: return Format::bfp4_b;
    case DataFormat::Int32: return Format::i32;
    case DataFormat::UInt32: return Format::ui32;
    case DataFormat::UInt16: return Format::ui16;
  }
  return Format::other;
}

// noc.cpp
void land(Thread &by, size_t index);
void check_semaphore_range(Site site, uint32_t address);

// buffers.cpp
Buffer &buffer(Site site, uint32_t index);
const uint8_t *tile_to_read(Site site, uint32_t index, uint32_t tile);
uint32_t tile_to_write(Site site, uint32_t index, uint32_t tile);
const uint8_t *rows_to_read(Site site, uint32_t index, uint32_t row, uint32_t row_bytes);
uint32_t rows_to_write(Site site, uint32_t index, uint32_t row_bytes);
void require_written(Site site, const Core &core, uint32_t address, uint32_t bytes, const char *what);
void require_source(Site site, uint32_t address, uint32_t bytes);
void require_destination(Site site, Core &core, uint32_t address, uint32_t bytes, bool own);
void mark_written(Core &core, uint32_t address, uint32_t bytes);
void check_end();

}  // namespace machine
