// Every reference file of PyTorch's against the model, in float and in double.
#include "normlab/lab/verify.h"

#include <algorithm>
#include <filesystem>

#include "catch.h"

using namespace normlab;

namespace {

std::vector<std::string> reference_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(NORMLAB_SOURCE_DIR "/tests/reference"))
    files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

// Those whose norm and placement exist; the others are refused.
const std::vector<std::string> kSupported{"batch-post",
                                          "batch-pre",
                                          "batch-pre-eval",
                                          "batch-pre-padded",
                                          "gelu_tanh-tied",
                                          "layer-post",
                                          "layer-pre",
                                          "layer-post-padded",
                                          "none-none",
                                          "odd-shapes",
                                          "rms-post",
                                          "rms-pre",
                                          "rope-swiglu-rms-tied-nobias",
                                          "sinusoidal-relu-post"};

bool is_supported(const std::string& path) {
  return std::ranges::count(kSupported, std::filesystem::path(path).stem().string()) == 1;
}

}  // namespace

TEST_CASE("the model gives PyTorch's logits, loss, gradients and updates") {
  std::size_t met = 0;
  for (const std::string& path : reference_files()) {
    if (!is_supported(path)) continue;
    ++met;
    INFO(path);
    const VerifyReport in_float = verify_file(path), in_double = f64::verify_file(path);
    INFO(in_float.reason << in_double.reason);
    CHECK(in_float.status == VerifyReport::Status::ok);
    CHECK(in_double.status == VerifyReport::Status::ok);
    // A comparison of nothing would give 0.
    CHECK(in_double.logits > 0);
    CHECK(in_double.grad > 0);
    CHECK(in_double.after > 0);
    // Far below the bound of 1e-3: a few thousand float operations.
    CHECK(in_float.logits < 1e-5);
    CHECK(in_float.grad < 1e-4);
  }
  CHECK(met == kSupported.size());
}

TEST_CASE("a file with an unknown norm or placement is refused by its key") {
  for (const std::string& path : reference_files()) {
    if (is_supported(path)) continue;
    INFO(path);
    const VerifyReport report = verify_file(path);
    CHECK(report.status == VerifyReport::Status::refused);
    const bool names_key =
        report.reason.find("norm: '") != std::string::npos || report.reason.find("placement: '") != std::string::npos;
    CHECK(names_key);
  }
}
