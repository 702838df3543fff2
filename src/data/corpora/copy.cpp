// The copy corpus: a random word, '=', and the word again.
#include <cmath>

#include "lines.h"
#include "normlab/base/check.h"
#include "normlab/base/rng.h"

namespace normlab {
namespace {

constexpr std::size_t kShortest = 4, kLongest = 16, kLengths = kLongest - kShortest + 1;
constexpr std::size_t kLetters = 16;

class Copy : public Corpus {
 public:
  explicit Copy(std::uint64_t seed) : seed_(seed) {}

  std::string generate(Index size) const override {
    const Random random(seed_, "copy");
    return whole_lines(size, [&](std::uint64_t i) {
      Random draw = random.sub(i);
      std::string word(kShortest + draw.below(kLengths), 'a');
      for (char& c : word) c = static_cast<char>('a' + draw.below(kLetters));
      return word + '=' + word + '\n';
    });
  }

  // Every length is as likely as any other, so after n letters the word ends with probability 1 / (kLongest + 1 - n);
  // whatever comes after the '=' is certain.
  std::vector<double> nats(std::string_view text, std::size_t from) const override {
    std::vector<double> out;
    out.reserve(text.size() - from);
    std::size_t begin = from, equals = std::string_view::npos;  // of this line
    for (std::size_t i = from; i < text.size(); ++i) {
      const char c = text[i];
      const std::size_t n = i - begin;
      const auto refuse_unless = [&](bool ok, auto&&... wanted) {
        check<DataError>(ok, "copy: position ", i, ": expected ", wanted...);
      };
      if (equals != std::string_view::npos) {
        const std::size_t j = i - equals - 1, length = equals - begin;
        refuse_unless(c == (j < length ? text[begin + j] : '\n'), "the word again, and the end of the line");
        out.push_back(0);
        if (j == length) begin = i + 1, equals = std::string_view::npos;
      } else {
        const double lengths_left = static_cast<double>(kLongest + 1 - n);
        const bool letter = c >= 'a' && c < static_cast<char>('a' + kLetters);
        if (n < kShortest) {
          refuse_unless(letter, "a letter from a to p");
          out.push_back(std::log(kLetters));
        } else if (c == '=') {
          out.push_back(std::log(lengths_left));
          equals = i;
        } else {
          refuse_unless(letter && n < kLongest, n < kLongest ? "a letter from a to p, or '='" : "'='");
          out.push_back(std::log(lengths_left / (lengths_left - 1)) + std::log(kLetters));
        }
      }
    }
    return out;
  }

  double entropy_rate() const override {
    const double mean_length = (kShortest + kLongest) / 2.0;
    return (std::log(kLengths) + mean_length * std::log(kLetters)) / (2 * mean_length + 2);
  }

 private:
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Corpus> make_copy(std::uint64_t seed) { return std::make_unique<Copy>(seed); }

}  // namespace normlab
