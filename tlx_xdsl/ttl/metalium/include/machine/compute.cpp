// The compute engine: unpacker and matrix unit, vector unit, packer.
#include <cmath>
#include <cstring>

#include "state.h"

namespace machine {

static Compute &engine(Site site) {
  if (!current->is_compute) fail(site, "%s is a data movement thread, which has no compute engine", current->label().c_str());
  current->compute.called = true;
  return current->compute;
}

static void check_format(Site site, Format has, Format wants, uint32_t cb, const char *part) {
  if (has != wants) fail(site, "%s is configured for another data format than that of circular buffer %u", part, cb);
}

void startup(Site site, uint32_t a, uint32_t b, uint32_t out, bool once) {
  bool before = current->compute.called;
  Compute &c = engine(site);
  if (once && before) fail(site, "the startup has to be the first call of a kernel to the compute engine, once");
  c.started = true;
  c.source_a = buffer(site, a).format;
  c.source_b = buffer(site, b).format;
  c.packer = buffer(site, out).format;
}

void reconfigure(Site site, int64_t a, int64_t b, int64_t out) {
  Compute &c = engine(site);
  if (a >= 0) c.source_a = buffer(site, uint32_t(a)).format;
  if (b >= 0) c.source_b = buffer(site, uint32_t(b)).format;
  if (out >= 0) c.packer = buffer(site, uint32_t(out)).format;
}

static std::string unit_name(const char *name, int variant) { return variant ? text("%s.%d", name, variant) : name; }

void set_up_unit(Site site, const char *name, int variant, int64_t a, int64_t b) {
  Compute &c = engine(site);
  if (!c.started) fail(site, "the compute engine has not been started: the kernel's first call has to do it");
  if (c.broadcasts) fail(site, "the unpacker still broadcasts: unary_bcast_uninit is missing before it");
  if (c.tilizes) fail(site, "the unpacker still reads rows: tilize_uninit is missing before it");
  check_format(site, c.source_a, buffer(site, uint32_t(a)).format, uint32_t(a), "the unpacker of operand A");
  if (b >= 0) check_format(site, c.source_b, buffer(site, uint32_t(b)).format, uint32_t(b), "the unpacker of operand B");
  c.unit = unit_name(name, variant);
}

void keep_broadcast(Site site, bool broadcasts) {
  Compute &c = engine(site);
  c.broadcasts = broadcasts;
  if (!broadcasts) c.unit = "";
}

void set_up_vector_unit(Site site, const char *name) { engine(site).vector_unit = name; }

void tile_regs(Site site, int step) {
  Compute &c = engine(site);
  const char *phases[] = {"free", "acquired", "committed", "being packed"};
  if (int(c.phase) != step) fail(site, "the DST registers are %s: they have to be %s", phases[c.phase], phases[step]);
  c.phase = Compute::Phase((step + 1) % 4);
  if (step == 0) c.acquired_at = site;
  if (step == 0 || step == 3)
    for (bool &flag : c.defined) flag = false;
}

enum Access { reads, writes, adds };

static const char *name_of(Format format) {
  return format == Format::i32 ? "Int32" : format == Format::ui32 ? "UInt32" : format == Format::ui16 ? "UInt16" : "floats";
}

// A tile of DST: one that is read has elements of this format, one that is written has them afterwards.
static float *dst(Site site, uint32_t index, Access access, Format format = Format::f32) {
  Compute &c = current->compute;
  if (c.phase != Compute::acquired) fail(site, "DST is used outside of tile_regs_acquire and tile_regs_commit");
  if (index >= chip.capacity) fail(site, "DST has %u tiles in this mode, no tile %u", chip.capacity, index);
  if (access == reads && !c.defined[index]) fail(site, "tile %u of DST is read, but nothing has been put there", index);
  format = is_integer(format) ? format : Format::f32;
  if (access == reads && c.held[index] != format)
    fail(site, "tile %u of DST has %s, not %s", index, name_of(c.held[index]), name_of(format));
  c.held[index] = format;
  return c.dst[index];
}

static void check_unit(Site site, const char *name, int variant = 0) {
  Compute &c = engine(site);
  if (c.unit != unit_name(name, variant))
    fail(site, "the matrix unit is set up for %s: an init is missing before it", c.unit.empty() ? "nothing" : c.unit.c_str());
}

static void check_vector_unit(Site site, const char *name) {
  Compute &c = engine(site);
  if (c.vector_unit != name)
    fail(site, "the vector unit is set up for %s: an init is missing before it",
         c.vector_unit.empty() ? "nothing" : c.vector_unit.c_str());
}

static void fetch(Site site, uint32_t cb, uint32_t tile, float *values) {
  const uint8_t *bytes = tile_to_read(site, cb, tile);
  decode(site, buffer(site, cb).format, bytes, values);
}

void copy_tile(Site site, uint32_t cb, uint32_t tile, uint32_t index) {
  check_unit(site, "copy_tile");
  float *to = dst(site, index, writes, buffer(site, cb).format);
  fetch(site, cb, tile, to);
  current->compute.defined[index] = true;
}

void matrix_binary(Site site, const char *name, uint32_t a, uint32_t b, uint32_t i, uint32_t j, uint32_t index) {
  check_unit(site, name);
  float *to = dst(site, index, writes), x[ELEMENTS], y[ELEMENTS];
  fetch(site, a, i, x);
  fetch(site, b, j, y);
  for (uint32_t k = 0; k < ELEMENTS; k++) to[k] = name[0] == 'a' ? x[k] + y[k] : name[0] == 's' ? x[k] - y[k] : x[k] * y[k];
  current->compute.defined[index] = true;
}

void broadcast(Site site, BroadcastType type, uint32_t cb, uint32_t tile, uint32_t index) {
  check_unit(site, "unary_bcast", int(type));
  float *to = dst(site, index, writes), x[ELEMENTS];
  fetch(site, cb, tile, x);
  for (uint32_t row = 0; row < TILE; row++)
    for (uint32_t column = 0; column < TILE; column++) {
      uint32_t from_row = type == BroadcastType::ROW || type == BroadcastType::SCALAR ? 0 : row;
      uint32_t from_column = type == BroadcastType::COL || type == BroadcastType::SCALAR ? 0 : column;
      to[row * TILE + column] = x[from_row * TILE + from_column];
    }
  current->compute.defined[index] = true;
}

void transpose(Site site, const char *name, uint32_t cb, uint32_t tile, uint32_t index) {
  check_unit(site, name);
  float *to = dst(site, index, writes), x[ELEMENTS];
  fetch(site, cb, tile, x);
  for (uint32_t row = 0; row < TILE; row++)
    for (uint32_t column = 0; column < TILE; column++) to[column * TILE + row] = x[row * TILE + column];
  current->compute.defined[index] = true;
}

void matmul(Site site, uint32_t a, uint32_t b, uint32_t i, uint32_t j, uint32_t index, int block) {
  check_unit(site, block ? "matmul_block" : "matmul_tiles", block);
  float *to = dst(site, index, adds), x[ELEMENTS], y[ELEMENTS];
  fetch(site, a, i, x);
  fetch(site, b, j, y);
  bool &defined = current->compute.defined[index];
  if (!defined) memset(to, 0, ELEMENTS * sizeof(float));  // A released DST register is zero.
  for (uint32_t row = 0; row < TILE; row++)
    for (uint32_t k = 0; k < TILE; k++)
      for (uint32_t column = 0; column < TILE; column++)
        to[row * TILE + column] += x[row * TILE + k] * y[k * TILE + column];
  defined = true;
}

void reduce(Site site, PoolType pool, ReduceDim dim, uint32_t cb, uint32_t scaler, uint32_t tile, uint32_t scaler_tile,
            uint32_t index) {
  check_unit(site, "reduce_tile", int(pool) * 4 + int(dim));
  float *to = dst(site, index, adds), x[ELEMENTS], scale[ELEMENTS];
  fetch(site, cb, tile, x);
  fetch(site, scaler, scaler_tile, scale);
  float factor = scale[0];
  for (uint32_t column = 0; column < TILE; column++)
    if (scale[column] != factor || scale[FACE * TILE + column] != factor)
      fail(site, "the first row of each face of the scaler has to be one number: found %g and %g", double(factor),
           double(scale[column] != factor ? scale[column] : scale[FACE * TILE + column]));
  bool &defined = current->compute.defined[index];
  // Outside of the result DST holds what the unit happened to leave there; the packer's mask makes it zero.
  if (!defined)
    for (uint32_t k = 0; k < ELEMENTS; k++) to[k] = NAN;
  uint32_t rows = dim == REDUCE_ROW ? TILE : 1, columns = dim == REDUCE_COL ? TILE : 1;
  for (uint32_t row = 0; row < rows; row++)
    for (uint32_t column = 0; column < columns; column++) {
      float &result = to[row * TILE + column];
      if (!defined) result = pool == MAX ? -INFINITY : 0;
      for (uint32_t r = rows == 1 ? 0 : row; r < (rows == 1 ? TILE : row + 1); r++)
        for (uint32_t c = columns == 1 ? 0 : column; c < (columns == 1 ? TILE : column + 1); c++) {
          float value = x[r * TILE + c] * factor * (dim == REDUCE_SCALAR && pool != MAX ? factor : 1);
          if (pool != MAX)
            result += value;
          else if (std::isnan(value) || value > result)
            result = value;
        }
    }
  defined = true;
}

void set_reduce_mask(Site site, int dim) { engine(site).mask = dim; }

static float floored_remainder(float u, float v) {
  float rest = std::fmod(u, v);
  return rest != 0 && std::signbit(rest) != std::signbit(v) ? rest + v : std::copysign(rest, rest != 0 ? rest : v);
}

void vector_where(Site site, uint32_t condition, uint32_t a, uint32_t b, uint32_t out) {
  check_vector_unit(site, "where");
  float *chosen = dst(site, condition, reads), *x = dst(site, a, reads), *y = dst(site, b, reads);
  float *to = dst(site, out, writes);
  for (uint32_t k = 0; k < ELEMENTS; k++) to[k] = chosen[k] != 0 ? x[k] : y[k];
  current->compute.defined[out] = true;
}

void vector_binary(Site site, const char *name, uint32_t a, uint32_t b, uint32_t out) {
  check_vector_unit(site, name);
  float *x = dst(site, a, reads), *y = dst(site, b, reads), *to = dst(site, out, writes);
  std::string op = name;
  for (uint32_t k = 0; k < ELEMENTS; k++) {
    float u = x[k], v = y[k];
    to[k] = op == "add_binary"   ? u + v
            : op == "sub_binary" ? u - v
            : op == "mul_binary" ? u * v
            : op == "div_binary" ? u / v
            : op == "remainder_binary" ? floored_remainder(u, v)
            : std::isnan(u)      ? u
            : std::isnan(v)      ? v
            : op == "binary_max" ? std::max(u, v)
                                 : std::min(u, v);
  }
  current->compute.defined[out] = true;
}

static float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

// `p` are the numbers of the call; `n` is the first of them where it is an integer.
static double unary(const std::string &name, double x, const float *p, int n) {
  if (name == "exp") return std::exp(x);
  if (name == "exp2") return std::exp2(x);
  if (name == "expm1") return std::expm1(x);
  if (name == "log") return std::log(x);
  if (name == "log1p") return std::log1p(x);
  if (name == "sqrt") return std::sqrt(x);
  if (name == "rsqrt") return 1 / std::sqrt(x);
  if (name == "recip") return 1 / x;
  if (name == "square") return x * x;
  if (name == "power") return std::pow(x, double(p[0]));
  if (name == "negative") return -x;
  if (name == "abs") return std::fabs(x);
  if (name == "sign") return std::isnan(x) ? x : (x > 0) - (x < 0);
  if (name == "signbit") return std::signbit(x);
  if (name == "sin") return std::sin(x);
  if (name == "cos") return std::cos(x);
  if (name == "tan") return std::tan(x);
  if (name == "asin") return std::asin(x);
  if (name == "acos") return std::acos(x);
  if (name == "atan") return std::atan(x);
  if (name == "asinh") return std::asinh(x);
  if (name == "acosh") return std::acosh(x);
  if (name == "atanh") return std::atanh(x);
  if (name == "tanh") return std::tanh(x);
  if (name == "relu") return std::isnan(x) || x > 0 ? x : 0;
  if (name == "gelu") return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440));
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "silu") return x / (1 + std::exp(-x));
  if (name == "softsign") return x / (1 + std::fabs(x));
  if (name == "hardsigmoid") return std::isnan(x) ? x : std::fmin(std::fmax(x / 6 + 0.5, 0), 1);
  if (name == "celu") return x > 0 ? x : p[0] * std::expm1(x * p[1]);
  if (name == "elu") return x > 0 ? x : p[0] * std::expm1(x);
  if (name == "selu") return p[0] * (x > 0 ? x : p[1] * std::expm1(x));
  if (name == "leaky_relu") return x > 0 ? x : p[0] * x;
  if (name == "softplus") return p[0] * x > p[2] ? x : std::log1p(std::exp(p[0] * x)) * p[1];
  if (name == "clamp") return std::isnan(x) ? x : std::fmin(std::fmax(x, p[0]), p[1]);
  if (name == "floor") return std::floor(x);
  if (name == "ceil") return std::ceil(x);
  if (name == "trunc") return std::trunc(x);
  if (name == "frac") return x - std::trunc(x);
  if (name == "round") return std::nearbyint(x * std::pow(10.0, n)) / std::pow(10.0, n);
  if (name == "unary_gt") return x > p[0];
  return NAN;
}

