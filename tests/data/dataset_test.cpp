// Data sets: files, the split, rows for training, windows for validation, and what is known beforehand.
#include "normlab/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "catch.h"
#include "normlab/base/check.h"

using namespace normlab;

namespace {

// A file in a directory of its own, removed at the end.
struct TextFile {
  explicit TextFile(std::string_view text, const char* name = "text.txt") {
    static int count = 0;
    directory =
        std::filesystem::temp_directory_path() /
        ("normlab-data-" + std::to_string(reinterpret_cast<std::uintptr_t>(this)) + "-" + std::to_string(count++));
    std::filesystem::create_directories(directory);
    path = (directory / name).string();
    std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  TextFile(const TextFile&) = delete;
  ~TextFile() { std::filesystem::remove_all(directory); }
  std::filesystem::path directory;
  std::string path;
};

DataConfig config_of(const TextFile& file, double val_fraction = 0.1) {
  DataConfig config;
  config.source = file.path;
  config.val_fraction = val_fraction;
  return config;
}

std::string alphabet_text(std::size_t n) {
  std::string text;
  for (std::size_t i = 0; i < n; ++i) text += static_cast<char>('a' + i % 26);
  return text;
}

constexpr double kRounding = 1e-12;  // a dozen operations on numbers below 20

using Ids = std::vector<std::int32_t>;

Ids row_of(const std::vector<std::int32_t>& values, const Batch& batch, Index row) {
  return Ids(values.begin() + row * batch.time, values.begin() + (row + 1) * batch.time);
}

}  // namespace

TEST_CASE("the last part of a text is for validation", "[data]") {
  const TextFile file(alphabet_text(1000));
  const Dataset data = Dataset::load(config_of(file), 16, 1);
  CHECK(data.facts().train_tokens == 900);
  CHECK(data.facts().validation_tokens == 100);
  CHECK(data.tokenizer().vocab_size() == 26);
  CHECK(data.facts().bytes_per_token == 1.0);
  CHECK(data.facts().remarks.empty());
  CHECK(!data.facts().floor);
  CHECK(!data.facts().entropy_rate);
}

TEST_CASE("the split falls between characters, and between lines where lines are documents", "[data]") {
  std::string euros;
  for (int i = 0; i < 25; ++i) euros += "\xE2\x82\xAC";
  const TextFile file(euros);  // 75 bytes: 90% is byte 67, within the 23rd character
  const Dataset data = Dataset::load(config_of(file), 4, 1);
  CHECK(data.facts().train_tokens == 23);
  CHECK(data.facts().validation_tokens == 2);
  CHECK(data.facts().bytes_per_token == 3.0);

  const TextFile lines("abc\nabc\nabc\nabc\nxyz\nxyz\n");
  DataConfig config = config_of(lines, 0.5);  // byte 12 begins a line
  config.documents = Documents::lines;
  CHECK(Dataset::load(config, 4, 1).facts().train_tokens == 12);
  config.val_fraction = 0.49;  // byte 12.24, within the one after
  CHECK(Dataset::load(config, 4, 1).facts().train_tokens == 12);
  config.val_fraction = 0.4;  // byte 14.4
  CHECK(Dataset::load(config, 4, 1).facts().train_tokens == 16);
}

TEST_CASE("a validation file of its own: all of the source is trained on, and its characters are known", "[data]") {
  const TextFile source("abababababab"), validation("xyzx");
  DataConfig config = config_of(source);
  config.validation = validation.path;
  const Dataset data = Dataset::load(config, 4, 1);
  CHECK(data.facts().train_tokens == 12);
  CHECK(data.facts().validation_tokens == 4);
  CHECK(data.tokenizer().vocab_size() == 5);
  CHECK(data.facts().remarks ==
        std::vector<std::string>{"of the characters of the validation part 3 are nowhere in the training part; "
                                 "places with them: 4"});
}

TEST_CASE("the byte order mark is dropped; any bytes do for byte tokens", "[data]") {
  const TextFile marked("\xEF\xBB\xBF" + alphabet_text(100));
  CHECK(Dataset::load(config_of(marked), 8, 1).facts().train_tokens == 90);
  const TextFile binary(std::string(100, '\xFF'));
  DataConfig config = config_of(binary);
  CHECK_THROWS_WITH(Dataset::load(config, 8, 1), ContainsSubstring("byte 0 (line 1, column 1) is not UTF-8"));
  config.tokenizer = "byte";
  CHECK(Dataset::load(config, 8, 1).tokenizer().vocab_size() == 256);
}

TEST_CASE("what is wrong with the data is said in one message", "[data]") {
  DataConfig config;
  config.source = "talse";
  CHECK_THROWS_AS(Dataset::load(config, 8, 1), DataError);
  CHECK_THROWS_WITH(
      Dataset::load(config, 8, 1),
      "data.source: 'talse' is neither a file nor one of the built-in corpora tales markov copy brackets; "
      "did you mean 'tales'?");
  config.source = "/no/such/file.txt";
  CHECK_THROWS_WITH(Dataset::load(config, 8, 1), ContainsSubstring("'/no/such/file.txt' is neither a file"));
  const TextFile empty(""), good(alphabet_text(100));
  CHECK_THROWS_WITH(Dataset::load(config_of(empty), 8, 1),
                    ContainsSubstring("data.source '" + empty.path + "': is empty"));
  config = config_of(good);
  config.source = good.directory.string();
  CHECK_THROWS_WITH(Dataset::load(config, 8, 1), ContainsSubstring("is a directory"));
  config = config_of(good);
  config.validation = "missing.txt";
  CHECK_THROWS_WITH(Dataset::load(config, 8, 1), "cannot read missing.txt: there is no such file; check the path");
  config = config_of(good);
  config.tokenizer = "bytes";
  CHECK_THROWS_AS(Dataset::load(config, 8, 1), ConfigError);
  CHECK_THROWS_WITH(Dataset::load(config, 8, 1),
                    "data.tokenizer: 'bytes' is neither one of char byte bpe nor a file; did you mean 'byte'?");
}

TEST_CASE("a training part shorter than a window is refused, one of a single window trains", "[data]") {
  const TextFile source(alphabet_text(16)), validation("abc");
  DataConfig config = config_of(source);
  config.validation = validation.path;
  CHECK_THROWS_WITH(
      Dataset::load(config, 16, 1),
      ContainsSubstring("there are 16 tokens to train on, but a window takes 17 (model.context_length + 1); "
                        "give more text, or lower model.context_length"));
  const Dataset data = Dataset::load(config, 15, 1);
  const Batch batch = data.train_batch(0, 0, 3);
  for (Index row = 0; row < 3; ++row) {
    CHECK(row_of(batch.tokens, batch, row) == data.tokenizer().encode(alphabet_text(15)));
    CHECK(row_of(batch.targets, batch, row) == data.tokenizer().encode(alphabet_text(16).substr(1)));
  }
}

TEST_CASE("a training row is a window, and a function of seed, step, micro-batch and row", "[data]") {
  const TextFile file(alphabet_text(5000));
  const Dataset data = Dataset::load(config_of(file), 7, 5);
  const Batch batch = data.train_batch(3, 1, 50);
  CHECK(batch.rows == 50);
  CHECK(batch.time == 7);
  CHECK(batch.valid.empty());
  REQUIRE(batch.tokens.size() == 350);
  std::set<std::int32_t> starts;
  for (Index row = 0; row < 50; ++row) {
    const Ids tokens = row_of(batch.tokens, batch, row), targets = row_of(batch.targets, batch, row);
    starts.insert(tokens[0]);
    for (std::size_t i = 0; i < 7; ++i) {
      CHECK(tokens[i] == (tokens[0] + static_cast<int>(i)) % 26);
      CHECK(targets[i] == (tokens[i] + 1) % 26);
    }
  }
  CHECK(starts.size() > 15);  // 50 draws from 26 leave 22 of them seen on average

  CHECK(data.train_batch(3, 1, 50).tokens == batch.tokens);
  CHECK(data.train_batch(4, 1, 50).tokens != batch.tokens);
  CHECK(data.train_batch(3, 0, 50).tokens != batch.tokens);
  CHECK(Dataset::load(config_of(file), 7, 6).train_batch(3, 1, 50).tokens != batch.tokens);
  const Batch fewer = data.train_batch(3, 1, 20);  // row r is the same for any number of rows
  CHECK(std::equal(fewer.tokens.begin(), fewer.tokens.end(), batch.tokens.begin()));
}

TEST_CASE("the validation tokens are never trained on", "[data]") {
  std::string text(900, 'a');
  text += std::string(100, 'b');
  const TextFile file(text);
  const Dataset data = Dataset::load(config_of(file), 8, 1);
  for (Index step = 0; step < 200; ++step) {
    const Batch batch = data.train_batch(step, 0, 8);
    CHECK(std::count(batch.targets.begin(), batch.targets.end(), 1) == 0);
  }
  const Batch batch = data.validation_batch(data.spread_windows(4));
  CHECK(std::count(batch.tokens.begin(), batch.tokens.end(), 0) == 0);
}

TEST_CASE("validation windows are spread evenly from the first token to the last", "[data]") {
  const TextFile file(alphabet_text(1000));
  const Dataset data = Dataset::load(config_of(file), 9, 1);  // 100 validation tokens, 99 targets
  const auto windows = data.spread_windows(4);
  REQUIRE(windows.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(windows[i].start == static_cast<Index>(30 * i));
    CHECK(windows[i].targets == 9);
  }
  CHECK(data.spread_windows(1).size() == 1);
  CHECK(data.spread_windows(240).size() == 11);  // that many do not overlap
  const Batch all = data.validation_batch(windows), second = data.validation_batch(std::span(windows).subspan(1, 1));
  CHECK(row_of(all.tokens, all, 1) == second.tokens);
}

TEST_CASE("all windows count every target once, the last one shorter", "[data]") {
  const TextFile file(alphabet_text(1000));
  const Dataset data = Dataset::load(config_of(file), 8, 1);  // 99 targets: 12 windows of 8, one of 3
  const auto windows = data.all_windows();
  REQUIRE(windows.size() == 13);
  const Batch batch = data.validation_batch(windows);
  Ids targets;
  for (const std::int32_t id : batch.targets)
    if (id != kIgnore) targets.push_back(id);
  CHECK(targets == data.tokenizer().encode(alphabet_text(1000).substr(901)));
  CHECK(row_of(batch.targets, batch, 12) == Ids{9, 10, 11, kIgnore, kIgnore, kIgnore, kIgnore, kIgnore});
  REQUIRE(batch.valid.size() == 104);
  CHECK(std::count(batch.valid.begin(), batch.valid.end(), 1) == 99);
  CHECK(std::count(batch.valid.end() - 8, batch.valid.end() - 5, 1) == 3);
}

TEST_CASE("a validation part shorter than a window is one shorter window", "[data]") {
  const TextFile file(alphabet_text(50));
  const Dataset data = Dataset::load(config_of(file), 16, 1);  // 5 validation tokens
  for (const auto& windows : {data.spread_windows(240), data.all_windows()}) {
    REQUIRE(windows.size() == 1);
    CHECK(windows[0].targets == 4);
  }
  CHECK_THROWS_WITH(Dataset::load(config_of(file, 0.001), 16, 1), ContainsSubstring("tokens to validate on"));
}

TEST_CASE("lines: a document is a newline, its line and its newline, a long one in several windows, empty ones none",
          "[data]") {
  const TextFile source("ab\n\nabcdefgh\nb\n"), validation("abc\n\n\nabcdefgh\na");
  DataConfig config = config_of(source);
  config.validation = validation.path;
  config.documents = Documents::lines;
  const Dataset data = Dataset::load(config, 4, 1);
  const auto ids = [&](std::string_view text) {  // '_' is padding
    Ids out;
    for (const char c : text) out.push_back(c == '_' ? kIgnore : data.tokenizer().encode(std::string(1, c))[0]);
    return out;
  };
  const auto windows = data.all_windows();
  REQUIRE(windows.size() == 5);
  const Batch batch = data.validation_batch(windows);
  const std::string_view tokens[] = {"\nabc", "\nabc", "defg", "h", "\n"};
  const std::string_view targets[] = {"abc\n", "abcd", "efgh", "\n___", "a___"};
  for (std::size_t row = 0; row < 5; ++row) {
    CAPTURE(row);
    Ids padded = ids(tokens[row]);
    padded.resize(4, 0);
    CHECK(row_of(batch.tokens, batch, static_cast<Index>(row)) == padded);
    CHECK(row_of(batch.targets, batch, static_cast<Index>(row)) == ids(targets[row]));
  }
  CHECK(batch.valid == std::vector<std::uint8_t>{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0});

  std::set<Ids> rows;
  for (Index step = 0; step < 60; ++step) {
    const Batch drawn = data.train_batch(step, 0, 1);
    rows.insert(drawn.targets);
    CHECK(data.train_batch(step, 0, 1).targets == drawn.targets);
  }
  CHECK(rows == std::set<Ids>{ids("ab\n_"), ids("abcd"), ids("efgh"), ids("\n___"), ids("b\n__")});
  CHECK(data.facts().windows == 5);
  CHECK(data.facts().windows_in_long_lines == 3);
  CHECK(data.facts().train_tokens == 15);  // those of the text: the newline before it is none
  CHECK(data.facts().validation_tokens == 16);
  CHECK(data.spread_windows(1).size() == 1);
  CHECK(data.spread_windows(99).size() == 5);
}

TEST_CASE(
    "every target is evaluated once: as a stream all tokens but one, as lines all but the newlines of empty lines",
    "[data]") {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += std::string(static_cast<std::size_t>(i * 7 % 31), static_cast<char>('a' + i % 5)) + "\n";
  const TextFile file(text), line("abcdefghij");  // lines of 0 to 30 letters, two of them empty; one without a newline
  const Tokenizer tokenizer = Dataset::load(config_of(file), 8, 1).tokenizer(),
                  letters = Dataset::load(config_of(line, 0.5), 4, 1).tokenizer();
  const auto count = [](const std::string& path, const Tokenizer& by, Documents documents) {
    DataConfig config;
    config.documents = documents;
    const Dataset data = Dataset::evaluation_of(path, by, 8, config);
    std::set<Index> places;
    Index targets = 0;
    for (const Window& window : data.all_windows())
      for (Index i = 1; i <= window.targets; ++i, ++targets) places.insert(window.start + i);
    CHECK(std::ssize(places) == targets);
    return targets;
  };
  const auto size = static_cast<Index>(text.size());
  CHECK(count(file.path, tokenizer, Documents::stream) == size - 1);
  CHECK(count(file.path, tokenizer, Documents::lines) == size - 2);
  CHECK(count(line.path, letters, Documents::lines) == 9);  // of a vocabulary without a newline
}

TEST_CASE("lines: a text without a target is refused", "[data]") {
  const TextFile file("\n\n\n\n\n\n\n\n\n\n\n\n");
  DataConfig config = config_of(file);
  config.documents = Documents::lines;
  CHECK_THROWS_WITH(Dataset::load(config, 4, 1), ContainsSubstring("data.documents=lines needs some"));
}

TEST_CASE("entropies of the validation tokens by the counts of the training tokens, by hand", "[data]") {
  const auto facts_of = [](const std::string& source, const std::string& validation) {
    const TextFile first(source), second(validation);
    DataConfig config = config_of(first);
    config.validation = second.path;
    return Dataset::load(config, 4, 1).facts();
  };
  // 3 a and 2 b, each and 0.1 more, of 5.2. Five tokens have no last tenth, so that pairs weigh nothing.
  const DataFacts few = facts_of("aabab", "aba");
  CHECK(std::abs(few.unigram + (2 * std::log(3.1 / 5.2) + std::log(2.1 / 5.2)) / 3) < kRounding);
  CHECK(few.bigram == few.unigram);

  // The first 36 letters are half a, half b, and all pairs are ab or ba: p2 / p1 is 2 for the three pairs of the last
  // four letters, and 0 for the one that is added. 3 ln(1 + l) + ln(1 - l) is greatest at l = 1/2.
  std::string pairs;
  for (int i = 0; i < 20; ++i) pairs += "ab";
  const DataFacts half = facts_of(pairs, "ababb");  // ab, ba, ab: 1/2 + 1/4; bb: 1/4
  CHECK(std::abs(half.unigram - std::log(2.0)) < kRounding);
  CHECK(std::abs(half.bigram + (3 * std::log(0.75) + std::log(0.25)) / 4) < 1e-8);
  CHECK(facts_of(pairs, "abb").bigram == Approx(std::log(2.0)));  // -(ln 3/4 + ln 1/4) / 2 lies above

  // Three letters, counted one after the other, and l the best of a grid.
  std::string source, validation;
  std::uint32_t state = 7;
  const auto draw = [&](std::string& out, int count) {
    for (int i = 0; i < count; ++i) {
      state = state * 1664525 + 1013904223;
      const char before = out.empty() ? 'a' : out.back();
      out += state >> 30 != 0 ? static_cast<char>('a' + (before - 'a' + 1) % 3) : 'a';  // 3 of 4: the next letter
    }
  };
  draw(source, 500);
  draw(validation, 90);
  const auto p = [](const std::string& from, double l, char a, char b) {
    double n_a = 0, n_b = 0, n_ab = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      n_b += from[i] == b;
      if (i + 1 < from.size()) n_a += from[i] == a, n_ab += from[i] == a && from[i + 1] == b;
    }
    return l * n_ab / n_a + (1 - l) * (n_b + 0.1) / (static_cast<double>(from.size()) + 0.3);
  };
  const auto nats = [&](const std::string& from, double l, const std::string& on) {
    double sum = 0;
    for (std::size_t i = 0; i + 1 < on.size(); ++i) sum -= std::log(p(from, l, on[i], on[i + 1]));
    return sum;
  };
  double best = 0, least = 1e9;
  for (double l = 0.001; l < 1; l += 0.001) {
    const double sum = nats(source.substr(0, 450), l, source.substr(450)) - std::log(1 - l);
    if (sum < least) best = l, least = sum;
  }
  CHECK((best > 0.1 && best < 0.99));
  const DataFacts facts = facts_of(source, validation);
  CHECK(std::abs(facts.bigram - nats(source, best, validation) / 89) < 2e-4);  // l is within 0.001
  CHECK(facts.bigram < facts.unigram - 0.2);
}

