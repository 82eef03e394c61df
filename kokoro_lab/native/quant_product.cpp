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
#include <cstring>
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
  const int8_t *weights;
  const int32_t *sums;
  float *y, *steps;
  int32_t *words;
  uint8_t *large;  // steps that saturate, where any do
};

// A block of rows as columns of words.
void quantise(const Work &w, int64_t block) {
  const int64_t begin = block * COLUMNS, end = std::min(w.rows, begin + COLUMNS);
  thread_local std::vector<uint8_t> bytes;
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
    uint8_t *row = ort::room(bytes, w.inputs);
#pragma omp simd
    for (int64_t k = 0; k < w.inputs; ++k) {
      const int32_t level = static_cast<int32_t>(std::nearbyint(x[k] * w.profile[k] * inverse) + MIDDLE);
      row[k] = static_cast<uint8_t>(FLIP ? level ^ 0x80 : level);
    }
    for (int64_t group = 0; group < w.inputs / 4; ++group)
      std::memcpy(w.words + group * w.stride + n, row + 4 * group, 4);
  }
}

void find_large_of(const Work &w, int64_t tile) {
  find_large(w.weights + tile * w.inputs * TILE, w.inputs / 4, w.large + tile * (w.inputs / 4));
}

void multiply_block(const Work &w, int64_t task) {
  const int64_t begin = task / w.shared * COLUMNS;
  const int64_t columns = std::min<int64_t>(COLUMNS, w.rows - begin);
  const int64_t first = task % w.shared * OUTPUTS_A_TASK;
  const int64_t last = std::min(w.outputs, first + OUTPUTS_A_TASK);
  int32_t sums[TILE * COLUMNS];
  for (int64_t o = first; o < last; o += TILE) {
    multiply<Quads>(columns, w.words + begin, w.stride, w.inputs / 4, 1, 0, w.weights + o * w.inputs,
                    SATURATES ? w.large + o / TILE * (w.inputs / 4) : nullptr, sums);
    float made[TILE][COLUMNS];
    for (int r = 0; r < TILE; ++r) {
      // Without a sign, where what does not fit wraps around
      const uint32_t offset = FLIP ? 0 : static_cast<uint32_t>(MIDDLE) * static_cast<uint32_t>(w.sums[o + r]);
      for (int64_t n = 0; n < columns; ++n) {
        const int32_t sum = static_cast<int32_t>(static_cast<uint32_t>(sums[r * COLUMNS + n]) - offset);
        made[r][n] = static_cast<float>(sum) * (w.steps[begin + n] * w.scale[o + r]);
      }
    }
    for (int64_t n = 0; n < columns; ++n)
      for (int r = 0; r < TILE; ++r) w.y[(begin + n) * w.outputs + o + r] = made[r][n];
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
  thread_local std::vector<uint8_t> large;
  const int64_t tiles = SATURATES ? outputs / TILE : 0;
  // A line here is a line of the struct
  const Work work{rows, inputs, outputs, stride, (outputs + OUTPUTS_A_TASK - 1) / OUTPUTS_A_TASK,
                  x.data, scale.data, profile.data,
                  weights.data,
                  sums.data,
                  y, ort::room(steps, rows),
                  ort::room(words, ort::count_of({inputs / 4, stride})),
                  ort::room(large, ort::count_of({tiles, inputs / 4}))};
  call.parallel(find_large_of, tiles, work);
  call.parallel(quantise, blocks, work);
  call.parallel(multiply_block, blocks * work.shared, work);
}

}  // namespace

constexpr ort::Kernel ort::QUANT_PRODUCT("QuantProduct", guarded<compute>, {FLOAT, INT8, INT32, FLOAT, FLOAT});
