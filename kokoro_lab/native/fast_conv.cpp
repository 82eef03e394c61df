// FastConv: a convolution with fewer multiplications. SnakeConv: modulation and Snake in front of it. NormConv:
// instance normalisation by a style and a leaky rectifier in front of it.
//
//   x        float [1, Ci, N]
//   plan     int64        weights  float       how the convolution is taken apart: see fast_fir.packed
//   bias     float [Co]
//   scale    float [Ci]   shift  float [Ci]    SnakeConv alone: z = scale * x + shift, then z - cos z + 1
//   style    float [1, 2 Ci]                   NormConv alone: scales, less one, then shifts, then anything
//   rest     float [2]                         NormConv alone: added to the variance; slope below zero
//   known    bool []   mean, variance  float [Ci]   NormConv alone, and optional: see norm.h
//   asked    int64 [2]   around  int64 [2]     SnakeConv alone, and optional: see asked_for.h
//   by       float [1, Co, N]                  SnakeConv alone, and optional: added to what comes out
//   →        float [1, Co, N], zero padding, the same length
//
// Two steps. First the activation, split into phases and summed into the signals that the products read; then
// the products, run by run: eight output channels by three vectors stay in registers while all input channels
// and taps go by, so no column matrix is ever made. The order of every sum depends on the plan alone, so the
// samples do not depend on the threads.
//
// What costs is the way to memory as much as the sums. Signals are kept by runs, each with all its channels
// in a row, as the products read them; and of a product, the weights of 64 output channels go by once a run.
// A long window has more signals than a cache holds, and a run for every thread: there, a thread takes both
// steps of a run, and finds its signals where it has just put them. Of a short one, and of a norm, which has to
// look at all of a channel, each step is spread over the threads by itself.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ahead.h"
#include "asked_for.h"
#include "norm.h"
#include "operator.h"
#include "plan.h"
#include "snake.h"

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 8;
#elif defined(__AVX__)
constexpr int LANES = 8, ROWS = 4;
#else
constexpr int LANES = 4, ROWS = 8;
#endif
constexpr int64_t TILE = Plan::TILE;
constexpr int WIDE = 3, COLUMNS = WIDE * LANES;
constexpr int64_t RUN = 96, BLOCKS = RUN / COLUMNS;
static_assert(RUN % COLUMNS == 0);
constexpr int64_t MANY_RUNS = 8;  // enough for the threads of a session to share
constexpr int64_t CHANNELS_A_TASK = 64, TILES = CHANNELS_A_TASK / TILE;
constexpr uintptr_t LINE_BYTES = 64;
constexpr int64_t LINE = LINE_BYTES / sizeof(float);
using Vector __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias)) = float;

enum class Front { NONE, SNAKE, NORM };
enum Input : size_t { X, PLAN, WEIGHTS, BIAS, OF_FRONT };
enum SnakeInput : size_t { SCALE = OF_FRONT, SHIFT, ASKED, AROUND, BY };
enum NormInput : size_t { STYLE = OF_FRONT, REST, KNOWN, MEAN, VARIANCE };

struct Work {
  const Plan &plan;
  Front front;
  const float *x, *first, *second, *bias;  // `first` and `second` are what the activation takes
  const float *by;                         // none if nothing is to be added
  float *y, *signals;
  int64_t length;          // of x and y
  int64_t begin, end;      // what the products are needed for, in samples of a phase
  int64_t runs, width;     // a signal is kept in so many runs of so many samples
  int64_t before;          // of the first run, sample `begin` has this number; of the next, the one RUN later
  int64_t shared;          // tasks that one run is divided into
  Told told;               // what a norm need not look for

  // The sample of a phase that stands first in the first run
  int64_t origin() const { return begin - before; }

  // Of all input channels, each `width` behind the one before
  float *signal(size_t product, int64_t run) const {
    return signals + (run * static_cast<int64_t>(plan.products.size()) + static_cast<int64_t>(product)) *
                         plan.channels_in * width;
  }
};

