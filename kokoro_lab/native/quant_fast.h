// A convolution of bytes with fewer multiplications, for processors without a dot product of four bytes.
//
// These processors multiply two bytes and add two products in one instruction, which saturates, and widen the sum in
// another. Numbers of 16 bits they multiply just as well, and never saturate: so there is room for sums of taps and of
// samples, and several outputs in a row are found from fewer products than they have taps (see fast_fir.py). All sums
// are of integers, so the outputs are those of the definition to the last bit.
#pragma once

#include <utility>
#include <vector>

#include "interleave.h"
#include "operator.h"
#include "quant_tile.h"

namespace {

struct FilterPlan;

#if defined(KOKORO_SATURATES)

// Four outputs of four taps from nine products: Karatsuba's way, twice.
struct ByFour {
  static constexpr int PHASES = 4, TAPS = 4, PRODUCTS = 9, SAMPLES = 7, HALVED = 0;
  static constexpr int16_t samples[PRODUCTS][SAMPLES] = {
      {1, -1, -1, 1, 0, 0, 0}, {0, 1, 0, -1, 0, 0, 0}, {0, -1, 1, 1, -1, 0, 0},
      {0, 0, 1, -1, 0, 0, 0},  {0, 0, 0, 1, 0, 0, 0},  {0, 0, 0, -1, 1, 0, 0},
      {0, 0, -1, 1, 1, -1, 0}, {0, 0, 0, -1, 0, 1, 0}, {0, 0, 0, 1, -1, -1, 1}};
  static constexpr int16_t filters[PRODUCTS][TAPS] = {{1, 0, 0, 0}, {1, 1, 0, 0}, {0, 1, 0, 0},
                                                      {1, 0, 1, 0}, {1, 1, 1, 1}, {0, 1, 0, 1},
                                                      {0, 0, 1, 0}, {0, 0, 1, 1}, {0, 0, 0, 1}};
  static constexpr int sums[PHASES][PRODUCTS] = {{1, 1, 0, 1, 1, 0, 0, 0, 0},
                                                 {0, 1, 1, 0, 1, 1, 0, 0, 0},
                                                 {0, 0, 0, 1, 1, 0, 1, 1, 0},
                                                 {0, 0, 0, 0, 1, 1, 0, 1, 1}};
};

// Two outputs of three taps from four products: F(2, 3), with filters that are doubled to be integers.
struct ByTwo {
  static constexpr int PHASES = 2, TAPS = 3, PRODUCTS = 4, SAMPLES = 4, HALVED = 1;
  static constexpr int16_t samples[PRODUCTS][SAMPLES] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
  static constexpr int16_t filters[PRODUCTS][TAPS] = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}};
  static constexpr int sums[PHASES][PRODUCTS] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
};

// What a step multiplies: words of two numbers of 16 bits.
struct Pairs {
  static constexpr bool SATURATES = false;
  static constexpr int ROWS = Quads::ROWS, AT_ONCE = Quads::AT_ONCE;
#if defined(__AVX512BW__)
  static Words add(Words sum, Words x, Words w) { return _mm512_add_epi32(sum, _mm512_madd_epi16(x, w)); }
#else
  static Words add(Words sum, Words x, Words w) { return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w)); }
#endif
};

using Number __attribute__((may_alias)) = int16_t;
constexpr int64_t RUN_BLOCKS = 2, RUN = RUN_BLOCKS * COLUMNS;  // samples of a phase that are worked out at a time


// Where the filters of one tile's products are: of each, [2 * groups][blocks][TILE] words. The first word of a group
// has its even channels, the second one its odd channels.
struct FilterPlan {
  static constexpr int MOST_PRODUCTS = 9;
  int64_t groups, taps;
  int64_t blocks[MOST_PRODUCTS];     // blocks of taps in which a product has a filter other than zero
  int64_t begin[MOST_PRODUCTS + 1];  // in words; the last one is the size of all

  template <typename Way>
  static FilterPlan of(int64_t groups, int64_t taps) {
    FilterPlan plan{groups, taps, {}, {}};
    for (int k = 0; k < Way::PRODUCTS; ++k) {
      bool more = false;
      for (int64_t tap = 0; tap < taps % Way::TAPS; ++tap) more |= Way::filters[k][tap] != 0;
      plan.blocks[k] = taps / Way::TAPS + more;
      plan.begin[k + 1] = plan.begin[k] + plan.blocks[k] * 2 * groups * TILE;
    }
    return plan;
  }
};

