// Norm: instance normalisation by a style and the leaky rectifier behind it, in one pass instead of ten.
//
//   x        float [1, C, N]
//   style    float [1, 2 C]    scales, less one, and then shifts
//   rest     float [2]         added to the variance; slope below zero
//   known    bool []           optional, with the two behind it: whether they tell the statistics
//   mean     float [C]   variance  float [C]
//   →        float [1, C, N]
#include "norm.h"

#include "ort_abi.h"

namespace {

struct Work {
  const float *x, *style, *rest;
  float *y;
  int64_t channels, length;
  Told told;
};

void normalise_channel(void *data, size_t channel) {
  const Work &w = *static_cast<Work *>(data);
  const int64_t c = static_cast<int64_t>(channel);
  const float *x = w.x + c * w.length;
  const Moments given = w.told.of(c, x, w.length);
  normalise(x, w.length, given, w.style[c], w.style[w.channels + c], w.rest, w.y + c * w.length);
}

void compute(void *kernel, ort::Context *context) {
  const ort::Table t = static_cast<ort::Table>(kernel);
  const auto floats = [&](size_t index) { return ort::data<float>(t, ort::input(t, context, index)); };
  int64_t sizes[3];
  ort::dimensions(t, ort::input(t, context, 0), sizes, 3);
  float *y = ort::output(t, context, sizes, 3);
  Work work{floats(0), floats(1), floats(2), y, sizes[1], sizes[2], told(t, context, 3)};
  if (work.length > 0) ort::parallel(t, context, normalise_channel, work.channels, &work);
}

}  // namespace

extern const ort::Operator NORM = ort::describe<6, 1, 3>(
    [](const ort::Operator *) { return "Norm"; }, compute,
    [](const ort::Operator *, size_t index) { return index == 3 ? ort::BOOL : ort::FLOAT; });
