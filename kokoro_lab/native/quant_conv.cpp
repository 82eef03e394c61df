// QuantConv: a convolution of 8-bit integers between floats. QuantSnakeConv: modulation and Snake in front of it.
//
//   x        float [1, Ci, N]
//   plan     int64 [4]                      Co, Ci rounded up to a multiple of four, taps, dilation
//   weights  int8 [Co / 8][Ci / 4][taps][8][4]
//   sums     int32 [2, Co]                  what the zero points add up to, and the weights, of each output
//   steps    float [2, Ci]                  one over the step of each input channel, and its zero point
//   outputs  float [2, Co]                  what a sum is multiplied with, and the bias
//   scale    float [Ci]   shift float [Ci]  QuantSnakeConv alone: z = scale * x + shift, then z - cos z + 1
//   asked    int64 [2]   around int64 [2]   optional: see asked_for.h
//   by       float [1, Co, N]               QuantSnakeConv alone, and optional: added to what comes out
//   →        float [1, Co, N], zero padding, the same length
//
// Two steps, both spread over the threads of the session. First the input, activated and quantised to
// bytes of 0 to 255, four channels to a word, for that is what the processors' dot products take. Then the
// products: a tile of output channels by three vectors of samples stays in registers while all input
// channels and taps go by. Sums of integers are exact, so nothing depends on the threads or their order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "asked_for.h"
#include "operator.h"
#include "quant_tile.h"
#include "snake.h"

namespace {

constexpr int64_t CHANNELS_A_TASK = 64;

enum Input : size_t { X, PLAN, WEIGHTS, SUMS, STEPS, OUTPUTS, ASKED_ALONE };
enum SnakeInput : size_t { SCALE = ASKED_ALONE, SHIFT, ASKED, AROUND, BY };

struct Work {
  int64_t channels_out, channels_in;
  const float *x, *steps, *outputs, *scale, *shift;  // no scale, no activation
  const float *by;                                   // none if nothing is to be added
  Weights weights;
  const int32_t *sums;
  float *y;
  int32_t *words;
  int64_t x_channels, length, reach;
  Columns asked;
  int64_t stride;  // words of four channels: the first is `reach` before the first column that is asked for
  int64_t shared;  // tasks that one block is divided into
};

// Four input channels as bytes of one row of words, with the padding.
void quantise(const Work &w, int64_t group) {
  int32_t *row = w.words + group * w.stride;
  std::memset(row, 0, w.stride * sizeof(int32_t));
  uint32_t padding = 0;
  // Column i is at out[i]; these are there
  int32_t *out = row + w.reach - w.asked.first;
  const int64_t from = std::max<int64_t>(0, w.asked.first - w.reach);
  const int64_t to = std::min(w.length, w.asked.first - w.reach + w.stride);
  for (int lane = 0; lane < 4; ++lane) {
    const int64_t channel = 4 * group + lane;
    if (channel >= w.x_channels) break;  // its weights are zero
    const float *x = w.x + channel * w.length;
    const float inverse = w.steps[channel], zero = w.steps[w.x_channels + channel];
    const float scale = w.scale != nullptr ? w.scale[channel] : 0.0f;
    const float shift = w.scale != nullptr ? w.shift[channel] : 0.0f;
    const bool active = w.scale != nullptr;
    // What is not a number is 0, so that it fits into a byte
    const auto shifted = [lane](float level) {
      level = level > 0.0f ? level : 0.0f;
      return static_cast<uint32_t>(static_cast<int32_t>(level > 255.0f ? 255.0f : level)) << (8 * lane);
    };
    padding |= shifted(zero);
    const auto byte = [&](float value) { return static_cast<int32_t>(shifted(std::nearbyint(value * inverse) + zero)); };
    if (active) {
#pragma omp simd
      for (int64_t i = from; i < to; ++i) out[i] |= byte(snake(x[i] * scale + shift));
    } else {
#pragma omp simd
      for (int64_t i = from; i < to; ++i) out[i] |= byte(x[i]);
    }
  }
  const int32_t flip = FLIP ? static_cast<int32_t>(0x80808080u) : 0;
  const int32_t outside = static_cast<int32_t>(padding) ^ flip;
  if (FLIP)
    for (int64_t i = from; i < to; ++i) out[i] ^= flip;
  std::fill(row, out + from, outside);
  std::fill(out + to, row + w.stride, outside);
}

void pair(const Work &w, int64_t tile) { w.weights.pair(tile); }

// One block of columns for a share of the output channels.
void convolve(const Work &w, int64_t task) {
  const int64_t at = task / w.shared * COLUMNS, begin = w.asked.first + at;
  const int64_t columns = std::min<int64_t>(COLUMNS, w.asked.last - begin);
  const int64_t first = task % w.shared * CHANNELS_A_TASK;
  const int64_t last = std::min(w.channels_out, first + CHANNELS_A_TASK);
  int32_t sums[TILE * COLUMNS];
  for (int64_t channel = first; channel < last; channel += TILE) {
    multiply(w.weights, channel / TILE, columns, w.words + at, sums);
    for (int64_t r = 0; r < TILE; ++r) {
      const int64_t o = channel + r;
      // Without a sign, where what does not fit wraps around
      const uint32_t of_weights = static_cast<uint32_t>(w.sums[w.channels_out + o]);
      const uint32_t offset = (FLIP ? 128 * of_weights : 0) - static_cast<uint32_t>(w.sums[o]);
      const float factor = w.outputs[o], bias = w.outputs[w.channels_out + o];
      float *y = w.y + o * w.length + begin;
      for (int64_t i = 0; i < columns; ++i)
        y[i] = static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(sums[r * COLUMNS + i]) + offset)) * factor +
               bias;
      if (w.by != nullptr) {
        const float *by = w.by + o * w.length + begin;
        for (int64_t i = 0; i < columns; ++i) y[i] += by[i];
      }
    }
  }
}

