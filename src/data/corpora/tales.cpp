// The tales: a line each, drawn from the grammar of tales_sentences.cpp and tales_words.cpp.
#include "tales.h"

#include "lines.h"
#include "normlab/base/rng.h"

namespace normlab {
namespace {

class Tales : public Corpus {
 public:
  explicit Tales(std::uint64_t seed) : seed_(seed), grammar_(all_rules()) {}

  std::string generate(Index size) const override {
    const Random random(seed_, "tales");
    return whole_lines(size, [&](std::uint64_t i) {
      Random draw = random.sub(i);
      std::string tale;
      grammar_.write(draw, tale);
      return tale;
    });
  }

  std::vector<double> nats(std::string_view text, std::size_t from) const override {
    std::vector<double> out;
    out.reserve(text.size() - from);
    while (from < text.size()) from = grammar_.read(text, from, out);
    return out;
  }

  double entropy_rate() const override { return grammar_.expected_nats() / grammar_.expected_characters(); }

 private:
  static std::vector<Rule> all_rules() {
    std::vector<Rule> rules = tale_sentences(), words = tale_words();
    rules.insert(rules.end(), words.begin(), words.end());
    return rules;
  }

  std::uint64_t seed_;
  Grammar grammar_;
};

}  // namespace

std::unique_ptr<Corpus> make_tales(std::uint64_t seed) { return std::make_unique<Tales>(seed); }

}  // namespace normlab
