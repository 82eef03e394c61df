// Lets a run stand still between two operators, as long as another run is needed sooner.
#include "brake.h"

#include <chrono>
#include <thread>

#include "ort_abi.h"

namespace ort {

namespace {

// Not zero while the run of this thread must stand still. Whoever set it owns it.
thread_local const int32_t *held = nullptr;

constexpr auto LOOK = std::chrono::microseconds(200);
// 2 s at least: a run that nobody lets go on goes on by itself
constexpr int MOST_LOOKS = 10'000;

}  // namespace

void stand_still_if_held() noexcept {
  if (held == nullptr) return;
  for (int looks = 0; __atomic_load_n(held, __ATOMIC_ACQUIRE) != 0 && looks < MOST_LOOKS; ++looks)
    std::this_thread::sleep_for(LOOK);
}

}  // namespace ort

// From now on the runs of the calling thread stand still while `word` is not zero; never if it is null.
extern "C" __attribute__((visibility(KOKORO_SEEN))) void kokoro_brake(const int32_t *word) { ort::held = word; }
