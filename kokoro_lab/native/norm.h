// Instance normalisation by a style, and the leaky rectifier behind it, of one channel.
#pragma once

#include <cmath>

#include "fixed_sum.h"

// `scale` is less one, as the style has it; `rest` is what is added to the variance, and the slope below zero.
inline void normalise(const float *x, int64_t length, float scale, float shift, const float *rest, float *y) {
  const auto [mean, variance] = moments(x, length);
  const float factor = (1.0f + scale) / std::sqrt(variance + rest[0]), slope = rest[1];
  for (int64_t i = 0; i < length; ++i) {
    const float z = (x[i] - mean) * factor + shift;
    y[i] = z < 0.0f ? slope * z : z;
  }
}
