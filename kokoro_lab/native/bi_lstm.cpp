// BiLstm: a recurrence (LSTM) in both directions, from a state of zeros.
//
//   x          float [T, 1, I]
//   input      float [2][4 H / 32][I][32]    weights of both directions; gates in the order i, o, f, c
//   recurrent  float [2][4 H / 32][H][32]    H a multiple of 64
//   bias       float [2][2][4 H]             of the input, and of the state
//   →          float [T, 2, 1, H]
//
// A step is a product of a vector with a megabyte of weights, over in microseconds: too short to share among
// threads, as ONNX Runtime does. But one direction knows nothing of the other, so each has a thread to itself, whose
// cache just holds its weights. What the inputs add to the gates is a product of matrices. Of rows that are alike, as
// those are of the frames that one token lasts, it is taken once.
//
// All that is added or multiplied is rounded as ONNX Runtime rounds it on x86-64 with FMA: what is multiplied into
// products is fused, what gates are multiplied with is not, and its sigmoid and tanh are the rational ones of Eigen.
#include <algorithm>
#include <cstring>
#include <vector>

#include "operator.h"
#include "product_tile.h"

namespace {

using product::LANES;
using product::PANEL;
using product::Vector;

enum Input : size_t { X, OF_INPUTS, RECURRENT, BIAS };

constexpr int64_t MULTIPLE = 64;  // of which the state has a multiple of values

struct Work {
  int64_t steps, inputs, hidden;
  const float *input, *recurrent, *bias;
  int64_t rows;          // of `x`
  const float *x;        // no two rows alike that follow each other
  const int64_t *row_of; // of each step
  float *gates;          // [2][rows][4 H], what the inputs add
  float *y;
};

// The rows of x without those that are as the one before; which of them each row of x is; how many they are.
int64_t merge_alike(const float *x, int64_t count, int64_t inputs, std::vector<int64_t> &row_of,
                    std::vector<float> &different) {
  ort::room(row_of, count);
  ort::room(different, ort::count_of({count, inputs}));
  int64_t rows = 0;
  for (int64_t i = 0; i < count; ++i, x += inputs) {
    // To the last bit: of numbers that are equal, 0 and -0 are two, and what is not a number equals nothing
    if (i == 0 || std::memcmp(x, x - inputs, inputs * sizeof(float)) != 0)
      std::copy(x, x + inputs, different.data() + rows++ * inputs);
    row_of[i] = rows - 1;
  }
  return rows;
}

void multiply_inputs(const Work &w, int64_t task) {
  const int64_t outputs = 4 * w.hidden, panels = outputs / PANEL;
  const int64_t direction = task / panels;
  const product::Work one{w.rows, w.inputs, outputs, w.x, w.input + direction * outputs * w.inputs,
                          w.gates + direction * w.rows * outputs};
  product::multiply_panel(one, task % panels);
}

// gates += weights · state. Several panels at once, for a sum waits for the one before. `back` begins with those
// that the step before ended with: they are still in the cache.
void add_recurrent(const float *weights, const float *state, int64_t hidden, bool back, float *gates) {
  constexpr int PANELS = LANES == 16 ? 4 : 2, VECTORS = PANEL / LANES;
  constexpr int64_t WIDTH = PANELS * PANEL;
  for (int64_t number = 0; number < 4 * hidden / WIDTH; ++number) {
    const int64_t first = (back ? 4 * hidden / WIDTH - 1 - number : number) * WIDTH;
    const float *at = weights + first * hidden;
    Vector sums[PANELS][VECTORS] = {};
    for (int64_t k = 0; k < hidden; ++k) {
      const float value = state[k];
#pragma GCC unroll 4
      for (int p = 0; p < PANELS; ++p)
#pragma GCC unroll 8
        for (int v = 0; v < VECTORS; ++v)
          sums[p][v] += *reinterpret_cast<const Vector *>(at + (p * hidden + k) * PANEL + v * LANES) * value;
    }
    for (int p = 0; p < PANELS; ++p)
      for (int v = 0; v < VECTORS; ++v)
        *reinterpret_cast<Vector *>(gates + first + p * PANEL + v * LANES) += sums[p][v];
  }
}

inline Vector load(const float *from) { return *reinterpret_cast<const Vector *>(from); }
inline void store(float *to, Vector value) { *reinterpret_cast<Vector *>(to) = value; }

// What is not a number stays what it is
inline Vector within(Vector x, float limit) {
  const Vector most = Vector{} + limit;
  x = x < -most ? -most : x;
  return x > most ? most : x;
}

inline Vector sigmoid(Vector z) {
  const Vector x = within(z, 18.0f), w = x * x;
  Vector p = w * 4.37031012579801e-11f + 1.15627324459942e-07f;
  p = w * p + 6.08574864600143e-05f;
  p = w * p + 8.51377133304701e-03f;
  p = w * p + 2.48287947061529e-01f;
  Vector q = w * 6.10247389755681e-13f + 5.76102136993427e-09f;
  q = w * q + 6.29106785017040e-06f;
  q = w * q + 1.70198817374094e-03f;
  q = w * q + 1.16817656904453e-01f;
  q = w * q + 9.93151921023180e-01f;
  const Vector y = x * p / q + 0.5f;
  return y < Vector{} ? Vector{} : y;
}

inline Vector hyperbolic_tangent(Vector z) {
  const Vector x = within(z, 9.0f), w = x * x;
  Vector p = w * -2.76076847742355e-16f + 2.00018790482477e-13f;
  p = w * p - 8.60467152213735e-11f;
  p = w * p + 5.12229709037114e-08f;
  p = w * p + 1.48572235717979e-05f;
  p = w * p + 6.37261928875436e-04f;
  p = w * p + 4.89352455891786e-03f;
  Vector q = w * 1.19825839466702e-06f + 1.18534705686654e-04f;
  q = w * q + 2.26843463243900e-03f;
  q = w * q + 4.89352518554385e-03f;
  return x * p / q;
}

// What is left of a step when its gates are summed. Products are stored before they are added, so that no compiler
// fuses the two.
void finish_step(const float *gates, const float *bias, int64_t hidden, float *cell, float *kept, float *added,
                 float *h) {
  const auto gate = [=](int number, int64_t i) { return load(gates + number * hidden + i) + load(bias + number * hidden + i); };
  for (int64_t i = 0; i < hidden; i += LANES) {
    store(kept + i, load(cell + i) * sigmoid(gate(2, i)));
    store(added + i, sigmoid(gate(0, i)) * hyperbolic_tangent(gate(3, i)));
  }
  for (int64_t i = 0; i < hidden; i += LANES) {
    const Vector now = load(kept + i) + load(added + i);
    store(cell + i, now);
    store(h + i, hyperbolic_tangent(now) * sigmoid(gate(1, i)));
  }
}

void follow(const Work &w, int64_t direction) {
  const int64_t hidden = w.hidden;
  thread_local std::vector<float> room;
  room.assign(static_cast<size_t>(12 * hidden), 0.0f);
  float *cell = room.data(), *kept = cell + hidden, *added = kept + hidden, *bias = added + hidden;
  float *gates = bias + 4 * hidden;
  const float *state = gates + 4 * hidden, *of_input = w.bias + direction * 8 * hidden;
  for (int64_t i = 0; i < 4 * hidden; ++i) bias[i] = of_input[i] + of_input[4 * hidden + i];
  for (int64_t step = 0; step < w.steps; ++step) {
    const int64_t place = direction == 0 ? step : w.steps - 1 - step;
    const float *from_inputs = w.gates + (direction * w.rows + w.row_of[place]) * 4 * hidden;
    std::copy(from_inputs, from_inputs + 4 * hidden, gates);
    float *h = w.y + (2 * place + direction) * hidden;
    add_recurrent(w.recurrent + direction * 4 * hidden * hidden, state, hidden, step % 2 != 0, gates);
    finish_step(gates, bias, hidden, cell, kept, added, h);
    state = h;
  }
}

void compute(const ort::Call &call) {
  const auto x = call.input<float>(X).shaped({ort::ANY, 1, ort::ANY});
  const auto bias = call.input<float>(BIAS).shaped({2, 2, ort::ANY});
  const int64_t steps = x.sizes[0], inputs = x.sizes[2], outputs = bias.sizes[2], hidden = outputs / 4;
  if (inputs < 1) throw ort::Refused("input 0 has rows of no value");
  if (outputs < 1 || outputs % (4 * MULTIPLE) != 0)
    throw ort::Refused("%lld gates: must be a multiple of %lld", ort::shown(outputs), ort::shown(4 * MULTIPLE));
  const auto input = call.input<float>(OF_INPUTS).of(ort::count_of({2, outputs, inputs}));
  const auto recurrent = call.input<float>(RECURRENT).of(ort::count_of({2, outputs, hidden}));
  float *y = call.output({steps, 2, 1, hidden});
  if (steps == 0) return;
  thread_local std::vector<int64_t> row_of;
  thread_local std::vector<float> different, gates_room;
  const int64_t rows = merge_alike(x.data, steps, inputs, row_of, different);
  float *gates = ort::room(gates_room, ort::count_of({2, rows, outputs}));
  // A line here is a line of the struct
  const Work work{steps, inputs, hidden,
                  input.data, recurrent.data, bias.data,
                  rows,
                  different.data(),
                  row_of.data(),
                  gates,
                  y};
  call.parallel(multiply_inputs, 2 * outputs / PANEL, work);
  call.parallel(follow, 2, work);
}

}  // namespace

constexpr ort::Kernel ort::BI_LSTM("BiLstm", guarded<compute>, {FLOAT, FLOAT, FLOAT, FLOAT});
