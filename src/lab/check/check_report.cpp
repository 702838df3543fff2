// What the checks found, as a document and for people.
#include "normlab/lab/check/check_report.h"

#include <algorithm>

#include "normlab/chart/table.h"

namespace normlab {
namespace {

// Below rounding of doubles: did not move.
std::string moved_text(double movement) { return movement < 1e-12 ? "0" : significant(movement, 2); }

Json json_of(const LeakInModes& leak) {
  const auto one = [](const Leak& in) {
    return Json::object({{"seen", static_cast<bool>(in)},
                         {"first", in ? Json(in.place) : Json()},
                         {"op", in ? Json(in.op) : Json()},
                         {"largest_change", in.largest_change}});
  };
  return Json::object({{"training", one(leak.training)}, {"evaluation", one(leak.evaluation)}});
}

}  // namespace

bool CheckReport::failed() const {
  return std::ranges::any_of(items, [](const CheckItem& item) { return item.status == CheckItem::Status::failed; });
}

Json json_of(const CheckReport& report) {
  Json checks = Json::array(), invariance = Json::array();
  for (const CheckItem& item : report.items)
    checks.push(
        Json::object({{"name", item.name}, {"status", config::to_string(item.status)}, {"detail", item.detail}}));
  for (const InvarianceRow& row : report.invariance)
    invariance.push(Json::object({{"change", row.change}, {"training", row.training}, {"evaluation", row.evaluation}}));
  return Json::object({{"checks", std::move(checks)},
                       {"later_token", json_of(report.later_token)},
                       {"other_samples", json_of(report.other_samples)},
                       {"invariance", std::move(invariance)}});
}

std::string text_of(const CheckReport& report, const ModelConfig& config) {
  std::string out;
  for (const CheckItem& item : report.items) {
    const std::string_view status = config::to_string(item.status);
    out += text(item.status == CheckItem::Status::failed ? "FAILED" : status, std::string(9 - status.size(), ' '),
                item.name, ": ", item.detail, '\n');
  }
  if (report.invariance.empty()) return out;
  std::vector<Row> rows{
      {text("how far the output of ", config::to_string(config.norm), " moves (share of its size; 0 is invariant)"),
       "training", "evaluation"}};
  for (const InvarianceRow& row : report.invariance)
    rows.push_back({"  " + row.change, moved_text(row.training), moved_text(row.evaluation)});
  return text(out, '\n', aligned(rows));
}

}  // namespace normlab