// The filters of a tile, of weights [groups][taps][TILE][4].
template <typename Way>
void make_filters(const FilterPlan &plan, const int8_t *weights, int32_t *filters) {
  for (int64_t group = 0; group < plan.groups; ++group)
    for (int64_t block = 0; block * Way::TAPS < plan.taps; ++block) {
      int16_t halves[2][Way::TAPS][2 * TILE] = {};
      const int64_t first = block * Way::TAPS, count = std::min<int64_t>(Way::TAPS, plan.taps - first);
      for (int64_t t = 0; t < count; ++t) {
        int16_t both[2 * TILE];
        std::memcpy(both, weights + (group * plan.taps + first + t) * 4 * TILE, sizeof both);
        for (int i = 0; i < 2 * TILE; ++i) {
          halves[0][t][i] = static_cast<int8_t>(both[i]);
          halves[1][t][i] = static_cast<int16_t>(both[i] >> 8);
        }
      }
#pragma GCC unroll 9
      for (int k = 0; k < Way::PRODUCTS; ++k) {
        if (block >= plan.blocks[k]) continue;
        Number *out = reinterpret_cast<Number *>(filters + plan.begin[k]);
        for (int64_t half = 0; half < 2; ++half)
          for (int i = 0; i < 2 * TILE; ++i) {
            int16_t sum = 0;
#pragma GCC unroll 4
            for (int t = 0; t < Way::TAPS; ++t) sum = static_cast<int16_t>(sum + Way::filters[k][t] * halves[half][t][i]);
            out[((2 * group + half) * plan.blocks[k] + block) * 2 * TILE + i] = sum;
          }
      }
    }
}

// What product K reads of the phases that begin at `in`.
template <typename Way, int K>
void sum_samples(const Number *const *in, int64_t count, Number *out) {
  const Number *from[Way::SAMPLES];
  for (int i = 0; i < Way::SAMPLES; ++i) from[i] = in[i];
#pragma omp simd
  for (int64_t n = 0; n < count; ++n) {
    int16_t sum = 0;
#pragma GCC unroll 7
    for (int i = 0; i < Way::SAMPLES; ++i) sum = static_cast<int16_t>(sum + Way::samples[K][i] * from[i][n]);
    out[n] = sum;
  }
}

template <typename Way, int... K>
void sum_all_samples(const Number *const *in, int64_t count, Number *out, int64_t apart,
                     std::integer_sequence<int, K...>) {
  (sum_samples<Way, K>(in, count, out + K * apart), ...);
}

// The signals of all products, [products][2 * groups][width] words, of bytes [groups][stride] from a first column on.
template <typename Way>
void make_signals(const int32_t *bytes, int64_t stride, int64_t groups, int64_t dilation, int64_t width,
                  int32_t *signals) {
  const int64_t row = width + (Way::SAMPLES - 1) * dilation / Way::PHASES;
  thread_local std::vector<int32_t> kept;
  int32_t *phases = ort::room(kept, 2 * Way::PHASES * row), *pairs = phases + Way::PHASES * row;
  const Number *in[Way::SAMPLES];
  for (int64_t i = 0; i < Way::SAMPLES; ++i)
    in[i] = reinterpret_cast<const Number *>(pairs + i * dilation % Way::PHASES * row + i * dilation / Way::PHASES);
  for (int64_t group = 0; group < groups; ++group) {
    split<Way::PHASES>(bytes + group * stride, Way::PHASES * row, phases, row);
    for (int half = 0; half < 2; ++half) {
      for (int64_t i = 0; i < Way::PHASES * row; ++i) pairs[i] = phases[i] >> 8 * half & 0x00ff00ff;
      Number *out = reinterpret_cast<Number *>(signals + (2 * group + half) * width);
      sum_all_samples<Way>(in, 2 * width, out, 4 * groups * width, std::make_integer_sequence<int, Way::PRODUCTS>{});
    }
  }
}

#endif

}  // namespace
