// Arctangent: of each value, the same on every processor that multiplies and adds at once.
//
//   x        float, any shape
//   →        float, the same
//
// ONNX Runtime's differs in its last bit from one processor to the next. Behind it are integers, where a last bit
// becomes another byte now and then, that byte others further on, and two machines end 30 dB apart.
#include <cmath>

#include "rows.h"

namespace {

// Above 1, π / 2 less that of 1 / x. Below, x + x³ Q(x²), with Q fitted for the least relative error (3e-9).
inline float arctangent(float x) {
  constexpr float HALF_PI = 1.57079632679f;
  const float size = std::fabs(x);
  const bool steep = size > 1.0f;
  const float r = steep ? 1.0f / size : size, w = r * r;
  float q = -1.7936215736e-03f;
  q = q * w + 1.09146051109e-02f;
  q = q * w - 3.11778467149e-02f;
  q = q * w + 5.79575933516e-02f;
  q = q * w - 8.40345025063e-02f;
  q = q * w + 1.09521858394e-01f;
  q = q * w - 1.42642423510e-01f;
  q = q * w + 1.99985489249e-01f;
  q = q * w - 3.33332985640e-01f;
  const float small = r + r * w * q;
  return std::copysign(steep ? HALF_PI - small : small, x);
}

void row(const rows::Work &w, const float *x, float *y) {
#pragma omp simd
  for (int64_t i = 0; i < w.width; ++i) y[i] = arctangent(x[i]);
}

}  // namespace

constexpr ort::Kernel ort::ARCTANGENT("Arctangent", guarded<rows::compute<row, 0>>, {FLOAT});
