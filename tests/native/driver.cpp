// Runs our operators without ONNX Runtime, for sanitizers: each tensor has a block of memory of its own, so that a
// read or write beyond its end is seen, and any call of the interface and any allocation can be made to fail.
//
// Reads cases from standard input and writes what came of each to standard output; see driver.py, which has the
// format. Numbers are of 64 bits, in the machine's order.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "ort_abi.h"

extern "C" ort::Status *RegisterCustomOps(ort::Options *, const ort::Base *);
// Of a library for several instruction sets alone; the first argument says which
extern "C" __attribute__((weak)) int kokoro_choose(const char *);

namespace {

constexpr uint32_t UNWRITTEN = 0x7fc0dead;  // what an output holds before the operator writes to it
constexpr int64_t MOST_BYTES = int64_t{1} << 28;

// Counted from when a case begins; the one with this number fails, none if it is negative.
std::atomic<bool> armed{false};
std::atomic<int64_t> calls{0}, failing_call{-1}, allocations{0}, failing_allocation{-1};

bool allocation_fails() { return armed && allocations++ == failing_allocation; }

void *allocated(std::size_t size, std::size_t alignment) {
  if (allocation_fails()) return nullptr;
  const std::size_t whole = (size + alignment) / alignment * alignment;
  return alignment <= alignof(std::max_align_t) ? std::malloc(size + (size == 0)) : std::aligned_alloc(alignment, whole);
}

}  // namespace

