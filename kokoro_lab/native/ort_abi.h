// The part of ONNX Runtime's C interface that our operators use, written from its documentation, so that
// nothing but a compiler is needed to build them. The interface only ever grows at its end: a function
// keeps its place in the table for good, and a table of an older version is given to those who ask for it.
//
// Operators do not call it themselves: they ask an `ort::Call` (operator.h), which looks at every status.
#pragma once

#include <cstddef>
#include <cstdint>

// Who sees what the process calls by its name. As one of several sets in a library, scripts/wheels/choose.cpp calls
// it instead
#ifdef KOKORO_SET
#define KOKORO_SEEN "hidden"
#else
#define KOKORO_SEEN "default"
#endif

namespace ort {

struct Status;
struct Value;
struct Shape;
struct Context;
struct Domain;
struct Options;

constexpr uint32_t VERSION = 18;
constexpr int FLOAT = 1, INT8 = 3, INT32 = 6, INT64 = 7, BOOL = 9;
// Codes of a status
constexpr int FAIL = 1, INVALID_ARGUMENT = 2;

// One function pointer after the other; `Place` says which is which.
using Table = void (*const *)();
enum Place {
  CREATE_STATUS = 0,
  ADD_TO_DOMAIN = 27,
  ADD_DOMAIN = 28,
  CREATE_DOMAIN = 26,
  DATA = 51,
  ELEMENT_TYPE = 60,
  DIMENSION_COUNT = 61,
  DIMENSIONS = 62,
  SHAPE = 65,
  INPUT = 90,
  OUTPUT = 91,
  RELEASE_SHAPE = 99,
  PARALLEL_FOR = 274,
};

struct Base {
  Table (*get)(uint32_t version);
  const char *(*version_text)();
};

// A function of the interface: none, or what went wrong, which whoever called it owns.
template <typename... Arguments>
[[nodiscard]] Status *call(Table table, Place place, Arguments... arguments) noexcept {
  return reinterpret_cast<Status *(*)(Arguments...)>(table[place])(arguments...);
}

[[nodiscard]] inline Status *make_status(Table table, int code, const char *message) noexcept {
  return reinterpret_cast<Status *(*)(int, const char *)>(table[CREATE_STATUS])(code, message);
}

inline void release(Table table, Shape *shape) noexcept {
  reinterpret_cast<void (*)(Shape *)>(table[RELEASE_SHAPE])(shape);
}

// An operator as ONNX Runtime wants it described.
struct Operator {
  uint32_t version;
  void *(*create)(const Operator *, Table, const void *info);
  const char *(*name)(const Operator *);
  const char *(*provider)(const Operator *);
  int (*input_type)(const Operator *, size_t);
  size_t (*input_count)(const Operator *);
  int (*output_type)(const Operator *, size_t);
  size_t (*output_count)(const Operator *);
  void (*compute)(void *kernel, Context *);
  void (*destroy)(void *kernel);
  int (*input_kind)(const Operator *, size_t);
  int (*output_kind)(const Operator *, size_t);
  int (*input_memory)(const Operator *, size_t);
  int (*variadic_input_least)(const Operator *);
  int (*variadic_input_alike)(const Operator *);
  int (*variadic_output_least)(const Operator *);
  int (*variadic_output_alike)(const Operator *);
  Status *(*create_v2)(const Operator *, Table, const void *info, void **kernel);
  Status *(*compute_v2)(void *kernel, Context *);
  Status *(*infer_shape)(const Operator *, void *);
  int (*first_opset)(const Operator *);
  int (*last_opset)(const Operator *);
  size_t (*in_place)(int **inputs, int **outputs);
  void (*release_in_place)(int *inputs, int *outputs);
  size_t (*alias)(int **inputs, int **outputs);
  void (*release_alias)(int *inputs, int *outputs);
};

}  // namespace ort
