// QuantConv: a convolution of 8-bit integers between floats. QuantSnakeConv: modulation and Snake in front of it.
//
//   x        float [1, Ci, N]
//   plan     int64 [4]                      Co, Ci rounded up to a multiple of four, taps, dilation
//   weights  int8 [Co / 8][Ci / 4][taps][8][4]
//   sums     int32 [2, Co]                  what the zero points add up to, and the weights, of each output
//   steps    float [2, Ci]                  one over the step of each input channel, and its zero point
//   outputs  float [2, Co]                  what a sum is multiplied with, and the bias
//   scale    float [Ci]   shift float [Ci]  QuantSnakeConv alone: z = scale * x + shift, then z - cos z + 1
//   asked    int64 [2]   around int64 [2]   optional: see asked_for.h
//   by       float [1, Co, N]               QuantSnakeConv alone, and optional: added to what comes out
//   →        float [1, Co, N], zero padding, the same length
//
// Two steps, both spread over the threads of the session. First the input, activated and quantised to
// bytes of 0 to 255, four channels to a word, for that is what the processors' dot products take. Then the
// products: a tile of output channels by three vectors of samples stays in registers while all input
// channels and taps go by. Sums of integers are exact, so nothing depends on the threads or their order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "asked_for.h"
#include "operator.h"
#include "quant_fast.h"
#include "quant_tile.h"
#include "snake.h"

namespace {

constexpr int64_t CHANNELS_A_TASK = 64;

enum Input : size_t { X, PLAN, WEIGHTS, SUMS, STEPS, OUTPUTS, ASKED_ALONE };
enum SnakeInput : size_t { SCALE = ASKED_ALONE, SHIFT, ASKED, AROUND, BY };

struct Work {
  int64_t channels_out, channels_in, taps, dilation;
  const float *x, *steps, *outputs, *scale, *shift;  // no scale, no activation
  const float *by;                                   // none if nothing is to be added
  const int8_t *weights;
  const int32_t *sums;
  float *y;
  int64_t x_channels, length;
  Columns asked;
  int32_t *words = nullptr;
  int64_t reach = 0, stride = 0;  // words of four channels: the first is `reach` before the first column asked for
  int64_t shared = 1;             // tasks that one block is divided into, or one run
  uint8_t *large = nullptr;       // steps that saturate, where any do
  int64_t tile_steps = 0;
  int32_t *filters = nullptr;  // of the fast way alone, each tile `tile_words` behind the one before
  int64_t tile_words = 0;
  const FilterPlan *filter_plan = nullptr;
  int64_t begin = 0, samples = 0;  // of each phase: the first one that is worked out, and how many

