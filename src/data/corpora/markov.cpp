// The markov corpus. Its weights and draws are whole numbers, so that it is the same under every compiler.
#include <array>
#include <cmath>

#include "lines.h"
#include "normlab/base/check.h"
#include "normlab/base/rng.h"

namespace normlab {
namespace {

constexpr std::string_view kAlphabet = "\nabcdefg";
constexpr std::size_t kSymbols = kAlphabet.size();

class Markov : public Corpus {
 public:
  Markov(int order, std::uint64_t seed) : seed_(seed) {
    std::size_t contexts = 1;
    for (int i = 0; i < order; ++i) contexts *= kSymbols;
    weights_.resize(contexts);
    Random random(seed, "markov.table");
    for (auto& row : weights_)
      for (std::uint32_t& weight : row) {
        const auto root = static_cast<std::uint32_t>(random.below(32));
        weight = 1 + root * root * root * root / 256;  // 1 .. 3608: few likely followers, none impossible
      }
  }

  std::string generate(Index size) const override {
    Random random(seed_, "markov.text");
    std::string out;
    out.reserve(static_cast<std::size_t>(size));
    for (std::size_t context = 0; static_cast<Index>(out.size()) < size;) {
      const auto& row = weights_[context];
      std::uint64_t draw = random.below(total(row));
      std::size_t symbol = 0;
      while (draw >= row[symbol]) draw -= row[symbol++];
      out += kAlphabet[symbol];
      context = after(context, symbol);
    }
    return out;
  }

  std::vector<double> nats(std::string_view text, std::size_t from) const override {
    std::vector<double> out;
    out.reserve(text.size() - from);
    std::size_t context = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::size_t symbol = kAlphabet.find(text[i]);
      check<DataError>(symbol != std::string_view::npos, "markov: position ", i,
                       ": the alphabet is a to g and newline");
      if (i >= from) out.push_back(std::log(total(weights_[context])) - std::log(weights_[context][symbol]));
      context = after(context, symbol);
    }
    return out;
  }

  // sum over contexts of their stationary probability times the entropy of what follows; the stationary distribution
  // by iterating the chain, which forgets its start since every weight is at least 1.
  double entropy_rate() const override {
    const std::size_t contexts = weights_.size();
    std::vector<double> now(contexts, 1.0 / static_cast<double>(contexts)), next(contexts);
    double moved = 1;
    for (int round = 0; round < 2000 && moved > 1e-14; ++round) {
      std::fill(next.begin(), next.end(), 0.0);
      for (std::size_t c = 0; c < contexts; ++c)
        for (std::size_t s = 0; s < kSymbols; ++s) next[after(c, s)] += now[c] * weights_[c][s] / total(weights_[c]);
      moved = 0;
      for (std::size_t c = 0; c < contexts; ++c) moved += std::abs(next[c] - now[c]);
      now.swap(next);
    }
    double rate = 0;
    for (std::size_t c = 0; c < contexts; ++c)
      for (const std::uint32_t weight : weights_[c]) {
        const double p = weight / static_cast<double>(total(weights_[c]));
        rate -= now[c] * p * std::log(p);
      }
    return rate;
  }

 private:
  using Row = std::array<std::uint32_t, kSymbols>;
  static std::uint32_t total(const Row& row) {
    std::uint32_t sum = 0;
    for (const std::uint32_t weight : row) sum += weight;
    return sum;
  }
  // A context is its characters as digits, the latest one last.
  std::size_t after(std::size_t context, std::size_t symbol) const {
    return (context * kSymbols + symbol) % weights_.size();
  }

  std::uint64_t seed_;
  std::vector<Row> weights_;  // [context][symbol]
};

}  // namespace

std::unique_ptr<Corpus> make_markov(int order, std::uint64_t seed) { return std::make_unique<Markov>(order, seed); }

}  // namespace normlab
