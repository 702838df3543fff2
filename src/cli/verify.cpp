// normlab verify: reference files recomputed.
#include "normlab/lab/verify.h"

#include <filesystem>

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/utf8.h"
#include "normlab/config/fields.h"
#include "normlab/formats/json.h"
#include "normlab/run/terminal.h"

namespace normlab::cli {
namespace {

constexpr Option kOptions[] = {
    {"--double", "", "compute in double precision (errors up to 1e-9; in float 1e-3)"},
    {"--json", "", "one JSON document"},
};

Json json_of(const std::string& file, const VerifyReport& report) {
  Json errors = Json::object({{"logits", report.logits},
                              {"loss", report.loss},
                              {"grad", report.grad},
                              {"grad_norm", report.grad_norm},
                              {"after", report.after}});
  return Json::object({{"file", file},
                       {"status", config::to_string(report.status)},
                       {"reason", report.reason},
                       {"max_error", std::move(errors)}});
}

std::string line_of(const std::string& file, std::size_t width, const VerifyReport& report) {
  const std::string name = std::filesystem::path(file).filename().string();
  std::string out = text(name, std::string(width - name.size() + 2, ' '));
  if (report.status == VerifyReport::Status::refused) return text(out, "refused: ", report.reason, '\n');
  out += text(report.status == VerifyReport::Status::ok ? "ok       " : "DIFFERS  ", "logits ",
              significant(report.logits, 2), "  loss ", significant(report.loss, 2), "  grad ",
              significant(report.grad, 2), "  grad_norm ", significant(report.grad_norm, 2), "  after ",
              significant(report.after, 2));
  return text(out, report.reason.empty() ? "" : "  (", report.reason, report.reason.empty() ? "\n" : ")\n");
}

int run(const Words& words) {
  check<UserError>(!words.files().empty(), "verify: FILE is missing; usage: normlab verify ", verify_command.usage);
  std::size_t width = 0;
  for (const std::string& file : words.files())
    width = std::max(width, std::filesystem::path(file).filename().string().size());
  int agree = 0, differ = 0, refused = 0;
  bool by_system = false;
  std::string first_refusal;
  Json files = Json::array();
  for (const std::string& file : words.files()) {
    VerifyReport report;
    try {
      report = words.has("--double") ? f64::verify_file(file) : verify_file(file);
    } catch (const SystemError& error) {
      report.status = VerifyReport::Status::refused;
      report.reason = error.what();
      by_system = true;
    }
    agree += report.status == VerifyReport::Status::ok;
    differ += report.status == VerifyReport::Status::differs;
    refused += report.status == VerifyReport::Status::refused;
    if (refused > 0 && first_refusal.empty()) first_refusal = report.reason;
    if (words.has("--json"))
      files.push(json_of(file, report));
    else if (words.files().size() > 1 || refused == 0)  // the refusal of a single file is the error's message
      print_result(printable(line_of(file, width, report)));
  }
  if (words.has("--json"))
    print_result(for_output(Json::object({{"files", std::move(files)}}).indented() + "\n"));
  else if (words.files().size() > 1 || refused == 0)
    print_result(text(agree, " agree, ", differ, " differ, ", refused, " refused\n"));
  if (agree + differ == 0) {
    if (refused > 1) first_refusal = text("verify: no file could be verified; the first: ", first_refusal);
    check<SystemError>(!by_system, first_refusal);
    throw UserError(first_refusal);
  }
  return differ + refused > 0 ? 1 : 0;
}

}  // namespace

const Command verify_command{
    "verify",
    "compares with reference files: logits, loss, gradients, updates",
    "FILE... [--double] [--json]",
    "Each FILE holds a small model, a batch, and what PyTorch computed from them in float64. "
    "Prints the largest error of\n"
    "each part, relative to the tensor's largest magnitude. A file that cannot be read, is damaged or has an unknown\n"
    "key is refused, and the others are compared all the same. Exit code 1 when one differs or is refused, 2 when no\n"
    "file could be compared.",
    "  normlab verify tests/reference/rms-*.safetensors tests/reference/batch-*.safetensors --double",
    kOptions,
    run};

}  // namespace normlab::cli
