// Runs one program: main SHARED_OBJECT ENTRY < description and tensors > tensors.
#include <dlfcn.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "buffers.cpp"
#include "compute.cpp"
#include "formats.cpp"
#include "noc.cpp"
#include "scheduler.cpp"

using namespace machine;

static Format format_named(const std::string &name) {
  const char *names[] = {"f32", "bf16", "bfp8_b", "bfp4_b", "i32", "ui32", "ui16"};
  for (int i = 0; i < int(Format::other); i++)
    if (name == names[i]) return Format(i);
  return Format::other;
}

struct Semaphore {
  uint32_t index, initial;
};

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  std::ios::sync_with_stdio(false);
  std::istream &in = std::cin;
  uint64_t seed;
  uint32_t buffers, tensors, semaphores, threads;
  in >> seed >> chip.capacity >> chip.width >> chip.height >> buffers >> tensors >> semaphores >> threads;
  chip.columns.resize(chip.width);
  for (uint32_t &column : chip.columns) in >> column;
  chip.adversarial = seed != 0;
  chip.random_state = seed;
  chip.buffer_count = buffers;
  chip.cores.resize(size_t(chip.width) * chip.height);
  for (uint32_t i = 0; i < buffers; i++) {
    uint32_t index;
    Buffer b;
    std::string format;
    in >> index >> b.address >> b.pages >> b.page_bytes >> format;
    b.format = format_named(format);
    for (Core &core : chip.cores) core.buffers[index] = b;
  }
  for (uint32_t i = 0; i < tensors; i++) {
    Tensor tensor;
    in >> tensor.name >> tensor.bytes >> tensor.page_bytes >> tensor.shard_pages;
    if (tensor.shard_pages)
      in >> tensor.rows >> tensor.columns >> tensor.shard_rows >> tensor.shard_columns >> tensor.grid_columns;
    tensor.base = TENSOR_BASE + i * TENSOR_STRIDE;
    chip.tensors.push_back(tensor);
  }
  for (uint32_t y = 0; y < chip.height; y++)
    for (uint32_t x = 0; x < chip.width; x++) {
      chip.at(x, y)->x = x;
      chip.at(x, y)->y = y;
    }
  for (uint32_t i = 0; i < semaphores; i++) {
    Semaphore s;
    in >> s.index >> s.initial;
    for (Core &core : chip.cores) {
      uint32_t address = SEMAPHORES + s.index * SEMAPHORE_STRIDE;
      *reinterpret_cast<uint32_t *>(&core.l1[address]) = s.initial;
      mark_written(core, address, 4);
    }
  }
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library) {
    fprintf(stderr, "\t0\t%s\n", dlerror());
    return 3;
  }
  auto entries = reinterpret_cast<void (**)()>(dlsym(library, argv[2]));
  std::vector<Thread> kinds(threads);
  for (uint32_t i = 0; i < threads; i++) {
    uint32_t count;
    in >> kinds[i].name >> kinds[i].is_compute >> kinds[i].noc >> count;
    kinds[i].tensors.resize(count);
    for (uint32_t &tensor : kinds[i].tensors) in >> tensor;
    kinds[i].entry = entries[i];
  }
  in.ignore(1);
  std::vector<std::vector<char>> data(tensors);
  for (uint32_t i = 0; i < tensors; i++) {
    data[i].resize(chip.tensors[i].bytes);
    in.read(data[i].data(), std::streamsize(data[i].size()));
    chip.tensors[i].data = reinterpret_cast<uint8_t *>(data[i].data());
  }
  if (!in) {
    fprintf(stderr, "\t0\tthe description of the program is cut off\n");
    return 3;
  }
  chip.threads.reserve(chip.cores.size() * threads);
  for (Core &core : chip.cores)
    for (Thread &kind : kinds) {
      chip.threads.push_back(kind);
      chip.threads.back().core = &core;
    }
  run_all();
  for (auto &bytes : data) fwrite(bytes.data(), 1, bytes.size(), stdout);
  fflush(stdout);
  _Exit(0);
}
