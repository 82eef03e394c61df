// How a fast convolution is taken apart, as the operator's second and third input say it: see fast_fir.packed, which
// writes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "interleave.h"
#include "operator.h"

struct Term {
  int64_t phase, advance, factor;
};

struct Product {
  int64_t first, taps;
  const Term *terms;
  int64_t term_count;
  const float *weights;
};

struct Part {
  int64_t product, factor;
};

struct Output {
  int64_t shift;
  const Part *parts;
  int64_t part_count;
};

struct Plan {
  // What fast_conv.cpp has room and code for. Products are as many as the plan says: their room follows from it.
  static constexpr int64_t MOST_TERMS = 6, TILE = 8;
  // Of an offset, shift or number of taps, so that sums of them with lengths stay numbers
  static constexpr int64_t MOST_SAMPLES = 65536;

  int64_t phases, step, channels_out, channels_in;
  int64_t ahead = 0;  // the most that a term looks ahead; none looks back
  std::vector<Product> products;
  std::vector<Output> outputs;

  // Refused if it would have the operator read or write where nothing is.
  Plan(const ort::Tensor<int64_t> &plan, const ort::Tensor<float> &weights) {
    Reader read{plan.data, plan.count};
    phases = read.next("phases", 1, MOST_PHASES);
    if (phases == 3) throw ort::Refused("3 phases: must be 1, 2 or 4");
    step = read.next("dilation", 1, MOST_SAMPLES);
    channels_out = read.next("output channels", TILE, ort::MOST_NUMBER);
    if (channels_out % TILE != 0)
      throw ort::Refused("%lld output channels: must be a multiple of %lld", ort::shown(channels_out),
                         ort::shown(TILE));
    channels_in = read.next("input channels", 1, ort::MOST_NUMBER);
    // Each takes three numbers of the plan at least
    products.resize(static_cast<size_t>(read.next("products", 1, plan.count / 3)));
    int64_t all_weights = 0;
    for (Product &product : products) {
      product.first = read.next("first offset", -MOST_SAMPLES, MOST_SAMPLES);
      product.taps = read.next("taps", 0, MOST_SAMPLES);
      product.term_count = read.next("terms", 1, MOST_TERMS);
      product.terms = reinterpret_cast<const Term *>(read.at);
      for (int64_t t = 0; t < product.term_count; ++t) {
        read.next("phase", 0, phases - 1);
        ahead = std::max(ahead, read.next("advance", 0, MOST_SAMPLES));
        read.next("factor", -MOST_SAMPLES, MOST_SAMPLES);
      }
      product.weights = weights.data + all_weights;
      all_weights += ort::count_of({channels_out, channels_in, product.taps});
      if (all_weights > weights.count) break;
    }
    weights.of(all_weights);
    outputs.resize(static_cast<size_t>(phases));
    for (Output &output : outputs) {
      output.shift = read.next("shift", -MOST_SAMPLES, MOST_SAMPLES);
      output.part_count = read.next("parts", 0, static_cast<int64_t>(products.size()));
      output.parts = reinterpret_cast<const Part *>(read.at);
      for (int64_t part = 0; part < output.part_count; ++part) {
        read.next("product", 0, static_cast<int64_t>(products.size()) - 1);
        read.next("factor", -MOST_SAMPLES, MOST_SAMPLES);
      }
    }
    if (read.left != 0) throw ort::Refused("the plan has %lld numbers too many", ort::shown(read.left));
  }

 private:
  struct Reader {
    const int64_t *at;
    int64_t left;

    int64_t next(const char *what, int64_t least, int64_t most) {
      if (left < 1) throw ort::Refused("the plan ends before its %s", what);
      const int64_t number = *at;
      if (number < least || number > most)
        throw ort::Refused("the plan has %lld %s: must be %lld to %lld", ort::shown(number), what,
                           ort::shown(least), ort::shown(most));
      ++at;
      --left;
      return number;
    }
  };
};
