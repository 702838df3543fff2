// The built-in corpora: exact probabilities, entropy rates, determinism, messages.
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <string>

#include "catch.h"
#include "normlab/base/check.h"
#include "normlab/data/corpora/corpora.h"
#include "normlab/data/dataset.h"

using namespace normlab;

namespace {

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double nats_of(const Corpus& corpus, std::string_view text) { return sum(corpus.nats(text, 0)); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

}  // namespace

TEST_CASE("an unknown corpus is answered with the nearest", "[corpora]") {
  CHECK_THROWS_AS(make_corpus("marcov", 3, 1), ConfigError);
  CHECK_THROWS_WITH(make_corpus("marcov", 3, 1), ContainsSubstring("did you mean 'markov'?"));
}

TEST_CASE("a corpus is a function of its seed, printable, and of the asked size", "[corpora]") {
  for (const std::string& name : corpus_names()) {
    CAPTURE(name);
    const std::string text = make_corpus(name, 3, 7)->generate(20000);
    CHECK(make_corpus(name, 3, 7)->generate(20000) == text);
    CHECK(make_corpus(name, 3, 8)->generate(20000) != text);
    CHECK(text.size() <= 20000);
    CHECK(text.size() > 19000);
    for (const char c : text) REQUIRE((c == '\n' || (c >= ' ' && c <= '~')));
    CHECK(!make_corpus(name, 3, 7)->generate(1).empty());
    const std::string less = make_corpus(name, 3, 7)->generate(5000);
    CHECK(text.starts_with(less));
    if (name != "markov") CHECK(text.ends_with('\n'));
  }
}

TEST_CASE("what a corpus wrote costs its entropy rate on average", "[corpora]") {
  for (const std::string& name : corpus_names()) {
    CAPTURE(name);
    const auto corpus = make_corpus(name, 3, 11);
    const std::string text = corpus->generate(400000);
    const std::vector<double> nats = corpus->nats(text, 0);
    REQUIRE(nats.size() == text.size());
    // The ratio's standard error from 100 blocks of text: four of them are passed by chance once in 15,000.
    const std::size_t block = text.size() / 100;
    double square = 0;
    const double mean = sum(nats) / static_cast<double>(nats.size());
    for (std::size_t b = 0; b < 100; ++b) {
      const auto begin = nats.begin() + static_cast<std::ptrdiff_t>(b * block);
      const double off =
          std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(block), 0.0) / static_cast<double>(block) - mean;
      square += off * off / 99;
    }
    CHECK(std::abs(mean - corpus->entropy_rate()) < 4 * std::sqrt(square / 100));
  }
}

TEST_CASE("probabilities of a part are those within the whole", "[corpora]") {
  for (const std::string& name : corpus_names()) {
    CAPTURE(name);
    const auto corpus = make_corpus(name, 3, 3);
    const std::string text = corpus->generate(5000);
    const std::size_t from = text.find('\n', 2500) + 1;
    const std::vector<double> whole = corpus->nats(text, 0), part = corpus->nats(text, from);
    CHECK(part == std::vector<double>(whole.begin() + static_cast<std::ptrdiff_t>(from), whole.end()));
  }
}

TEST_CASE("copy: by hand", "[corpora]") {
  const auto copy = make_corpus("copy", 3, 1);
  const std::vector<double> nats = copy->nats("abcd=abcd\nabcde=abcde\n", 0);
  const double letter = std::log(16.0);
  CHECK(std::abs(nats[0] - letter) < 1e-12);
  CHECK(std::abs(nats[4] - std::log(13.0)) < 1e-12);  // 13 lengths, 4 to 16
  for (std::size_t i = 5; i < 10; ++i) CHECK(nats[i] == 0);
  CHECK(std::abs(sum(nats) - (2 * std::log(13.0) + 9 * letter)) < 1e-12);
  // 13 lengths, 10 letters on average, over 22 characters.
  CHECK(std::abs(copy->entropy_rate() - (std::log(13.0) + 10 * letter) / 22) < 1e-12);
  CHECK_THROWS_WITH(copy->nats("abcd=abce\n", 0), ContainsSubstring("copy: position 8: expected the word again"));
  CHECK_THROWS_WITH(copy->nats("abc=", 0), ContainsSubstring("position 3: expected a letter"));
  CHECK_THROWS_WITH(copy->nats("abcdefghijklmnoppp", 0), ContainsSubstring("position 16: expected '='"));
}

