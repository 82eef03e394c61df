// Norm: instance normalisation by a style and the leaky rectifier behind it, in one pass instead of ten.
//
//   x        float [1, C, N]
//   style    float [1, 2 C]    scales, less one, and then shifts; there may be more behind them
//   rest     float [2]         added to the variance; slope below zero
//   known    bool []           optional, with the two behind it: whether they tell the statistics
//   mean     float [C]   variance  float [C]
//   →        float [1, C, N]
#include "norm.h"

#include "operator.h"

namespace {

enum Input : size_t { X, STYLE, REST, KNOWN, MEAN, VARIANCE };

struct Work {
  const float *x, *style, *rest;
  float *y;
  int64_t channels, length;
  Told told;
};

void normalise_channel(const Work &w, int64_t c) {
  const float *x = w.x + c * w.length;
  const Moments given = w.told.of(c, x, w.length);
  normalise(x, w.length, given, w.style[c], w.style[w.channels + c], w.rest, w.y + c * w.length);
}

void compute(const ort::Call &call) {
  const auto x = call.input<float>(X).shaped({1, ort::ANY, ort::ANY});
  const int64_t channels = x.sizes[1], length = x.sizes[2];
  const auto style = call.input<float>(STYLE).with(2 * channels), rest = call.input<float>(REST).of(2);
  const Told known = told(call, KNOWN, channels);
  const Work work{x.data, style.data, rest.data, call.output(x.sizes, 3), channels, length, known};
  if (length > 0) call.parallel(normalise_channel, channels, work);
}

}  // namespace

constexpr ort::Kernel ort::NORM("Norm", guarded<compute>, {FLOAT, FLOAT, FLOAT, BOOL, FLOAT, FLOAT}, 3);
