// Product: a product of matrices in floats, the second of which is known beforehand.
//
//   x        float [.., N, K]
//   weights  float [M / 32][K][32]       M a multiple of 32
//   →        float [.., N, M]
#include "operator.h"
#include "product_tile.h"

namespace {

enum Input : size_t { X, WEIGHTS };

void compute(const ort::Call &call) {
  auto x = call.input<float>(X);
  const int64_t inputs = x.rank == 0 ? 0 : x.sizes[x.rank - 1];
  if (inputs == 0) throw ort::Refused("input 0 has rows of no value");
  const auto weights = call.input<float>(WEIGHTS).shaped({ort::ANY, inputs, product::PANEL});
  const int64_t rows = x.count / inputs, outputs = weights.sizes[0] * product::PANEL;
  x.sizes[x.rank - 1] = outputs;
  const product::Work work{rows, inputs, outputs, x.data, weights.data, call.output(x.sizes, x.rank)};
  if (rows > 0) call.parallel(product::multiply_panel, outputs / product::PANEL, work);
}

}  // namespace

constexpr ort::Kernel ort::PRODUCT("Product", guarded<compute>, {FLOAT, FLOAT});