// Functions are rounded once, from f64: an approximation of what the vector unit gives, not the same bits.
void vector_unary(Site site, const char *unit, const char *name, uint32_t index, uint32_t a, uint32_t b, uint32_t c) {
  check_vector_unit(site, unit);
  float *x = dst(site, index, reads);
  std::string op = name;
  float numbers[] = {from_bits(a), from_bits(b), from_bits(c)};
  for (uint32_t k = 0; k < ELEMENTS; k++) x[k] = float(unary(op, double(x[k]), numbers, int(a)));
}

void fill(Site site, uint32_t index, float value) {
  check_vector_unit(site, "fill");
  float *to = dst(site, index, writes);
  for (uint32_t k = 0; k < ELEMENTS; k++) to[k] = value;
  current->compute.defined[index] = true;
}

void fill_integer(Site site, DataFormat format, uint32_t index, uint32_t value) {
  check_vector_unit(site, "fill");
  float *to = dst(site, index, writes, format_of(format));
  for (uint32_t k = 0; k < ELEMENTS; k++) memcpy(&to[k], &value, 4);
  current->compute.defined[index] = true;
}

void integers(Site site, const char *name, DataFormat data_format, uint32_t a, uint32_t b, uint32_t out) {
  check_vector_unit(site, name);
  Format format = format_of(data_format);
  float *x = dst(site, a, reads, format), *y = dst(site, b, reads, format), *to = dst(site, out, writes, format);
  std::string op = name;
  for (uint32_t k = 0; k < ELEMENTS; k++) {
    uint32_t u, v, result;
    memcpy(&u, &x[k], 4);
    memcpy(&v, &y[k], 4);
    bool less = format == Format::i32 ? int32_t(u) < int32_t(v) : u < v;
    if (op[0] == 'b')
      result = (op.find("max") != std::string::npos) == less ? v : u;
    else
      result = op[0] == 'a' ? u + v : op[0] == 's' ? u - v : u * v;
    if (format == Format::ui16) result &= 0xffff;
    memcpy(&to[k], &result, 4);
  }
  current->compute.defined[out] = true;
}

