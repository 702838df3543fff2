// A table of mistakes: what a user types, and the message that the program must give, word by word.
#pragma once

#include <algorithm>

#include "catch.h"
#include "cli_runs.h"

namespace normlab {

// In words and messages "@/" stands for the workshop's directory; in messages "<>" for what depends on the build.
struct MessageRow {
  Strings words;
  std::string message;
};

inline std::string in_workshop(const Workshop& shop, std::string text) {
  const std::string directory = shop.path("");
  for (std::size_t at = 0; (at = text.find("@/", at)) != std::string::npos; at += directory.size())
    text.replace(at, 2, directory);
  return text;
}

inline bool matches(const std::string& said, const std::string& expected) {
  std::size_t at = 0, begin = 0;
  for (std::size_t gap; (gap = expected.find("<>", begin)) != std::string::npos; begin = gap + 2) {
    const std::string part = expected.substr(begin, gap - begin);
    const std::size_t found = begin == 0 ? (said.starts_with(part) ? 0 : std::string::npos) : said.find(part, at);
    if (found == std::string::npos) return false;
    at = found + part.size();
  }
  const std::string rest = expected.substr(begin);
  return begin == 0 ? said == rest : said.size() >= at + rest.size() && said.ends_with(rest);
}

// Exit code 2, the message as the one line on standard error, and nothing on standard output.
inline void check_mistake(const Workshop& shop, const Strings& prefix, const MessageRow& row) {
  Strings words;
  for (const std::string& word : joined(prefix, row.words)) words.push_back(in_workshop(shop, word));
  const Finished done = run_program(words);
  const std::string expected = in_workshop(shop, "normlab: " + row.message + "\n");
  INFO("normlab " << join(words, " ") << "\nsaid:     " << done.out << done.err << "expected: " << expected);
  CHECK(done.code == 2);
  CHECK(done.out.empty());
  CHECK(matches(done.err, expected));
}

inline void check_mistakes(const Workshop& shop, const Strings& prefix, const std::vector<MessageRow>& rows) {
  for (const MessageRow& row : rows) check_mistake(shop, prefix, row);
}

}  // namespace normlab
