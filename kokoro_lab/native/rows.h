// What the operators share that work on each row of a tensor by itself, whatever the dimensions before the last one.
#pragma once

#include "operator.h"

namespace rows {

struct Work {
  const float *x, *first, *second, *rest;
  float *y;
  int64_t width;
};

// Calls `Row` for each row of input 0. Inputs 1 to `More` are constants that it takes: one or two as wide as a row,
// and of three, the last one a single value.
template <void (*Row)(const Work &, const float *x, float *y), size_t More>
void compute(const ort::Call &call) {
  const auto x = call.input<float>(0);
  const int64_t width = x.rank == 0 ? 1 : x.sizes[x.rank - 1];
  const auto constant = [&](size_t i, int64_t count) {
    return i <= More ? call.input<float>(i).of(count).data : nullptr;
  };
  const Work work{x.data, constant(1, width), constant(2, width), constant(3, 1), call.output(x.sizes, x.rank), width};
  const auto run = [](const Work &w, int64_t row) { Row(w, w.x + row * w.width, w.y + row * w.width); };
  if (x.count > 0) call.parallel<Work>(run, x.count / width, work);
}

}  // namespace rows