TEST_CASE("the bigram entropy is never above the unigram entropy: many characters and few repeats, or no order at all",
          "[data]") {
  std::uint64_t state = 1;
  const auto uniform = [&] {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state >> 11) / 9007199254740992.0;
  };
  std::string characters, bases;
  for (int i = 0; i < 20000; ++i) {
    const int c = 0x4E00 + static_cast<int>(3000 * std::pow(uniform(), 3.0));  // a few frequent, most rare
    for (const int byte : {0xE0 | c >> 12, 0x80 | (c >> 6 & 63), 0x80 | (c & 63)})
      characters += static_cast<char>(byte);
    bases += "ACGT"[static_cast<int>(4 * uniform())];
  }
  const TextFile many(characters), dna(bases);
  const DataFacts rare = Dataset::load(config_of(many), 16, 1).facts(),
                  alike = Dataset::load(config_of(dna), 16, 1).facts();
  CHECK(rare.bigram <= rare.unigram);
  CHECK(rare.bigram > rare.unigram - 0.05);  // drawn one by one
  CHECK(alike.bigram <= alike.unigram);
  CHECK(alike.bigram > alike.unigram - 0.01);
  CHECK(alike.unigram == Approx(std::log(4.0)).epsilon(0.005));
}

TEST_CASE("the hash tells other data and another split", "[data]") {
  const TextFile file(alphabet_text(1000)), same(alphabet_text(1000)), other(alphabet_text(999) + "a");
  const std::string hash = Dataset::load(config_of(file), 8, 1).facts().hash;
  CHECK(hash.size() == 16);
  CHECK(Dataset::load(config_of(same), 16, 2).facts().hash == hash);
  CHECK(Dataset::load(config_of(other), 8, 1).facts().hash != hash);
  CHECK(Dataset::load(config_of(file, 0.2), 8, 1).facts().hash != hash);
}