  // What a sum of channel `o` is short of. Without a sign, where what does not fit wraps around
  uint32_t offset(int64_t o) const {
    return (FLIP ? 128 * static_cast<uint32_t>(sums[channels_out + o]) : 0) - static_cast<uint32_t>(sums[o]);
  }
};

// Four input channels as bytes of one row of words, with the padding.
void quantise(const Work &w, int64_t group) {
  int32_t *row = w.words + group * w.stride;
  std::memset(row, 0, w.stride * sizeof(int32_t));
  uint32_t padding = 0;
  // Column i is at out[i]; these are there
  int32_t *out = row + w.reach - w.asked.first;
  const int64_t from = std::max<int64_t>(0, w.asked.first - w.reach);
  const int64_t to = std::min(w.length, w.asked.first - w.reach + w.stride);
  for (int lane = 0; lane < 4; ++lane) {
    const int64_t channel = 4 * group + lane;
    if (channel >= w.x_channels) break;  // its weights are zero
    const float *x = w.x + channel * w.length;
    const float inverse = w.steps[channel], zero = w.steps[w.x_channels + channel];
    const float scale = w.scale != nullptr ? w.scale[channel] : 0.0f;
    const float shift = w.scale != nullptr ? w.shift[channel] : 0.0f;
    const bool active = w.scale != nullptr;
    // What is not a number is 0, so that it fits into a byte
    const auto shifted = [lane](float level) {
      level = level > 0.0f ? level : 0.0f;
      return static_cast<uint32_t>(static_cast<int32_t>(level > 255.0f ? 255.0f : level)) << (8 * lane);
    };
    padding |= shifted(zero);
    const auto byte = [&](float value) { return static_cast<int32_t>(shifted(std::nearbyint(value * inverse) + zero)); };
    if (active) {
#pragma omp simd
      for (int64_t i = from; i < to; ++i) out[i] |= byte(snake(x[i] * scale + shift));
    } else {
#pragma omp simd
      for (int64_t i = from; i < to; ++i) out[i] |= byte(x[i]);
    }
  }
  const int32_t flip = FLIP ? static_cast<int32_t>(0x80808080u) : 0;
  const int32_t outside = static_cast<int32_t>(padding) ^ flip;
  if (FLIP)
    for (int64_t i = from; i < to; ++i) out[i] ^= flip;
  std::fill(row, out + from, outside);
  std::fill(out + to, row + w.stride, outside);
}

void find_large_of(const Work &w, int64_t tile) {
  find_large(w.weights + tile * w.tile_steps * 4 * TILE, w.tile_steps, w.large + tile * w.tile_steps);
}

// One block of columns for a share of the output channels.
void convolve(const Work &w, int64_t task) {
  const int64_t at = task / w.shared * COLUMNS, begin = w.asked.first + at;
  const int64_t columns = std::min<int64_t>(COLUMNS, w.asked.last - begin);
  const int64_t first = task % w.shared * CHANNELS_A_TASK;
  const int64_t last = std::min(w.channels_out, first + CHANNELS_A_TASK);
  int32_t sums[TILE * COLUMNS];
  for (int64_t channel = first; channel < last; channel += TILE) {
    multiply<Quads>(columns, w.words + at, w.stride, w.channels_in / 4, w.taps, w.dilation,
                    w.weights + channel * w.channels_in * w.taps,
                    SATURATES ? w.large + channel / TILE * w.tile_steps : nullptr, sums);
    for (int64_t r = 0; r < TILE; ++r) {
      const int64_t o = channel + r;
      const uint32_t offset = w.offset(o);
      const float factor = w.outputs[o], bias = w.outputs[w.channels_out + o];
      float *y = w.y + o * w.length + begin;
      for (int64_t i = 0; i < columns; ++i)
        y[i] = static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(sums[r * COLUMNS + i]) + offset)) * factor +
               bias;
      if (w.by != nullptr) {
        const float *by = w.by + o * w.length + begin;
        for (int64_t i = 0; i < columns; ++i) y[i] += by[i];
      }
    }
  }
}

// All blocks of columns, by the definition.
void compute_by_definition(const ort::Call &call, Work &w) {
  thread_local std::vector<int32_t> words;
  thread_local std::vector<uint8_t> large;
  const int64_t blocks = (w.asked.last - w.asked.first + COLUMNS - 1) / COLUMNS;
  const int64_t tiles = SATURATES ? w.channels_out / TILE : 0;
  w.reach = w.taps / 2 * w.dilation;
  w.stride = blocks * COLUMNS + 2 * w.reach;
  w.words = ort::room(words, ort::count_of({w.channels_in / 4, w.stride}));
  w.tile_steps = w.channels_in / 4 * w.taps;
  w.large = ort::room(large, ort::count_of({tiles, w.tile_steps}));
  w.shared = (w.channels_out + CHANNELS_A_TASK - 1) / CHANNELS_A_TASK;
  call.parallel(find_large_of, tiles, static_cast<const Work &>(w));
  call.parallel(quantise, w.channels_in / 4, static_cast<const Work &>(w));
  call.parallel(convolve, blocks * w.shared, static_cast<const Work &>(w));
}

#if defined(KOKORO_SATURATES)
constexpr int64_t MANY_RUNS = 8;  // enough for the threads of a session to share

template <typename Way>
void make_filters_of(const Work &w, int64_t tile) {
  make_filters<Way>(*w.filter_plan, w.weights + tile * TILE * w.channels_in * w.taps, w.filters + tile * w.tile_words);
}

