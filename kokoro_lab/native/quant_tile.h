// The heart of the integer operators: a tile of outputs by three vectors of positions, held in registers while
// all inputs go by, four of them at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "ahead.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif


namespace {

// `dot` adds to each lane of `sum` four unsigned bytes of x times four signed bytes of w; where x is read as
// signed, FLIP says so: x is stored 128 lower, and the sum of the weights makes up for it.
#if defined(__AVX512VNNI__)
constexpr int LANES = 16, ROWS = 8;
constexpr bool FLIP = false;
using Words = __m512i;
inline Words load(const int32_t *p) { return _mm512_loadu_si512(p); }
inline Words all(int32_t w) { return _mm512_set1_epi32(w); }
inline Words dot(Words sum, Words x, Words w) { return _mm512_dpbusd_epi32(sum, x, w); }
#elif defined(__AVX512BW__)
constexpr int LANES = 16, ROWS = 8;
constexpr bool FLIP = false;
#define KOKORO_SATURATES
using Words = __m512i;
inline Words load(const int32_t *p) { return _mm512_loadu_si512(p); }
inline Words all(int32_t w) { return _mm512_set1_epi32(w); }
inline Words dot(Words sum, Words x, Words w) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(x, w), _mm512_set1_epi16(1)));
}
#elif defined(__AVX2__)
constexpr int LANES = 8;
constexpr bool FLIP = false;
using Words = __m256i;
inline Words load(const int32_t *p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)); }
inline Words all(int32_t w) { return _mm256_set1_epi32(w); }
#if defined(__AVXVNNI__)
constexpr int ROWS = 4;
inline Words dot(Words sum, Words x, Words w) { return _mm256_dpbusd_avx_epi32(sum, x, w); }
#else
constexpr int ROWS = 8;
#define KOKORO_SATURATES
inline Words dot(Words sum, Words x, Words w) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), _mm256_set1_epi16(1)));
}
#endif
#elif defined(__ARM_FEATURE_DOTPROD)
constexpr int LANES = 4, ROWS = 8;
using Words = int32x4_t;
inline Words load(const int32_t *p) { return vld1q_s32(p); }
inline Words all(int32_t w) { return vdupq_n_s32(w); }
#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr bool FLIP = false;
inline Words dot(Words sum, Words x, Words w) {
  return vusdotq_s32(sum, vreinterpretq_u8_s32(x), vreinterpretq_s8_s32(w));
}
#else
constexpr bool FLIP = true;
inline Words dot(Words sum, Words x, Words w) {
  return vdotq_s32(sum, vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(w));
}
#endif
#else
constexpr int LANES = 4, ROWS = 8;
constexpr bool FLIP = false;
using Words __attribute__((vector_size(16), aligned(4), may_alias)) = int32_t;
inline Words load(const int32_t *p) { return *reinterpret_cast<const Words *>(p); }
inline Words all(int32_t w) { return Words{w, w, w, w}; }
inline Words dot(Words sum, Words x, Words w) {
  for (int byte = 0; byte < 4; ++byte) sum += ((x >> (8 * byte)) & 255) * ((w << (24 - 8 * byte)) >> 24);
  return sum;
}
#endif

constexpr int TILE = 8, WIDE = 3, COLUMNS = WIDE * LANES;
constexpr int64_t MOST_SUMMED = 65536;  // products of two bytes whose sum is a number of 32 bits in any case

// A processor without a dot product of four bytes adds two products within 16 bits first. Where both weights are large
// that saturates: one step in twenty of the vocoder's has such weights. There, `dot` is asked twice, for two halves of
// each weight, so that no sum is another one than elsewhere.
#if defined(KOKORO_SATURATES)
constexpr bool SATURATES = true;
static_assert(ROWS == TILE);

