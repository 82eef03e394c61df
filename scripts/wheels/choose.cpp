// The entrance of a library that holds our operators several times, once for each instruction set. It is compiled for
// the plainest processor, asks which of them the one that runs it has, and hands over the operators of one of them.
//
//   kokoro_instruction_sets   what this processor has of those that are here, the best one first, with spaces between
//   kokoro_choose             the set whose operators the next sessions get; 0 if it is none of those
//   kokoro_brake              the word that holds the runs of the calling thread (kokoro_lab/native/brake.cpp)
//   RegisterCustomOps         what ONNX Runtime calls
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "ort_abi.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#else
#include <sys/auxv.h>
#endif

namespace {

struct Set {
  const char *name;
  bool (*is_here)();
  ort::Status *(*hand_over)(ort::Options *, const ort::Base *);
  void (*brake)(const int32_t *);
};

}  // namespace

#define SET(name)                                                                           \
  extern "C" ort::Status *RegisterCustomOps_##name(ort::Options *, const ort::Base *); \
  extern "C" void kokoro_brake_##name(const int32_t *)
#define OPERATORS_OF(name) RegisterCustomOps_##name, kokoro_brake_##name

#if defined(__x86_64__)

SET(avx2);
SET(avx2_vnni);
SET(avx512);
SET(avx512_vnni);

namespace {

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;

  Registers(uint32_t leaf, uint32_t part) { __get_cpuid_count(leaf, part, &a, &b, &c, &d); }
};

constexpr uint32_t bits(std::initializer_list<int> numbers) {
  uint32_t found = 0;
  for (const int number : numbers) found |= uint32_t{1} << number;
  return found;
}

constexpr bool all(uint32_t of, uint32_t wanted) { return (of & wanted) == wanted; }

// Which registers the system keeps for a process; asked for only where it says that it does
uint32_t kept_registers() {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// x86-64-v3: of leaf 1 FMA, MOVBE, OSXSAVE, AVX, F16C; of leaf 7 BMI1, AVX2, BMI2; LZCNT
bool has_avx2() {
  constexpr uint32_t SSE_AND_AVX = 0x6;
  return all(Registers(1, 0).c, bits({0, 9, 12, 19, 20, 22, 23, 27, 28, 29})) && all(kept_registers(), SSE_AND_AVX) &&
         all(Registers(7, 0).b, bits({3, 5, 8})) && all(Registers(0x80000001, 0).c, bits({5}));
}

bool has_avx2_vnni() { return has_avx2() && all(Registers(7, 1).a, bits({4})); }

// x86-64-v4: AVX-512 F, DQ, CD, BW and VL
bool has_avx512() {
  constexpr uint32_t MASKS_AND_512 = 0xe0;
  return has_avx2() && all(kept_registers(), MASKS_AND_512) && all(Registers(7, 0).b, bits({16, 17, 28, 30, 31}));
}

bool has_avx512_vnni() { return has_avx512() && all(Registers(7, 0).c, bits({11})); }

constexpr Set SETS[] = {{"avx512-vnni", has_avx512_vnni, OPERATORS_OF(avx512_vnni)},
                        {"avx512", has_avx512, OPERATORS_OF(avx512)},
                        {"avx2-vnni", has_avx2_vnni, OPERATORS_OF(avx2_vnni)},
                        {"avx2", has_avx2, OPERATORS_OF(avx2)}};

#else

SET(neon);
SET(dotprod);
SET(i8mm);

namespace {

#if defined(__APPLE__)
bool told(const char *name) {
  int found = 0;
  size_t size = sizeof found;
  return sysctlbyname(name, &found, &size, nullptr, 0) == 0 && found != 0;
}

bool has_dotprod() { return told("hw.optional.arm.FEAT_DotProd"); }
bool has_i8mm() { return has_dotprod() && told("hw.optional.arm.FEAT_I8MM"); }
#else
// Bits of Linux's HWCAP and HWCAP2, whose names older headers lack
bool has_dotprod() { return (getauxval(AT_HWCAP) >> 20 & 1) != 0; }
bool has_i8mm() { return has_dotprod() && (getauxval(AT_HWCAP2) >> 13 & 1) != 0; }
#endif
bool has_neon() { return true; }

constexpr Set SETS[] = {{"i8mm", has_i8mm, OPERATORS_OF(i8mm)},
                        {"dotprod", has_dotprod, OPERATORS_OF(dotprod)},
                        {"neon", has_neon, OPERATORS_OF(neon)}};

#endif

const Set *chosen = nullptr;

}  // namespace

#define SEEN extern "C" __attribute__((visibility("default")))

SEEN const char *kokoro_instruction_sets() {
  static char names[128];
  names[0] = '\0';
  for (const Set &set : SETS)
    if (set.is_here()) {
      if (names[0] != '\0') std::strcat(names, " ");
      std::strcat(names, set.name);
    }
  return names;
}

SEEN int kokoro_choose(const char *name) {
  for (const Set &set : SETS)
    if (std::strcmp(set.name, name) == 0 && set.is_here()) {
      chosen = &set;
      return 1;
    }
  return 0;
}

// Sessions may have operators of several sets, if another one was chosen in between
SEEN void kokoro_brake(const int32_t *word) {
  for (const Set &set : SETS) set.brake(word);
}

SEEN ort::Status *RegisterCustomOps(ort::Options *options, const ort::Base *base) {
  for (const Set &set : SETS)
    if (chosen == nullptr && set.is_here()) chosen = &set;
  if (chosen != nullptr) return chosen->hand_over(options, base);
  return ort::make_status(base->get(1), ort::FAIL, "our operators are for processors that have more instructions");
}