TEST_CASE("brackets: by hand", "[corpora]") {
  const auto brackets = make_corpus("brackets", 3, 1);
  // Three kinds to open with; inside 9/20 open, 11/20 close; between outermost pairs 2/3 go on, 1/3 end.
  const double expected =
      3 * std::log(3.0) - std::log(9.0 / 20) - 3 * std::log(11.0 / 20) - std::log(2.0 / 3) + std::log(3.0);
  CHECK(std::abs(nats_of(*brackets, "([]){}\n") - expected) < 1e-12);
  // An outermost pair is 1 / (1 - 9/11) = 5.5 pairs with all that it holds, and a line has 3: 33 brackets, 1 newline.
  const double rate = (16.5 * (std::log(3.0) - std::log(11.0 / 20)) - 13.5 * std::log(9.0 / 20) -
                       2 * std::log(2.0 / 3) + std::log(3.0)) /
                      34;
  CHECK(std::abs(brackets->entropy_rate() - rate) < 1e-12);
  CHECK_THROWS_WITH(brackets->nats("([)]\n", 0), ContainsSubstring("brackets: position 2: expected ']' or an opening"));
  CHECK_THROWS_WITH(brackets->nats("()\n\n", 0), ContainsSubstring("position 3: expected an opening bracket"));
}

TEST_CASE("markov: each context has one distribution, and order 0 none but the letters'", "[corpora]") {
  const auto order0 = make_corpus("markov", 0, 5);
  double total = 0, entropy = 0;
  for (const char c : std::string("\nabcdefg")) {
    const double nats = nats_of(*order0, std::string(1, c));
    total += std::exp(-nats);
    entropy += std::exp(-nats) * nats;
  }
  CHECK(std::abs(total - 1) < 1e-12);
  CHECK(std::abs(order0->entropy_rate() - entropy) < 1e-12);

  const auto order2 = make_corpus("markov", 2, 5);
  const std::string text = "abcabdabc";
  const std::vector<double> nats = order2->nats(text, 0);
  CHECK(nats[2] == nats[8]);  // c after ab
  CHECK(nats[2] != nats[5]);
  CHECK_THROWS_WITH(order2->nats("abx", 0), ContainsSubstring("markov: position 2"));
  // Contexts that share the last character alone differ: the order is really used.
  const std::vector<double> other = order2->nats("bbc", 0);
  CHECK(other[2] != nats[2]);
}

TEST_CASE("markov: the entropy rate of order 1 against a stationary distribution found another way", "[corpora]") {
  const auto chain = make_corpus("markov", 1, 9);
  const std::string alphabet = "\nabcdefg";
  double p[8][8];
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b) p[a][b] = std::exp(-chain->nats(std::string{alphabet[a], alphabet[b]}, 0)[1]);
  double power[8][8];
  std::copy(&p[0][0], &p[0][0] + 64, &power[0][0]);
  for (int squaring = 0; squaring < 12; ++squaring) {  // P^4096: every row is the stationary distribution
    double next[8][8] = {};
    for (int a = 0; a < 8; ++a)
      for (int b = 0; b < 8; ++b)
        for (int c = 0; c < 8; ++c) next[a][c] += power[a][b] * power[b][c];
    std::copy(&next[0][0], &next[0][0] + 64, &power[0][0]);
  }
  double rate = 0;
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b) rate -= power[3][a] * p[a][b] * std::log(p[a][b]);
  CHECK(std::abs(chain->entropy_rate() - rate) < 1e-10);  // 12 squarings double the rounding each time
}

TEST_CASE("the floor of a data set is -ln p of its validation targets", "[corpora]") {
  for (const std::string& name : corpus_names()) {
    CAPTURE(name);
    DataConfig config;
    config.source = name;
    config.size = 30000;
    const Dataset data = Dataset::load(config, 64, 21);
    const auto corpus = make_corpus(name, config.order, 21);
    const std::string text = corpus->generate(config.size);
    const std::size_t split = static_cast<std::size_t>(data.facts().train_tokens);
    CHECK(text[split - 1] == '\n');
    std::vector<double> nats = corpus->nats(text, split);
    REQUIRE(data.facts().floor);
    // The first character of the validation part is no target.
    const double expected = (sum(nats) - nats[0]) / static_cast<double>(nats.size() - 1);
    CHECK(std::abs(*data.facts().floor - expected) < 1e-12);
    CHECK(*data.facts().entropy_rate == corpus->entropy_rate());

    config.documents = Documents::lines;
    const Dataset lines = Dataset::load(config, 10, 21);
    double total = 0;
    Index count = 0;
    std::size_t at = 0;
    for (const std::string& line : lines_of(text.substr(split))) {
      for (std::size_t i = 0; i < line.size(); ++i, ++count) total += nats[at + i];
      at += line.size();
    }
    if (name != "markov")  // whose last line has no newline
      CHECK(std::abs(*lines.facts().floor - total / static_cast<double>(count)) < 1e-12);
    config.validation = std::string(NORMLAB_SOURCE_DIR) + "/LICENSE";
    CHECK(!Dataset::load(config, 10, 21).facts().floor);
  }
}