// What the products of one channel add up to, in a block of samples of each phase from sample `begin` on.
template <typename Way>
void add_up(const Work &w, int64_t o, int64_t begin, int64_t count, const int32_t *products, int64_t apart) {
  float phases[MOST_PHASES][COLUMNS];
  int64_t at[MOST_PHASES];
  const uint32_t offset = w.offset(o);
  const float factor = w.outputs[o], bias = w.outputs[w.channels_out + o];
#pragma GCC unroll 4
  for (int output = 0; output < Way::PHASES; ++output) {
    float *phase = phases[output * w.dilation % Way::PHASES];
    at[output * w.dilation % Way::PHASES] = begin + output * w.dilation / Way::PHASES;
    for (int i = 0; i < COLUMNS; ++i) {
      uint32_t sum = 0;
#pragma GCC unroll 9
      for (int k = 0; k < Way::PRODUCTS; ++k)
        sum += static_cast<uint32_t>(Way::sums[output][k]) * static_cast<uint32_t>(products[k * apart + i]);
      sum = static_cast<uint32_t>(static_cast<int32_t>(sum) >> Way::HALVED) + offset;
      phase[i] = static_cast<float>(static_cast<int32_t>(sum)) * factor + bias;
    }
  }
  put_together(phases, at, count, Way::PHASES, w.y + o * w.length, w.length,
               w.by == nullptr ? nullptr : w.by + o * w.length);
}

// One run of each phase for a share of the output channels.
template <typename Way>
void convolve_run(const Work &w, int64_t task) {
  constexpr int64_t A_TILE = TILE * COLUMNS, A_BLOCK = CHANNELS_A_TASK / TILE * A_TILE, A_PRODUCT = RUN_BLOCKS * A_BLOCK;
  const int64_t run = task / w.shared * RUN, count = std::min(RUN, w.samples - run);
  const int64_t groups = w.channels_in / 4, width = RUN + (w.taps - 1) / Way::TAPS * w.dilation;
  const int64_t channels = w.shared == 1 ? w.channels_out : CHANNELS_A_TASK;
  const int64_t first_channel = task % w.shared * channels;
  thread_local std::vector<int32_t> signals_room, products_room;
  int32_t *signals = ort::room(signals_room, Way::PRODUCTS * 2 * groups * width);
  int32_t *products = ort::room(products_room, Way::PRODUCTS * A_PRODUCT);
  make_signals<Way>(w.words + Way::PHASES * run, w.stride, groups, w.dilation, width, signals);
  for (int64_t first = first_channel; first < std::min(first_channel + channels, w.channels_out); first += CHANNELS_A_TASK) {
    const int64_t tiles = (std::min(first + CHANNELS_A_TASK, w.channels_out) - first) / TILE;
    for (int k = 0; k < Way::PRODUCTS; ++k) {
      const int32_t *filters = w.filters + first / TILE * w.tile_words + w.filter_plan->begin[k];
      for (int64_t at = 0; at < count; at += COLUMNS)
        for (int64_t tile = 0; tile < tiles; ++tile)
          multiply<Pairs>(count - at < COLUMNS ? count - at : COLUMNS, signals + k * 2 * groups * width + at, width,
                          2 * groups, w.filter_plan->blocks[k], w.dilation, filters + tile * w.tile_words, nullptr,
                          products + k * A_PRODUCT + at / COLUMNS * A_BLOCK + tile * A_TILE);
    }
    for (int64_t at = 0; at < count; at += COLUMNS)
      for (int64_t channel = 0; channel < tiles * TILE; ++channel)
        add_up<Way>(w, first + channel, w.begin + run + at, std::min<int64_t>(COLUMNS, count - at),
                    products + at / COLUMNS * A_BLOCK + channel * COLUMNS, A_PRODUCT);
  }
}

// All runs, with fewer multiplications.
template <typename Way>
void compute_fast(const ort::Call &call, Work &w) {
  thread_local std::vector<int32_t> words, filters;
  // Of the outputs that are found together, the last one is nearly `dilation` samples of a phase ahead
  w.begin = w.asked.first / Way::PHASES - w.dilation;
  w.samples = (w.asked.last + Way::PHASES - 1) / Way::PHASES - w.begin;
  w.reach = w.asked.first - Way::PHASES * w.begin + w.taps / 2 * w.dilation;
  const int64_t runs = (w.samples + RUN - 1) / RUN;
  const int64_t behind = (w.taps - 1) / Way::TAPS * w.dilation + (Way::SAMPLES - 1) * w.dilation / Way::PHASES;
  w.stride = Way::PHASES * (runs * RUN + behind);
  w.words = ort::room(words, ort::count_of({w.channels_in / 4, w.stride}));
  const FilterPlan plan = FilterPlan::of<Way>(w.channels_in / 4, w.taps);
  w.filter_plan = &plan;
  w.tile_words = plan.begin[Way::PRODUCTS];
  w.filters = ort::room(filters, ort::count_of({w.channels_out / TILE, w.tile_words}));
  w.shared = runs < MANY_RUNS ? (w.channels_out + CHANNELS_A_TASK - 1) / CHANNELS_A_TASK : 1;
  call.parallel(make_filters_of<Way>, w.channels_out / TILE, static_cast<const Work &>(w));
  call.parallel(quantise, w.channels_in / 4, static_cast<const Work &>(w));
  call.parallel(convolve_run<Way>, runs * w.shared, static_cast<const Work &>(w));
}
#endif

