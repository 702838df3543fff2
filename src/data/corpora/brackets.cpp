// The brackets corpus: each line a word of the Dyck language with three kinds of brackets.
#include <cmath>

#include "lines.h"
#include "normlab/base/check.h"
#include "normlab/base/rng.h"

namespace normlab {
namespace {

constexpr std::string_view kOpen = "([{", kClose = ")]}";
constexpr std::size_t kKinds = kOpen.size();
// Inside of a bracket another one opens with probability kNestIn20 / 20, else it closes. When all are closed the line
// goes on with probability 2/3; it never is empty.
constexpr std::uint64_t kNestIn20 = 9;
constexpr double kNest = kNestIn20 / 20.0, kMore = 2.0 / 3.0;

class Brackets : public Corpus {
 public:
  explicit Brackets(std::uint64_t seed) : seed_(seed) {}

  std::string generate(Index size) const override {
    const Random random(seed_, "brackets");
    return whole_lines(size, [&](std::uint64_t i) {
      Random draw = random.sub(i);
      std::string line, awaited;  // awaited: the closing brackets, the next one last
      do {
        const bool opens = awaited.empty() || draw.below(20) < kNestIn20;
        if (opens) {
          const std::size_t kind = draw.below(kKinds);
          line += kOpen[kind];
          awaited += kClose[kind];
        } else {
          line += awaited.back();
          awaited.pop_back();
        }
      } while (!awaited.empty() || draw.below(3) < 2);
      return line + '\n';
    });
  }

  std::vector<double> nats(std::string_view text, std::size_t from) const override {
    std::vector<double> out;
    out.reserve(text.size() - from);
    std::string awaited;
    bool fresh = true;  // at the start of a line
    for (std::size_t i = from; i < text.size(); ++i) {
      const std::size_t kind = kOpen.find(text[i]);
      if (kind != std::string_view::npos) {
        out.push_back(std::log(kKinds) - (fresh ? 0 : std::log(awaited.empty() ? kMore : kNest)));
        awaited += kClose[kind];
        fresh = false;
      } else if (awaited.empty()) {
        check<DataError>(text[i] == '\n' && !fresh, "brackets: position ", i, ": expected an opening bracket",
                         fresh ? "" : ", or the end of the line");
        out.push_back(-std::log(1 - kMore));
        fresh = true;
      } else {
        check<DataError>(text[i] == awaited.back(), "brackets: position ", i, ": expected '", awaited.back(),
                         "' or an opening bracket");
        out.push_back(-std::log(1 - kNest));
        awaited.pop_back();
      }
    }
    return out;
  }

  // A bracket pair holds kNest / (1 - kNest) pairs on average, and a line 1 / (1 - kMore) outermost ones. A pair, with
  // all that it holds, is P pairs: P = 1 + P kNest / (1 - kNest). Each pair costs its kind and its closing; each but
  // the outermost also the choice to open.
  double entropy_rate() const override {
    const double outermost = 1 / (1 - kMore);
    const double pairs = outermost / (1 - kNest / (1 - kNest));
    const double nats = pairs * (std::log(kKinds) - std::log(1 - kNest)) - (pairs - outermost) * std::log(kNest) -
                        (outermost - 1) * std::log(kMore) - std::log(1 - kMore);
    return nats / (2 * pairs + 1);
  }

 private:
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Corpus> make_brackets(std::uint64_t seed) { return std::make_unique<Brackets>(seed); }

}  // namespace normlab
