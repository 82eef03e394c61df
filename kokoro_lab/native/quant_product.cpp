// QuantProduct: a product of matrices in 8-bit integers between floats; each row finds its own step.
//
//   x        float [.., N, K]            K a multiple of four
//   weights  int8 [M / 8][K / 4][8][4]
//   sums     int32 [M]                   of the weights of each output
//   scale    float [M]
//   profile  float [K]                   one over what each input usually reaches; folded into the weights
//   →        float [.., N, M]
//
// With the profile taken off, a row's step is its largest magnitude over 127: nothing is clipped, no input
// drowns the others, and no token the next one.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ort_abi.h"
#include "quant_tile.h"

namespace {

constexpr int64_t OUTPUTS_A_TASK = 64;
constexpr float MIDDLE = 128.0f, LEVELS = 127.0f;

struct Work {
  int64_t rows, inputs, outputs, stride, shared;
  const float *x, *scale, *profile;
  const int8_t *weights;
  const int32_t *sums;
  float *y, *steps;
  int32_t *words;
};

// A block of rows as columns of words.
void quantise(void *data, size_t block) {
  const Work &w = *static_cast<Work *>(data);
  const int64_t begin = static_cast<int64_t>(block) * COLUMNS, end = std::min(w.rows, begin + COLUMNS);
  for (int64_t n = begin; n < end; ++n) {
    const float *x = w.x + n * w.inputs;
    float largest = 0.0f;
#pragma omp simd reduction(max : largest)
    for (int64_t k = 0; k < w.inputs; ++k) largest = std::max(largest, std::fabs(x[k] * w.profile[k]));
    const float step = largest / LEVELS, inverse = largest > 0.0f ? LEVELS / largest : 0.0f;
    w.steps[n] = step;
    for (int64_t group = 0; group < w.inputs / 4; ++group) {
      uint32_t word = 0;
      for (int lane = 0; lane < 4; ++lane) {
        const float level = std::nearbyint(x[4 * group + lane] * w.profile[4 * group + lane] * inverse) + MIDDLE;
        word |= static_cast<uint32_t>(static_cast<int32_t>(level)) << (8 * lane);
      }
      w.words[group * w.stride + n] = static_cast<int32_t>(word) ^ (FLIP ? static_cast<int32_t>(0x80808080u) : 0);
    }
  }
}

void multiply_block(void *data, size_t task) {
  const Work &w = *static_cast<Work *>(data);
  const int64_t begin = static_cast<int64_t>(task) / w.shared * COLUMNS;
  const int64_t columns = std::min<int64_t>(COLUMNS, w.rows - begin);
  const int64_t first = static_cast<int64_t>(task) % w.shared * OUTPUTS_A_TASK;
  const int64_t last = std::min(w.outputs, first + OUTPUTS_A_TASK);
  int32_t sums[TILE * COLUMNS];
  for (int64_t o = first; o < last; o += TILE) {
    multiply(columns, w.words + begin, w.stride, w.inputs / 4, 1, 0, w.weights + o * w.inputs, sums);
    for (int64_t n = 0; n < columns; ++n) {
      float *y = w.y + (begin + n) * w.outputs + o;
      const float step = w.steps[begin + n];
      for (int r = 0; r < TILE; ++r) {
        const int32_t offset = FLIP ? 0 : static_cast<int32_t>(MIDDLE) * w.sums[o + r];
        y[r] = static_cast<float>(sums[r * COLUMNS + n] - offset) * (step * w.scale[o + r]);
      }
    }
  }
}

void compute(void *kernel, ort::Context *context) {
  const ort::Table t = static_cast<ort::Table>(kernel);
  const ort::Value *x = ort::input(t, context, 0), *scale = ort::input(t, context, 3);
  int64_t sizes[3], outputs;
  ort::dimensions(t, x, sizes, 3);
  ort::dimensions(t, scale, &outputs, 1);
  const int64_t rows = sizes[0] * sizes[1], inputs = sizes[2];
  sizes[2] = outputs;
  float *y = ort::output(t, context, sizes, 3);
  if (rows == 0) return;
  const int64_t blocks = (rows + COLUMNS - 1) / COLUMNS, stride = blocks * COLUMNS;
  thread_local std::vector<int32_t> words;
  thread_local std::vector<float> steps;
  words.resize(inputs / 4 * stride);
  steps.resize(rows);
  Work work{rows,
            inputs,
            outputs,
            stride,
            (outputs + OUTPUTS_A_TASK - 1) / OUTPUTS_A_TASK,
            ort::data<float>(t, x),
            ort::data<float>(t, scale),
            ort::data<float>(t, ort::input(t, context, 4)),
            ort::data<int8_t>(t, ort::input(t, context, 1)),
            ort::data<int32_t>(t, ort::input(t, context, 2)),
            y,
            steps.data(),
            words.data()};
  ort::parallel(t, context, quantise, blocks, &work);
  ort::parallel(t, context, multiply_block, blocks * work.shared, &work);
}

}  // namespace

extern const ort::Operator QUANT_PRODUCT = ort::describe<5>(
    [](const ort::Operator *) { return "QuantProduct"; }, compute, [](const ort::Operator *, size_t index) {
      return index == 1 ? ort::INT8 : index == 2 ? ort::INT32 : ort::FLOAT;
    });
