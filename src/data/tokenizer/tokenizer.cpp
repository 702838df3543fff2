// Text to token ids and back, by characters, bytes or pairs of them.
#include "normlab/data/tokenizer/tokenizer.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "normlab/base/check.h"
#include "normlab/base/utf8.h"

namespace normlab {
namespace {

constexpr std::string_view kSavedBytes = "byte";
constexpr std::string_view kSavedCharacters = "char:";
constexpr std::string_view kSavedPairs = "bpe:";

// f(code point, byte offset) for each character.
template <class F>
void for_each_character(const NamedText& text, const F& f) {
  for (std::size_t at = 0; at < text.text.size();) {
    const Utf8Step step = utf8_step(text.text.substr(at));
    if (step.status != Utf8Step::valid)
      throw DataError(
          normlab::text(text.name, ": ", text.place(at), " is not UTF-8",
                        step.status == Utf8Step::incomplete ? " (a character is cut off at the end)" : "",
                        "; convert the text to UTF-8, or use data.tokenizer=byte or bpe, which take any bytes"));
    f(step.code_point, at);
    at += static_cast<std::size_t>(step.length);
  }
}

// Moves the whole characters of `pending` to `out`, with U+FFFD for what is none; an incomplete end stays.
void move_characters(std::string& pending, std::string& out) {
  std::size_t at = 0;
  while (at < pending.size()) {
    const Utf8Step step = utf8_step(std::string_view(pending).substr(at));
    if (step.status == Utf8Step::incomplete) break;
    if (step.status == Utf8Step::valid)
      out.append(pending, at, static_cast<std::size_t>(step.length));
    else
      out += kReplacement;
    at += static_cast<std::size_t>(step.length);
  }
  pending.erase(0, at);
}

}  // namespace

namespace {

// "'x' (U+0078) 3 times, ...", the most frequent first, and how many more.
std::string counted(const std::map<char32_t, std::int64_t>& characters) {
  constexpr std::size_t kShown = 20;
  std::vector<std::pair<char32_t, std::int64_t>> order(characters.begin(), characters.end());
  std::ranges::stable_sort(order, std::ranges::greater(), &std::pair<char32_t, std::int64_t>::second);
  std::string out;
  for (std::size_t i = 0; i < std::min(order.size(), kShown); ++i) {
    const auto [c, count] = order[i];
    out += out.empty() ? "'" : ", '";
    if (c >= 32 && c != 127) append_utf8(out, c);
    out += text("' (", code_point_name(c), count == 1 ? ") once" : text(") ", count, " times"));
  }
  return order.size() > kShown ? text(out, " and ", order.size() - kShown, " more") : out;
}

}  // namespace

std::string NamedText::place(std::size_t at) const {
  return source ? source->place(begin + at) : normlab::text("byte ", at);
}

Tokenizer::Tokenizer(std::vector<char32_t> alphabet) : alphabet_(std::move(alphabet)) {
  ascii_id_.fill(-1);
  for (std::size_t i = 0; i < alphabet_.size() && alphabet_[i] < 128; ++i)
    ascii_id_[alphabet_[i]] = static_cast<std::int32_t>(i);
}

Tokenizer Tokenizer::bytes() { return byte_pairs(BytePairs(std::vector<BytePairs::Merge>())); }

Tokenizer Tokenizer::byte_pairs(BytePairs pairs) {
  Tokenizer made({});
  made.pairs_ = std::make_shared<const BytePairs>(std::move(pairs));
  return made;
}

Tokenizer Tokenizer::characters(std::span<const NamedText> texts) {
  std::array<bool, 128> ascii{};
  std::set<char32_t> beyond;
  for (const NamedText& each : texts)
    for_each_character(each, [&](char32_t c, std::size_t) {
      if (c < 128)
        ascii[c] = true;
      else
        beyond.insert(c);
    });
  std::vector<char32_t> alphabet;
  for (char32_t c = 0; c < 128; ++c)
    if (ascii[c]) alphabet.push_back(c);
  alphabet.insert(alphabet.end(), beyond.begin(), beyond.end());
  return Tokenizer(std::move(alphabet));
}

namespace {

std::vector<BytePairs::Merge> merges_of(std::string_view saved) {
  std::vector<BytePairs::Merge> merges;
  while (!saved.empty()) {
    const std::string_view pair = saved.substr(0, saved.find(','));
    const std::size_t space = pair.find(' ');
    const auto left = parse_int(pair.substr(0, space));
    const auto right = space == std::string_view::npos ? std::nullopt : parse_int(pair.substr(space + 1));
    check<DataError>(left && right && *left < INT32_MAX && *right < INT32_MAX, "tokenizer: merge ", merges.size(),
                     " is '", pair, "'; it must be two ids");
    merges.push_back({static_cast<std::int32_t>(*left), static_cast<std::int32_t>(*right)});
    saved.remove_prefix(std::min(pair.size() + 1, saved.size()));
  }
  return merges;
}

}  // namespace

Tokenizer Tokenizer::load(std::string_view saved) {
  if (saved == kSavedBytes) return bytes();
  if (saved.starts_with(kSavedPairs)) return byte_pairs(BytePairs(merges_of(saved.substr(kSavedPairs.size()))));
  check<DataError>(
      saved.starts_with(kSavedCharacters), "tokenizer: '", saved.substr(0, 20),
      "' is not a saved tokenizer; it must be 'byte', 'char:' and the characters, or 'bpe:' and the merges");
  std::vector<char32_t> alphabet;
  for_each_character({saved.substr(kSavedCharacters.size()), "tokenizer"}, [&](char32_t c, std::size_t) {
    check<DataError>(alphabet.empty() || alphabet.back() < c, "tokenizer: ", code_point_name(c),
                     " is out of order; characters must rise by code point");
    alphabet.push_back(c);
  });
  check<DataError>(!alphabet.empty(), "tokenizer: the saved tokenizer has no characters");
  return Tokenizer(std::move(alphabet));
}

std::string Tokenizer::save() const {
  if (pairs_ && pairs_->merges().empty()) return std::string(kSavedBytes);
  if (pairs_) {
    std::string out(kSavedPairs);
    for (const auto& [left, right] : pairs_->merges())
      out += text(out.size() > kSavedPairs.size() ? "," : "", left, ' ', right);
    return out;
  }
  std::string out(kSavedCharacters);
  for (const char32_t c : alphabet_) append_utf8(out, c);
  return out;
}

std::int32_t Tokenizer::id_of(char32_t c) const {
  if (c < 128) return ascii_id_[c];
  const auto at = std::lower_bound(alphabet_.begin(), alphabet_.end(), c);
  return at != alphabet_.end() && *at == c ? static_cast<std::int32_t>(at - alphabet_.begin()) : -1;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, std::string_view name) const {
  std::vector<std::int32_t> ids;
  ids.reserve(text.size());
  append({text, name}, ids);
  return ids;
}

void Tokenizer::append(const NamedText& text, std::vector<std::int32_t>& ids) const {
  if (pairs_) return pairs_->encode(text.text, ids);
  std::map<char32_t, std::int64_t> unknown;
  std::size_t first = 0;
  for_each_character(text, [&](char32_t c, std::size_t at) {
    const std::int32_t id = id_of(c);
    if (id < 0 && unknown.empty()) first = at;
    if (id < 0)
      ++unknown[c];
    else
      ids.push_back(id);
  });
  if (!unknown.empty())
    throw DataError(normlab::text(
        text.name, ": ", unknown.size(), unknown.size() == 1 ? " character is" : " characters are", " not among the ",
        alphabet_.size(), " of the vocabulary: ", counted(unknown), "; the first is at ", text.place(first), "; leave ",
        unknown.size() == 1 ? "it" : "them", " out, or train with data.tokenizer=byte or bpe"));
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  StreamDecoder decoder(*this);
  std::string out;
  for (const std::int32_t id : ids) out += decoder.push(id);
  return out + decoder.finish();
}

std::string Tokenizer::bytes_of(std::int32_t id) const {
  check(id >= 0 && id < vocab_size(), "decode: id ", id, " lies outside of [0, ", vocab_size(), ")");
  if (pairs_) return pairs_->bytes_of(id);
  std::string out;
  append_utf8(out, alphabet_[static_cast<std::size_t>(id)]);
  return out;
}

std::string StreamDecoder::push(std::int32_t id) {
  std::string out;
  pending_ += tokenizer_->bytes_of(id);
  move_characters(pending_, out);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  if (!pending_.empty()) out = kReplacement;  // one: what is held back is the start of one character
  pending_.clear();
  return out;
}

}  // namespace normlab
