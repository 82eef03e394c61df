// Of a window that is decoded, the ends are context: a layer need not work out more of it than is looked at by those
// behind it. Two inputs say how much that is; an operator without them works out all.
//
//   asked   int64 [2]   first and last trunk frame that are asked for, the last one exclusive
//   around  int64 [2]   columns a frame, and how many columns on either side of those frames are looked at
#pragma once

#include <algorithm>
#include <cstdint>

#include "operator.h"

struct Columns {
  int64_t first, last;
};

// What an operator is to work out of `length` columns, if `asked` is its input `index` and `around` the next one.
inline Columns asked_for(const ort::Call &call, size_t index, int64_t length) {
  const auto asked = call.optional<int64_t>(index);
  if (!asked) return {0, length};
  const int64_t *frames = asked.of(2).data, *around = call.input<int64_t>(index + 1).of(2).data;
  for (const int64_t number : {frames[0], frames[1], around[0], around[1]})
    if (number < -ort::MOST_NUMBER || number > ort::MOST_NUMBER)
      throw ort::Refused("frame %lld cannot be asked for", ort::shown(number));
  const int64_t first = std::clamp<int64_t>(frames[0] * around[0] - around[1], 0, length);
  return {first, std::clamp<int64_t>(frames[1] * around[0] + around[1], first, length)};
}

// The rest of an output is 0, or what is to be added to it: what a later layer makes of it is thrown away, but it must
// be a number.
inline void clear_others(float *y, int64_t channels, int64_t length, Columns asked, const float *by) {
  const auto clear = [=](int64_t from, int64_t to) {
    if (by == nullptr)
      std::fill(y + from, y + to, 0.0f);
    else
      std::copy(by + from, by + to, y + from);
  };
  for (int64_t c = 0; c < channels; ++c) {
    clear(c * length, c * length + asked.first);
    clear(c * length + asked.last, (c + 1) * length);
  }
}
