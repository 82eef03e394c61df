// Statistics: what an AdaIN layer of the vocoder multiplies by and adds.
//
//   x        float [1, C, N]
//   scale    float [C]   shift  float [C]
//   known    bool []           whether they hold the statistics of x already; if not, they are those of a tensor
//                              with mean 0 and variance 1, and x is looked at
//   →        float [C], [C]    scale and shift
#include <algorithm>
#include <cmath>

#include "fixed_sum.h"
#include "ort_abi.h"

namespace {

constexpr float EPSILON = 1e-5f;

struct Work {
  const float *x, *scale, *shift;
  float *own_scale, *own_shift;
  int64_t length;
};

void look_at(void *data, size_t channel) {
  const Work &w = *static_cast<Work *>(data);
  const int64_t c = static_cast<int64_t>(channel);
  const auto [mean, variance] = moments(w.x + c * w.length, w.length);
  w.own_scale[c] = w.scale[c] / std::sqrt(variance + EPSILON);
  w.own_shift[c] = w.shift[c] - mean * w.own_scale[c];
}

void compute(void *kernel, ort::Context *context) {
  const ort::Table t = static_cast<ort::Table>(kernel);
  const auto floats = [&](size_t index) { return ort::data<float>(t, ort::input(t, context, index)); };
  int64_t sizes[3];
  ort::dimensions(t, ort::input(t, context, 0), sizes, 3);
  const int64_t channels = sizes[1];
  Work work{floats(0), floats(1), floats(2), ort::output(t, context, &channels, 1, 0),
            ort::output(t, context, &channels, 1, 1), sizes[2]};
  if (*ort::data<bool>(t, ort::input(t, context, 3))) {
    std::copy_n(work.scale, channels, work.own_scale);
    std::copy_n(work.shift, channels, work.own_shift);
  } else {
    ort::parallel(t, context, look_at, channels, &work);
  }
}

}  // namespace

extern const ort::Operator STATISTICS = ort::describe<4, 2>(
    [](const ort::Operator *) { return "Statistics"; }, compute,
    [](const ort::Operator *, size_t index) { return index == 3 ? ort::BOOL : ort::FLOAT; });
