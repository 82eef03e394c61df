// The activation of the vocoder, with its factors in the modulation in front and the weights behind.
#pragma once

#include <cmath>

// z - cos z + 1. With z = k·π + r and |r| <= π/2, 1 - cos z is t = 1 - cos r for even k and 2 - t for odd. t is
// r² times a polynomial in r², fitted for the least relative error (8e-10) on that range.
inline float snake(float z) {
  constexpr float PI_HIGH = 3.140625f, PI_LOW = 9.67653589793e-4f;
  const float k = std::nearbyint(z * 0.318309886184f);
  float r = z - k * PI_HIGH;
  r -= k * PI_LOW;
  const float w = r * r;
  float t = 2.628412283e-07f;
  t = t * w - 2.477392219e-05f;
  t = t * w + 1.388864154e-03f;
  t = t * w - 4.166665886e-02f;
  t = t * w + 4.999999996e-01f;
  t *= w;
  return z + ((static_cast<int>(k) & 1) != 0 ? 2.0f - t : t);
}
