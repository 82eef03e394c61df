// What ONNX Runtime calls when it loads this library: hands over our operators.
#include <initializer_list>

#include "ort_abi.h"

extern const ort::Operator FAST_CONV;
extern const ort::Operator SNAKE_CONV;
extern const ort::Operator QUANT_CONV;
extern const ort::Operator QUANT_SNAKE_CONV;
extern const ort::Operator QUANT_PRODUCT;
extern const ort::Operator EXACT_STFT;
extern const ort::Operator PRODUCT;
extern const ort::Operator PHASES;
extern const ort::Operator NORM_CONV;
extern const ort::Operator NORM;
extern const ort::Operator BI_LSTM;
extern const ort::Operator STATISTICS;
extern const ort::Operator ARCTANGENT;
extern const ort::Operator LAYER_NORM;
extern const ort::Operator SOFTMAX;
extern const ort::Operator GELU;
extern const ort::Operator SCORES;
extern const ort::Operator MIXTURE;

extern "C" ort::Status *RegisterCustomOps(ort::Options *options, const ort::Base *base) {
  const ort::Table t = base->get(ort::VERSION);
  if (t == nullptr) return ort::make_status(base->get(1), ort::FAIL, "this ONNX Runtime is too old for our operators");
  ort::Domain *domain = nullptr;  // given to ONNX Runtime, for as long as the process lives
  ort::Status *failed = ort::call(t, ort::CREATE_DOMAIN, static_cast<const char *>("kokoro_lab"), &domain);
  for (const ort::Operator *made : {&FAST_CONV, &SNAKE_CONV, &QUANT_CONV, &QUANT_SNAKE_CONV, &QUANT_PRODUCT, &PRODUCT,
                                    &PHASES, &NORM_CONV, &NORM, &BI_LSTM, &EXACT_STFT, &STATISTICS, &ARCTANGENT,
                                    &LAYER_NORM, &SOFTMAX, &GELU, &SCORES, &MIXTURE})
    if (failed == nullptr) failed = ort::call(t, ort::ADD_TO_DOMAIN, domain, made);
  if (failed == nullptr) failed = ort::call(t, ort::ADD_DOMAIN, options, domain);
  return failed;
}
