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

}  // namespace

TEST_CASE("the model gives PyTorch's logits, loss, gradients and updates", "[lab]") {
  std::size_t met = 0;
  for (const std::string& path : reference_files()) {
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
  CHECK(met == 29);
}
