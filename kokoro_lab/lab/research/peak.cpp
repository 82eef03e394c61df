// The limits of one core: products of floats and of bytes, and bytes read. Each function says how much it did.
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

#define SHOWN extern "C" __attribute__((visibility("default")))
// What the compiler must not work out beforehand, or leave out
#if defined(__x86_64__)
#define KEEP(vector) asm volatile("" : "+v"(vector))
#else
#define KEEP(vector) asm volatile("" : "+w"(vector))
#endif

namespace {
#if defined(__AVX512F__)
constexpr int BYTES = 64;
#elif defined(__AVX__)
constexpr int BYTES = 32;
#else
constexpr int BYTES = 16;
#endif
constexpr int LANES = BYTES / sizeof(float);
using Floats __attribute__((vector_size(BYTES))) = float;
using Loaded __attribute__((vector_size(BYTES), aligned(sizeof(float)), may_alias)) = float;

#if defined(__AVX512VNNI__)
using Bytes = __m512i;
inline Bytes dot(Bytes sum, Bytes a, Bytes b) { return _mm512_dpbusd_epi32(sum, a, b); }
#elif defined(__AVXVNNI__)
using Bytes = __m256i;
inline Bytes dot(Bytes sum, Bytes a, Bytes b) { return _mm256_dpbusd_avx_epi32(sum, a, b); }
#elif defined(__AVX512BW__)
using Bytes = __m512i;
inline Bytes dot(Bytes sum, Bytes a, Bytes b) {
  const Bytes pairs = _mm512_maddubs_epi16(a, b);
  return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
#elif defined(__AVX2__)
using Bytes = __m256i;
inline Bytes dot(Bytes sum, Bytes a, Bytes b) {
  const Bytes pairs = _mm256_maddubs_epi16(a, b);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
#elif defined(__ARM_FEATURE_DOTPROD)
using Bytes = int32x4_t;
inline Bytes dot(Bytes sum, Bytes a, Bytes b) {
  return vdotq_s32(sum, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
}
#else
#define NO_BYTES
#endif
}  // namespace

// Named one by one, as an array of them would go through memory
#define CHAINS(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9)
constexpr int COUNT = 10;
#define SUM(i) sum += s##i;

SHOWN double float_products(int64_t rounds, float* out) {
  Floats sum = {}, a = sum + out[0], b = sum + out[1];
#define BEGIN(i) Floats s##i = b; KEEP(s##i);
#define STEP(i) s##i = s##i * a + b;
  CHAINS(BEGIN)
  for (int64_t i = 0; i < rounds; i++) { CHAINS(STEP) }
  CHAINS(SUM)
  out[0] = sum[0];
  return 2.0 * LANES * COUNT * rounds;
}

SHOWN double byte_products(int64_t rounds, float* out) {
#if defined(NO_BYTES)
  return 0;
#else
  Bytes sum = {}, a = {}, b = {};
  KEEP(a);
  KEEP(b);
#define BYTES_BEGIN(i) Bytes s##i = b; KEEP(s##i);
#define BYTES_STEP(i) KEEP(a); s##i = dot(s##i, a, b);
  CHAINS(BYTES_BEGIN)
  for (int64_t i = 0; i < rounds; i++) { CHAINS(BYTES_STEP) }
  CHAINS(SUM)
  out[0] = static_cast<float>(sum[0]);
  return 2.0 * sizeof(Bytes) * COUNT * rounds;
#endif
}

SHOWN double bytes_read(int64_t rounds, float* data, int64_t count) {
  Floats sums[8] = {};
  for (int64_t i = 0; i < rounds; i++) {
    for (int64_t at = 0; at + 8 * LANES <= count; at += 8 * LANES) {
      for (int chain = 0; chain < 8; chain++)
        sums[chain] += *reinterpret_cast<const Loaded*>(data + at + chain * LANES);
    }
    asm("" ::: "memory");
  }
  for (int chain = 1; chain < 8; chain++) sums[0] += sums[chain];
  data[0] = sums[0][0];
  return 4.0 * count * rounds;
}