void integer_unary(Site site, const char *name, uint32_t index) {
  check_vector_unit(site, name);
  float *x = dst(site, index, reads, Format::i32);
  for (uint32_t k = 0; k < ELEMENTS; k++) {
    uint32_t value;
    memcpy(&value, &x[k], 4);
    if (name[0] == 'n' || (name[0] == 'a' && int32_t(value) < 0)) value = -value;
    if (name[0] == 'r' && int32_t(value) < 0) value = 0;
    memcpy(&x[k], &value, 4);
  }
}

void typecast(Site site, uint32_t from, uint32_t to, uint32_t index) {
  check_vector_unit(site, text("typecast.%u.%u", from, to).c_str());
  Format source = format_of(DataFormat(from)), target = format_of(DataFormat(to));
  float *x = dst(site, index, reads, source);
  for (uint32_t k = 0; k < ELEMENTS; k++) x[k] = convert(source, target, x[k]);
  dst(site, index, writes, target);
}

void set_up_typecast(Site site, uint32_t from, uint32_t to) {
  set_up_vector_unit(site, text("typecast.%u.%u", from, to).c_str());
}

void copy_dst(Site site, DataFormat format, uint32_t source, uint32_t target) {
  check_vector_unit(site, "copy_dest_values");
  const float *from = dst(site, source, reads, format_of(format));
  memcpy(dst(site, target, writes, format_of(format)), from, sizeof current->compute.dst[0]);
  current->compute.defined[target] = true;
}

