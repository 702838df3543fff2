// tokenizer.json, written and read.
#include "normlab/data/tokenizer/tokenizer_json.h"

#include <map>

#include "normlab/base/check.h"
#include "normlab/base/utf8.h"
#include "normlab/formats/json.h"

namespace normlab {
namespace {

constexpr std::string_view kEveryCharacter = R"([\s\S])";
constexpr std::string_view kUnknown = "<unk>";  // never in the vocabulary: what is unknown is an error, as here

// GPT-2's characters for bytes (openai/gpt-2, src/encoder.py): visible ones of Latin-1 stand for themselves, the other
// 68 bytes, in order, for U+0100 and what follows. So no token holds white space.
std::vector<std::string> byte_characters() {
  std::vector<std::string> characters(256);
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    append_utf8(characters[byte], visible ? byte : next++);
  }
  return characters;
}

Json split(std::string_view pattern) {
  return Json::object({{"type", "Split"},
                       {"pattern", Json::object({{"Regex", pattern}})},
                       {"behavior", "Isolated"},
                       {"invert", false}});
}

Json byte_level() {
  return Json::object(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
}

// All but the model.
Json frame(bool by_bytes) {
  Json frame = Json::object({{"version", "1.0"},
                             {"truncation", nullptr},
                             {"padding", nullptr},
                             {"added_tokens", Json::array()},
                             {"normalizer", nullptr}});
  frame.set("pre_tokenizer",
            by_bytes ? Json::object({{"type", "Sequence"},
                                     {"pretokenizers", Json::array({split(kPreTokenPattern), byte_level()})}})
                     : split(kEveryCharacter));
  frame.set("post_processor", nullptr);
  frame.set("decoder", by_bytes ? byte_level() : Json::object({{"type", "Fuse"}}));
  return frame;
}

// A name, which stays whole where members are compared, for each id.
std::vector<std::string> token_names(const Tokenizer& tokenizer) {
  const std::vector<std::string> characters = byte_characters();
  std::vector<std::string> names;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string bytes = tokenizer.bytes_of(id);
    std::string& name = names.emplace_back();
    if (tokenizer.pairs() == nullptr) name = bytes;
    for (std::size_t i = 0; tokenizer.pairs() != nullptr && i < bytes.size(); ++i)
      name += characters[static_cast<unsigned char>(bytes[i])];
  }
  return names;
}

// Its vocabulary and merges are empty.
Json model_frame(bool by_bytes) {
  if (!by_bytes) return Json::object({{"type", "WordLevel"}, {"vocab", Json::object()}, {"unk_token", kUnknown}});
  return Json::object({{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", false},
                       {"vocab", Json::object()},
                       {"merges", Json::array()}});
}

Json model_of(const Tokenizer& tokenizer) {
  const std::vector<std::string> names = token_names(tokenizer);
  Json::Object vocabulary;
  for (std::size_t id = 0; id < names.size(); ++id) vocabulary.push_back({names[id], id});
  Json model = model_frame(tokenizer.pairs() != nullptr);
  model.set("vocab", Json::object(std::move(vocabulary)));
  if (tokenizer.pairs() == nullptr) return model;
  Json merges = Json::array();
  for (const auto& [left, right] : tokenizer.pairs()->merges())
    merges.push(text(names[static_cast<std::size_t>(left)], ' ', names[static_cast<std::size_t>(right)]));
  model.set("merges", std::move(merges));
  return model;
}

// "a b", or newer ["a", "b"].
std::pair<std::string, std::string> merge_names(const Json& merge) {
  if (merge.is_array() && merge.elements().size() == 2)
    return {merge.elements()[0].string(), merge.elements()[1].string()};
  const std::string& both = merge.string();
  const std::size_t space = both.find(' ');
  check<DataError>(space != std::string::npos, "the merge \"", both, "\" has no space between two tokens");
  return {both.substr(0, space), both.substr(space + 1)};
}

Tokenizer byte_pairs_of(const Json& model, const std::map<std::string, std::int64_t>& ids) {
  std::vector<BytePairs::Merge> merges;
  for (const Json& merge : model.at("merges").elements()) {
    const auto [left, right] = merge_names(merge);
    for (const std::string& name : {left, right})
      check<DataError>(ids.contains(name), "a merge joins \"", name, "\", which is not in the vocabulary");
    merges.push_back({static_cast<std::int32_t>(ids.at(left)), static_cast<std::int32_t>(ids.at(right))});
  }
  return Tokenizer::byte_pairs(BytePairs(merges));
}

// The characters in the order of their code points, as std::map keeps UTF-8.
Tokenizer characters_of(const std::map<std::string, std::int64_t>& ids) {
  std::string all;
  for (const auto& [character, id] : ids) all += character;
  const NamedText named[] = {{all, "its vocabulary"}};
  return Tokenizer::characters(named);
}

// null, false, 0, "" or []: what a member has that asks for nothing.
bool asks_nothing(const Json& value) {
  if (value.is_number()) return value.real() == 0;
  return value.is_null() || value == Json(false) || value == Json("") || value == Json::array();
}

// A file of others may ask for what normlab has not: dropout of merges, a token for what is unknown, a prefix.
void refuse_other_members(const Json& given, const Json& ours, std::string_view owner) {
  for (const Json::Member& member : given.members()) {
    if (member.name == "model" || member.name == "vocab" || member.name == "merges") continue;
    const Json* wanted = ours.find(member.name);
    check<DataError>((wanted && *wanted == member.value) || asks_nothing(member.value), owner, member.name, " is ",
                     member.value.line(), ", and normlab writes ", wanted ? wanted->line() : "none");
  }
}

Tokenizer tokenizer_of(const Json& root) {
  const Json& model = root.at("model");
  const std::string& type = model.at("type").string();
  check<DataError>(type == "BPE" || type == "WordLevel", "its model is ", type,
                   ", and normlab writes BPE or WordLevel");
  const Json expected = frame(type == "BPE");
  for (const Json::Member& member : expected.members())
    check<DataError>(root.at(member.name) == member.value, "its ", member.name, " is ", root.at(member.name).line(),
                     ", and normlab writes ", member.value.line());
  refuse_other_members(root, expected, "its ");
  refuse_other_members(model, model_frame(type == "BPE"), "its model's ");
  std::map<std::string, std::int64_t> ids;
  for (const Json::Member& member : model.at("vocab").members()) {
    const std::int64_t id = member.value.integer();
    check<DataError>(id >= 0 && id < INT32_MAX, "the id ", id, " of \"", member.name, "\" is no id");
    ids[member.name] = id;
  }
  Tokenizer tokenizer = type == "BPE" ? byte_pairs_of(model, ids) : characters_of(ids);
  const std::vector<std::string> names = token_names(tokenizer);
  check<DataError>(names.size() == ids.size(), "its vocabulary has ", ids.size(), " tokens, and its ",
                   type == "BPE" ? "bytes and merges make " : "characters are ", names.size());
  for (std::size_t id = 0; id < names.size(); ++id)
    check<DataError>(ids.contains(names[id]) && ids.at(names[id]) == static_cast<std::int64_t>(id), "\"", names[id],
                     "\" should have the id ", id, " in its vocabulary");
  return tokenizer;
}

}  // namespace

std::string tokenizer_json(const Tokenizer& tokenizer) {
  Json root = frame(tokenizer.pairs() != nullptr);
  root.set("model", model_of(tokenizer));
  return root.indented() + "\n";
}

Tokenizer read_tokenizer_json(std::string_view json, std::string_view name) {
  const Json root = parse_json(json, name);
  try {
    return tokenizer_of(root);
  } catch (const DataError& error) {
    throw DataError(
        text(name, ": is no tokenizer.json of normlab: ", error.what(), "; give one that `normlab export` wrote"));
  }
}

}  // namespace normlab
