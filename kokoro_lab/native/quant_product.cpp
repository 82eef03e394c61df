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

#include "operator.h"
#include "quant_tile.h"

namespace {

constexpr int64_t OUTPUTS_A_TASK = 64;
constexpr float MIDDLE = 128.0f, LEVELS = 127.0f;

enum Input : size_t { X, WEIGHTS, SUMS, SCALE, PROFILE };

struct Work {
  int64_t rows, inputs, outputs, stride, shared;
  const float *x, *scale, *profile;
  Weights weights;
  const int32_t *sums;
  float *y, *steps;
  int32_t *words;
};

// A block of rows as columns of words.
void quantise(const Work &w, int64_t block) {
  const int64_t begin = block * COLUMNS, end = std::min(w.rows, begin + COLUMNS);
  for (int64_t n = begin; n < end; ++n) {
    const float *x = w.x + n * w.inputs;
    float largest = 0.0f, nothing = 0.0f;  // the latter, unless something is not finite
#pragma omp simd reduction(max : largest) reduction(+ : nothing)
    for (int64_t k = 0; k < w.inputs; ++k) {
      const float level = x[k] * w.profile[k];
      largest = std::max(largest, std::fabs(level));
      nothing += level * 0.0f;
    }
    const float step = largest / LEVELS + nothing;
    const float inverse = largest > 0.0f ? LEVELS / largest : 0.0f;
    w.steps[n] = step;
    if (nothing != 0.0f) {  // all that this row makes is no number
      for (int64_t group = 0; group < w.inputs / 4; ++group) w.words[group * w.stride + n] = 0;
      continue;
    }
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

void pair(const Work &w, int64_t tile) { w.weights.pair(tile); }

void multiply_block(const Work &w, int64_t task) {
  const int64_t begin = task / w.shared * COLUMNS;
  const int64_t columns = std::min<int64_t>(COLUMNS, w.rows - begin);
  const int64_t first = task % w.shared * OUTPUTS_A_TASK;
  const int64_t last = std::min(w.outputs, first + OUTPUTS_A_TASK);
  int32_t sums[TILE * COLUMNS];
  for (int64_t o = first; o < last; o += TILE) {
    multiply(w.weights, o / TILE, columns, w.words + begin, sums);
    for (int64_t n = 0; n < columns; ++n) {
      float *y = w.y + (begin + n) * w.outputs + o;
      const float step = w.steps[begin + n];
      for (int r = 0; r < TILE; ++r) {
        // Without a sign, where what does not fit wraps around
        const uint32_t offset = FLIP ? 0 : static_cast<uint32_t>(MIDDLE) * static_cast<uint32_t>(w.sums[o + r]);
        const int32_t sum = static_cast<int32_t>(static_cast<uint32_t>(sums[r * COLUMNS + n]) - offset);
        y[r] = static_cast<float>(sum) * (step * w.scale[o + r]);
      }
    }
  }
}

void compute(const ort::Call &call) {
  auto x = call.input<float>(X);
  const auto scale = call.input<float>(SCALE);
  const int64_t inputs = x.rank == 0 ? 0 : x.sizes[x.rank - 1], outputs = scale.count;
  if (inputs < 1 || inputs % 4 != 0 || inputs > MOST_SUMMED)
    throw ort::Refused("rows of %lld values: must be a multiple of 4, up to %lld", ort::shown(inputs),
                       ort::shown(MOST_SUMMED));
  if (outputs % TILE != 0)
    throw ort::Refused("%lld outputs: must be a multiple of %d", ort::shown(outputs), TILE);
  const auto weights = call.input<int8_t>(WEIGHTS).of(ort::count_of({outputs, inputs}));
  const auto sums = call.input<int32_t>(SUMS).of(outputs);
  const auto profile = call.input<float>(PROFILE).of(inputs);
  const int64_t rows = x.count / inputs;
  x.sizes[x.rank - 1] = outputs;
  float *y = call.output(x.sizes, x.rank);
  const int64_t blocks = (rows + COLUMNS - 1) / COLUMNS, stride = blocks * COLUMNS;
  thread_local std::vector<int32_t> words;
  thread_local std::vector<float> steps;
  // A line here is a line of the struct
  const Work work{rows, inputs, outputs, stride, (outputs + OUTPUTS_A_TASK - 1) / OUTPUTS_A_TASK,
                  x.data, scale.data, profile.data,
                  Weights(weights.data, outputs, {inputs / 4, 1, stride, 0}),
                  sums.data,
                  y, ort::room(steps, rows),
                  ort::room(words, ort::count_of({inputs / 4, stride}))};
  if (Weights::PAIRED) call.parallel(pair, outputs / TILE, work);
  call.parallel(quantise, blocks, work);
  call.parallel(multiply_block, blocks * work.shared, work);
}

}  // namespace

constexpr ort::Kernel ort::QUANT_PRODUCT("QuantProduct", guarded<compute>, {FLOAT, INT8, INT32, FLOAT, FLOAT});
