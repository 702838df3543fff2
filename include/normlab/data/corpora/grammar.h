// A probabilistic grammar with one derivation a text, whose probabilities are known character by character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/base/rng.h"

namespace normlab {

// A name and alternatives of equal probability. In an alternative, braces stand for
//   {rule}      one of the alternatives of that rule, drawn again
//   {a rule}    the same with its article, a or an
//   {new rule}  the same, remembered to the end of the text; {new a rule} with its article
//   {rule}      where some alternative says {new rule}: what was remembered, again
//   {column}    what stands in that column next to the remembered alternative; {Column} with a capital
// A rule with columns names them after its own name, and each alternative gives them, parted by '/':
//   {"animal/cry", {"fox/barked", "owl/hooted"}}
struct Rule {
  std::string_view name;
  std::vector<std::string_view> alternatives;
};

class Grammar {
 public:
  // The first rule is where a text begins; no rule leads back to itself. ShapeError (a defect of the tables) for
  // unknown names, and where two alternatives of a rule could not be told apart at the first character in which they
  // differ: past what they share from the start, both must go on with letters of their own, and none may be the start
  // of another. Hence every text has one derivation, and reading it needs no looking ahead.
  explicit Grammar(const std::vector<Rule>& rules);

  // Appends one text. Returns -ln p of it, from the choices made.
  double write(Random& random, std::string& out) const;

  // Reads one text that starts at text[at]; appends -ln p of each of its characters, given those before it, and returns
  // where it ends. DataError with the position of the first character that no text could have there.
  std::size_t read(std::string_view text, std::size_t at, std::vector<double>& nats) const;

  // The expectation over all texts, by recursion over the rules.
  double expected_nats() const { return rules_.front().nats; }
  double expected_characters() const { return rules_.front().characters; }

 private:
  enum class Action : std::uint8_t { write, draw, recall };
  // One step of an alternative: a letter, an alternative drawn from `rule`, or what was remembered of it.
  struct Symbol {
    Action action = Action::write;
    char letter = 0;
    bool capital = false;
    int rule = -1;
    int column = 0;
    friend bool operator==(const Symbol&, const Symbol&) = default;
  };
  // Where the alternatives of a rule that share a beginning part: one is over, or all go on with the same symbol that
  // is no letter, or each with a letter.
  struct Edge {
    Symbol symbol{};
    int node = -1;
    double nats = 0;
  };
  struct Node {
    int alternative = -1;  // that is over
    std::vector<Edge> edges{};
  };
  struct Compiled {
    std::string name{};
    std::vector<std::string> columns{};
    std::vector<std::vector<std::string>> cells{};  // [alternative][column]; column 0 is the alternative itself
    std::vector<std::vector<Symbol>> alternatives{};
    int plain = 0;        // the rule itself, or for one with articles the rule without
    bool memory = false;  // whether some alternative remembers it
    int root = -1;
    double nats = 0, characters = 0;  // expected
  };
  struct Reader;

  void add(const Rule& rule);
  void note(std::string_view braces);
  void add_with_article(int rule);
  int find(std::string_view name) const;  // -1 when there is none
  Symbol symbol_of(std::string_view braces) const;
  std::vector<Symbol> symbols_of(const std::string& alternative) const;
  int build(const Compiled& rule, const std::vector<int>& alternatives, std::size_t depth);
  void expect(Compiled& rule);
  double write(const Compiled& rule, Random& random, std::string& out, std::vector<int>& memory) const;

  std::vector<Compiled> rules_;
  std::vector<Node> nodes_;
};

}  // namespace normlab
