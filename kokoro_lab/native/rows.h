// What the operators share that work on each row of a tensor by itself, whatever the dimensions before the last one.
#pragma once

#include "ort_abi.h"

namespace rows {

constexpr size_t MOST_DIMENSIONS = 8;

struct Work {
  const float *x, *first, *second, *rest;
  float *y;
  int64_t width;
};

// Calls `Row` for each row of input 0; inputs 1 to `More` are constants that it takes.
template <void (*Row)(const Work &, const float *x, float *y), size_t More>
void compute(void *kernel, ort::Context *context) {
  const ort::Table t = static_cast<ort::Table>(kernel);
  const auto floats = [&](size_t i) { return i <= More ? ort::data<float>(t, ort::input(t, context, i)) : nullptr; };
  int64_t sizes[MOST_DIMENSIONS], count = 1;
  const size_t rank = ort::dimensions(t, ort::input(t, context, 0), sizes, MOST_DIMENSIONS);
  for (size_t i = 0; i + 1 < rank; ++i) count *= sizes[i];
  const int64_t width = rank == 0 ? 1 : sizes[rank - 1];
  Work work{floats(0), floats(1), floats(2), floats(3), ort::output(t, context, sizes, rank), width};
  const auto run = [](void *data, size_t row) {
    const Work &w = *static_cast<Work *>(data);
    const int64_t at = static_cast<int64_t>(row) * w.width;
    Row(w, w.x + at, w.y + at);
  };
  if (count > 0 && width > 0) ort::parallel(t, context, run, count, &work);
}

template <void (*Row)(const Work &, const float *x, float *y), size_t More>
ort::Operator describe(const char *(*name)(const ort::Operator *)) {
  return ort::describe<1 + More>(name, compute<Row, More>, [](const ort::Operator *, size_t) { return ort::FLOAT; });
}

}  // namespace rows
