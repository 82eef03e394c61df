// How an operator of ours asks ONNX Runtime for its tensors, refuses those that do not fit, and fails.
//
// No exception crosses the C interface, and no status is lost: inside an operator both are exceptions, and
// `guarded` turns whatever arrives there into the status that ONNX Runtime reports with the node's name.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <new>
#include <stdexcept>
#include <vector>

#include "brake.h"
#include "ort_abi.h"

namespace ort {

constexpr size_t MOST_DIMENSIONS = 8;
constexpr int64_t ANY = -1;                        // of a dimension that may be of any size
constexpr int64_t MOST_NUMBER = int64_t{1} << 31;  // two numbers up to this multiply without overflow

// A status of ONNX Runtime's. Whoever catches it owns it.
struct Failure {
  Status *status;
};

// An input that an operator was not made for: what is wrong with it.
struct Refused {
  char text[192];

  [[gnu::format(printf, 2, 3)]] explicit Refused(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
  }
};

// The only way to the C interface from inside an operator.
template <typename... Arguments>
void must(Table table, Place place, Arguments... arguments) {
  if (Status *status = call(table, place, arguments...)) throw Failure{status};
}

// A number as printf takes it.
constexpr long long shown(int64_t number) { return number; }

// How many values these sizes make.
inline int64_t count_of(std::initializer_list<int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) throw Refused("a size that cannot be");
  return count;
}

// At least `count` values of a buffer that a thread keeps from one run to the next.
template <typename T>
T *room(std::vector<T> &kept, int64_t count) {
  if (static_cast<int64_t>(kept.size()) < count) kept.resize(static_cast<size_t>(count));
  return kept.data();
}

template <typename T>
constexpr int type_of();
template <>
constexpr int type_of<float>() { return FLOAT; }
template <>
constexpr int type_of<int8_t>() { return INT8; }
template <>
constexpr int type_of<int32_t>() { return INT32; }
template <>
constexpr int type_of<int64_t>() { return INT64; }
template <>
constexpr int type_of<bool>() { return BOOL; }

// An input, as far as its shape: no data if it is an optional one that is not given.
template <typename T>
struct Tensor {
  const T *data = nullptr;
  size_t index = 0, rank = 0;
  int64_t sizes[MOST_DIMENSIONS] = {}, count = 0;

  explicit operator bool() const { return data != nullptr; }

  // Refused unless it holds so many values, however they are arranged.
  const Tensor &of(int64_t expected) const {
    if (count != expected)
      throw Refused("input %zu has %lld values: must be %lld", index, shown(count), shown(expected));
    return *this;
  }

  // The data of an optional input that is given, if it holds so many values; none of one that is not.
  const T *data_of(int64_t expected) const { return *this ? of(expected).data : nullptr; }

  // Refused if it holds fewer values.
  const Tensor &with(int64_t least) const {
    if (count < least)
      throw Refused("input %zu has %lld values: must be %lld at least", index, shown(count), shown(least));
    return *this;
  }

  // Refused unless it has these dimensions.
  const Tensor &shaped(std::initializer_list<int64_t> expected) const {
    if (rank != expected.size())
      throw Refused("input %zu has %zu dimensions: must be %zu", index, rank, expected.size());
    size_t i = 0;
    for (const int64_t size : expected) {
      if (size != ANY && sizes[i] != size)
        throw Refused("dimension %zu of input %zu is %lld: must be %lld", i, index, shown(sizes[i]), shown(size));
      ++i;
    }
    return *this;
  }
};

// One run of an operator.
class Call {
 public:
  Call(Table table, Context *context) : table_(table), context_(context) {}

  // An input that has to be given.
  template <typename T>
  Tensor<T> input(size_t index) const {
    const Tensor<T> found = optional<T>(index);
    if (!found) throw Refused("input %zu is missing", index);
    return found;
  }

  // An input that may be left out.
  template <typename T>
  Tensor<T> optional(size_t index) const {
    const Value *value = nullptr;
    must(table_, INPUT, static_cast<const Context *>(context_), index, &value);
    Tensor<T> found;
    found.index = index;
    if (value == nullptr) return found;
    read_shape(value, type_of<T>(), index, found.sizes, found.rank);
    found.count = 1;
    for (size_t i = 0; i < found.rank; ++i)
      if (found.sizes[i] < 0 || __builtin_mul_overflow(found.count, found.sizes[i], &found.count))
        throw Refused("input %zu has a size that cannot be", index);
    found.data = static_cast<const T *>(data(value));
    // Of an empty tensor there need be no data, but it is given
    static const T none[1] = {};
    if (found.data == nullptr && found.count == 0) found.data = none;
    return found;
  }

  float *output(const int64_t *sizes, size_t rank, size_t index = 0) const {
    Value *value = nullptr;
    must(table_, OUTPUT, context_, index, sizes, rank, &value);
    if (value == nullptr) throw Refused("output %zu is not asked for", index);
    return static_cast<float *>(data(value));
  }

  float *output(std::initializer_list<int64_t> sizes, size_t index = 0) const {
    return output(sizes.begin(), sizes.size(), index);
  }

