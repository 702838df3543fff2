// A probabilistic grammar with one derivation a text: rules compiled to tries, so that writing, reading and
// expectations are each one walk.
#include "normlab/data/corpora/grammar.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/check.h"

namespace normlab {
namespace {

std::vector<std::string> split(std::string_view s, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = s.find(at, begin);
    parts.emplace_back(s.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

Grammar::Grammar(const std::vector<Rule>& rules) {
  for (const Rule& rule : rules) add(rule);
  for (const Rule& rule : rules)
    for (const std::string_view alternative : rule.alternatives)
      for (std::size_t at = 0; (at = alternative.find('{', at)) != std::string_view::npos; ++at)
        note(alternative.substr(at + 1, alternative.find('}', at) - at - 1));
  for (Compiled& rule : rules_)
    for (const auto& cells : rule.cells) rule.alternatives.push_back(symbols_of(cells[0]));
  for (Compiled& rule : rules_) {
    std::vector<int> all(rule.alternatives.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    rule.root = build(rule, all, 0);
  }
  for (Compiled& rule : rules_) expect(rule);
}

void Grammar::add(const Rule& rule) {
  Compiled compiled;
  compiled.columns = split(rule.name, '/');
  compiled.name = compiled.columns[0];
  compiled.plain = static_cast<int>(rules_.size());
  for (const std::string_view alternative : rule.alternatives) {
    compiled.cells.push_back(compiled.columns.size() > 1 ? split(alternative, '/')
                                                         : std::vector<std::string>{std::string(alternative)});
    check(compiled.cells.back().size() == compiled.columns.size(), "grammar: rule ", rule.name, ": '", alternative,
          "' must have ", compiled.columns.size(), " columns");
  }
  check(find(compiled.name) < 0, "grammar: two rules are named ", compiled.name);
  check(!compiled.cells.empty(), "grammar: rule ", compiled.name, " has no alternatives");
  rules_.push_back(std::move(compiled));
}

// Marks the rule that is remembered here, and adds its twin with articles where that is what is drawn.
void Grammar::note(std::string_view braces) {
  const bool remember = braces.starts_with("new ");
  if (remember) braces.remove_prefix(4);
  const bool article = braces.starts_with("a ");
  const int rule = find(article ? braces.substr(2) : braces);
  if (rule < 0) return;
  if (remember) rules_[static_cast<std::size_t>(rule)].memory = true;
  if (article && find(braces) < 0) add_with_article(rule);
}

void Grammar::add_with_article(int rule) {
  Compiled with = rules_[static_cast<std::size_t>(rule)];
  with.name = "a " + with.name;
  for (auto& cells : with.cells) {
    const bool vowel = std::string_view("aeiou").find(lower(cells[0][0])) != std::string_view::npos;
    cells[0] = (vowel ? "an " : "a ") + cells[0];
  }
  rules_.push_back(std::move(with));
}

int Grammar::find(std::string_view name) const {
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (rules_[i].name == name) return static_cast<int>(i);
  return -1;
}

Grammar::Symbol Grammar::symbol_of(std::string_view braces) const {
  Symbol symbol;
  symbol.action = Action::draw;
  std::string name(braces);
  const bool remember = name.starts_with("new ");
  if (remember) name.erase(0, 4);
  symbol.rule = find(name);
  if (symbol.rule >= 0) {
    const Compiled& rule = rules_[static_cast<std::size_t>(symbol.rule)];
    const bool memory = rules_[static_cast<std::size_t>(rule.plain)].memory;
    check(remember || !memory || &rule == &rules_[static_cast<std::size_t>(rule.plain)], "grammar: {", braces,
          "} would replace what was remembered");
    if (memory && !remember) symbol.action = Action::recall;
    return symbol;
  }
  symbol.action = Action::recall;
  symbol.capital = name[0] != lower(name[0]);
  name[0] = lower(name[0]);
  for (std::size_t i = 0; i < rules_.size() && symbol.rule < 0; ++i)
    for (std::size_t column = 0; column < rules_[i].columns.size(); ++column)
      if (rules_[i].memory && rules_[i].columns[column] == name) {
        symbol.rule = static_cast<int>(i);
        symbol.column = static_cast<int>(column);
      }
  check(symbol.rule >= 0 && !remember, "grammar: {", braces, "} is neither a rule nor a remembered column");
  return symbol;
}

std::vector<Grammar::Symbol> Grammar::symbols_of(const std::string& alternative) const {
  std::vector<Symbol> symbols;
  for (std::size_t i = 0; i < alternative.size(); ++i) {
    if (alternative[i] == '{') {
      const std::size_t end = alternative.find('}', i);
      check(end != std::string::npos, "grammar: '", alternative, "' has a brace that does not close");
      symbols.push_back(symbol_of(std::string_view(alternative).substr(i + 1, end - i - 1)));
      i = end;
    } else {
      Symbol letter;
      letter.letter = alternative[i];
      symbols.push_back(letter);
    }
  }
  return symbols;
}

// The node that the alternatives share after `depth` symbols.
int Grammar::build(const Compiled& rule, const std::vector<int>& alternatives, std::size_t depth) {
  const int node = static_cast<int>(nodes_.size());
  nodes_.emplace_back();
  std::vector<std::pair<Symbol, std::vector<int>>> groups;
  for (const int i : alternatives) {
    const auto& symbols = rule.alternatives[static_cast<std::size_t>(i)];
    if (depth == symbols.size()) {
      check(alternatives.size() == 1, "grammar: rule ", rule.name, ": '", rule.cells[static_cast<std::size_t>(i)][0],
            "' is the start of another alternative");
      nodes_[static_cast<std::size_t>(node)].alternative = i;
      return node;
    }
    const auto same =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == symbols[depth]; });
    if (same != groups.end())
      same->second.push_back(i);
    else
      groups.emplace_back(symbols[depth], std::vector<int>{i});
  }
  for (const auto& [symbol, group] : groups) {
    check(groups.size() == 1 || symbol.action == Action::write, "grammar: rule ", rule.name, ": '",
          rule.cells[static_cast<std::size_t>(group[0])][0], "' cannot be told from another alternative by a letter");
    const double nats =
        std::log(static_cast<double>(alternatives.size())) - std::log(static_cast<double>(group.size()));
    const int child = build(rule, group, depth + 1);
    nodes_[static_cast<std::size_t>(node)].edges.push_back({symbol, child, nats});
  }
  return node;
}

// Means over the alternatives: what a rule draws is independent of all else, so a remembered word that is written again
// has the mean length of its column.
void Grammar::expect(Compiled& rule) {
  check(rule.characters >= 0, "grammar: rule ", rule.name, " leads back to itself");
  if (rule.characters > 0) return;
  double nats = 0, characters = 0;
  rule.characters = -1;  // being computed
  for (const auto& alternative : rule.alternatives)
    for (const Symbol& symbol : alternative) {
      if (symbol.action == Action::write) {
        characters += 1;
        continue;
      }
      Compiled& other = rules_[static_cast<std::size_t>(symbol.rule)];
      if (symbol.action == Action::draw) {
        expect(other);
        nats += other.nats;
        characters += other.characters;
      } else {
        double letters = 0;
        for (const auto& cells : other.cells)
          letters += static_cast<double>(cells[static_cast<std::size_t>(symbol.column)].size());
        characters += letters / static_cast<double>(other.cells.size());
      }
    }
  const auto n = static_cast<double>(rule.alternatives.size());
  rule.characters = characters / n;
  rule.nats = nats / n + std::log(n);
}

double Grammar::write(Random& random, std::string& out) const {
  std::vector<int> memory(rules_.size(), -1);
  return write(rules_.front(), random, out, memory);
}

double Grammar::write(const Compiled& rule, Random& random, std::string& out, std::vector<int>& memory) const {
  const std::size_t choice = random.below(rule.alternatives.size());
  double nats = std::log(static_cast<double>(rule.alternatives.size()));
  for (const Symbol& symbol : rule.alternatives[choice]) {
    if (symbol.action == Action::write) {
      out += symbol.letter;
    } else if (symbol.action == Action::draw) {
      nats += write(rules_[static_cast<std::size_t>(symbol.rule)], random, out, memory);
    } else {
      const Compiled& other = rules_[static_cast<std::size_t>(symbol.rule)];
      const int remembered = memory[static_cast<std::size_t>(symbol.rule)];
      check(remembered >= 0, "grammar: rule ", rule.name, " recalls ", other.name, " before it is remembered");
      const std::string& cell =
          other.cells[static_cast<std::size_t>(remembered)][static_cast<std::size_t>(symbol.column)];
      out += symbol.capital ? upper(cell[0]) : cell[0];
      out.append(cell, 1);
    }
  }
  memory[static_cast<std::size_t>(rule.plain)] = static_cast<int>(choice);
  return nats;
}

struct Grammar::Reader {
  const Grammar& grammar;
  std::string_view text;
  std::size_t at;
  std::vector<double>& nats;
  std::vector<int> memory;

  [[noreturn]] void refuse(const std::string& expected) const {
    throw DataError(normlab::text("position ", at, ": expected ", expected, ", found ",
                                  at < text.size() ? normlab::text("'", text.substr(at, 12), "'") : "the end"));
  }

  void read(const Compiled& rule) {
    for (int place = rule.root;;) {
      const Node& node = grammar.nodes_[static_cast<std::size_t>(place)];
      if (node.alternative >= 0) {
        memory[static_cast<std::size_t>(rule.plain)] = node.alternative;
        return;
      }
      const Edge& first = node.edges.front();
      if (first.symbol.action == Action::write) {
        place = letter(node);
        continue;
      }
      const Compiled& other = grammar.rules_[static_cast<std::size_t>(first.symbol.rule)];
      if (first.symbol.action == Action::draw)
        read(other);
      else
        again(other, first.symbol);
      place = first.node;
    }
  }

  int letter(const Node& node) {
    for (const Edge& edge : node.edges)
      if (at < text.size() && edge.symbol.letter == text[at]) {
        nats.push_back(edge.nats);
        ++at;
        return edge.node;
      }
    std::string expected = "one of '";
    for (const Edge& edge : node.edges) expected += edge.symbol.letter;
    refuse(expected + "'");
  }

  void again(const Compiled& rule, const Symbol& symbol) {
    const int remembered = memory[static_cast<std::size_t>(symbol.rule)];
    std::string word = rule.cells[static_cast<std::size_t>(remembered)][static_cast<std::size_t>(symbol.column)];
    if (symbol.capital) word[0] = upper(word[0]);
    for (const char c : word) {
      if (at >= text.size() || text[at] != c) refuse(normlab::text("'", c, "' of '", word, "', as before"));
      nats.push_back(0);
      ++at;
    }
  }
};

std::size_t Grammar::read(std::string_view text, std::size_t at, std::vector<double>& nats) const {
  Reader reader{*this, text, at, nats, std::vector<int>(rules_.size(), -1)};
  reader.read(rules_.front());
  return reader.at;
}

}  // namespace normlab
