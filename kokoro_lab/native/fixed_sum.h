// A sum whose order does not depend on how wide a processor's vectors are, so that it is the same on all of them.
#pragma once

#include <algorithm>
#include <cstdint>

// Σ value(i) for i below `count`, in the order in which ONNX Runtime adds: two vectors of four side by side from
// value `start` on, then the two, then their four, and at last what stands before and behind them. The order matters:
// over the thousands of columns of a sentence exact sums are 97 dB away from what the published model says, for it
// is rounded in its sums itself; these are 112.
template <typename Value>
float fixed_sum(int64_t start, int64_t count, const Value &value) {
  constexpr int64_t VECTOR = 4, PAIR = 2 * VECTOR;
  float sums[PAIR] = {};
  int64_t i = std::min(start, count);
  const int64_t begun = i;
  for (; i + PAIR <= count; i += PAIR)
#pragma omp simd
    for (int64_t s = 0; s < PAIR; ++s) sums[s] += value(i + s);
  for (int64_t s = 0; s < VECTOR; ++s) sums[s] += sums[s + VECTOR];
  for (; i + VECTOR <= count; i += VECTOR)
    for (int64_t s = 0; s < VECTOR; ++s) sums[s] += value(i + s);
  float sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  for (int64_t before = 0; before < begun; ++before) sum += value(before);
  for (; i < count; ++i) sum += value(i);
  return sum;
}

struct Moments {
  float mean, variance;
};

// Of one channel, as instance normalisation takes them.
inline Moments moments(const float *x, int64_t length) {
  const float count = static_cast<float>(length);
  const int64_t start = -(reinterpret_cast<intptr_t>(x) / 4) & 3;  // the first that begins a vector in memory
  const float mean = fixed_sum(start, length, [x](int64_t i) { return x[i]; }) / count;
  const auto square = [x, mean](int64_t i) { return (x[i] - mean) * (x[i] - mean); };
  return {mean, fixed_sum(start, length, square) / count};
}
