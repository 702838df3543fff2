// The grammar engine and the tales: one derivation a text, exact probabilities, agreement, and the committed sample.
#include "normlab/data/corpora/grammar.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <string>

#include "catch.h"
#include "data/corpora/tales.h"
#include "normlab/base/check.h"
#include "normlab/base/rng.h"

using namespace normlab;

namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

std::vector<Rule> all_tale_rules() {
  std::vector<Rule> rules = tale_sentences(), words = tale_words();
  rules.insert(rules.end(), words.begin(), words.end());
  return rules;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

const std::vector<Rule> kPets{
    {"text", {"See {new a pet} and {a pet2}: {the pet} {cried}. {Cried}!", "No {pet2}."}},
    {"pet/cried", {"owl/hooted", "cat/purred", "ant/ran", "dog/dug"}},
    {"pet2", {"bee", "ox"}},
    {"the pet", {"one {pet}", "a tame {pet}"}},
};

}  // namespace

TEST_CASE("a grammar's probabilities, letter by letter, by hand", "[corpora]") {
  const Grammar grammar(kPets);
  std::vector<double> nats;
  const std::string text = "See an owl and a bee: one owl hooted. Hooted!";
  CHECK(grammar.read(text, 0, nats) == text.size());
  REQUIRE(nats.size() == text.size());
  // 'S' against 'N': 1/2. "an" against "a ": 2 of 4. 'o' against 'a': 1/2. "a bee" against "an ox", "one" against "a".
  const std::size_t choices[] = {0, 5, 7, 16, 22};
  for (std::size_t i = 0; i < nats.size(); ++i) {
    const bool chosen = std::find(std::begin(choices), std::end(choices), i) != std::end(choices);
    CAPTURE(i);
    CHECK(std::abs(nats[i] - (chosen ? std::log(2.0) : 0.0)) < 1e-15);
  }
  // ln 2 for the text, then with probability 1/2 ln 4 + ln 2 + ln 2, else ln 2.
  CHECK(std::abs(grammar.expected_nats() -
                 (std::log(2.0) + 0.5 * (std::log(4.0) + 2 * std::log(2.0)) + 0.5 * std::log(2.0))) < 1e-14);
  // "See " 4, {new a pet} 5.5 (an owl, a cat, an ant, a dog: 6 5 6 5), " and " 5, {a pet2} 5, ": " 2, {the pet} 3 and
  // 4 ("one ") or 7 ("a tame "), ' ' 1, {cried} 4.5 (6 6 3 3), ". " 2, {Cried} again, '!' 1.
  const double cried = (6 + 6 + 3 + 3) / 4.0;
  const double first = 4 + 5.5 + 5 + 5 + 2 + 8.5 + 1 + cried + 2 + cried + 1, second = 3 + 2.5 + 1;
  CHECK(std::abs(grammar.expected_characters() - (first + second) / 2) < 1e-12);
}

TEST_CASE("what a grammar writes it reads, at the same probability", "[corpora]") {
  const Grammar grammar(kPets);
  Random random(1, "test");
  std::set<std::string> texts;
  double nats = 0, characters = 0;
  const int count = 20000;
  for (int i = 0; i < count; ++i) {
    std::string text;
    const double written = grammar.write(random, text);
    std::vector<double> read;
    REQUIRE(grammar.read(text, 0, read) == text.size());
    REQUIRE(std::abs(sum(read) - written) < 1e-12);
    texts.insert(text);
    nats += written;
    characters += static_cast<double>(text.size());
  }
  CHECK(texts.size() == 4 * 2 * 2 + 2);
  double total = 0;
  for (const std::string& text : texts) {
    std::vector<double> read;
    grammar.read(text, 0, read);
    total += std::exp(-sum(read));
  }
  CHECK(std::abs(total - 1) < 1e-12);                                         // every text once: one derivation each
  CHECK(std::abs(nats / count - grammar.expected_nats()) < 0.05);             // deviation 1.04 / sqrt(20000) = 0.007
  CHECK(std::abs(characters / count - grammar.expected_characters()) < 0.6);  // 17 / sqrt(20000) = 0.12
}

TEST_CASE("a grammar refuses a text at the first impossible character", "[corpora]") {
  const Grammar grammar(kPets);
  std::vector<double> nats;
  CHECK_THROWS_AS(grammar.read("See a owl", 0, nats), DataError);
  CHECK_THROWS_WITH(grammar.read("See a owl", 0, nats),
                    ContainsSubstring("position 6: expected one of 'cd', found 'owl'"));
  CHECK_THROWS_WITH(grammar.read("See an owl and a bee: one cat", 0, nats),
                    ContainsSubstring("position 26: expected 'o' of 'owl', as before, found 'cat'"));
  CHECK_THROWS_WITH(grammar.read("See an owl an", 0, nats),
                    ContainsSubstring("position 13: expected one of 'd', found the end"));
}

