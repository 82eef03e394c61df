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
#include "operator.h"

namespace {

enum Input : size_t { X, SCALE, SHIFT, KNOWN };

constexpr float EPSILON = 1e-5f;

struct Work {
  const float *x, *scale, *shift;
  float *own_scale, *own_shift;
  int64_t length;
};

void look_at(const Work &w, int64_t c) {
  const auto [mean, variance] = moments(w.x + c * w.length, w.length);
  w.own_scale[c] = w.scale[c] / std::sqrt(variance + EPSILON);
  w.own_shift[c] = w.shift[c] - mean * w.own_scale[c];
}

void compute(const ort::Call &call) {
  const auto x = call.input<float>(X).shaped({1, ort::ANY, ort::ANY});
  const int64_t channels = x.sizes[1];
  const auto scale = call.input<float>(SCALE).of(channels), shift = call.input<float>(SHIFT).of(channels);
  const auto known = call.input<bool>(KNOWN).of(1);
  const Work work{x.data, scale.data, shift.data, call.output({channels}, 0), call.output({channels}, 1), x.sizes[2]};
  if (*known.data) {
    std::copy_n(work.scale, channels, work.own_scale);
    std::copy_n(work.shift, channels, work.own_shift);
  } else {
    call.parallel(look_at, channels, work);
  }
}

}  // namespace

constexpr ort::Kernel ort::STATISTICS("Statistics", guarded<compute>, {FLOAT, FLOAT, FLOAT, BOOL}, 0, 2);
