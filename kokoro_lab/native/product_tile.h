// A product of matrices in floats, 32 outputs at a time: what `Product` and `BiLstm` have in common.
//
// The same sums as ONNX Runtime's own, in the same order and so to the last bit: 256 inputs one after the other,
// then the next 256, which are added as a whole. What is faster is the way to the weights: a text of one sentence
// has so few rows that they are hardly there when they are needed no more. While one block of them is multiplied,
// the next one is asked for.
#pragma once

#include <algorithm>
#include <cstdint>

namespace product {
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

// x [rows][inputs], weights [outputs / 32][inputs][32], y [rows][outputs]
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

// 32 outputs of all rows: those of one panel.
void multiply_panel(const Work &w, int64_t panel) {
  const float *weights = w.weights + panel * w.inputs * PANEL;
  float *y = w.y + panel * PANEL;
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

}  // namespace
}  // namespace product