TEST_CASE("tables that leave a choice open are a defect", "[corpora]") {
  const auto compile = [](const std::vector<Rule>& rules) { return Grammar(rules); };
  CHECK_THROWS_WITH(compile({{"a", {"x{b}", "xy"}}, {"b", {"p", "q"}}}), ContainsSubstring("cannot be told"));
  CHECK_THROWS_WITH(compile({{"a", {"{b}x", "{c}y"}}, {"b", {"p"}}, {"c", {"q"}}}),
                    ContainsSubstring("cannot be told"));
  CHECK_THROWS_WITH(compile({{"a", {"cat", "cattle"}}}), ContainsSubstring("is the start of another alternative"));
  CHECK_THROWS_WITH(compile({{"a", {"cat", "cat"}}}), ContainsSubstring("is the start of another alternative"));
  CHECK_THROWS_WITH(compile({{"a", {"{b}"}}}), ContainsSubstring("{b} is neither a rule nor a remembered column"));
  CHECK_THROWS_WITH(compile({{"a", {"x{a}", "y"}}}), ContainsSubstring("leads back to itself"));
  CHECK_THROWS_WITH(compile({{"a/b", {"x"}}}), ContainsSubstring("must have 2 columns"));
  CHECK_THROWS_WITH(compile({{"a", {"{a b}{new b}"}}, {"b", {"p"}}}), ContainsSubstring("would replace"));
  Random random(1, "test");
  std::string text;
  const Grammar early({{"a", {"{b}{new b}"}}, {"b", {"p"}}});
  CHECK_THROWS_WITH(early.write(random, text), ContainsSubstring("before it is remembered"));
}

TEST_CASE("the tales have more than 60 sentence patterns and 300 words, all of them in use", "[corpora]") {
  const std::vector<Rule> sentences = tale_sentences(), words = tale_words();
  std::set<std::string_view> patterns, different;
  for (const Rule& rule : sentences)
    for (const std::string_view alternative : rule.alternatives)
      if (rule.name != "tale") patterns.insert(alternative);
  CHECK(patterns.size() >= 60);
  for (const Rule& rule : words)
    for (const std::string_view alternative : rule.alternatives)
      different.insert(alternative.substr(0, alternative.find('/')));
  CHECK(different.size() >= 300);
  for (const Rule& rule : words) {
    const std::string name(rule.name.substr(0, rule.name.find('/')));
    CAPTURE(name);
    CHECK(std::any_of(patterns.begin(), patterns.end(), [&](std::string_view pattern) {
      for (const std::string& use :
           {"{" + name + "}", "{a " + name + "}", "{new " + name + "}", "{new a " + name + "}"})
        if (pattern.find(use) != std::string_view::npos) return true;
      return false;
    }));
  }
}

TEST_CASE("the tales' entropy rate lies where it should, and their alphabet is small", "[corpora]") {
  const auto tales = make_tales(1337);
  CHECK(tales->entropy_rate() > 0.2);
  CHECK(tales->entropy_rate() < 0.7);
  const std::string text = tales->generate(200000);
  CHECK(std::set<char>(text.begin(), text.end()).size() <= 60);
}

TEST_CASE("the committed sample is what the generator writes, and parses whole", "[corpora]") {
  const auto tales = make_tales(1337);
  const std::string text = tales->generate(1000000);
  CHECK(text.size() <= 1000000);
  CHECK(text.size() > 999000);
  CHECK((file_text(std::string(NORMLAB_SOURCE_DIR) + "/data/tales-sample.txt") == text));

  const Grammar grammar(all_tale_rules());
  const Random random(1337, "tales");
  double written = 0;
  std::string again;
  for (std::uint64_t i = 0; again.size() < text.size(); ++i) {
    Random draw = random.sub(i);
    written += grammar.write(draw, again);
  }
  CHECK((again == text));
  // 100,000 choices, each rounded at 1e-16 of a sum of 2e5: far below 1e-9 of it.
  CHECK(std::abs(sum(tales->nats(text, 0)) / written - 1) < 1e-9);
}

TEST_CASE("a tale whose parts do not agree is refused", "[corpora]") {
  const auto tales = make_tales(1);
  const std::string tale =
      "Once a shy baker named Mila lived near the dark mill. She loved cheese and kings. One cold morning she lost her "
      "lucky silver bell. She searched for two days. At last an old fox barked sadly. \"Look behind the wagon,\" it "
      "barked twice. And the bell rang softly by the wagon. She took the shy fox home to its den. So Mila and the "
      "merry fox were friends.\n";
  CHECK(tales->nats(tale, 0).size() == tale.size());
  const auto refused = [&](std::string_view from, std::string_view to, std::string_view message) {
    CAPTURE(from);
    const std::string wrong = replaced(tale, from, to);
    CHECK_THROWS_WITH(tales->nats(wrong, 0), ContainsSubstring(std::string(message)));
  };
  refused("She loved", "He loved", "position 54: expected 'S' of 'She', as before, found 'He loved");
  refused("lost her", "lost his", "of 'her', as before");
  refused("fox barked", "fox hooted", "of 'barked', as before");
  refused("it barked", "it hooted", "of 'barked', as before");
  refused("the bell rang", "the flute rang", "of 'bell', as before");
  refused("rang softly", "sang softly", "of 'rang', as before");
  refused("by the wagon", "by the stove", "of 'wagon', as before");
  refused("its den", "its cave", "of 'den', as before");
  refused("So Mila", "So Nora", "of 'Mila', as before");
  refused("merry fox", "merry owl", "of 'fox', as before");
  refused("a shy", "an shy", "position 8: expected one of 'o'");
  refused("friends.\n", "friends.", "found the end");
  CHECK_THROWS_WITH(tales->nats(tale + tale.substr(0, 30), 0), ContainsSubstring("found the end"));
}