void *operator new(std::size_t size) {
  if (void *found = allocated(size, 1)) return found;
  throw std::bad_alloc();
}
void *operator new(std::size_t size, std::align_val_t alignment) {
  if (void *found = allocated(size, static_cast<std::size_t>(alignment))) return found;
  throw std::bad_alloc();
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, std::size_t) noexcept { std::free(p); }
void operator delete(void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void *p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace ort {

struct Status {
  int code;
  char message[256];
};
struct Shape {
  int type;
  int64_t rank, *sizes;
};
struct Value {
  int type = 0;
  std::vector<int64_t> sizes;
  void *data = nullptr;
  int64_t count = 0;
  ~Value() { std::free(data); }
};
struct Context {
  std::vector<Value *> inputs, outputs;
};

}  // namespace ort

namespace {

std::map<std::string, const ort::Operator *> operators;

ort::Status *status(int code, const char *message) {
  auto *made = static_cast<ort::Status *>(std::calloc(1, sizeof(ort::Status)));
  made->code = code;
  std::strncpy(made->message, message, sizeof made->message - 1);
  return made;
}

// Whether this call of the interface is the one that is to fail.
ort::Status *due() { return armed && calls++ == failing_call ? status(ort::FAIL, "failed on purpose") : nullptr; }

int64_t bytes_of(int type) {
  switch (type) {
    case ort::INT64: return 8;
    case ort::INT8: case ort::BOOL: return 1;
    default: return 4;
  }
}

ort::Status *get_input(const ort::Context *context, size_t index, const ort::Value **value) {
  if (auto *failed = due()) return failed;
  *value = index < context->inputs.size() ? context->inputs[index] : nullptr;
  return nullptr;
}

ort::Status *get_output(ort::Context *context, size_t index, const int64_t *sizes, size_t rank, ort::Value **value) {
  if (auto *failed = due()) return failed;
  int64_t count = 1;
  for (size_t i = 0; i < rank; ++i)
    if (sizes[i] < 0 || __builtin_mul_overflow(count, sizes[i], &count)) return status(ort::FAIL, "size overflows");
  if (count > MOST_BYTES / 4) return status(ort::FAIL, "Available memory is smaller than requested");
  const bool was = armed.exchange(false);
  auto *made = new ort::Value{ort::FLOAT, std::vector<int64_t>(sizes, sizes + rank), std::malloc(4 * count), count};
  auto *words = static_cast<uint32_t *>(made->data);
  for (int64_t i = 0; i < count; ++i) words[i] = UNWRITTEN;
  if (context->outputs.size() <= index) context->outputs.resize(index + 1);
  context->outputs[index] = made;
  armed = was;
  *value = made;
  return nullptr;
}

ort::Status *get_data(ort::Value *value, void **data) {
  if (auto *failed = due()) return failed;
  *data = value->data;
  return nullptr;
}

ort::Status *get_shape(const ort::Value *value, ort::Shape **shape) {
  if (auto *failed = due()) return failed;
  auto *sizes = static_cast<int64_t *>(std::malloc(8 * value->sizes.size()));
  std::copy(value->sizes.begin(), value->sizes.end(), sizes);
  *shape = static_cast<ort::Shape *>(std::malloc(sizeof(ort::Shape)));
  **shape = {value->type, static_cast<int64_t>(value->sizes.size()), sizes};
  return nullptr;
}

void release_shape(ort::Shape *shape) {
  std::free(shape->sizes);
  std::free(shape);
}

ort::Status *get_type(const ort::Shape *shape, int *type) {
  if (auto *failed = due()) return failed;
  *type = shape->type;
  return nullptr;
}

ort::Status *get_rank(const ort::Shape *shape, size_t *rank) {
  if (auto *failed = due()) return failed;
  *rank = static_cast<size_t>(shape->rank);
  return nullptr;
}

ort::Status *get_sizes(const ort::Shape *shape, int64_t *sizes, size_t count) {
  if (auto *failed = due()) return failed;
  for (size_t i = 0; i < count && i < static_cast<size_t>(shape->rank); ++i) sizes[i] = shape->sizes[i];
  return nullptr;
}

// One other thread, which lives as long as the process, as those of a session do.
class Other {
 public:
  Other() : thread_([this] { work(); }) { thread_.detach(); }

  void run(void (*task)(void *, size_t), size_t total, void *data) {
    {
      const std::lock_guard<std::mutex> held(lock_);
      task_ = task, total_ = total, data_ = data, busy_ = true;
    }
    changed_.notify_all();
    for (size_t i = 0; i < total; i += 2) task(data, i);
    std::unique_lock<std::mutex> held(lock_);
    changed_.wait(held, [this] { return !busy_; });
  }

 private:
  void work() {
    std::unique_lock<std::mutex> held(lock_);
    for (;;) {
      changed_.wait(held, [this] { return busy_; });
      held.unlock();
      for (size_t i = 1; i < total_; i += 2) task_(data_, i);
      held.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  void (*task_)(void *, size_t) = nullptr;
  size_t total_ = 0;
  void *data_ = nullptr;
  bool busy_ = false;
  std::thread thread_;
};

ort::Status *parallel_for(const ort::Context *, void (*task)(void *, size_t), size_t total, size_t, void *data) {
  static Other *other = new Other;  // for good: its thread is never joined
  if (auto *failed = due()) return failed;
  other->run(task, total, data);
  return nullptr;
}

ort::Status *create_domain(const char *, ort::Domain **domain) {
  static char nothing;
  *domain = reinterpret_cast<ort::Domain *>(&nothing);
  return nullptr;
}

ort::Status *add_operator(ort::Domain *, const ort::Operator *made) {
  operators[made->name(made)] = made;
  return nullptr;
}

ort::Status *add_domain(ort::Options *, ort::Domain *) { return nullptr; }

void (*table[400])();

template <typename Function>
void put(ort::Place place, Function *function) {
  table[place] = reinterpret_cast<void (*)()>(function);
}

ort::Table get_table(uint32_t) { return table; }

// ------------------------------------------------------------------------------ cases

bool read(void *to, size_t size) { return std::fread(to, 1, size, stdin) == size; }

int64_t number() {
  int64_t found = 0;
  if (!read(&found, 8)) std::exit(3);
  return found;
}

void write(int64_t value) { std::fwrite(&value, 8, 1, stdout); }

void run_case(int64_t name_length) {
  std::string name(static_cast<size_t>(name_length), ' ');
  read(name.data(), name.size());
  failing_call = number();
  failing_allocation = number();
  ort::Context context;
  for (int64_t left = number(); left > 0; --left) {
    const int type = static_cast<int>(number());
    if (type == 0) {
      context.inputs.push_back(nullptr);
      continue;
    }
    auto *value = new ort::Value{};
    value->type = type;
    value->sizes.resize(static_cast<size_t>(number()));
    value->count = 1;
    for (int64_t &size : value->sizes) value->count *= size = number();
    value->data = std::malloc(static_cast<size_t>(value->count * bytes_of(type)));
    read(value->data, static_cast<size_t>(value->count * bytes_of(type)));
    context.inputs.push_back(value);
  }
  const ort::Operator *made = operators.at(name);
  void *kernel = nullptr;
  ort::Status *failed = made->create_v2(made, table, nullptr, &kernel);
  calls = allocations = 0;
  armed = true;
  if (failed == nullptr) failed = made->compute_v2(kernel, &context);
  armed = false;
  made->destroy(kernel);
  write(failed == nullptr ? 0 : failed->code);
  const std::string message = failed == nullptr ? "" : failed->message;
  write(static_cast<int64_t>(message.size()));
  std::fwrite(message.data(), 1, message.size(), stdout);
  std::free(failed);
  write(calls);
  write(allocations);
  write(static_cast<int64_t>(context.outputs.size()));
  for (ort::Value *value : context.outputs) {
    int64_t unwritten = 0;
    for (int64_t i = 0; i < value->count; ++i)
      unwritten += static_cast<const uint32_t *>(value->data)[i] == UNWRITTEN;
    write(unwritten);
    write(static_cast<int64_t>(value->sizes.size()));
    for (const int64_t size : value->sizes) write(size);
    std::fwrite(value->data, 4, static_cast<size_t>(value->count), stdout);
    delete value;
  }
  for (ort::Value *value : context.inputs) delete value;
  std::fflush(stdout);
}

}  // namespace

int main(int count, char **arguments) {
  if (count > 1 && (kokoro_choose == nullptr || kokoro_choose(arguments[1]) == 0)) return 4;
  put(ort::CREATE_STATUS, status);
  put(ort::ADD_TO_DOMAIN, add_operator);
  put(ort::ADD_DOMAIN, add_domain);
  put(ort::CREATE_DOMAIN, create_domain);
  put(ort::DATA, get_data);
  put(ort::ELEMENT_TYPE, get_type);
  put(ort::DIMENSION_COUNT, get_rank);
  put(ort::DIMENSIONS, get_sizes);
  put(ort::SHAPE, get_shape);
  put(ort::INPUT, get_input);
  put(ort::OUTPUT, get_output);
  put(ort::RELEASE_SHAPE, release_shape);
  put(ort::PARALLEL_FOR, parallel_for);
  const ort::Base base{get_table, nullptr};
  if (RegisterCustomOps(nullptr, &base) != nullptr) return 2;
  int64_t name_length = 0;
  while (read(&name_length, 8)) run_case(name_length);
  return 0;
}
