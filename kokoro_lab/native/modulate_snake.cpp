// ModulateSnake: z = scale * x + shift, then z - cos z + 1, in one pass over the tensor.
//
//   x      float [1, C, N]
//   scale  float [C]
//   shift  float [C]
//   →      float [1, C, N], in place of x where nothing else reads it
//
// AdaIN's scale and shift and the Snake activation behind it (see passes.snake_in_the_modulation), for
// which ONNX Runtime takes four passes, one of them a cosine on a single thread.
#include <cmath>

#include "ort_abi.h"

namespace {

using ort::Context;
using ort::Operator;
using ort::Status;
using ort::Table;

// z - cos z + 1. With z = k·π + r and |r| <= π/2, 1 - cos z is t = 1 - cos r for even k and 2 - t for odd.
// t is r² times a polynomial in r², fitted for the least relative error (8e-10) on that range.
inline float snake(float z) {
  constexpr float PI_HIGH = 3.140625f, PI_LOW = 9.67653589793e-4f;
  const float k = std::nearbyint(z * 0.318309886184f);
  float r = z - k * PI_HIGH;
  r -= k * PI_LOW;
  const float w = r * r;
  float t = 2.628412283e-07f;
  t = t * w - 2.477392219e-05f;
  t = t * w + 1.388864154e-03f;
  t = t * w - 4.166665886e-02f;
  t = t * w + 4.999999996e-01f;
  t *= w;
  return z + ((static_cast<int>(k) & 1) != 0 ? 2.0f - t : t);
}

struct Rows {
  const float *x, *scale, *shift;
  float *y;
  int64_t length;
};

void row(void *rows, size_t channel) {
  const Rows &r = *static_cast<Rows *>(rows);
  const float *x = r.x + channel * r.length;
  float *y = r.y + channel * r.length;
  const float scale = r.scale[channel], shift = r.shift[channel];
#pragma omp simd  // x and y may be the same: no other aliasing is possible
  for (int64_t i = 0; i < r.length; ++i) y[i] = snake(x[i] * scale + shift);
}

void compute(void *kernel, Context *context) {
  const Table t = static_cast<Table>(kernel);
  const ort::Value *x = ort::input(t, context, 0);
  int64_t sizes[3];
  ort::dimensions(t, x, sizes, 3);
  ort::Value *y = nullptr;
  ort::call(t, ort::OUTPUT, context, size_t{0}, const_cast<const int64_t *>(sizes), size_t{3}, &y);
  Rows rows{ort::data<float>(t, x), ort::data<float>(t, ort::input(t, context, 1)),
            ort::data<float>(t, ort::input(t, context, 2)), ort::data<float>(t, y), sizes[2]};
  ort::call(t, ort::PARALLEL_FOR, const_cast<const Context *>(context), &row,
            static_cast<size_t>(sizes[1]), size_t{0}, static_cast<void *>(&rows));
}

size_t in_place(int **inputs, int **outputs) {
  static int first = 0;
  *inputs = *outputs = &first;
  return 1;
}

const Operator MODULATE_SNAKE = {
    ort::VERSION,
    [](const Operator *, Table table, const void *) { return const_cast<void *>(static_cast<const void *>(table)); },
    [](const Operator *) { return "ModulateSnake"; },
    [](const Operator *) -> const char * { return nullptr; },  // the CPU
    [](const Operator *, size_t) { return ort::FLOAT; },
    [](const Operator *) { return size_t{3}; },
    [](const Operator *, size_t) { return ort::FLOAT; },
    [](const Operator *) { return size_t{1}; },
    compute,
    [](void *) {},
    [](const Operator *, size_t) { return 0; },  // inputs and outputs are required
    [](const Operator *, size_t) { return 0; },
    [](const Operator *, size_t) { return 0; },  // and lie in plain memory
    [](const Operator *) { return 1; },
    [](const Operator *) { return 1; },
    [](const Operator *) { return 1; },
    [](const Operator *) { return 1; },
    nullptr,
    nullptr,
    nullptr,
    [](const Operator *) { return 1; },
    [](const Operator *) { return 0x7fffffff; },
    in_place,
    [](int *, int *) {},
    nullptr,
    nullptr,
};

}  // namespace

extern "C" Status *RegisterCustomOps(ort::Options *options, const ort::Base *base) {
  const Table t = base->get(ort::VERSION);
  ort::Domain *domain = nullptr;  // given to ONNX Runtime, for as long as the process lives
  Status *failed = ort::call(t, ort::CREATE_DOMAIN, static_cast<const char *>("kokoro_lab"), &domain);
  if (failed == nullptr) failed = ort::call(t, ort::ADD_TO_DOMAIN, domain, &MODULATE_SNAKE);
  if (failed == nullptr) failed = ort::call(t, ort::ADD_DOMAIN, options, domain);
  return failed;
}
