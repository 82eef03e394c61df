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
#include "ort_abi.h"
#include "quant_tile.h"
#include "snake.h"

namespace {

constexpr int64_t CHANNELS_A_TASK = 64;

struct Work {
  int64_t channels_out, channels_in, taps, dilation;
  const float *x, *steps, *outputs, *scale, *shift;  // no scale, no activation
  const float *by;                                   // none if nothing is to be added
  const int8_t *weights;
  const int32_t *sums;
  float *y;
  int32_t *words;
  int64_t x_channels, length, reach;
  Columns asked;
  int64_t stride;  // words of four channels: the first is `reach` before the first column that is asked for
  int64_t shared;  // tasks that one block is divided into
};

// Four input channels as bytes of one row of words, with the padding.
void quantise(void *data, size_t group) {
  const Work &w = *static_cast<Work *>(data);
  int32_t *row = w.words + static_cast<int64_t>(group) * w.stride;
  std::memset(row, 0, w.stride * sizeof(int32_t));
  uint32_t padding = 0;
  // Column i is at out[i]; these are there
  int32_t *out = row + w.reach - w.asked.first;
  const int64_t from = std::max<int64_t>(0, w.asked.first - w.reach);
  const int64_t to = std::min(w.length, w.asked.first - w.reach + w.stride);
  for (int lane = 0; lane < 4; ++lane) {
    const int64_t channel = 4 * static_cast<int64_t>(group) + lane;
    if (channel >= w.x_channels) break;  // its weights are zero
    const float *x = w.x + channel * w.length;
    const float inverse = w.steps[channel], zero = w.steps[w.x_channels + channel];
    const float scale = w.scale != nullptr ? w.scale[channel] : 0.0f;
    const float shift = w.scale != nullptr ? w.shift[channel] : 0.0f;
    const bool active = w.scale != nullptr;
    padding |= static_cast<uint32_t>(zero) << (8 * lane);
    const auto byte = [&](float value) {
      const float level = std::nearbyint(value * inverse) + zero;
      return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int32_t>(
                                      level < 0.0f ? 0.0f : (level > 255.0f ? 255.0f : level)))
                                  << (8 * lane));
    };
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

// One block of columns for a share of the output channels.
void convolve(void *data, size_t task) {
  const Work &w = *static_cast<Work *>(data);
  const int64_t at = static_cast<int64_t>(task) / w.shared * COLUMNS, begin = w.asked.first + at;
  const int64_t columns = std::min<int64_t>(COLUMNS, w.asked.last - begin);
  const int64_t first = static_cast<int64_t>(task) % w.shared * CHANNELS_A_TASK;
  const int64_t last = std::min(w.channels_out, first + CHANNELS_A_TASK);
  int32_t sums[TILE * COLUMNS];
  for (int64_t channel = first; channel < last; channel += TILE) {
    multiply(columns, w.words + at, w.stride, w.channels_in / 4, w.taps, w.dilation,
             w.weights + channel * w.channels_in * w.taps, sums);
    for (int64_t r = 0; r < TILE; ++r) {
      const int64_t o = channel + r;
      const int32_t offset = (FLIP ? 128 * w.sums[w.channels_out + o] : 0) - w.sums[o];
      const float factor = w.outputs[o], bias = w.outputs[w.channels_out + o];
      float *y = w.y + o * w.length + begin;
      for (int64_t i = 0; i < columns; ++i)
        y[i] = static_cast<float>(sums[r * COLUMNS + i] + offset) * factor + bias;
      if (w.by != nullptr) {
        const float *by = w.by + o * w.length + begin;
        for (int64_t i = 0; i < columns; ++i) y[i] += by[i];
      }
    }
  }
}

template <bool Snake>
void compute(void *kernel, ort::Context *context) {
  const ort::Table t = static_cast<ort::Table>(kernel);
  const auto floats = [&](size_t index) { return ort::data<float>(t, ort::input(t, context, index)); };
  const ort::Value *x = ort::input(t, context, 0);
  const int64_t *plan = ort::data<int64_t>(t, ort::input(t, context, 1));
  int64_t sizes[3];
  ort::dimensions(t, x, sizes, 3);
  const int64_t channels = sizes[1], length = sizes[2];
  sizes[1] = plan[0];
  float *y = ort::output(t, context, sizes, 3);
  if (length == 0) return;
  const Columns asked = asked_for(t, context, Snake ? 8 : 6, length);
  const ort::Value *added = Snake ? ort::input(t, context, 10) : nullptr;
  const float *by = added == nullptr ? nullptr : ort::data<float>(t, added);
  clear_others(y, plan[0], length, asked, by);
  const int64_t blocks = (asked.last - asked.first + COLUMNS - 1) / COLUMNS, reach = plan[2] / 2 * plan[3];
  const int64_t stride = blocks * COLUMNS + 2 * reach;
  thread_local std::vector<int32_t> words;
  words.resize(plan[1] / 4 * stride);
  Work work{plan[0],
            plan[1],
            plan[2],
            plan[3],
            ort::data<float>(t, x),
            floats(4),
            floats(5),
            Snake ? floats(6) : nullptr,
            Snake ? floats(7) : nullptr,
            by,
            ort::data<int8_t>(t, ort::input(t, context, 2)),
            ort::data<int32_t>(t, ort::input(t, context, 3)),
            y,
            words.data(),
            channels,
            length,
            reach,
            asked,
            stride,
            (plan[0] + CHANNELS_A_TASK - 1) / CHANNELS_A_TASK};
  ort::parallel(t, context, quantise, plan[1] / 4, &work);
  ort::parallel(t, context, convolve, blocks * work.shared, &work);
}

template <bool Snake>
int input_type(const ort::Operator *, size_t index) {
  constexpr int TYPES[] = {ort::FLOAT, ort::INT64, ort::INT8, ort::INT32};
  if (index < 4) return TYPES[index];
  return index < (Snake ? 8 : 6) || index == 10 ? ort::FLOAT : ort::INT64;
}

}  // namespace

extern const ort::Operator QUANT_CONV = ort::describe<8, 1, 2>(
    [](const ort::Operator *) { return "QuantConv"; }, compute<false>, input_type<false>);
extern const ort::Operator QUANT_SNAKE_CONV = ort::describe<11, 1, 3>(
    [](const ort::Operator *) { return "QuantSnakeConv"; }, compute<true>, input_type<true>);
