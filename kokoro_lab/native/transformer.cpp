// What stands between the products of a transformer, row by row and the same on every processor.
//
// LayerNorm    x float [.., N], gamma float [N], beta float [N], epsilon float [1]
// Softmax      x float [.., N]
// Gelu         x float [.., N]; of the form with tanh: x / (1 + e^(-2u)), u = sqrt(2/π) (x + 0.044715 x³)
// →            float, the shape of x
#include <algorithm>
#include <cmath>

#include "exponential.h"
#include "fixed_sum.h"
#include "rows.h"

namespace {

void layer_norm(const rows::Work &w, const float *x, float *y) {
  const auto [mean, variance] = moments(x, w.width);
  const float factor = 1.0f / std::sqrt(variance + w.rest[0]);
  for (int64_t i = 0; i < w.width; ++i) y[i] = (x[i] - mean) * factor * w.first[i] + w.second[i];
}

void softmax(const rows::Work &w, const float *x, float *y) {
  float most = x[0];
  for (int64_t i = 1; i < w.width; ++i) most = std::max(most, x[i]);
#pragma omp simd
  for (int64_t i = 0; i < w.width; ++i) y[i] = exponential(x[i] - most);
  const float total = fixed_sum(0, w.width, [y](int64_t i) { return y[i]; });
  for (int64_t i = 0; i < w.width; ++i) y[i] /= total;
}

void gelu(const rows::Work &w, const float *x, float *y) {
  constexpr float TWICE_ROOT = -1.59576912161f, CUBIC = 0.044715f;
#pragma omp simd
  for (int64_t i = 0; i < w.width; ++i) {
    const float inner = x[i] + CUBIC * (x[i] * x[i] * x[i]);
    y[i] = x[i] / (1.0f + exponential(TWICE_ROOT * inner));
  }
}

}  // namespace

constexpr ort::Kernel ort::LAYER_NORM("LayerNorm", guarded<rows::compute<layer_norm, 3>>, {FLOAT, FLOAT, FLOAT, FLOAT});
constexpr ort::Kernel ort::SOFTMAX("Softmax", guarded<rows::compute<softmax, 0>>, {FLOAT});
constexpr ort::Kernel ort::GELU("Gelu", guarded<rows::compute<gelu, 0>>, {FLOAT});
