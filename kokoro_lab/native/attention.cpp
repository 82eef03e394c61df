// What stands between the products of an attention layer, head by head, without the tensors that ONNX Runtime turns
// round for it. Sums are ONNX Runtime's to the last bit: see product_tile.h.
//
// Scores: how much each position looks at each other one.
//   queries  float [1, T, C]   keys  float [1, T, C]
//   mask     float [.., T]     added for each position that is looked at
//   factors  float [2]         what both are multiplied with, and what their products are
//   heads    int64 [1]         C is so many times a multiple of 32
//   biases   float [C], float [C]    optional: added to queries and keys before all else
//   →        float [1, heads, T, T]
//
// Mixture: what each position sees then.
//   shares   float [1, heads, T, T]   values  float [1, T, C]   bias  float [C], optional: added to values
//   →        float [1, T, C]
#include <vector>

#include "ort_abi.h"
#include "product_tile.h"

namespace {

using product::PANEL;

struct Sizes {
  int64_t positions, channels, width;  // `width` channels belong to a head
};

struct ScoresWork {
  Sizes sizes;
  const float *queries, *keys, *mask;
  const float *query_bias, *key_bias;  // none if there is nothing to add
  const float *factors;
  float *y;
};

// Channel i of one position, and what is added to it.
inline float biased(const float *x, const float *bias, int64_t i) { return bias == nullptr ? x[i] : x[i] + bias[i]; }

void score(void *data, size_t head) {
  const ScoresWork &w = *static_cast<ScoresWork *>(data);
  const auto [positions, channels, width] = w.sizes;
  const int64_t panels = (positions + PANEL - 1) / PANEL, outputs = panels * PANEL;
  const int64_t first = static_cast<int64_t>(head) * width;
  thread_local std::vector<float> room;
  room.assign(positions * width + outputs * width + positions * outputs, 0.0f);
  float *rows = room.data(), *columns = rows + positions * width, *sums = columns + outputs * width;
  for (int64_t t = 0; t < positions; ++t) {
    float *column = columns + (t / PANEL * width) * PANEL + t % PANEL;
    for (int64_t i = 0; i < width; ++i) {
      rows[t * width + i] = biased(w.queries + t * channels, w.query_bias, first + i) * w.factors[0];
      column[i * PANEL] = biased(w.keys + t * channels, w.key_bias, first + i) * w.factors[0];
    }
  }
  const product::Work all{positions, width, outputs, rows, columns, sums};
  for (int64_t panel = 0; panel < panels; ++panel) product::multiply_panel(all, panel);
  // Stored before the mask is added, so that no compiler fuses the two
  for (int64_t i = 0; i < positions * outputs; ++i) sums[i] *= w.factors[1];
  float *y = w.y + static_cast<int64_t>(head) * positions * positions;
  for (int64_t t = 0; t < positions; ++t, y += positions)
    for (int64_t i = 0; i < positions; ++i) y[i] = sums[t * outputs + i] + w.mask[i];
}

void scores(void *kernel, ort::Context *context) {
  const ort::Table t = static_cast<ort::Table>(kernel);
  const auto floats = [&](size_t index) -> const float * {
    const ort::Value *value = ort::input(t, context, index);
    return value == nullptr ? nullptr : ort::data<float>(t, value);
  };
  const int64_t heads = *ort::data<int64_t>(t, ort::input(t, context, 4));
  int64_t sizes[3];
  ort::dimensions(t, ort::input(t, context, 0), sizes, 3);
  const Sizes known{sizes[1], sizes[2], sizes[2] / heads};
  const int64_t made[] = {1, heads, known.positions, known.positions};
  ScoresWork work{known,     floats(0), floats(1), floats(2),
                  floats(5), floats(6), floats(3), ort::output(t, context, made, 4)};
  if (known.positions > 0) ort::parallel(t, context, score, heads, &work);
}

struct MixtureWork {
  Sizes sizes;
  const float *shares, *values, *bias;
  float *y;
};

// One panel of the channels of a head.
void mix(void *data, size_t task) {
  const MixtureWork &w = *static_cast<MixtureWork *>(data);
  const auto [positions, channels, width] = w.sizes;
  const int64_t first = static_cast<int64_t>(task) * PANEL, head = first / width;
  thread_local std::vector<float> panel;
  panel.resize(positions * PANEL);
  for (int64_t t = 0; t < positions; ++t) {
    for (int64_t i = 0; i < PANEL; ++i) panel[t * PANEL + i] = biased(w.values + t * channels, w.bias, first + i);
  }
  const float *shares = w.shares + head * positions * positions;
  product::multiply_panel({positions, positions, channels, shares, panel.data(), w.y + first}, 0);
}

void mixture(void *kernel, ort::Context *context) {
  const ort::Table t = static_cast<ort::Table>(kernel);
  const ort::Value *shares = ort::input(t, context, 0), *values = ort::input(t, context, 1);
  const ort::Value *bias = ort::input(t, context, 2);
  int64_t sizes[3], of_shares[4];
  ort::dimensions(t, values, sizes, 3);
  ort::dimensions(t, shares, of_shares, 4);
  MixtureWork work{{sizes[1], sizes[2], sizes[2] / of_shares[1]},
                   ort::data<float>(t, shares),
                   ort::data<float>(t, values),
                   bias == nullptr ? nullptr : ort::data<float>(t, bias),
                   ort::output(t, context, sizes, 3)};
  if (sizes[1] > 0) ort::parallel(t, context, mix, sizes[2] / PANEL, &work);
}

}  // namespace

extern const ort::Operator SCORES =
    ort::describe<7, 1, 2>([](const ort::Operator *) { return "Scores"; }, scores,
                     [](const ort::Operator *, size_t index) { return index == 4 ? ort::INT64 : ort::FLOAT; });
extern const ort::Operator MIXTURE = ort::describe<3, 1, 1>([](const ort::Operator *) { return "Mixture"; }, mixture,
                                                            [](const ort::Operator *, size_t) { return ort::FLOAT; });