// Which steps of a tile, [steps][TILE][4], would saturate: 1 or 0 each.
inline void find_large(const int8_t *weights, int64_t steps, uint8_t *large) {
  const __m256i none = _mm256_setzero_si256(), one = _mm256_set1_epi8(1);
  const __m256i most = _mm256_set1_epi16(32767 / 255);  // what two weights of one sign may add up to
  for (int64_t step = 0; step < steps; ++step) {
    const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(weights + step * 4 * TILE));
    const __m256i above = _mm256_maddubs_epi16(one, _mm256_max_epi8(w, none));
    const __m256i below = _mm256_maddubs_epi16(one, _mm256_min_epi8(w, none));
    const __m256i largest = _mm256_max_epi16(above, _mm256_abs_epi16(below));
    large[step] = _mm256_movemask_epi8(_mm256_cmpgt_epi16(largest, most)) != 0;
  }
}
#else
constexpr bool SATURATES = false;

inline void find_large(const int8_t *, int64_t, uint8_t *) {}
#endif

// What a step multiplies: words of four bytes.
struct Quads {
  static constexpr bool SATURATES = ::SATURATES;
  static constexpr int ROWS = ::ROWS, AT_ONCE = SATURATES && LANES == 8 ? 1 : WIDE;  // as many as fit into registers
  static Words add(Words sum, Words x, Words w) { return dot(sum, x, w); }
};

// Sums of TILE outputs by V vectors: out[r][n] = Σ over groups and taps of a word of weights times a word of x.
//   x        [groups][stride] words; tap t is read t * dilation words further on
//   weights  [groups][taps][TILE] words
//   large    [groups][taps] of `find_large`; none where nothing saturates
template <typename Kind, int V>
void multiply(const int32_t *x, int64_t stride, int64_t groups, int64_t taps, int64_t dilation,
              const void *weights, const uint8_t *large, int32_t *out) {
  constexpr int N = std::min(V, Kind::AT_ONCE), ROWS = Kind::ROWS;
  for (int part = 0; part < TILE; part += ROWS)
    for (int from = 0; from < V; from += N) {
      Words sums[ROWS][N];
#pragma GCC unroll 8
      for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) sums[r][v] = all(0);
      const uint8_t *is_large = large;
      for (int64_t group = 0; group < groups; ++group) {
        const int32_t *row = x + group * stride + from * LANES;
        const int8_t *weight = static_cast<const int8_t *>(weights) + (group * taps * TILE + part) * 4;
        for (int64_t tap = 0; tap < taps; ++tap, row += dilation, weight += 4 * TILE) {
          ask_ahead(weight);
          Words in[N];
#pragma GCC unroll 4
          for (int v = 0; v < N; ++v) in[v] = load(row + v * LANES);
          const auto add = [&](const int8_t *factors) {
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; ++r) {
              int32_t word;
              std::memcpy(&word, factors + 4 * r, 4);
              const Words factor = all(word);
#pragma GCC unroll 4
              for (int v = 0; v < N; ++v) sums[r][v] = Kind::add(sums[r][v], in[v], factor);
            }
          };
          if (__builtin_expect(Kind::SATURATES && *is_large++ != 0, false)) {
            int8_t halves[2][4 * TILE];
            for (int i = 0; i < 4 * TILE; ++i) {
              halves[0][i] = weight[i] / 2;
              halves[1][i] = weight[i] - halves[0][i];
            }
            add(halves[0]);
            add(halves[1]);
          } else {
            add(weight);
          }
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v)
          std::memcpy(out + (part + r) * COLUMNS + (from + v) * LANES, &sums[r][v], sizeof(Words));
    }
}

// The same for as many vectors as `columns` fill.
template <typename Kind>
void multiply(int64_t columns, const int32_t *x, int64_t stride, int64_t groups, int64_t taps, int64_t dilation,
              const void *weights, const uint8_t *large, int32_t *out) {
  const int64_t vectors = (columns + LANES - 1) / LANES;
  const auto run = vectors == 3 ? multiply<Kind, 3> : vectors == 2 ? multiply<Kind, 2> : multiply<Kind, 1>;
  run(x, stride, groups, taps, dilation, weights, large, out);
}

}  // namespace
