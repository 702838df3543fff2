// The logs of a run: a line that is not what was written is refused, whatever changed in it.
#include <fcntl.h>
#include <unistd.h>

#include <functional>

#include "catch.h"
#include "cli_runs.h"
#include "normlab/interop/export.h"
#include "normlab/run/figures.h"
#include "normlab/run/metrics.h"
#include "normlab/run/run_directory.h"
#include "normlab/run/run_reader.h"

using namespace normlab;

namespace {

// A log of every kind of ending: a number, a list, a text, false.
std::string small_log() {
  const auto line = [](const char* json) { return log_line(parse_json(json, "line")) + "\n"; };
  return line(R"({"step":1,"kind":"train","loss":3})") + line(R"({"step":1,"kind":"eval","loss_by_position":[1,2]})") +
         line(R"({"step":1,"kind":"sample","text":"a \"b\"}"})") + line(R"({"step":2,"kind":"train","finite":false})");
}

// What `read` makes of a log with each of its bits flipped in turn: it refuses it, naming the file, or finds in it what
// was written. How often it refused.
std::size_t flip_every_bit(const std::string& log, const std::function<bool(const std::string& flipped)>& finds_all) {
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * log.size(); ++bit) {
    std::string flipped = log;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    bool found = false;
    std::string message;
    try {
      found = finds_all(flipped);
    } catch (const DataError& error) {
      message = error.what();
      ++refused;
    }
    if (!found && message.find("metrics.jsonl:") == std::string::npos)
      FAIL("bit " << bit << " passed unseen: " << flipped << message);
  }
  return refused;
}

}  // namespace

TEST_CASE("log: a line carries the CRC-32C of what stands before it", "[run]") {
  // The check value of CRC-32C is that of 123456789; this one was computed by another program, bit by bit.
  CHECK(log_line(Json::object({{"step", 1}})) == R"({"step":1,"crc":"a6d2b3fa"})");
}

TEST_CASE("log: every flipped bit is refused on resuming, or lies after what is kept", "[run]") {
  const std::string log = small_log();
  for (const std::size_t lines : {1, 4}) {  // of one line alone, too
    std::string part = log;
    if (lines == 1) part.resize(part.find('\n') + 1);
    for (const std::int64_t step : {1, 2}) {
      const KeptLines kept = kept_lines(part, step, "metrics.jsonl");
      const std::string prefix = part.substr(0, static_cast<std::size_t>(kept.bytes));
      const std::size_t refused = flip_every_bit(part, [&](const std::string& flipped) {
        const KeptLines again = kept_lines(flipped, step, "metrics.jsonl");
        return again.train_steps == kept.train_steps &&
               flipped.substr(0, static_cast<std::size_t>(again.bytes)) == prefix;
      });
      CHECK(refused >= 8 * prefix.size());
    }
  }
}

TEST_CASE("log: every flipped bit is refused where a run is read for a sweep, a report, a comparison or a table",
          "[run][slow]") {
  const Workshop shop;
  REQUIRE(shop.train("run", {"log.layers_every=0", "train.steps=2", "log.report=false"}).code == 0);
  const std::string log = shop.metrics("run"), path = shop.path("run/metrics.jsonl"), table = metrics_csv(log, path);
  const auto lines = read_run(shop.path("run")).lines;
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const auto reads = [&](const std::string& flipped) {
    REQUIRE(pwrite(file, flipped.data(), flipped.size(), 0) == static_cast<ssize_t>(flipped.size()));
    return read_run(shop.path("run")).lines == lines;
  };
  CHECK(flip_every_bit(log, reads) == 8 * log.size());
  close(file);
  CHECK(flip_every_bit(log, [&](const std::string& flipped) { return metrics_csv(flipped, path) == table; }) ==
        8 * log.size());
}

TEST_CASE("log: every flipped bit of run.json is refused; that of an earlier version has no checksum", "[run]") {
  const Workshop shop;
  REQUIRE(shop.train("run", {"log.layers_every=0", "train.steps=1", "log.report=false"}).code == 0);
  const std::string run = shop.path("run"), record = read_file(run + "/run.json");
  CHECK(read_run_record(run).at("step").integer() == 1);
  const int file = open((run + "/run.json").c_str(), O_WRONLY | O_CLOEXEC);
  for (std::size_t bit = 0; bit < 8 * record.size(); ++bit) {
    std::string flipped = record;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    REQUIRE(pwrite(file, flipped.data(), flipped.size(), 0) == static_cast<ssize_t>(flipped.size()));
    CHECK_THROWS_WITH(read_run_record(run), ContainsSubstring("run.json"));
  }
  close(file);
  shop.remove_checksums("run");
  CHECK(read_run_record(run).at("step").integer() == 1);
}

TEST_CASE("log: that of a run which has ended is the one that it ended with", "[run]") {
  const Workshop shop;
  REQUIRE(shop.train("run", {"train.steps=3", "log.report=false"}).code == 0);
  const Strings lines = lines_of(shop.metrics("run"));
  Strings fewer = lines, bare;
  fewer.erase(fewer.begin() + 2);
  for (const std::string& line : lines) bare.push_back(line.substr(0, line.find(",\"crc\"")) + "}");
  for (const Strings& edited : {fewer, bare}) {
    shop.write("run/metrics.jsonl", join(edited, "\n") + "\n");
    for (const Strings& command : {Strings{"report", shop.path("run")},
                                   Strings{"export", shop.path("run"), "--to", "csv", shop.path("x.csv")}}) {
      const Finished done = run_program(command);
      CHECK(done.code == 2);
      CHECK_THAT(done.err, ContainsSubstring("metrics.jsonl: it was edited after the run had ended"));
    }
  }
  std::filesystem::remove(shop.path("run/metrics.jsonl"));  // as the message advises
  CHECK(run_program({"report", shop.path("run")}).code == 0);
}

TEST_CASE("log: those of earlier versions have no checksums; a run that goes on gives them some", "[run]") {
  const Workshop shop;
  const Strings settings{"train.steps=4", "checkpoint.every=2", "checkpoint.keep=9"};
  REQUIRE(shop.train("whole", settings).code == 0);
  REQUIRE(shop.train("run", joined(settings, {"--stop-at=2"})).code == 0);
  for (const char* name : {"metrics.jsonl", "timing.jsonl"}) {
    std::string without;
    for (const std::string& line : lines_of(read_file(shop.path(std::string("run/") + name))))
      without += line.substr(0, line.find(",\"crc\"")) + "}\n";
    shop.write(std::string("run/") + name, without + "{\"step\":3,\"ki");
  }
  shop.remove_checksums("run");
  CHECK(run_program({"report", shop.path("run")}).code == 0);
  CHECK(run_program({"train", "--resume", shop.path("run")}).code == 0);
  CHECK((shop.metrics("run") == shop.metrics("whole")));
  CHECK(run_program({"report", shop.path("run")}).code == 0);
}
