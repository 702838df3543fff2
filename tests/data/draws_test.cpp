// What data.batches, data.rot13 and data.lengths make of a text.
#include <algorithm>
#include <set>

#include "catch.h"
#include "normlab/base/check.h"
#include "normlab/data/dataset.h"
#include "normlab/host/files.h"
#include "temporary.h"

using namespace normlab;

namespace {

// 'a' + i mod 26 for place i: a token tells its place, but for whole alphabets.
std::string alphabet_text(std::size_t n) {
  std::string text;
  for (std::size_t i = 0; i < n; ++i) text += static_cast<char>('a' + i % 26);
  return text;
}

struct Source {
  explicit Source(std::string_view content) : path(directory.path("text.txt")) {
    write_file(path, content);
    config.source = path;
  }
  TemporaryDirectory directory;
  std::string path;
  DataConfig config;
};

std::string row_text(const Dataset& data, const Batch& batch, Index row) {
  const auto begin = batch.tokens.begin() + row * batch.time;
  return data.tokenizer().decode(std::vector<std::int32_t>(begin, begin + batch.time));
}

// How many targets each row has; they are its first positions, and the only ones that are valid.
std::vector<Index> lengths_of(const Batch& batch) {
  std::vector<Index> lengths;
  for (Index row = 0; row < batch.rows; ++row) {
    Index length = 0;
    for (Index t = 0; t < batch.time; ++t) {
      const auto i = static_cast<std::size_t>(row * batch.time + t);
      const bool real = batch.targets[i] != kIgnore;
      if (real) CHECK(length == t);
      CHECK((batch.valid.empty() || batch.valid[i] == real));
      if (!real) CHECK((batch.tokens[i] == 0 && !batch.valid.empty()));
      length += real;
    }
    lengths.push_back(length);
  }
  return lengths;
}

}  // namespace

TEST_CASE("topic: the windows of a batch lie in one span, the spans reach from end to end", "[data]") {
  Source source(alphabet_text(1000));
  source.config.batches = BatchesFrom::topic;
  source.config.topic_span = 40;
  const Dataset data = Dataset::load(source.config, 9, 1);  // 900 tokens to train on
  Index first = 900, last = 0, widest = 0;
  for (Index step = 0; step < 2000; ++step) {
    const Batch batch = data.train_batch(step, 0, 8);
    const auto [low, high] = std::minmax_element(batch.starts.begin(), batch.starts.end());
    widest = std::max(widest, *high + 10 - *low);
    first = std::min(first, *low);
    last = std::max(last, *high + 10);
  }
  CHECK(widest == 40);  // tokens from the first window's to the last one's last target
  CHECK(first < 5);     // 860 spans, 2000 draws
  CHECK(last > 895);
  CHECK(last <= 900);
  CHECK(data.train_batch(7, 1, 8).starts != data.train_batch(7, 0, 8).starts);
}

TEST_CASE("rot13, whole batches: every row of a batch is the text, or every one its ROT13", "[data]") {
  Source source("Hello, World! abcXYZ\n" + alphabet_text(500));
  source.config.rot13 = Rot13::batch;
  const Dataset data = Dataset::load(source.config, 6, 1);
  const std::string text = "Hello, World! abcXYZ\n" + alphabet_text(500);
  const Index size = data.facts().train_tokens / 2;  // the second half is the other domain
  CHECK(data.facts().train_tokens == 2 * 468);       // 90% of 521, twice
  CHECK(data.facts().validation_tokens == 2 * 53);
  int turned_batches = 0;
  for (Index step = 0; step < 200; ++step) {
    const Batch batch = data.train_batch(step, 0, 4);
    const bool turned = batch.starts[0] >= size;
    turned_batches += turned;
    for (const Index start : batch.starts) CHECK((start >= size) == turned);
  }
  CHECK((turned_batches > 70 && turned_batches < 130));  // 100 +- 7

  // "Uryyb, Jbeyq! nopKLM": the beginning of the other domain, by hand.
  source.config.validation = source.path;
  source.config.documents = Documents::lines;
  const Dataset lines = Dataset::load(source.config, 21, 1);
  const std::vector<Window> windows = lines.all_windows();
  REQUIRE(windows.size() == 50);  // a line of 20 letters with its newline, and 500 letters in 24 windows, twice
  const Batch batch = lines.validation_batch(windows);
  CHECK(row_text(lines, batch, 0) == "\nHello, World! abcXYZ");
  CHECK(row_text(lines, batch, 25) == "\nUryyb, Jbeyq! nopKLM");
  CHECK(row_text(lines, batch, 26).substr(0, 16) == "\nnopqrstuvwxyzab");
  CHECK(lines.first_batch(windows, 30).size() == 25);  // of one domain
  CHECK(lines.first_batch(std::span(windows).subspan(25), 1).size() == 1);
}

