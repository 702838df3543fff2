// The page of one run, or of several side by side.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "normlab/base/utf8.h"
#include "normlab/host/files.h"
#include "normlab/host/process.h"
#include "normlab/report/report_page.h"

namespace normlab {
namespace {

std::vector<NamedRun> named(std::span<const RunFiles> runs) {
  std::vector<NamedRun> out;
  for (const RunFiles& run : runs) {
    std::filesystem::path path = run.directory;
    if (!path.has_filename()) path = path.parent_path();
    std::string name = runs.size() == 1 ? "" : path.filename().string();
    if (std::ranges::any_of(out, [&](const NamedRun& other) { return other.name == name; })) name = path.string();
    out.push_back({&run, name, static_cast<int>(out.size()) % svg::kColours});
  }
  return out;
}

std::string summary_table(std::span<const NamedRun> runs) {
  const LossUnit unit = loss_unit(runs);
  const std::string in = unit.bytes ? ", bits per byte" : "";
  std::vector<Row> rows{
      {"run", "outcome", "step", "validation loss" + in, "unigram" + in, "bigram" + in, "floor" + in, "parameters"}};
  for (const NamedRun& each : runs) {
    const RunFiles& run = *each.run;
    const std::vector<Json>& train = run.kind("train");
    const auto loss = [&](std::optional<double> nats) {
      const double value = nats ? *nats * unit.factor(run) : 0;
      return !nats ? "" : std::isfinite(value) ? fixed(value, 4) : "unknown";
    };
    rows.push_back({each.name.empty() ? run.directory : each.name, run.outcome(),
                    train.empty() ? "0" : number(train.back().at("step").integer()), loss(field_of(run, "val_loss")),
                    loss(run.entropy("unigram")), loss(run.entropy("bigram")), loss(run.entropy("floor")),
                    number(run.record.at("parameters").integer())});
  }
  return html_table(rows);
}

// Keys with their values; of several runs those that differ first.
std::string configuration_table(std::span<const NamedRun> runs) {
  Row head{"key"};
  for (const NamedRun& each : runs) head.push_back(each.name.empty() ? "value" : each.name);
  std::vector<Row> different{head}, equal{{"key", "value"}};
  RunConfig first = runs[0].run->config;
  for (const config::Key& key : config::keys_of(first)) {
    if (key.is_section() || key.path == "run.dir") continue;
    Row row{key.path};
    for (const NamedRun& each : runs) row.push_back(config::value_of(each.run->config, key.path));
    const bool differs =
        std::ranges::any_of(row.begin() + 1, row.end(), [&](const std::string& v) { return v != row[1]; });
    if (differs)
      different.push_back(shown(row));
    else
      equal.push_back({key.path, shown(row[1])});
  }
  std::string out;
  if (different.size() > 1) out += html_section("What differs", html_table(different));
  return out + html_section(different.size() > 1 ? "What is the same" : "Configuration", html_table(equal));
}

svg::Picture curve(std::span<const NamedRun> runs, const char* title, const char* kind, const char* field,
                   const char* label, bool log = false) {
  svg::Chart chart{title, {"step"}, {label, log}, {}};
  for (const NamedRun& each : runs) chart.series.push_back(series_of(*each.run, kind, field, each.name, each.colour));
  return svg::chart(chart);
}

std::vector<svg::Picture> by_position(std::span<const NamedRun> runs) {
  const LossUnit unit = loss_unit(runs);
  svg::Chart chart{"Validation loss by position", {"position in the window"}, {unit.label()}, {}};
  for (const NamedRun& each : runs) {
    const std::vector<Json>& lines = each.run->kind("eval");
    const Json* losses = lines.empty() ? nullptr : lines.back().find("loss_by_position");
    if (losses == nullptr) continue;
    svg::Series series{each.name, {}, {}, each.colour};
    for (const Json& loss : losses->elements()) {
      series.x.push_back(static_cast<double>(series.x.size() + 1));
      series.y.push_back(loss.is_number() ? loss.real() * unit.factor(*each.run) : std::nan(""));
    }
    chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) return {};
  if (!unit.bytes) chart.levels = entropy_levels(runs);
  return {svg::chart(chart)};
}

// Numbers of other kinds of lines (curvature, statistics), each a curve; names that lines of any run have.
std::vector<svg::Picture> other_curves(std::span<const NamedRun> runs) {
  std::vector<svg::Picture> out;
  std::set<std::string> done;
  for (const NamedRun& each : runs)
    for (const auto& [kind, lines] : each.run->lines) {
      if (kind == "train" || kind == "eval" || kind == "sample" || lines.empty()) continue;
      for (const Json::Member& member : lines.back().members()) {
        const Json* inner =
            member.value.is_object() ? member.value.find("value") : nullptr;  // sharpness, with its error
        if (!(inner ? *inner : member.value).is_number() || member.name == "step" ||
            !done.insert(kind + "." + member.name).second)
          continue;
        std::string title = member.name;
        std::ranges::replace(title, '_', ' ');
        const std::string field = member.name + (inner ? ".value" : "");
        out.push_back(curve(runs, text(kind, ": ", title).c_str(), kind.c_str(), field.c_str(), title.c_str()));
      }
    }
  return out;
}

// Arrays of `layers` lines with an entry a block, beyond those that failure_maps draws.
std::vector<svg::Picture> other_maps(const NamedRun& each) {
  std::vector<svg::Picture> out;
  const std::vector<Json>& lines = each.run->kind("layers");
  if (lines.empty()) return out;
  for (const Json::Member& member : lines.back().members()) {
    if (!member.value.is_array() || member.name == "token_cosine" || member.value.elements().empty()) continue;
    std::string title = member.name;
    std::ranges::replace(title, '_', ' ');
    for (const svg::Picture& picture : layer_map(each, {title, member.name, title, true})) out.push_back(picture);
  }
  const LayerFigure distances[] = {
      {"Means of the batch: distance from the running ones", "statistics_mean_distance", "running deviations", true},
      {"Variances: relative distance", "statistics_variance_distance", "", true}};
  for (const LayerFigure& figure : distances)
    for (const svg::Picture& picture : norm_map(each, figure)) out.push_back(picture);
  return out;
}

std::string samples(std::span<const NamedRun> runs) {
  std::string out;
  for (const NamedRun& each : runs) {
    const std::vector<Json>& lines = each.run->kind("sample");
    if (lines.empty()) continue;
    out +=
        html_paragraph(text(each.name, each.name.empty() ? "" : ", ", "step ", lines.back().at("step").integer(), ":"));
    out += text("<pre>", svg::escaped(lines.back().at("text").string()), "</pre>\n");
  }
  return out;
}

}  // namespace

std::string run_page(std::span<const RunFiles> runs) {
  const std::vector<NamedRun> all = named(runs);
  std::vector<svg::Picture> curves{loss_picture(all, all.size() == 1 ? "Loss" : "Validation loss")};
  if (all.size() > 1) curves.push_back(loss_picture(all, "Training loss", "train"));
  for (const svg::Picture& picture : by_position(all)) curves.push_back(picture);
  curves.push_back(curve(all, "Learning rate", "train", "lr", "learning rate"));
  curves.push_back(curve(all, "Gradient norm, before clipping", "train", "grad_norm", "norm", true));
  std::vector<svg::Picture> layers = gradients_at_start(all);
  constexpr std::size_t kMostMaps = 6;  // runs that get maps of their own
  const std::span<const NamedRun> mapped = std::span(all).subspan(0, std::min(all.size(), kMostMaps));
  for (svg::Picture& picture : failure_maps(mapped)) layers.push_back(std::move(picture));
  if (all.size() == 1)
    for (svg::Picture& picture : other_maps(all[0])) layers.push_back(std::move(picture));
  std::string title = all[0].name.empty() ? std::filesystem::path(runs[0].directory).filename().string() : "";
  for (const NamedRun& each : all)
    if (!each.name.empty()) title += (title.empty() ? "" : " and ") + each.name;
  std::string body = summary_table(all);
  for (const NamedRun& each : all)
    if (const std::string reason = each.run->reason(); !reason.empty())
      body += html_paragraph(text(each.name, each.name.empty() ? "" : ": ", reason));
  const std::string settings = configuration_table(all);
  if (all.size() > 1) body += settings.substr(0, settings.find("<section>", 1));
  body += html_section("Curves", html_figures(curves));
  body += html_section("Layer by layer", html_figures(layers));
  body += html_section("More", html_figures(other_curves(all)));
  body += html_section("What it writes", samples(all));
  body += all.size() > 1 && settings.find("<section>", 1) != std::string::npos
              ? settings.substr(settings.find("<section>", 1))
              : settings;
  return html_page(title, body);
}

void write_run_report(const std::string& directory) {
  const std::vector<RunFiles> runs{read_run(directory)};
  write_file(text(directory, "/report.html"), run_page(runs));
}

void write_run_report_apart(const std::string& program, const std::string& directory) {
  const pid_t process = start_child({program, "report", as_path(directory)}, "/dev/null", "/dev/null");
  constexpr std::chrono::milliseconds kMost{60000}, kPause{2};
  int status = 0;
  for (auto waited = kPause; waitpid(process, &status, WNOHANG) == 0; waited += kPause) {
    std::this_thread::sleep_for(kPause);
    if (waited < kMost) continue;
    kill(process, SIGKILL);
    waitpid(process, &status, 0);
    throw SystemError(text(directory, "/report.html: not written within a minute"));
  }
  if (status != 0) write_run_report(directory);  // which tells what is wrong
}

}  // namespace normlab