// Text: each line begins with the core and the thread. The results of a run are on the standard output.
void print(const std::string &lines) {
  size_t begin = 0;
  while (begin < lines.size()) {
    size_t end = std::min(lines.find('\n', begin), lines.size());
    fprintf(stderr, "DPRINT\t(%u,%u) %s: %s\n", current->core->x, current->core->y, current->name.c_str(),
            lines.substr(begin, end - begin).c_str());
    begin = end + 1;
  }
}

std::string tile_text(Site site, uint32_t cb, uint32_t tile, bool written) {
  Buffer &b = buffer(site, cb);
  written = written || (b.producer == current && tile < b.reserved && !(b.consumer == current && tile < b.waited));
  uint32_t address = b.begin() + tile * b.page_bytes;
  if (written) require_written(site, *current->core, address, b.page_bytes, "the tile that is printed");
  const uint8_t *bytes = written ? &current->core->l1[address] : tile_to_read(site, cb, tile);
  float values[ELEMENTS];
  decode(site, b.format, bytes, values);
  std::string lines;
  for (uint32_t row = 0; row < TILE; row += 8) {
    for (uint32_t column = 0; column < TILE; column += 8) lines += text("%s%g", column ? " " : "", values[row * TILE + column]);
    lines += "\n";
  }
  return lines;
}

