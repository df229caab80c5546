// Data formats: tiles in L1 (four faces) become tiles in DST (32 bits an element, row-major here), and go back.
//
// DST has floats as f32, and integers as they are: the bits of an element are kept in a float's place.
#include <cmath>
#include <cstring>

#include "state.h"

namespace machine {

// Where element (row, column) of a tile lies in memory.
uint32_t place(uint32_t row, uint32_t column) {
  return ((row / FACE) * 2 + column / FACE) * FACE * FACE + (row % FACE) * FACE + column % FACE;
}

template <class To, class From>
static To bits_of(From value) {
  static_assert(sizeof(To) == sizeof(From), "the bits of a value");
  To bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float from_bf16(uint16_t bits) { return bits_of<float>(uint32_t(bits) << 16); }

static uint16_t to_bf16(float value) {
  uint32_t bits = bits_of<uint32_t>(value);
  if (std::isnan(value)) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint32_t block_bits(Format format) { return format == Format::bfp8_b ? 8 : format == Format::bfp4_b ? 4 : 0; }

uint32_t element_bytes(Site site, Format format) {
  if (block_bits(format) || format == Format::other) fail(site, "rows have elements of 16 or 32 bits");
  return format == Format::bf16 || format == Format::ui16 ? 2 : 4;
}

bool is_integer(Format format) { return format == Format::i32 || format == Format::ui32 || format == Format::ui16; }

// Block floats: an exponent for each row of a face, then sign and mantissa of each element; the mantissa of the largest
// exponent begins with a one, those of others are shifted, and then rounded to nearest, ties to even.
static float from_block(const uint8_t *bytes, uint32_t bits, uint32_t at) {
  uint32_t exponent = bytes[at / FACE], code = bytes[ELEMENTS / FACE + at * bits / 8];
  if (bits == 4) code = at % 2 ? code >> 4 : code & 15;
  float size = std::ldexp(float(code & ((1u << (bits - 1)) - 1)), int(exponent) - 127 - int(bits) + 2);
  return code >> (bits - 1) ? -size : size;
}

static void to_block(const float *row, uint32_t bits, uint8_t *bytes, uint32_t first) {
  uint32_t shared = 0;
  for (uint32_t i = 0; i < FACE; i++) shared = std::max(shared, bits_of<uint32_t>(row[i]) >> 23 & 0xff);
  bytes[first / FACE] = uint8_t(shared);
  for (uint32_t i = 0; i < FACE; i++) {
    uint32_t word = bits_of<uint32_t>(row[i]), exponent = word >> 23 & 0xff, dropped = 25 - bits;
    uint32_t mantissa = exponent && shared - exponent < 32 ? (0x800000 | (word & 0x7fffff)) >> (shared - exponent) : 0;
    uint32_t kept = mantissa >> dropped, rest = mantissa & ((1u << dropped) - 1), half = 1u << (dropped - 1);
    kept = std::min(kept + (rest > half || (rest == half && (kept & 1))), (1u << (bits - 1)) - 1);
    uint32_t code = kept ? kept | (word >> 31) << (bits - 1) : 0;
    uint8_t &byte = bytes[ELEMENTS / FACE + (first + i) * bits / 8];
    byte = bits == 8 ? uint8_t(code) : i % 2 ? uint8_t(byte | code << 4) : uint8_t(code);
  }
}

void decode(Site site, Format format, const uint8_t *bytes, float *tile) {
  for (uint32_t row = 0; row < TILE; row++)
    for (uint32_t column = 0; column < TILE; column++) {
      uint32_t at = place(row, column);
      float &element = tile[row * TILE + column];
      if (format == Format::f32 || format == Format::i32 || format == Format::ui32)
        memcpy(&element, bytes + 4 * at, 4);
      else if (format == Format::bf16)
        element = from_bf16(reinterpret_cast<const uint16_t *>(bytes)[at]);
      else if (format == Format::ui16)
        element = bits_of<float>(uint32_t(reinterpret_cast<const uint16_t *>(bytes)[at]));
      else if (block_bits(format))
        element = from_block(bytes, block_bits(format), at);
      else
        fail(site, "the machine has no data format of this name to compute with");
    }
}

void encode(Site site, Format format, const float *tile, uint8_t *bytes) {
  float ordered[ELEMENTS];
  for (uint32_t row = 0; row < TILE; row++)
    for (uint32_t column = 0; column < TILE; column++) ordered[place(row, column)] = tile[row * TILE + column];
  if (uint32_t bits = block_bits(format))
    for (uint32_t at = 0; at < ELEMENTS; at += FACE) to_block(ordered + at, bits, bytes, at);
  else if (format == Format::f32 || format == Format::i32 || format == Format::ui32)
    memcpy(bytes, ordered, sizeof ordered);
  else
    for (uint32_t at = 0; at < ELEMENTS; at++) {
      uint16_t &half = reinterpret_cast<uint16_t *>(bytes)[at];
      if (format == Format::bf16)
        half = to_bf16(ordered[at]);
      else if (format == Format::ui16)
        half = uint16_t(bits_of<uint32_t>(ordered[at]));
      else
        fail(site, "the machine has no data format of this name to compute with");
    }
}

// As the vector unit converts: see `ttl.typecast`.
float convert(Format from, Format to, float element) {
  uint32_t bits = bits_of<uint32_t>(element);
  if (from == to) return element;
  if (is_integer(from) && is_integer(to)) {
    uint32_t least = from == Format::i32 && int32_t(bits) < 0 ? 0 : bits;
    return bits_of<float>(to == Format::ui16 ? std::min(least, 65535u) : bits);
  }
  if (is_integer(to)) {
    double low = to == Format::i32 ? -2147483648.0 : 0, high = to == Format::i32 ? 2147483647.0 : to == Format::ui32 ? 4294967295.0 : 65535.0;
    double whole = to == Format::ui16 ? std::round(double(element)) : std::trunc(double(element));
    whole = std::isnan(whole) ? 0 : std::min(std::max(whole, low), high);
    return bits_of<float>(to == Format::i32 ? uint32_t(int32_t(whole)) : uint32_t(whole));
  }
  if (is_integer(from)) {
    float value = from == Format::i32 ? float(int32_t(bits)) : float(bits);
    return to == Format::f32 ? value : bits_of<float>((bits_of<uint32_t>(value) + 0x8000) & 0xffff0000);
  }
  return from == Format::f32 && to == Format::bf16 ? from_bf16(to_bf16(element)) : element;
}

}  // namespace machine
