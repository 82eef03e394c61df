// Instance normalisation by a style, and the leaky rectifier behind it, of one channel.
#pragma once

#include <cmath>

#include "fixed_sum.h"
#include "operator.h"

// The statistics that a norm is told: of a window, those of the whole that it is a part of.
struct Told {
  const float *mean = nullptr, *variance = nullptr;  // a channel each; none if it has to look for itself

  Moments of(int64_t channel, const float *x, int64_t length) const {
    return mean == nullptr ? moments(x, length) : Moments{mean[channel], variance[channel]};
  }
};

// What the optional inputs from `index` on tell: whether they are to be believed, means, variances.
inline Told told(const ort::Call &call, size_t index, int64_t channels) {
  const auto known = call.optional<bool>(index);
  if (!known || !*known.of(1).data) return {};
  return {call.input<float>(index + 1).of(channels).data, call.input<float>(index + 2).of(channels).data};
}

// `scale` is less one, as the style has it; `rest` is what is added to the variance, and the slope below zero.
inline void normalise(const float *x, int64_t length, Moments given, float scale, float shift, const float *rest,
                      float *y) {
  const auto [mean, variance] = given;
  const float factor = (1.0f + scale) / std::sqrt(variance + rest[0]), slope = rest[1];
  for (int64_t i = 0; i < length; ++i) {
    const float z = (x[i] - mean) * factor + shift;
    y[i] = z < 0.0f ? slope * z : z;
  }
}