// What the products see of `count` samples of one input channel: of a norm's, that is all of them.
void activate(const Work &w, int64_t channel, const float *x, int64_t count, float *a) {
  if (w.front == Front::NORM) {
    const Moments given = w.told.of(channel, x, count);
    normalise(x, count, given, w.first[channel], w.first[w.plan.channels_in + channel], w.second, a);
    return;
  }
  const float scale = w.first[channel], shift = w.second[channel];
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) a[i] = snake(x[i] * scale + shift);
}

// What one product reads of one input channel: `TERMS` phases, or neighbours of theirs, with their factors.
template <int TERMS>
void sum(const Term *terms, const float *parts, int64_t row, int64_t count, float *out) {
  const float *in[TERMS];
  float factor[TERMS];
  for (int t = 0; t < TERMS; ++t) {
    in[t] = parts + terms[t].phase * row + terms[t].advance;
    factor[t] = static_cast<float>(terms[t].factor);
  }
  for (int64_t i = 0; i < count; ++i) {
    float total = factor[0] * in[0][i];
    for (int t = 1; t < TERMS; ++t) total += factor[t] * in[t][i];
    out[i] = total;
  }
}

// All products' signals of one input channel, for `runs` runs from the one that is number `first` on. They begin at
// `out`; from one run to the next it is `run_apart`, from one product to the next `apart`.
void make_signals_of(const Work &w, int64_t channel, int64_t first, int64_t runs, float *out, int64_t run_apart,
                     int64_t apart) {
  const int64_t phases = w.plan.phases;
  thread_local std::vector<float> parts, activated;
  // Sample n of phase p is at parts[p * row + n - origin]: zeros stand for the padding
  const int64_t origin = w.origin() + first * RUN, row = (runs - 1) * RUN + w.width + w.plan.ahead;
  const int64_t from = std::max<int64_t>(0, origin), count = std::min(w.length, (origin + row) * phases) - from * phases;
  float *first_phase = ort::room(parts, phases * row);
  for (int64_t p = 0; p < phases; ++p) {
    float *of_phase = first_phase + p * row;
    const int64_t there = std::max<int64_t>(0, (count - p + phases - 1) / phases);
    std::fill(of_phase, of_phase + std::min(row, from - origin), 0.0f);
    std::fill(of_phase + std::min(row, from - origin + there), of_phase + row, 0.0f);
  }
  if (count > 0) {
    const float *x = w.x + channel * w.length + from * phases;
    if (w.front != Front::NONE) {
      float *made = ort::room(activated, count);
      activate(w, channel, x, count, made);
      x = made;
    }
    const auto take_apart = phases == 4 ? split<4, float> : phases == 2 ? split<2, float> : split<1, float>;
    take_apart(x, count, first_phase + from - origin, row);
  }
  for (size_t k = 0; k < w.plan.products.size(); ++k) {
    const Product &product = w.plan.products[k];
    const auto sum_up = product.term_count == 1   ? sum<1>
                        : product.term_count == 2 ? sum<2>
                        : product.term_count == 3 ? sum<3>
                        : product.term_count == 4 ? sum<4>
                        : product.term_count == 5 ? sum<5>
                                                  : sum<6>;
    for (int64_t run = 0; run < runs; ++run)
      sum_up(product.terms, first_phase + run * RUN, row, w.width, out + run * run_apart + static_cast<int64_t>(k) * apart);
  }
}

void make_signals(const Work &w, int64_t c) {
  const int64_t apart = w.plan.channels_in * w.width;
  make_signals_of(w, c, 0, w.runs, w.signals + c * w.width, static_cast<int64_t>(w.plan.products.size()) * apart, apart);
}

// TILE output channels by V vectors of one product.
template <int V>
void multiply(const float *x, int64_t stride, int64_t channels, int64_t taps, int64_t step, const float *weights,
              float *out) {
  for (int part = 0; part < TILE; part += ROWS) {
    Vector sums[ROWS][V] = {};
    for (int64_t c = 0; c < channels; ++c) {
      const float *row = x + c * stride;
      const float *weight = weights + c * taps * TILE + part;
      for (int64_t k = 0; k < taps; ++k, row += step, weight += TILE) {
        ask_ahead(weight);
        Vector in[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) in[v] = *reinterpret_cast<const Vector *>(row + v * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) sums[r][v] += in[v] * weight[r];
      }
    }
    for (int r = 0; r < ROWS; ++r)
      for (int v = 0; v < V; ++v) *reinterpret_cast<Vector *>(out + (part + r) * COLUMNS + v * LANES) = sums[r][v];
  }
}

