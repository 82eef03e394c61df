// What ONNX Runtime calls when it loads this library: hands over our operators.
#include "operator.h"

extern "C" __attribute__((visibility(KOKORO_SEEN))) ort::Status *RegisterCustomOps(ort::Options *options,
                                                                                   const ort::Base *base) {
  const ort::Table t = base->get(ort::VERSION);
  if (t == nullptr) return ort::make_status(base->get(1), ort::FAIL, "this ONNX Runtime is too old for our operators");
  ort::Domain *domain = nullptr;  // given to ONNX Runtime, for as long as the process lives
  ort::Status *failed = ort::call(t, ort::CREATE_DOMAIN, static_cast<const char *>("kokoro_lab"), &domain);
  for (const ort::Kernel *made :
       {&ort::FAST_CONV, &ort::SNAKE_CONV, &ort::NORM_CONV, &ort::QUANT_CONV, &ort::QUANT_SNAKE_CONV, &ort::PRODUCT,
        &ort::QUANT_PRODUCT, &ort::PHASES, &ort::BI_LSTM, &ort::EXACT_STFT, &ort::NORM, &ort::STATISTICS,
        &ort::ARCTANGENT, &ort::LAYER_NORM, &ort::SOFTMAX, &ort::GELU, &ort::SCORES, &ort::MIXTURE})
    if (failed == nullptr) failed = ort::call(t, ort::ADD_TO_DOMAIN, domain, static_cast<const ort::Operator *>(made));
  if (failed == nullptr) failed = ort::call(t, ort::ADD_DOMAIN, options, domain);
  return failed;
}
