// Phases of a signal: every second sample, or every fourth, from a first one on. What fast convolutions of floats and
// of bytes take apart, and put together again.
#pragma once

#include <algorithm>
#include <cstdint>

namespace {

constexpr int64_t MOST_PHASES = 4;

// Phase p of x begins at out + p * apart. P is the number of phases, known beforehand for the sake of vectors.
template <int P, typename T>
void split(const T *x, int64_t length, T *out, int64_t apart) {
  const int64_t whole = length / P;
  for (int64_t n = 0; n < whole; ++n)
    for (int p = 0; p < P; ++p) out[p * apart + n] = x[n * P + p];
  for (int64_t i = whole * P; i < length; ++i) out[i % P * apart + whole] = x[i];
}

// The other way: sample n of y's phase p is phases[p][n - at[p]].
template <int P, int COLUMNS>
void join(const float (*phases)[COLUMNS], const int64_t *at, int64_t begin, int64_t end, float *y) {
  for (int64_t n = begin; n < end; ++n)
    for (int p = 0; p < P; ++p) y[n * P + p] = phases[p][n - at[p]];
}

// Joins what `columns` samples of each phase have become, as far as they lie in y, and adds `by` if there is any.
template <int COLUMNS>
void put_together(const float (*phases)[COLUMNS], const int64_t *at, int64_t columns, int64_t count, float *y,
                  int64_t length, const float *by) {
  int64_t from[MOST_PHASES], to[MOST_PHASES], all_from = 0, all_to = length;
  for (int64_t p = 0; p < count; ++p) {
    // Those outside of y are nobody's
    from[p] = std::max<int64_t>(0, at[p]);
    to[p] = std::min(at[p] + columns, (length - p + count - 1) / count);
    all_from = std::max(all_from, from[p]);
    all_to = std::min(all_to, to[p]);
  }
  const auto of_all = count == 4 ? join<4, COLUMNS> : count == 2 ? join<2, COLUMNS> : join<1, COLUMNS>;
  of_all(phases, at, all_from, all_to, y);
  if (by != nullptr)
    for (int64_t i = all_from * count; i < all_to * count; ++i) y[i] += by[i];
  // Shifts differ, so at either end some phases have samples that the others have not
  for (int64_t p = 0; p < count; ++p) {
    const auto put = [&](int64_t n) {
      const int64_t i = n * count + p;
      y[i] = by == nullptr ? phases[p][n - at[p]] : phases[p][n - at[p]] + by[i];
    };
    for (int64_t n = from[p]; n < std::min(all_from, to[p]); ++n) put(n);
    for (int64_t n = std::max(all_from, all_to); n < to[p]; ++n) put(n);
  }
}

}  // namespace