TEST_CASE("rot13, mixed: a batch has rows of both, and evaluation takes them in turn", "[data]") {
  Source source(alphabet_text(1000));
  source.config.rot13 = Rot13::sample;
  const Dataset data = Dataset::load(source.config, 9, 1);
  int turned = 0, mixed = 0;
  for (Index step = 0; step < 100; ++step) {
    const Batch batch = data.train_batch(step, 0, 8);
    const auto of_batch = std::count_if(batch.starts.begin(), batch.starts.end(), [](Index s) { return s >= 900; });
    turned += static_cast<int>(of_batch);
    mixed += of_batch > 0 && of_batch < 8;
  }
  CHECK((turned > 340 && turned < 460));  // 400 +- 14
  CHECK(mixed > 90);                      // all but 1 of 128
  const auto windows = data.spread_windows(8);
  REQUIRE(windows.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK(windows[i].start == static_cast<Index>(30 * (i / 2) + 100 * (i % 2)));
  CHECK(data.first_batch(windows, 16).size() == 8);
}

TEST_CASE("lengths: a batch's rows lie within the jitter of one centre, at least 2, the rest is padding", "[data]") {
  Source source(alphabet_text(1000));
  source.config.lengths = DataConfig::Lengths{4, 3};
  const Dataset data = Dataset::load(source.config, 16, 1);
  std::set<Index> seen;
  for (Index step = 0; step < 500; ++step) {
    const Batch batch = data.train_batch(step, 0, 6);
    const std::vector<Index> lengths = lengths_of(batch);
    const auto [low, high] = std::minmax_element(lengths.begin(), lengths.end());
    CHECK(*high - *low <= 6);
    seen.insert(lengths.begin(), lengths.end());
    CHECK(batch.time == 16);
  }
  std::set<Index> all;  // centres from 4 to 16, 3 less and more, but none below 2 or above the context
  for (Index length = 2; length <= 16; ++length) all.insert(length);
  CHECK(seen == all);
  const Batch plain = Dataset::load(Source(alphabet_text(1000)).config, 16, 1).train_batch(3, 0, 6);
  CHECK(data.train_batch(3, 0, 6).starts == plain.starts);                          // the same places, only shorter
  for (const Window& window : data.spread_windows(5)) CHECK(window.targets == 16);  // evaluation is as ever
}

TEST_CASE("settings of the draws that do not fit are refused by name", "[data]") {
  Source source(alphabet_text(1000));
  const auto refused = [&](auto change, const char* message) {
    DataConfig config = source.config;
    change(config);
    CHECK_THROWS_WITH(Dataset::load(config, 16, 1), ContainsSubstring(message));
  };
  refused([](DataConfig& c) { c.lengths = {17, 2}; }, "min takes 1 to model.context_length, 16, got 17");
  refused([](DataConfig& c) { c.batches = BatchesFrom::topic, c.topic_span = 16; },
          "data.topic_span: 16 tokens hold no");
  refused([](DataConfig& c) { c.batches = BatchesFrom::topic; },
          "900 tokens to train on, less than data.topic_span = 4000");
  const auto lines = [](DataConfig& c) { c.documents = Documents::lines; };
  refused([&](DataConfig& c) { lines(c), c.batches = BatchesFrom::topic; }, "data.batches: topic goes with");
  refused([&](DataConfig& c) { lines(c), c.lengths = {4, 4}; }, "data.lengths goes with");
}