// What the products of eight output channels add up to in one block of columns, which begins at sample `begin`.
// Those of a product are `apart` behind those of the one before.
void add_up(const Work &w, int64_t channel, int64_t begin, int64_t columns, const float *products, int64_t apart) {
  const Plan &plan = w.plan;
  for (int64_t r = 0; r < TILE; ++r) {
    float sums[MOST_PHASES][COLUMNS];
    int64_t at[MOST_PHASES];
    for (int64_t p = 0; p < plan.phases; ++p) {
      const Output &output = plan.outputs[p];
      for (int i = 0; i < COLUMNS; ++i) sums[p][i] = w.bias[channel + r];
      for (int64_t k = 0; k < output.part_count; ++k) {
        const Part &part = output.parts[k];
        const float *product = products + part.product * apart + r * COLUMNS, factor = static_cast<float>(part.factor);
        for (int i = 0; i < COLUMNS; ++i) sums[p][i] += factor * product[i];
      }
      at[p] = begin - output.shift;  // the sample of this phase that column 0 is
    }
    const int64_t channel_begin = (channel + r) * w.length;
    put_together(sums, at, columns, plan.phases, w.y + channel_begin, w.length,
                 w.by == nullptr ? nullptr : w.by + channel_begin);
  }
}

// One run of columns of every product, for a share of the output channels, and what they add up to. `signals` are the
// run's own.
void make_outputs_of(const Work &w, int64_t run, int64_t share, const float *signals) {
  const Plan &plan = w.plan;
  const int64_t begin = w.begin + run * RUN, end = std::min(begin + RUN, w.end);
  const int64_t first_channel = share * CHANNELS_A_TASK;
  const int64_t tiles = std::min(CHANNELS_A_TASK, plan.channels_out - first_channel) / TILE;
  // [products][BLOCKS][TILES][TILE * COLUMNS], from the beginning of a line of the cache on
  thread_local std::vector<float> kept;
  constexpr int64_t A_TILE = TILE * COLUMNS, A_PRODUCT = BLOCKS * TILES * A_TILE;
  void *whole = ort::room(kept, static_cast<int64_t>(plan.products.size()) * A_PRODUCT + LINE);
  float *products = reinterpret_cast<float *>((reinterpret_cast<uintptr_t>(whole) + LINE_BYTES - 1) & ~(LINE_BYTES - 1));
  for (size_t k = 0; k < plan.products.size(); ++k) {
    const Product &product = plan.products[k];
    const float *x = signals + static_cast<int64_t>(k) * plan.channels_in * w.width + w.before + product.first;
    for (int64_t at = begin; at < end; at += COLUMNS, x += COLUMNS) {
      const int64_t vectors = (std::min<int64_t>(COLUMNS, end - at) + LANES - 1) / LANES;
      const auto by = vectors == 3 ? multiply<3> : vectors == 2 ? multiply<2> : multiply<1>;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const float *weights = product.weights + (first_channel + tile * TILE) * plan.channels_in * product.taps;
        by(x, w.width, plan.channels_in, product.taps, plan.step, weights,
           products + static_cast<int64_t>(k) * A_PRODUCT + ((at - begin) / COLUMNS * TILES + tile) * A_TILE);
      }
    }
  }
  for (int64_t at = begin; at < end; at += COLUMNS)
    for (int64_t tile = 0; tile < tiles; ++tile)
      add_up(w, first_channel + tile * TILE, at, std::min<int64_t>(COLUMNS, end - at),
             products + ((at - begin) / COLUMNS * TILES + tile) * A_TILE, A_PRODUCT);
}