  // `run(work, i)` for each i below `count`, on the threads of the session. What the first of them throws that
  // throws is thrown here, once all are over; those that begin later do nothing.
  template <typename Work>
  void parallel(void (*run)(const Work &, int64_t), int64_t count, const Work &work) const {
    struct Tasks {
      void (*run)(const Work &, int64_t);
      const Work &work;
      std::atomic<bool> failed{false};
      std::exception_ptr error{};
    } tasks{run, work};
    const auto one = [](void *data, size_t index) {
      Tasks &all = *static_cast<Tasks *>(data);
      if (all.failed.load(std::memory_order_relaxed)) return;
      try {
        all.run(all.work, static_cast<int64_t>(index));
      } catch (...) {
        if (!all.failed.exchange(true)) all.error = std::current_exception();
      }
    };
    if (count > 0)
      must(table_, PARALLEL_FOR, static_cast<const Context *>(context_), static_cast<void (*)(void *, size_t)>(one),
           static_cast<size_t>(count), size_t{0}, static_cast<void *>(&tasks));
    if (tasks.error) std::rethrow_exception(tasks.error);
  }

 private:
  void *data(const Value *value) const {
    void *pointer = nullptr;
    must(table_, DATA, const_cast<Value *>(value), &pointer);
    return pointer;
  }

  void read_shape(const Value *value, int type, size_t index, int64_t *sizes, size_t &rank) const {
    struct Held {
      Table table;
      Shape *shape = nullptr;
      ~Held() {
        if (shape != nullptr) release(table, shape);
      }
    } held{table_};
    must(table_, SHAPE, value, &held.shape);
    const Shape *shape = held.shape;
    int found = 0;
    must(table_, ELEMENT_TYPE, shape, &found);
    if (found != type) throw Refused("input %zu is of type %d: must be %d", index, found, type);
    must(table_, DIMENSION_COUNT, shape, &rank);
    if (rank > MOST_DIMENSIONS)
      throw Refused("input %zu has %zu dimensions: at most %zu are allowed", index, rank, MOST_DIMENSIONS);
    must(table_, DIMENSIONS, shape, sizes, rank);
  }

  Table table_;
  Context *context_;
};

// What an operator does, as ONNX Runtime calls it.
template <void (*Compute)(const Call &)>
Status *guarded(void *kernel, Context *context) noexcept {
  const Table table = static_cast<Table>(kernel);
  const auto no_memory = [table] { return make_status(table, FAIL, "Failed to allocate memory inside an operator"); };
  stand_still_if_held();
  try {
    Compute(Call{table, context});
    return nullptr;
  } catch (const Failure &failure) {
    return failure.status;
  } catch (const Refused &refused) {
    return make_status(table, INVALID_ARGUMENT, refused.text);
  } catch (const std::bad_alloc &) {
    return no_memory();
  } catch (const std::length_error &) {  // more than a vector can ever hold
    return no_memory();
  } catch (const std::exception &error) {
    return make_status(table, FAIL, error.what());
  } catch (...) {
    return make_status(table, FAIL, "an operator threw something that is no exception");
  }
}

// An operator for the CPU: what it is called, does and takes. Its inputs are of these types, the last ones may be left
// out, and its outputs are floats. Made as the sources are compiled: what ran as a library is loaded would run on
// processors that lack its instructions (see scripts/wheels/choose.cpp).
struct Kernel : Operator {
  static constexpr size_t MOST_INPUTS = 11;

  const char *called;
  int types[MOST_INPUTS] = {};
  size_t inputs, required, outputs;

  constexpr Kernel(const char *name, Status *(*run)(void *, Context *), std::initializer_list<int> input_types,
                   size_t optional = 0, size_t output_count = 1)
      : Operator{}, called(name), inputs(input_types.size()), required(inputs - optional), outputs(output_count) {
    size_t index = 0;
    for (const int type : input_types) types[index++] = type;
    version = VERSION;
    create_v2 = [](const Operator *, Table table, const void *, void **kernel) -> Status * {
      *kernel = const_cast<void *>(static_cast<const void *>(table));
      return nullptr;
    };
    this->name = [](const Operator *made) { return of(made).called; };
    provider = [](const Operator *) -> const char * { return nullptr; };
    input_type = [](const Operator *made, size_t index) { return of(made).types[index]; };
    input_count = [](const Operator *made) { return of(made).inputs; };
    output_type = [](const Operator *, size_t) { return FLOAT; };
    this->output_count = [](const Operator *made) { return of(made).outputs; };
    compute_v2 = run;
    destroy = [](void *) {};
    input_kind = [](const Operator *made, size_t index) { return index < of(made).required ? 0 : 1; };
    output_kind = input_memory = [](const Operator *, size_t) { return 0; };
    variadic_input_least = variadic_input_alike = [](const Operator *) { return 1; };
    variadic_output_least = variadic_output_alike = [](const Operator *) { return 1; };
    first_opset = [](const Operator *) { return 1; };
    last_opset = [](const Operator *) { return 0x7fffffff; };
  }

 private:
  static const Kernel &of(const Operator *made) { return *static_cast<const Kernel *>(made); }
};

// All that there are; each is made in the file that says what it does.
extern const Kernel FAST_CONV, SNAKE_CONV, NORM_CONV, QUANT_CONV, QUANT_SNAKE_CONV, PRODUCT, QUANT_PRODUCT, PHASES,
    BI_LSTM, EXACT_STFT, NORM, STATISTICS, ARCTANGENT, LAYER_NORM, SOFTMAX, GELU, SCORES, MIXTURE;

}  // namespace ort