void pack_accumulate(Site site, uint32_t enabled) {
  if (enabled > 1) fail(site, "expected 0 or 1, found %u", enabled);
  engine(site).accumulate = enabled;
}

void pack(Site site, bool at_index, uint32_t index, uint32_t cb, uint32_t tile) {
  Compute &c = engine(site);
  if (c.phase != Compute::packing) fail(site, "a tile is packed outside of tile_regs_wait and tile_regs_release");
  if (index >= chip.capacity) fail(site, "DST has %u tiles in this mode, no tile %u", chip.capacity, index);
  if (!c.defined[index]) fail(site, "tile %u of DST is packed, but nothing has been put there", index);
  if (c.untilizes) fail(site, "the packer still writes rows: pack_untilize_uninit is missing before it");
  Buffer &b = buffer(site, cb);
  check_format(site, c.packer, b.format, cb, "the packer");
  if (c.held[index] != (is_integer(b.format) ? b.format : Format::f32))
    fail(site, "tile %u of DST has %s, circular buffer %u has %s", index, name_of(c.held[index]), cb, name_of(b.format));
  if (!at_index) {
    if (tile && tile != b.packed)
      fail(site, "tile %u is named, but pack_tile<false> packs to the next one, %u", tile, b.packed);
    tile = b.packed++;
  }
  uint32_t address = tile_to_write(site, cb, tile);
  float values[ELEMENTS], before[ELEMENTS];
  for (uint32_t row = 0; row < TILE; row++)
    for (uint32_t column = 0; column < TILE; column++) {
      bool kept = c.mask < 0 || ((c.mask == REDUCE_COL || column == 0) && (c.mask == REDUCE_ROW || row == 0));
      values[row * TILE + column] = kept ? c.dst[index][row * TILE + column] : 0;
    }
  uint8_t *bytes = &current->core->l1[address];
  if (c.accumulate) {
    require_written(site, *current->core, address, b.page_bytes, text("tile %u of circular buffer %u", tile, cb).c_str());
    decode(site, b.format, bytes, before);
    for (uint32_t k = 0; k < ELEMENTS; k++) values[k] += before[k];
  }
  encode(site, b.format, values, bytes);
  mark_written(*current->core, address, b.page_bytes);
}

