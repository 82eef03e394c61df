// What every operator asks before it computes: whether its run must stand still (brake.cpp).
#pragma once

namespace ort {

void stand_still_if_held() noexcept;

}  // namespace ort
