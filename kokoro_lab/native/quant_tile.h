// The heart of the integer operators: a tile of outputs by three vectors of positions, held in registers while
// all inputs go by, four of them at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ahead.h"
#include "operator.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif


namespace {

// `dot` adds to each lane of `sum` four unsigned bytes of x times four signed bytes of w; where x is read as
// signed, FLIP says so: x is stored 128 lower, and the sum of the weights makes up for it. A processor without such an
// instruction adds products within 16 bits first: it has `dots`, for two steps at a time.
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
inline Words dots(Words sum, Words x, Words w, Words next_x, Words next_w) {
  const Words both = _mm512_add_epi16(_mm512_maddubs_epi16(x, w), _mm512_maddubs_epi16(next_x, next_w));
  return _mm512_add_epi32(sum, _mm512_madd_epi16(both, _mm512_set1_epi16(1)));
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
inline Words dots(Words sum, Words x, Words w, Words next_x, Words next_w) {
  const Words both = _mm256_add_epi16(_mm256_maddubs_epi16(x, w), _mm256_maddubs_epi16(next_x, next_w));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(both, _mm256_set1_epi16(1)));
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

// What one tile of outputs adds up: a step for each of `groups` of four input channels and each tap. The words of a
// step begin at x + group * stride + tap * dilation.
struct Steps {
  int64_t groups, taps, stride, dilation;

  int64_t count() const { return groups * taps; }
};

template <int R, int V>
inline void clear(Words (&sums)[R][V]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sums[r][v] = all(0);
}

// To rows of COLUMNS sums.
template <int R, int V>
inline void store(const Words (&sums)[R][V], int32_t *out) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) std::memcpy(out + r * COLUMNS + v * LANES, &sums[r][v], sizeof(Words));
}

#if !defined(KOKORO_SATURATES)
// The weights of a call, int8 [tiles][groups][taps][TILE][4].
class Weights {
 public:
  Weights(const int8_t *weights, int64_t, const Steps &steps) : weights_(weights), steps_(steps) {}

  static constexpr bool PAIRED = false;

  void pair(int64_t) const {}

