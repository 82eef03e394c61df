// Arctangent: of each value, the same on every processor that multiplies and adds at once.
//
//   x        float, any shape
//   →        float, the same
//
// ONNX Runtime's differs in its last bit from one processor to the next. Behind it are integers, where a last bit
// becomes another byte now and then, that byte others further on, and two machines end 30 dB apart.
#include <algorithm>
#include <cmath>

#include "ort_abi.h"

namespace {

constexpr int64_t VALUES_A_TASK = 4096;
constexpr size_t MOST_DIMENSIONS = 8;

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

struct Work {
  const float *x;
  float *y;
  int64_t count;
};

void turn(void *data, size_t task) {
  const Work &w = *static_cast<Work *>(data);
  const int64_t begin = static_cast<int64_t>(task) * VALUES_A_TASK, end = std::min(begin + VALUES_A_TASK, w.count);
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) w.y[i] = arctangent(w.x[i]);
}

void compute(void *kernel, ort::Context *context) {
  const ort::Table t = static_cast<ort::Table>(kernel);
  const ort::Value *x = ort::input(t, context, 0);
  int64_t sizes[MOST_DIMENSIONS], count = 1;
  const size_t rank = ort::dimensions(t, x, sizes, MOST_DIMENSIONS);
  for (size_t i = 0; i < rank; ++i) count *= sizes[i];
  Work work{ort::data<float>(t, x), ort::output(t, context, sizes, rank), count};
  ort::parallel(t, context, turn, (count + VALUES_A_TASK - 1) / VALUES_A_TASK, &work);
}

}  // namespace

extern const ort::Operator ARCTANGENT = ort::describe<1>(
    [](const ort::Operator *) { return "Arctangent"; }, compute,
    [](const ort::Operator *, size_t) { return ort::FLOAT; });
