// A sum whose order does not depend on how wide a processor's vectors are, so that it is the same on all of them.
#pragma once

#include <cstdint>

// Σ value(i) for i below `count`: sixteen sums, each of every sixteenth value, and then those by halves.
template <typename Value>
float fixed_sum(int64_t count, const Value &value) {
  constexpr int64_t SUMS = 16;
  float sums[SUMS] = {};
  int64_t i = 0;
  for (; i + SUMS <= count; i += SUMS)
#pragma omp simd
    for (int64_t s = 0; s < SUMS; ++s) sums[s] += value(i + s);
  for (; i < count; ++i) sums[i % SUMS] += value(i);
  for (int64_t half = SUMS / 2; half > 0; half /= 2)
    for (int64_t s = 0; s < half; ++s) sums[s] += sums[s + half];
  return sums[0];
}

struct Moments {
  float mean, variance;
};

// Of one channel, as instance normalisation takes them.
inline Moments moments(const float *x, int64_t length) {
  const float count = static_cast<float>(length);
  const float mean = fixed_sum(length, [x](int64_t i) { return x[i]; }) / count;
  const auto square = [x, mean](int64_t i) { return (x[i] - mean) * (x[i] - mean); };
  return {mean, fixed_sum(length, square) / count};
}