void compute_all(const ort::Call &call, Work &w) {
#if defined(KOKORO_SATURATES)
  // Of filters that are doubled, a sum is still a number of 32 bits. Outputs that are found together are as far apart
  // as taps are, so they must not be far
  if (w.taps >= 3 && w.dilation % 2 != 0 && w.dilation < COLUMNS && w.channels_in * w.taps <= MOST_SUMMED / 2)
    return w.taps == 3 ? compute_fast<ByTwo>(call, w) : compute_fast<ByFour>(call, w);
#endif
  compute_by_definition(call, w);
}

// What the second input says of a convolution of `channels` inputs.
struct Plan {
  int64_t channels_out, channels_in, taps, dilation;

  Plan(const int64_t *p, int64_t channels) : channels_out(p[0]), channels_in(p[1]), taps(p[2]), dilation(p[3]) {
    if (channels_out < 1 || channels_out > ort::MOST_NUMBER || channels_out % TILE != 0)
      throw ort::Refused("%lld output channels: must be a multiple of %d", ort::shown(channels_out), TILE);
    if (channels_in != (channels + 3) / 4 * 4)
      throw ort::Refused("the plan is for %lld input channels, and there are %lld", ort::shown(channels_in),
                         ort::shown(channels));
    if (taps < 1 || taps % 2 == 0 || taps > MOST_SUMMED || channels_in * taps > MOST_SUMMED)
      throw ort::Refused("%lld channels by %lld taps: must be an odd number of taps, and %lld products at most",
                         ort::shown(channels_in), ort::shown(taps), ort::shown(MOST_SUMMED));
    if (dilation < 1 || dilation > MOST_SUMMED)
      throw ort::Refused("a dilation of %lld: must be 1 to %lld", ort::shown(dilation), ort::shown(MOST_SUMMED));
  }
};

template <bool Snake>
void compute(const ort::Call &call) {
  const auto x = call.input<float>(X).shaped({1, ort::ANY, ort::ANY});
  const int64_t channels = x.sizes[1], length = x.sizes[2];
  const Plan plan(call.input<int64_t>(PLAN).of(4).data, channels);
  const auto weights = call.input<int8_t>(WEIGHTS).of(ort::count_of({plan.channels_out, plan.channels_in, plan.taps}));
  const auto sums = call.input<int32_t>(SUMS).of(2 * plan.channels_out);
  const auto steps = call.input<float>(STEPS).of(2 * channels);
  const auto outputs = call.input<float>(OUTPUTS).of(2 * plan.channels_out);
  const float *scale = nullptr, *shift = nullptr, *by = nullptr;
  if (Snake) {
    scale = call.input<float>(SCALE).of(channels).data;
    shift = call.input<float>(SHIFT).of(channels).data;
    by = call.optional<float>(BY).data_of(ort::count_of({plan.channels_out, length}));
  }
  const Columns asked = asked_for(call, Snake ? ASKED : ASKED_ALONE, length);
  float *y = call.output({1, plan.channels_out, length});
  if (length == 0) return;
  clear_others(y, plan.channels_out, length, asked, by);
  if (asked.first == asked.last) return;
  // A line here is a line of the struct
  Work work{plan.channels_out, plan.channels_in, plan.taps, plan.dilation,
            x.data, steps.data, outputs.data, scale, shift,
            by,
            weights.data,
            sums.data,
            y,
            channels, length,
            asked};
  compute_all(call, work);
}

}  // namespace

constexpr ort::Kernel ort::QUANT_CONV("QuantConv", guarded<compute<false>>,
                                      {FLOAT, INT64, INT8, INT32, FLOAT, FLOAT, INT64, INT64}, 2);
constexpr ort::Kernel ort::QUANT_SNAKE_CONV("QuantSnakeConv", guarded<compute<true>>,
                                            {FLOAT, INT64, INT8, INT32, FLOAT, FLOAT, FLOAT, FLOAT, INT64, INT64,
                                             FLOAT}, 3);
