// The part of ONNX Runtime's C interface that our operators use, written from its documentation, so that
// nothing but a compiler is needed to build them. The interface only ever grows at its end: a function
// keeps its place in the table for good, and a table of an older version is given to those who ask for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace ort {

struct Status;
struct Value;
struct Shape;
struct Context;
struct Domain;
struct Options;

constexpr uint32_t VERSION = 18;
constexpr int FLOAT = 1, INT8 = 3, INT32 = 6, INT64 = 7, BOOL = 9;

// One function pointer after the other; `Place` says which is which.
using Table = void (*const *)();
enum Place {
  ADD_TO_DOMAIN = 27,
  ADD_DOMAIN = 28,
  CREATE_DOMAIN = 26,
  DATA = 51,
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

template <typename... Arguments>
Status *call(Table table, Place place, Arguments... arguments) {
  return reinterpret_cast<Status *(*)(Arguments...)>(table[place])(arguments...);
}

// None if it is an optional one that is not given.
inline const Value *input(Table t, const Context *context, size_t index) {
  const Value *value = nullptr;
  call(t, INPUT, context, index, &value);
  return value;
}

template <typename T>
T *data(Table t, const Value *value) {
  void *pointer = nullptr;
  call(t, DATA, const_cast<Value *>(value), &pointer);
  return static_cast<T *>(pointer);
}

// The first `count` dimensions of a tensor; those that it has not got are 1. How many it has.
inline size_t dimensions(Table t, const Value *value, int64_t *sizes, size_t count) {
  Shape *shape = nullptr;
  call(t, SHAPE, value, &shape);
  size_t rank = 0;
  call(t, DIMENSION_COUNT, const_cast<const Shape *>(shape), &rank);
  for (size_t i = 0; i < count; ++i) sizes[i] = 1;
  call(t, DIMENSIONS, const_cast<const Shape *>(shape), sizes, rank < count ? rank : count);
  reinterpret_cast<void (*)(Shape *)>(t[RELEASE_SHAPE])(shape);
  return rank;
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

inline void parallel(Table t, const Context *context, void (*run)(void *, size_t), int64_t count, void *data) {
  call(t, PARALLEL_FOR, context, run, static_cast<size_t>(count), size_t{0}, data);
}

inline float *output(Table t, Context *context, const int64_t *sizes, size_t rank, size_t index = 0) {
  Value *value = nullptr;
  call(t, OUTPUT, context, index, sizes, rank, &value);
  return data<float>(t, value);
}

// An operator for the CPU with `Inputs` inputs, of which the last ones are `Optional`, and `Outputs` outputs of floats.
template <size_t Inputs, size_t Outputs = 1, size_t Optional = 0>
Operator describe(const char *(*name)(const Operator *), void (*compute)(void *, Context *),
                  int (*input_type)(const Operator *, size_t)) {
  Operator made{};
  made.version = VERSION;
  made.create = [](const Operator *, Table table, const void *) {
    return const_cast<void *>(static_cast<const void *>(table));
  };
  made.name = name;
  made.provider = [](const Operator *) -> const char * { return nullptr; };
  made.input_type = input_type;
  made.input_count = [](const Operator *) { return Inputs; };
  made.output_type = [](const Operator *, size_t) { return FLOAT; };
  made.output_count = [](const Operator *) { return Outputs; };
  made.compute = compute;
  made.destroy = [](void *) {};
  made.input_kind = [](const Operator *, size_t index) { return index < Inputs - Optional ? 0 : 1; };
  made.output_kind = made.input_memory = [](const Operator *, size_t) { return 0; };
  made.variadic_input_least = made.variadic_input_alike = [](const Operator *) { return 1; };
  made.variadic_output_least = made.variadic_output_alike = [](const Operator *) { return 1; };
  made.first_opset = [](const Operator *) { return 1; };
  made.last_opset = [](const Operator *) { return 0x7fffffff; };
  return made;
}

}  // namespace ort
