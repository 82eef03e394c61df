// Phases: of the overtones of a voice at every sample, from those at each frame.
//
//   phase    float [1, H, T]     in radians, H overtones
//   f0       float [1, 1, T]     in Hz
//   rest     float [2]           the F0 above which a frame is voiced; samples a frame, even
//   →        float [1, n, H]     n samples; 0 where the frame is not voiced
//
// A phase grows to hundreds of thousands of radians, where floats are hundredths apart, so it is rounded just as
// ONNX Runtime rounds it, step by step: interpolated in three directions, two of which are of length one or do
// not vary. What is not voiced is silenced in any case, and the sine of 0 is quickly found.
#include <algorithm>
#include <cmath>
#include <vector>

#include "operator.h"

namespace {

enum Input : size_t { PHASE, F0, REST };

constexpr int64_t FRAMES_A_TASK = 16;
constexpr float MOST_SAMPLES_A_FRAME = 65536.0f;

struct Work {
  int64_t overtones, frames, half;  // half a frame, in samples
  const float *phase, *f0;
  float threshold;
  float *y;
};

// Half a frame: its samples lie between the same two phases, and are all voiced or none.
void make_half(const Work &w, int64_t number) {
  const int64_t first = number * w.half;
  float *y = w.y + first * w.overtones;
  if (!(w.f0[number / 2] > w.threshold)) {
    std::fill(y, y + w.half * w.overtones, 0.0f);
    return;
  }
  const int64_t before = std::min(w.frames - 1, std::max<int64_t>(0, (number + 1) / 2 - 1));
  const int64_t behind = std::min(w.frames - 1, before + 1);
  thread_local std::vector<float> room;
  float *near = ort::room(room, 4 * w.half), *far = near + w.half, *a = far + w.half, *b = a + w.half;
  for (int64_t i = 0; i < w.half; ++i) {
    const float at = (static_cast<float>(first + i) + 0.5f) / static_cast<float>(2 * w.half) - 0.5f;
    const float inside = std::min(static_cast<float>(w.frames - 1), std::max(0.0f, at));
    near[i] = before == behind ? 0.5f : std::fabs(inside - static_cast<float>(behind));
    far[i] = before == behind ? 0.5f : std::fabs(inside - static_cast<float>(before));
  }
  for (int64_t h = 0; h < w.overtones; ++h) {
    const float from = w.phase[h * w.frames + before], to = w.phase[h * w.frames + behind];
    // The last overtone has no neighbour in the second direction either
    const bool last = h + 1 == w.overtones;
    const float share = last ? 0.25f : 0.5f;
    // Products first, sums then, so that no compiler fuses them: each is rounded
    for (int64_t i = 0; i < w.half; ++i) {
      a[i] = near[i] * share * from;
      b[i] = far[i] * share * to;
    }
    for (int64_t i = 0; i < w.half; ++i) {
      float z = a[i] + b[i] + a[i] + b[i];
      if (last) z = z + a[i] + b[i] + a[i] + b[i];
      y[i * w.overtones + h] = z;
    }
  }
}

void make_halves(const Work &w, int64_t task) {
  const int64_t first = task * FRAMES_A_TASK;
  for (int64_t half = 2 * first; half < 2 * std::min(w.frames, first + FRAMES_A_TASK); ++half) make_half(w, half);
}

void compute(const ort::Call &call) {
  const auto phase = call.input<float>(PHASE).shaped({1, ort::ANY, ort::ANY});
  const int64_t overtones = phase.sizes[1], frames = phase.sizes[2];
  const auto f0 = call.input<float>(F0).of(frames);
  const float *rest = call.input<float>(REST).of(2).data;
  if (!(rest[1] >= 2.0f && rest[1] <= MOST_SAMPLES_A_FRAME) || std::fmod(rest[1], 2.0f) != 0.0f)
    throw ort::Refused("a frame has %g samples: must be an even number from 2 to %g", static_cast<double>(rest[1]),
                       static_cast<double>(MOST_SAMPLES_A_FRAME));
  const int64_t half = static_cast<int64_t>(rest[1]) / 2;
  const Work work{overtones, frames, half, phase.data, f0.data, rest[0],
                  call.output({1, ort::count_of({frames, 2, half}), overtones})};
  call.parallel(make_halves, (frames + FRAMES_A_TASK - 1) / FRAMES_A_TASK, work);
}

}  // namespace

constexpr ort::Kernel ort::PHASES("Phases", guarded<compute>, {FLOAT, FLOAT, FLOAT});