  // Sums of TILE outputs by V vectors: out[r][n] = Σ over steps of four weights times four bytes.
  template <int V>
  void multiply(int64_t tile, const int32_t *x, int32_t *out) const {
    for (int part = 0; part < TILE; part += ROWS) {
      Words sums[ROWS][V];
      clear(sums);
      const int8_t *weight = weights_ + (tile * steps_.count() * TILE + part) * 4;
      for (int64_t group = 0; group < steps_.groups; ++group) {
        const int32_t *row = x + group * steps_.stride;
        for (int64_t tap = 0; tap < steps_.taps; ++tap, row += steps_.dilation, weight += 4 * TILE) {
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
      store(sums, out + part * COLUMNS);
    }
  }

 private:
  const int8_t *weights_;
  Steps steps_;
};
#else
static_assert(ROWS == TILE);

// The weights of a call, int8 [tiles][groups][taps][TILE][4], for a processor whose sums of two steps are of 16 bits
// and must not overflow, or they would be other sums than elsewhere. They do not if no two pairs of weights add up to
// more than MOST in either sign. So each step waits for another one with which it may go; what is left goes alone, and
// of a step whose own weights are too large, each half of them goes as a step.
class Weights {
 public:
  Weights(const int8_t *weights, int64_t outputs, const Steps &steps) : weights_(weights), steps_(steps) {
    thread_local std::vector<int32_t> factors;
    thread_local std::vector<int64_t> places;
    const int64_t most = outputs / TILE * 2 * steps.count();  // if each step is halved, and each half goes alone
    factors_ = ort::room(factors, ort::count_of({most, 2 * TILE}));
    places_ = ort::room(places, ort::count_of({most + outputs / TILE, 2}));
  }

  static constexpr bool PAIRED = true;  // `pair` is to be called for every tile before any `multiply`

  void pair(int64_t tile) const {
    const int8_t *weights = weights_ + tile * steps_.count() * 4 * TILE;
    Waiting waiting[MOST_WAITING];
    int waits = 0;
    int64_t *places = places_of(tile), count = 0;
    int32_t *factors = factors_of(tile);
    const auto put = [&](const Waiting &one, const Waiting &other) {
      const __m256i low = _mm256_unpacklo_epi32(one.weights, other.weights);
      const __m256i high = _mm256_unpackhi_epi32(one.weights, other.weights);
      auto *to = reinterpret_cast<__m256i *>(factors + count++ * 2 * TILE);
      _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
      _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
      places[2 * count] = one.place;
      places[2 * count + 1] = other.place;
    };
    const auto alone = [&](const Waiting &one) {
      put(one, {_mm256_setzero_si256(), _mm256_setzero_si256(), one.place});
    };
    const auto add = [&](const Waiting &step) {
      for (int i = 0; i < waits; ++i)
        if (fits(_mm256_adds_epu8(waiting[i].sums, step.sums))) {
          put(waiting[i], step);
          waiting[i] = waiting[--waits];
          return;
        }
      if (waits == MOST_WAITING) alone(waiting[--waits]);
      waiting[waits++] = step;
    };
    for (int64_t group = 0; group < steps_.groups; ++group)
      for (int64_t tap = 0; tap < steps_.taps; ++tap, weights += 4 * TILE) {
        const int64_t place = group * steps_.stride + tap * steps_.dilation;
        const Waiting step = waiting_of(weights, place);
        if (fits(step.sums)) {
          add(step);
          continue;
        }
        int8_t half[4 * TILE], rest[4 * TILE];
        for (int i = 0; i < 4 * TILE; ++i) {
          half[i] = weights[i] / 2;
          rest[i] = weights[i] - half[i];
        }
        add(waiting_of(half, place));
        add(waiting_of(rest, place));
      }
    while (waits > 0) alone(waiting[--waits]);
    places[0] = count;
  }

  // Sums of TILE outputs by V vectors: out[r][n] = Σ over steps of four weights times four bytes.
  template <int V>
  void multiply(int64_t tile, const int32_t *x, int32_t *out) const {
    constexpr int N = LANES == 8 ? 1 : V;  // vectors that there are registers for
    const int64_t *places = places_of(tile), count = places[0];
    for (int from = 0; from < V; from += N) {
      Words sums[TILE][N];
      clear(sums);
      const int32_t *factor = factors_of(tile);
      for (int64_t pair = 1; pair <= count; ++pair, factor += 2 * TILE) {
        const int32_t *one = x + places[2 * pair] + from * LANES, *other = x + places[2 * pair + 1] + from * LANES;
        ask_ahead(factor);
        Words in[N], next[N];
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
          in[v] = load(one + v * LANES);
          next[v] = load(other + v * LANES);
        }
#pragma GCC unroll 8
        for (int r = 0; r < TILE; ++r) {
          const Words of_one = all(factor[2 * r]), of_other = all(factor[2 * r + 1]);
#pragma GCC unroll 4
          for (int v = 0; v < N; ++v) sums[r][v] = dots(sums[r][v], in[v], of_one, next[v], of_other);
        }
      }
      store(sums, out + from * LANES);
    }
  }

 private:
  static constexpr int MOST = 32767 / 255, MOST_WAITING = 16;

  struct Waiting {
    __m256i sums;  // of each pair of weights what is above zero, and what is below, as bytes
    __m256i weights;
    int64_t place;
  };

  static Waiting waiting_of(const int8_t *weights, int64_t place) {
    const __m256i none = _mm256_setzero_si256(), one = _mm256_set1_epi8(1);
    const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(weights));
    const __m256i above = _mm256_maddubs_epi16(one, _mm256_max_epi8(w, none));
    const __m256i below = _mm256_maddubs_epi16(one, _mm256_min_epi8(w, none));
    return {_mm256_packus_epi16(above, _mm256_abs_epi16(below)), w, place};
  }

  static bool fits(__m256i sums) {
    const __m256i most = _mm256_set1_epi8(static_cast<char>(MOST));
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(sums, most), most)) == -1;
  }

  // Of one tile: how many pairs there are, and a place to skip; then the two places of each
  int64_t *places_of(int64_t tile) const { return places_ + tile * 2 * (2 * steps_.count() + 1); }
  // Of each pair, [TILE][2] times four weights
  int32_t *factors_of(int64_t tile) const { return factors_ + tile * 2 * steps_.count() * 2 * TILE; }

  const int8_t *weights_;
  Steps steps_;
  int32_t *factors_;
  int64_t *places_;
};
#endif

// The sums of a tile for as many vectors as `columns` fill.
inline void multiply(const Weights &weights, int64_t tile, int64_t columns, const int32_t *x, int32_t *out) {
  const int64_t vectors = (columns + LANES - 1) / LANES;
  if (vectors == 3) return weights.multiply<3>(tile, x, out);
  if (vectors == 2) return weights.multiply<2>(tile, x, out);
  weights.multiply<1>(tile, x, out);
}

}  // namespace