// What the second input says of a convolution of `channels` inputs.
struct Plan {
  int64_t channels_out, channels_in, taps, dilation;

  Plan(const int64_t *p, int64_t channels) : channels_out(p[0]), channels_in(p[1]), taps(p[2]), dilation(p[3]) {
    if (channels_out < 1 || channels_out > ort::MOST_NUMBER || channels_out % TILE != 0)
      throw ort::Refused("%lld output channels: must be a multiple of %d", ort::shown(channels_out), TILE);
    if (channels_in != (channels + 3) / 4 * 4)
      throw ort::Refused("the plan is for %lld input channels, and there are %lld", ort::shown(channels_in),
                         ort::shown(channels));
    if (taps < 1 || taps % 2 == 0 || taps > MOST_SUMMED || channels_in * taps > MOST_SUMMED)
      throw ort::Refused("%lld channels by %lld taps: must be an odd number of taps, and %lld products at most",
                         ort::shown(channels_in), ort::shown(taps), ort::shown(MOST_SUMMED));
    if (dilation < 1 || dilation > MOST_SUMMED)
      throw ort::Refused("a dilation of %lld: must be 1 to %lld", ort::shown(dilation), ort::shown(MOST_SUMMED));
  }
};

template <bool Snake>
void compute(const ort::Call &call) {
  const auto x = call.input<float>(X).shaped({1, ort::ANY, ort::ANY});
  const int64_t channels = x.sizes[1], length = x.sizes[2];
  const Plan plan(call.input<int64_t>(PLAN).of(4).data, channels);
  const auto weights = call.input<int8_t>(WEIGHTS).of(ort::count_of({plan.channels_out, plan.channels_in, plan.taps}));
  const auto sums = call.input<int32_t>(SUMS).of(2 * plan.channels_out);
  const auto steps = call.input<float>(STEPS).of(2 * channels);
  const auto outputs = call.input<float>(OUTPUTS).of(2 * plan.channels_out);
  const float *scale = nullptr, *shift = nullptr, *by = nullptr;
  if (Snake) {
    scale = call.input<float>(SCALE).of(channels).data;
    shift = call.input<float>(SHIFT).of(channels).data;
    by = call.optional<float>(BY).data_of(ort::count_of({plan.channels_out, length}));
  }
  const Columns asked = asked_for(call, Snake ? ASKED : ASKED_ALONE, length);
  float *y = call.output({1, plan.channels_out, length});
  if (length == 0) return;
  clear_others(y, plan.channels_out, length, asked, by);
  const int64_t blocks = (asked.last - asked.first + COLUMNS - 1) / COLUMNS, reach = plan.taps / 2 * plan.dilation;
  const int64_t stride = blocks * COLUMNS + 2 * reach;
  thread_local std::vector<int32_t> words;
  // A line here is a line of the struct
  const Work work{plan.channels_out, plan.channels_in,
                  x.data, steps.data, outputs.data, scale, shift,
                  by,
                  Weights(weights.data, plan.channels_out, {plan.channels_in / 4, plan.taps, stride, plan.dilation}),
                  sums.data,
                  y,
                  ort::room(words, ort::count_of({plan.channels_in / 4, stride})),
                  channels, length, reach,
                  asked,
                  stride,
                  (plan.channels_out + CHANNELS_A_TASK - 1) / CHANNELS_A_TASK};
  if (Weights::PAIRED) call.parallel(pair, plan.channels_out / TILE, work);
  call.parallel(quantise, plan.channels_in / 4, work);
  call.parallel(convolve, blocks * work.shared, work);
}

}  // namespace

constexpr ort::Kernel ort::QUANT_CONV("QuantConv", guarded<compute<false>>,
                                      {FLOAT, INT64, INT8, INT32, FLOAT, FLOAT, INT64, INT64}, 2);
constexpr ort::Kernel ort::QUANT_SNAKE_CONV("QuantSnakeConv", guarded<compute<true>>,
                                            {FLOAT, INT64, INT8, INT32, FLOAT, FLOAT, FLOAT, FLOAT, INT64, INT64,
                                             FLOAT}, 3);