TEST_CASE("a checkpoint evaluates with its own tokenizer", "[data]") {
  const TextFile file(alphabet_text(1000)), part("abcabcabc");
  const Dataset trained = Dataset::load(config_of(file), 8, 1);
  const Tokenizer stored = Tokenizer::load(trained.tokenizer().save());
  const Dataset again = Dataset::load(config_of(file), 8, 1, stored);
  CHECK(again.validation_batch(again.all_windows()).tokens == trained.validation_batch(trained.all_windows()).tokens);
  const Dataset whole = Dataset::evaluation_of(part.path, stored, 8, {});
  CHECK(whole.facts().validation_tokens == 9);
  CHECK(whole.facts().train_tokens == 0);
  CHECK(whole.validation_batch(whole.all_windows()).targets == stored.encode("bcabcabc"));
  const TextFile strange("ab\xCE\xA9");
  CHECK_THROWS_WITH(Dataset::evaluation_of(strange.path, stored, 8, {}), ContainsSubstring("U+03A9"));
  const TextFile single("a");
  CHECK_THROWS_WITH(Dataset::evaluation_of(single.path, stored, 8, {}), ContainsSubstring("no target"));
}

TEST_CASE("what is wrong in a text is told by its place in the file, after a byte order mark, CRLF and the border",
          "[data]") {
  const std::string mark = "\xEF\xBB\xBF";
  std::string lines;  // 26 lines of 8 bytes, 2 characters and a line end each
  for (int i = 0; i < 26; ++i) lines += "\xE2\x82\xAC\xE2\x82\xAC\r\n";
  const std::string plain = alphabet_text(100);
  const auto in_training = [](const std::string& text, Newlines newlines, const char* place) {
    CAPTURE(place);
    const TextFile file(text);
    DataConfig config = config_of(file);
    config.newlines = newlines;
    CHECK_THROWS_WITH(Dataset::load(config, 8, 1),
                      "data.source '" + file.path + "': " + place +
                          " is not UTF-8; convert the text to UTF-8, or use data.tokenizer=byte or bpe, which take any "
                          "bytes");
  };
  // In the last tenth, which is the validation part.
  in_training(plain + "\xFF" + "a", Newlines::normalise, "byte 100 (line 1, column 101)");
  in_training(mark + plain + "\xFF" + "a", Newlines::normalise, "byte 103 (line 1, column 101)");
  for (const Newlines newlines : {Newlines::normalise, Newlines::keep}) {
    in_training(lines + "ab\xFFzz", newlines, "byte 210 (line 27, column 3)");
    in_training(mark + lines + "ab\xFFzz", newlines, "byte 213 (line 27, column 3)");
    in_training(mark + "ab\xFF\n" + lines, newlines, "byte 5 (line 1, column 3)");
  }
  const TextFile known(mark + "\r\nab\xCE\xA9 abcdefghi");
  const Tokenizer without = Tokenizer::load("char:\n abcdefghi");
  CHECK_THROWS_WITH(Dataset::load(config_of(known, 0.9), 4, 1, without),
                    ContainsSubstring("'\xCE\xA9' (U+03A9)") && ContainsSubstring("byte 7 (line 2, column 3)"));
}

