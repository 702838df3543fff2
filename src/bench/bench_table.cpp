// A bench document as text, and compared with an earlier one.
#include <algorithm>

#include "normlab/bench/bench.h"
#include "normlab/chart/table.h"

namespace normlab {
namespace {

// A column: its head, the entry's key, and how its value is written.
struct Column {
  const char *head, *key;
  enum class Form { plain, milliseconds, whole, tenths, percent } form;
};

std::string milliseconds(double ms) { return fixed(ms, ms < 1 ? 4 : ms < 100 ? 2 : 0); }

std::string shape_text(const Json& entry) {
  std::string out;
  if (const Json* shape = entry.find("shape"))
    for (const Json& axis : shape->elements()) out += text(out.empty() ? "" : "x", axis.integer());
  return out;
}

std::string cell(const Json& entry, const Column& column) {
  const Json* value = entry.find(column.key);
  if (value == nullptr || value->is_null()) return "";
  switch (column.form) {
    case Column::Form::plain:
      return value->is_array() ? shape_text(entry) : value->is_string() ? value->string() : number(value->integer());
    case Column::Form::milliseconds:
      return milliseconds(value->real());
    case Column::Form::whole:
      return fixed(value->real(), 0);
    case Column::Form::tenths:
      return fixed(value->real(), 1);
    case Column::Form::percent:
      return text(fixed(100 * value->real(), 0), '%');
  }
  return "";
}

std::vector<Column> columns_of(std::string_view section) {
  using enum Column::Form;
  std::vector<Column> columns;
  if (section == "peak")
    return {{"threads", "threads", plain},
            {"GFLOP/s", "gflops", tenths},
            {"copy in cache GB/s", "cache_copy_gb_per_s", tenths},
            {"copy in memory GB/s", "memory_copy_gb_per_s", tenths},
            {"read from memory GB/s", "memory_read_gb_per_s", tenths}};
  columns = {{"name", "name", plain},    {"shape", "shape", plain},         {"threads", "threads", plain},
             {"ms", "ms", milliseconds}, {"least", "ms_min", milliseconds}, {"90%", "ms_p90", milliseconds},
             {"runs", "runs", plain}};
  if (section == "steps" || section == "sample" || section == "tokenizer" || section == "start")
    columns.erase(columns.begin() + 1);
  if (section == "steps" || section == "sample") columns.push_back({"tokens/s", "tokens_per_s", whole});
  if (section == "steps" || section == "kernels")
    columns.insert(columns.end(), {{"GFLOP/s", "gflops", tenths}, {"of peak", "share_of_peak", percent}});
  if (section == "kernels")
    columns.insert(columns.end(), {{"GB/s", "gb_per_s", tenths}, {"of copy", "share_of_copy", percent}});
  if (section == "steps")
    columns.insert(columns.end(), {{"peak MB", "peak_rss_mb", whole},
                                   {"instruments", "instruments_share", percent},
                                   {"statistics", "statistics_share", percent}});
  if (section == "tokenizer") columns.push_back({"MB/s", "mb_per_s", tenths});
  if (section == "start") columns.push_back({"first step done, ms", "first_step_done_ms", tenths});
  if (section == "sample")
    columns.insert(columns.end(), {{"parameters MB", "parameter_mb", tenths},
                                   {"tokens/s that memory allows", "tokens_per_s_by_memory", whole}});
  return columns;
}

constexpr std::string_view kSections[] = {"peak", "kernels", "steps", "sample", "tokenizer", "start"};

const Json* matching(const Json& section, const Json& entry) {
  const auto same = [&](const Json& other, const char* key) {
    const Json *a = entry.find(key), *b = other.find(key);
    return a == nullptr || b == nullptr ? a == b : *a == *b;
  };
  for (const Json& other : section.elements())
    if (same(other, "name") && same(other, "shape") && same(other, "threads")) return &other;
  return nullptr;
}

}  // namespace

std::string bench_table(const Json& document) {
  std::string out;
  for (const std::string_view section : kSections) {
    const Json* entries = document.find(section);
    if (entries == nullptr || entries->elements().empty()) continue;
    std::vector<Column> columns = columns_of(section);
    // A column that no entry has is left out.
    std::erase_if(columns, [&](const Column& column) {
      return std::ranges::none_of(entries->elements(), [&](const Json& entry) { return entry.find(column.key); });
    });
    std::vector<Row> rows(1);
    for (const Column& column : columns) rows[0].push_back(column.head);
    for (const Json& entry : entries->elements()) {
      Row& row = rows.emplace_back();
      for (const Column& column : columns) row.push_back(cell(entry, column));
    }
    out += aligned(rows);
  }
  return out;
}

Json compare_bench(const Json& now, const Json& earlier) {
  check<DataError>(earlier.is_object() && earlier.find("peak_gflops") != nullptr && earlier.find("kernels") != nullptr,
                   "it holds no result of normlab bench --json");
  Json comparison = Json::array();
  for (const std::string_view section : kSections) {
    const Json *ours = now.find(section), *theirs = earlier.find(section);
    if (section == "peak" || ours == nullptr || theirs == nullptr) continue;
    for (const Json& entry : ours->elements()) {
      const Json* before = matching(*theirs, entry);
      if (before == nullptr) continue;
      Json pair = Json::object({{"name", entry.at("name")}});
      if (const Json* shape = entry.find("shape")) pair.set("shape", *shape);
      pair.set("threads", entry.at("threads"));
      pair.set("earlier_ms", before->at("ms"));
      pair.set("ms", entry.at("ms"));
      pair.set("ratio", before->at("ms").real() / entry.at("ms").real());
      comparison.push(std::move(pair));
    }
  }
  return comparison;
}

std::string comparison_table(const Json& comparison) {
  std::vector<Row> rows{{"name", "shape", "threads", "earlier ms", "ms", "ratio"}};
  for (const Json& pair : comparison.elements())
    rows.push_back({pair.at("name").string(), shape_text(pair), number(pair.at("threads").integer()),
                    milliseconds(pair.at("earlier_ms").real()), milliseconds(pair.at("ms").real()),
                    fixed(pair.at("ratio").real(), 2)});
  return aligned(rows);
}

}  // namespace normlab
