// What stands between the products of an attention layer, head by head, without the tensors that ONNX Runtime turns
// round for it. Sums are ONNX Runtime's to the last bit: see product_tile.h.
//
// Scores: how much each position looks at each other one.
//   queries  float [1, T, C]   keys  float [1, T, C]
//   mask     float [.., T]     added for each position that is looked at; rows are alike, and the first one is read
//   factors  float [2]         what both are multiplied with, and what their products are
//   heads    int64 [1]         C is so many times a multiple of 32
//   biases   float [C], float [C]    optional: added to queries and keys before all else
//   →        float [1, heads, T, T]
//
// Mixture: what each position sees then.
//   shares   float [1, heads, T, T]   values  float [1, T, C]   bias  float [C], optional: added to values
//   →        float [1, T, C]
#include <vector>

#include "operator.h"
#include "product_tile.h"

namespace {

using product::PANEL;

enum ScoresInput : size_t { QUERIES, KEYS, MASK, FACTORS, HEADS, QUERY_BIAS, KEY_BIAS };
enum MixtureInput : size_t { SHARES, VALUES, VALUE_BIAS };

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

void score(const ScoresWork &w, int64_t head) {
  const auto [positions, channels, width] = w.sizes;
  const int64_t panels = (positions + PANEL - 1) / PANEL, outputs = panels * PANEL;
  const int64_t first = head * width;
  thread_local std::vector<float> room;
  room.assign(static_cast<size_t>(positions * width + outputs * width + positions * outputs), 0.0f);
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
  float *y = w.y + head * positions * positions;
  for (int64_t t = 0; t < positions; ++t, y += positions)
    for (int64_t i = 0; i < positions; ++i) y[i] = sums[t * outputs + i] + w.mask[i];
}

// What each head has of `channels`.
int64_t width_of(int64_t channels, int64_t heads) {
  if (heads < 1 || channels < 1 || channels % heads != 0 || channels / heads % PANEL != 0)
    throw ort::Refused("%lld channels for %lld heads: each must have a multiple of %lld",
                       ort::shown(channels), ort::shown(heads), ort::shown(PANEL));
  return channels / heads;
}

void scores(const ort::Call &call) {
  const auto queries = call.input<float>(QUERIES).shaped({1, ort::ANY, ort::ANY});
  const int64_t positions = queries.sizes[1], channels = queries.sizes[2];
  const auto keys = call.input<float>(KEYS).shaped({1, positions, channels});
  const auto mask = call.input<float>(MASK), factors = call.input<float>(FACTORS).of(2);
  if (mask.rank < 1 || mask.sizes[mask.rank - 1] != positions || mask.count < positions)
    throw ort::Refused("input 2 has no row of %lld values", ort::shown(positions));
  const int64_t heads = *call.input<int64_t>(HEADS).of(1).data, width = width_of(channels, heads);
  const float *query_bias = call.optional<float>(QUERY_BIAS).data_of(channels);
  const float *key_bias = call.optional<float>(KEY_BIAS).data_of(channels);
  const ScoresWork work{{positions, channels, width}, queries.data, keys.data, mask.data, query_bias, key_bias,
                        factors.data, call.output({1, heads, positions, positions})};
  if (positions > 0) call.parallel(score, heads, work);
}

struct MixtureWork {
  Sizes sizes;
  const float *shares, *values, *bias;
  float *y;
};

// One panel of the channels of a head.
void mix(const MixtureWork &w, int64_t task) {
  const auto [positions, channels, width] = w.sizes;
  const int64_t first = task * PANEL, head = first / width;
  thread_local std::vector<float> kept;
  float *panel = ort::room(kept, positions * PANEL);
  for (int64_t t = 0; t < positions; ++t) {
    for (int64_t i = 0; i < PANEL; ++i) panel[t * PANEL + i] = biased(w.values + t * channels, w.bias, first + i);
  }
  const float *shares = w.shares + head * positions * positions;
  product::multiply_panel({positions, positions, channels, shares, panel, w.y + first}, 0);
}

void mixture(const ort::Call &call) {
  const auto values = call.input<float>(VALUES).shaped({1, ort::ANY, ort::ANY});
  const int64_t positions = values.sizes[1], channels = values.sizes[2];
  const auto shares = call.input<float>(SHARES).shaped({1, ort::ANY, positions, positions});
  const Sizes known{positions, channels, width_of(channels, shares.sizes[1])};
  const float *bias = call.optional<float>(VALUE_BIAS).data_of(channels);
  const MixtureWork work{known, shares.data, values.data, bias, call.output(values.sizes, 3)};
  if (positions > 0) call.parallel(mix, channels / PANEL, work);
}

}  // namespace

constexpr ort::Kernel ort::SCORES("Scores", guarded<scores>, {FLOAT, FLOAT, FLOAT, FLOAT, INT64, FLOAT, FLOAT}, 2);
constexpr ort::Kernel ort::MIXTURE("Mixture", guarded<mixture>, {FLOAT, FLOAT, FLOAT}, 1);