void make_outputs(const Work &w, int64_t task) {
  const int64_t run = task / w.shared, share = task % w.shared;
  make_outputs_of(w, run, share, w.signal(0, run));
}

// Both steps of one run.
void make_run(const Work &w, int64_t run) {
  const int64_t apart = w.plan.channels_in * w.width;
  thread_local std::vector<float> kept;
  float *signals = ort::room(kept, static_cast<int64_t>(w.plan.products.size()) * apart);
  for (int64_t channel = 0; channel < w.plan.channels_in; ++channel)
    make_signals_of(w, channel, run, 1, signals + channel * w.width, 0, apart);
  for (int64_t share = 0; share < w.shared; ++share) make_outputs_of(w, run, share, signals);
}

template <Front FRONT>
void compute(const ort::Call &call) {
  const auto x = call.input<float>(X);
  const Plan plan(call.input<int64_t>(PLAN), call.input<float>(WEIGHTS));
  const int64_t channels = plan.channels_in, length = x.shaped({1, channels, ort::ANY}).sizes[2];
  const auto bias = call.input<float>(BIAS).of(plan.channels_out);
  const float *first = nullptr, *second = nullptr, *by = nullptr;
  Told known{};
  Columns asked{0, length};
  if (FRONT == Front::SNAKE) {
    first = call.input<float>(SCALE).of(channels).data;
    second = call.input<float>(SHIFT).of(channels).data;
    asked = asked_for(call, ASKED, length);
    by = call.optional<float>(BY).data_of(ort::count_of({plan.channels_out, length}));
  } else if (FRONT == Front::NORM) {
    first = call.input<float>(STYLE).with(2 * channels).data;
    second = call.input<float>(REST).of(2).data;
    known = told(call, KNOWN, channels);
  }
  float *y = call.output({1, plan.channels_out, length});
  if (length == 0) return;
  clear_others(y, plan.channels_out, length, asked, by);
  if (asked.first == asked.last) return;
  int64_t begin = 0, end = 0, before = 0, after = 0;
  for (const Output &output : plan.outputs) {
    begin = std::min(begin, output.shift);
    end = std::max(end, output.shift);
  }
  begin += asked.first / plan.phases;
  end += (asked.last + plan.phases - 1) / plan.phases;
  for (const Product &product : plan.products) {
    before = std::max(before, -product.first);
    after = std::max(after, product.first + (product.taps - 1) * plan.step);
  }
  const int64_t runs = (end - begin + RUN - 1) / RUN;
  const int64_t columns = std::min(RUN, (end - begin + LANES - 1) / LANES * LANES);
  const int64_t width = (before + columns + after + LANES - 1) / LANES * LANES;
  const bool by_runs = FRONT != Front::NORM && runs >= MANY_RUNS;
  const int64_t signals = ort::count_of({static_cast<int64_t>(plan.products.size()), channels, width});
  thread_local std::vector<float> kept;
  const Work work{plan, FRONT, x.data, first, second, bias.data, by, y,
                  by_runs ? nullptr : ort::room(kept, ort::count_of({runs, signals})), length, begin, end, runs,
                  width, before, (plan.channels_out + CHANNELS_A_TASK - 1) / CHANNELS_A_TASK, known};
  if (by_runs) {
    call.parallel(make_run, runs, work);
    return;
  }
  call.parallel(make_signals, channels, work);
  call.parallel(make_outputs, runs * work.shared, work);
}

}  // namespace

constexpr ort::Kernel ort::FAST_CONV("FastConv", guarded<compute<Front::NONE>>, {FLOAT, INT64, FLOAT, FLOAT});
constexpr ort::Kernel ort::SNAKE_CONV("SnakeConv", guarded<compute<Front::SNAKE>>,
                                      {FLOAT, INT64, FLOAT, FLOAT, FLOAT, FLOAT, INT64, INT64, FLOAT}, 3);
constexpr ort::Kernel ort::NORM_CONV("NormConv", guarded<compute<Front::NORM>>,
                                     {FLOAT, INT64, FLOAT, FLOAT, FLOAT, FLOAT, BOOL, FLOAT, FLOAT}, 3);