// Rows of elements, which become tiles on the way to the registers, and again rows when they are packed.
void tilize_init(Site site, uint32_t rows, uint32_t width) {
  set_up_unit(site, "tilize_block", 0, rows, -1);
  current->compute.tilizes = width;
}

void tilize_uninit(Site site) {
  engine(site).tilizes = 0;
  current->compute.unit = "";
}

void tilize(Site site, uint32_t rows, uint32_t width, uint32_t tiles, uint32_t source, uint32_t target) {
  check_unit(site, "tilize_block");
  Compute &c = current->compute;
  if (c.phase != Compute::idle) fail(site, "the DST registers are in use: tilize_block takes them itself");
  if (c.tilizes != width) fail(site, "tilize_init is for rows of %u tiles, not %u", c.tilizes, width);
  if (source % width) fail(site, "tile %u is not the first one of a row of %u", source, width);
  Format from = buffer(site, rows).format, to = buffer(site, tiles).format;
  check_format(site, c.packer, to, tiles, "the packer");
  uint32_t size = element_bytes(site, from), row_bytes = width * TILE * size;
  const uint8_t *bytes = rows_to_read(site, rows, source / width * TILE, row_bytes);
  for (uint32_t number = 0; number < width; number++) {
    uint8_t faces[ELEMENTS * 4];
    float values[ELEMENTS];
    for (uint32_t row = 0; row < TILE; row++)
      for (uint32_t column = 0; column < TILE; column++)
        memcpy(faces + place(row, column) * size, bytes + row * row_bytes + (number * TILE + column) * size, size);
    decode(site, from, faces, values);
    uint32_t address = tile_to_write(site, tiles, target + number);
    encode(site, to, values, &current->core->l1[address]);
    mark_written(*current->core, address, buffer(site, tiles).page_bytes);
  }
}

void untilize_init(Site site, uint32_t width, uint32_t full_width) {
  Compute &c = engine(site);
  if (!width || full_width % width) fail(site, "a row of %u tiles has no parts of %u", full_width, width);
  c.untilizes = width;
  c.of = full_width;
}

void untilize_uninit(Site site) { engine(site).untilizes = 0; }

void untilize(Site site, uint32_t width, uint32_t full_width, uint32_t rows, uint32_t height, uint32_t part) {
  Compute &c = engine(site);
  if (height != 1) fail(site, "the machine packs one row of tiles at a time, found %u", height);
  if (c.untilizes != width || c.of != full_width) fail(site, "pack_untilize_dest_init for these sizes is missing before it");
  if (c.phase != Compute::packing) fail(site, "rows are packed outside of tile_regs_wait and tile_regs_release");
  if (width > chip.capacity) fail(site, "DST has %u tiles in this mode, not %u", chip.capacity, width);
  if (part >= full_width / width) fail(site, "a row has %u parts, no part %u", full_width / width, part);
  Format format = buffer(site, rows).format;
  check_format(site, c.packer, format, rows, "the packer");
  uint32_t size = element_bytes(site, format), row_bytes = full_width * TILE * size;
  uint32_t begin = rows_to_write(site, rows, row_bytes);
  for (uint32_t number = 0; number < width; number++) {
    if (!c.defined[number]) fail(site, "tile %u of DST is packed, but nothing has been put there", number);
    uint8_t faces[ELEMENTS * 4];
    encode(site, format, c.dst[number], faces);
    for (uint32_t row = 0; row < TILE; row++) {
      uint32_t address = begin + row * row_bytes + (part * width + number) * TILE * size;
      for (uint32_t column = 0; column < TILE; column++)
        memcpy(&current->core->l1[address + column * size], faces + place(row, column) * size, size);
      mark_written(*current->core, address, TILE * size);
    }
  }
}

}  // namespace machine
