// Product: a product of matrices in floats, the second of which is known beforehand.
//
//   x        float [.., N, K]
//   weights  float [M / 32][K][32]       M a multiple of 32
//   →        float [.., N, M]
//
// The same sums as ONNX Runtime's own, in the same order and so to the last bit: 256 inputs one after the other,
// then the next 256, which are added as a whole. What is faster is the way to the weights: a text of one sentence
// has so few rows that they are hardly there when they are needed no more. While one block of them is multiplied,
// the next one is asked for.
#include <algorithm>

#include "ort_abi.h"

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 12;
#elif defined(__AVX__)
constexpr int LANES = 8, ROWS = 6;
#else
constexpr int LANES = 4, ROWS = 8;
#endif
constexpr int64_t PANEL = 32, WIDE = 2 * LANES, BLOCK = 256;
constexpr int64_t LINE_BYTES = 64;
using Vector __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias)) = float;

struct Work {
  int64_t rows, inputs, outputs;
  const float *x, *weights;
  float *y;
};

// `R` rows by two vectors of outputs, over one block of inputs. Meanwhile asks for `next`, `stride` bytes an input.
template <int R>
void multiply(const float *x, int64_t inputs, int64_t count, const float *weights, float *y, int64_t outputs, bool adds,
              const char *next, int64_t stride) {
  Vector sums[R][2] = {};
  for (int64_t k = 0; k < count; ++k) {
    __builtin_prefetch(next + k * stride, 0, 2);
    const Vector *w = reinterpret_cast<const Vector *>(weights + k * PANEL);
    const Vector left = w[0], right = w[1];
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const float value = x[r * inputs + k];
      sums[r][0] += left * value;
      sums[r][1] += right * value;
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < 2; ++v) {
      Vector *to = reinterpret_cast<Vector *>(y + r * outputs + v * LANES);
      *to = adds ? *to + sums[r][v] : sums[r][v];
    }
}

using Multiply = void (*)(const float *, int64_t, int64_t, const float *, float *, int64_t, bool, const char *, int64_t);

template <int R>
Multiply of_rows(int64_t rows) {
  if constexpr (R == 1)
    return multiply<1>;
  else
    return rows == R ? multiply<R> : of_rows<R - 1>(rows);
}

// 32 outputs of all rows.
void multiply_panel(void *data, size_t panel) {
  const Work &w = *static_cast<Work *>(data);
  const float *weights = w.weights + static_cast<int64_t>(panel) * w.inputs * PANEL;
  float *y = w.y + static_cast<int64_t>(panel) * PANEL;
  // As few tiles as there can be, all of about the same height
  const int64_t tiles = (w.rows + ROWS - 1) / ROWS;
  const int64_t passes = tiles * (PANEL / WIDE);
  for (int64_t from = 0; from < w.inputs; from += BLOCK) {
    const int64_t count = std::min(BLOCK, w.inputs - from);
    const char *next = reinterpret_cast<const char *>(weights + (from + count) * PANEL);
    // Each pass asks for its share of the next block, in whole lines
    const int64_t stride = std::max(LINE_BYTES, PANEL * static_cast<int64_t>(sizeof(float)) / passes / LINE_BYTES * LINE_BYTES);
    for (int64_t pass = 0; pass < passes; ++pass) {
      const int64_t tile = pass % tiles, column = pass / tiles * WIDE;
      const int64_t begin = w.rows * tile / tiles, end = w.rows * (tile + 1) / tiles;
      of_rows<ROWS>(end - begin)(w.x + begin * w.inputs + from, w.inputs, count, weights + from * PANEL + column,
                                 y + begin * w.outputs + column, w.outputs, from > 0, next + pass * count * stride, stride);
    }
  }
}

void compute(void *kernel, ort::Context *context) {
  const ort::Table t = static_cast<ort::Table>(kernel);
  const ort::Value *x = ort::input(t, context, 0), *weights = ort::input(t, context, 1);
  int64_t sizes[3], packed[3];
  ort::dimensions(t, x, sizes, 3);
  ort::dimensions(t, weights, packed, 3);
  const int64_t rows = sizes[0] * sizes[1], inputs = sizes[2], outputs = packed[0] * PANEL;
  sizes[2] = outputs;
  float *y = ort::output(t, context, sizes, 3);
  if (rows == 0) return;
  Work work{rows, inputs, outputs, ort::data<float>(t, x), ort::data<float>(t, weights), y};
  ort::parallel(t, context, multiply_panel, outputs / PANEL, &work);
}

}  // namespace

extern const ort::Operator PRODUCT = ort::describe<2>(
    [](const ort::Operator *) { return "Product"; }, compute, [](const ort::Operator *, size_t) { return ort::FLOAT; });
