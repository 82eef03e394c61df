// The heart of the integer operators: a tile of outputs by three vectors of positions, held in registers while
// all inputs go by, four of them at a time.
#pragma once

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
constexpr int LANES = 16, ROWS = 4;
constexpr bool FLIP = false;
using Words = __m512i;
inline Words load(const int32_t *p) { return _mm512_loadu_si512(p); }
inline Words all(int32_t w) { return _mm512_set1_epi32(w); }
inline Words dot(Words sum, Words x, Words w) {  // as below, of AVX2
  const Words low = _mm512_set1_epi16(255);
  const Words even = _mm512_madd_epi16(_mm512_and_si512(x, low), _mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8));
  const Words odd = _mm512_madd_epi16(_mm512_srli_epi16(x, 8), _mm512_srai_epi16(w, 8));
  return _mm512_add_epi32(sum, _mm512_add_epi32(even, odd));
}
#elif defined(__AVX2__)
constexpr int LANES = 8, ROWS = 4;
constexpr bool FLIP = false;
using Words = __m256i;
inline Words load(const int32_t *p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(p)); }
inline Words all(int32_t w) { return _mm256_set1_epi32(w); }
#if defined(__AVXVNNI__)
inline Words dot(Words sum, Words x, Words w) { return _mm256_dpbusd_avx_epi32(sum, x, w); }
#else
inline Words dot(Words sum, Words x, Words w) {
  // Even and odd bytes apart, as 16 bits: the multiplication of bytes would saturate
  const Words low = _mm256_set1_epi16(255);
  const Words even = _mm256_madd_epi16(_mm256_and_si256(x, low), _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8));
  const Words odd = _mm256_madd_epi16(_mm256_srli_epi16(x, 8), _mm256_srai_epi16(w, 8));
  return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
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

// Sums of TILE outputs by V vectors: out[r][n] = Σ over groups and taps of four weights times four bytes.
//   x        [groups][stride] words of four bytes; tap t is read t * dilation words further on
//   weights  [groups][taps][TILE][4]
template <int V>
void multiply(const int32_t *x, int64_t stride, int64_t groups, int64_t taps, int64_t dilation,
              const int8_t *weights, int32_t *out) {
  for (int part = 0; part < TILE; part += ROWS) {
    Words sums[ROWS][V];
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < V; ++v) sums[r][v] = all(0);
    for (int64_t group = 0; group < groups; ++group) {
      const int32_t *row = x + group * stride;
      const int8_t *weight = weights + (group * taps * TILE + part) * 4;
      for (int64_t tap = 0; tap < taps; ++tap, row += dilation, weight += 4 * TILE) {
        ask_ahead(weight);
        Words in[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) in[v] = load(row + v * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) {
          int32_t four;
          std::memcpy(&four, weight + 4 * r, 4);
          const Words factor = all(four);
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) sums[r][v] = dot(sums[r][v], in[v], factor);
        }
      }
    }
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < V; ++v) std::memcpy(out + (part + r) * COLUMNS + v * LANES, &sums[r][v], sizeof(Words));
  }
}

// The same for as many vectors as `columns` fill.
inline void multiply(int64_t columns, const int32_t *x, int64_t stride, int64_t groups, int64_t taps,
                     int64_t dilation, const int8_t *weights, int32_t *out) {
  const int64_t vectors = (columns + LANES - 1) / LANES;
  const auto run = vectors == 3 ? multiply<3> : vectors == 2 ? multiply<2> : multiply<1>;
  run(x, stride, groups, taps, dilation, weights, out);
}

}  // namespace
