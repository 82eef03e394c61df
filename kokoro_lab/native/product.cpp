// Product: a product of matrices in floats, the second of which is known beforehand.
//
//   x        float [.., N, K]
//   weights  float [M / 32][K][32]       M a multiple of 32
//   →        float [.., N, M]
#include "ort_abi.h"
#include "product_tile.h"

namespace {

void multiply_panel(void *data, size_t panel) {
  product::multiply_panel(*static_cast<product::Work *>(data), static_cast<int64_t>(panel));
}

void compute(void *kernel, ort::Context *context) {
  const ort::Table t = static_cast<ort::Table>(kernel);
  const ort::Value *x = ort::input(t, context, 0), *weights = ort::input(t, context, 1);
  int64_t sizes[3], packed[3];
  ort::dimensions(t, x, sizes, 3);
  ort::dimensions(t, weights, packed, 3);
  const int64_t rows = sizes[0] * sizes[1], inputs = sizes[2], outputs = packed[0] * product::PANEL;
  sizes[2] = outputs;
  float *y = ort::output(t, context, sizes, 3);
  if (rows == 0) return;
  product::Work work{rows, inputs, outputs, ort::data<float>(t, x), ort::data<float>(t, weights), y};
  ort::parallel(t, context, multiply_panel, outputs / product::PANEL, &work);
}

}  // namespace

extern const ort::Operator PRODUCT = ort::describe<2>(
    [](const ort::Operator *) { return "Product"; }, compute, [](const ort::Operator *, size_t) { return ort::FLOAT; });