TEST_CASE("line ends CRLF and CR become LF, or stay, and are told with the byte order mark", "[data]") {
  const TextFile unix_file("abc\nabc\n\nabcabcabcabc\n"), other(
                                                              "\xEF\xBB\xBF"
                                                              "abc\r\nabc\r\rabcabcabcabc\r\n");
  DataConfig config = config_of(other, 0.5);
  const Dataset made = Dataset::load(config, 4, 1), plain = Dataset::load(config_of(unix_file, 0.5), 4, 1);
  CHECK(made.facts().hash == plain.facts().hash);  // of what is trained on
  CHECK(made.tokenizer() == plain.tokenizer());
  CHECK(plain.facts().remarks.empty());
  REQUIRE(made.facts().remarks.size() == 1);
  CHECK(made.facts().remarks[0] == "data.source '" + other.path +
                                       "' begins with a byte order mark, which is left out; has 2 line ends CRLF and 2 "
                                       "CR, which become LF");
  config.newlines = Newlines::keep;
  const Dataset kept = Dataset::load(config, 4, 1);
  CHECK(kept.facts().train_tokens + kept.facts().validation_tokens == 24);
  CHECK(kept.tokenizer().encode("\r").size() == 1);
  CHECK_THAT(kept.facts().remarks.at(0), ContainsSubstring("2 CR, which stay (data.newlines keep)"));

  const Tokenizer tokenizer = Tokenizer::load("char:\n abc");  // without CR
  const TextFile file("ab\r\nc");
  CHECK(Dataset::evaluation_of(file.path, tokenizer, 4, {}).facts().validation_tokens == 4);
  CHECK_THROWS_WITH(Dataset::evaluation_of(file.path, tokenizer, 4, config),
                    ContainsSubstring("(U+000D)") && ContainsSubstring("byte 2 (line 1, column 3)"));
}

TEST_CASE("files that are no text are refused by name, for bytes too", "[data]") {
  const TextFile file("\x1F\x8B\x08" + std::string(200, '\xB7'));
  DataConfig config = config_of(file);
  for (const char* tokenizer : {"char", "byte", "bpe"}) {
    config.tokenizer = tokenizer;
    CHECK_THROWS_AS(Dataset::load(config, 8, 1), DataError);
    CHECK_THROWS_WITH(Dataset::load(config, 8, 1),
                      "data.source '" + file.path + "': is a gzip file, not UTF-8 text; unpack it: gunzip");
  }
  const TextFile zeros(std::string(200, '\0'));  // a text as good as another
  config = config_of(zeros);
  config.tokenizer = "byte";
  CHECK_NOTHROW(Dataset::load(config, 8, 1));
}
