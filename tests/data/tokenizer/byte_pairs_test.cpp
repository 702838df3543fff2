// Byte-pair encoding and tokenizer.json: merges by hand, ties, round trips of any bytes, what is refused.
#include <string>
#include <vector>

#include "catch.h"
#include "normlab/base/check.h"
#include "normlab/base/rng.h"
#include "normlab/data/dataset.h"
#include "normlab/data/tokenizer/tokenizer_json.h"
#include "normlab/formats/json.h"
#include "normlab/host/files.h"
#include "temporary.h"

using namespace normlab;

namespace {

using Ids = std::vector<std::int32_t>;
using Merges = std::vector<BytePairs::Merge>;

BytePairs trained_on(std::string_view text, std::int64_t vocab_size) {
  const std::string_view texts[] = {text};
  return BytePairs::train(texts, vocab_size);
}

std::vector<std::string> pre_tokens(std::string_view text) {
  std::vector<std::string> out;
  for (; !text.empty(); text.remove_prefix(out.back().size())) out.emplace_back(text.substr(0, pre_token_length(text)));
  return out;
}

Ids encoded(const BytePairs& pairs, std::string_view text) {
  Ids ids;
  pairs.encode(text, ids);
  return ids;
}

Tokenizer characters_of(std::string_view text) {
  const NamedText named[] = {{text, "text"}};
  return Tokenizer::characters(named);
}

}  // namespace

TEST_CASE("bpe: pre-tokens are words with the space before them; a newline stands alone", "[tokenizer]") {
  using Pieces = std::vector<std::string>;
  CHECK(pre_tokens("one two,three  four") == Pieces{"one", " two", ",", "three", " ", " four"});
  CHECK(pre_tokens("it's 1984!\n\n  x") == Pieces{"it", "'", "s", " 1984", "!", "\n", "\n", " ", " x"});
  CHECK(pre_tokens("a \n\t\tb  \n ") == Pieces{"a", " ", "\n", "\t", "\t", "b", "  ", "\n", " "});
  CHECK(pre_tokens("\xC3\xA9t\xC3\xA9\xFF \x80") == Pieces{"\xC3\xA9t\xC3\xA9\xFF", " \x80"});
}

TEST_CASE("bpe: the most frequent pair first; among equals the lower left id, then the lower right one",
          "[tokenizer]") {
  // aaabdaaabac: aa occurs 4 times. Then with Z = aa, ZabdZabac: Za and ab occur twice, and a < Z. Then ZYdZYac.
  CHECK(trained_on("aaabdaaabac", 259).merges() == Merges{{'a', 'a'}, {'a', 'b'}, {256, 257}});
  CHECK(trained_on("bxbyaxay\nbxbyaxay", 257).merges() == Merges{{'a', 'x'}});  // before ay bx by, equally frequent
  CHECK_THROWS_AS(trained_on("aaabdaaabac", 260), ConfigError);
  CHECK_THROWS_WITH(trained_on("aaabdaaabac", 260),
                    ContainsSubstring("data.vocab_size: 260") &&
                        ContainsSubstring("when there are 259, no two neighbours within a word"));
}

TEST_CASE("bpe: the earliest merge first, from left to right", "[tokenizer]") {
  const BytePairs pairs(Merges{{'b', 'c'}, {'a', 'b'}, {'a', 'a'}});  // 256 bc, 257 ab, 258 aa
  CHECK(encoded(pairs, "abc") == Ids{'a', 256});
  CHECK(encoded(pairs, "aaaaab") == Ids{258, 258, 257});
  CHECK(encoded(pairs, "ab ab") == Ids{257, ' ', 257});
}

TEST_CASE("bpe: two merges that make the same bytes make one token", "[tokenizer]") {
  const BytePairs pairs(Merges{{'a', 'b'}, {'b', 'c'}, {256, 'c'}, {'a', 257}});
  CHECK(pairs.vocab_size() == 259);
  CHECK(encoded(pairs, "abc") == Ids{258});
}

TEST_CASE("bpe: every byte sequence comes back, and a token never crosses a newline", "[tokenizer]") {
  const BytePairs pairs =
      trained_on("the cat and the hat \xC3\xA9\xC3\xA9 the \xF0\x9F\x98\x80\xF0\x9F\x98\x80 the", 264);
  const Tokenizer tokenizer = Tokenizer::byte_pairs(pairs);
  Random random(1, "bytes");
  std::string text = "the cat\nthe\n\n\xF0\x9F\x98\x80\xF0\x9F";
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i % 3 == 0 ? "the a\n"[random.below(6)] : random.below(256));
  std::string back;
  for (const std::int32_t id : tokenizer.encode(text)) {
    back += tokenizer.bytes_of(id);
    CHECK((id == tokenizer.newline() || tokenizer.bytes_of(id).find('\n') == std::string::npos));
  }
  CHECK(back == text);
  CHECK(tokenizer.encode(text).size() < text.size());
  CHECK(Tokenizer::load(tokenizer.save()) == tokenizer);
}

TEST_CASE("bpe: a long word takes no more time than many short ones", "[tokenizer]") {
  const BytePairs pairs = trained_on(std::string(1000, 'a'), 262);
  CHECK(encoded(pairs, std::string(300000, 'a')).size() == 300000 / 64 + 1);  // 300000 = 4687 x 64 + 32
}

TEST_CASE("bpe: text streams in whole characters", "[tokenizer]") {
  const Tokenizer tokenizer = Tokenizer::byte_pairs(BytePairs(Merges{{0x82, 0xAC}, {'a', 0xE2}}));
  StreamDecoder decoder(tokenizer);
  CHECK(decoder.push(257) == "a");
  CHECK(decoder.push(256) == "\xE2\x82\xAC");
  CHECK(decoder.push(0xE2).empty());
  CHECK(decoder.finish() == "\xEF\xBF\xBD");
}

TEST_CASE("bpe: damaged merges are refused", "[tokenizer]") {
  CHECK_THROWS_WITH(BytePairs(Merges{{'a', 256}}), ContainsSubstring("merge 0 joins token 256, and there are 256"));
  CHECK_THROWS_WITH(BytePairs(Merges{{'a', 'b'}, {'a', 'b'}}), ContainsSubstring("twice"));
  Merges doubling{{'a', 'a'}};
  for (std::int32_t id = 256; id < 290; ++id) doubling.push_back({id, id});
  CHECK_THROWS_WITH(BytePairs(doubling), ContainsSubstring("all tokens together may have 67108864"));
  CHECK_THROWS_WITH(Tokenizer::load("bpe:97 98,x"), ContainsSubstring("merge 1 is 'x'"));
  CHECK_THROWS_AS(Tokenizer::load("bpe:97 -1"), DataError);
}

TEST_CASE("tokenizer.json: each kind comes back, as it was written", "[tokenizer]") {
  const BytePairs pairs = trained_on("the cat, the hat, the mat; the end", 260);
  for (const Tokenizer& tokenizer :
       {Tokenizer::byte_pairs(pairs), Tokenizer::bytes(), characters_of("\n ab\"\xC3\xA9\xF0\x9F\x98\x80")})
    CHECK(read_tokenizer_json(tokenizer_json(tokenizer), "file") == tokenizer);

  const Json json = parse_json(tokenizer_json(Tokenizer::byte_pairs(pairs)), "json");
  const Json& vocab = json.at("model").at("vocab");
  CHECK(vocab.at("\xC4\xA0").integer() == ' ');   // the byte's character in GPT-2: U+0120,
  CHECK(vocab.at("\xC4\x8A").integer() == '\n');  // U+010A,
  CHECK(vocab.at("\xC4\xA1").integer() == 0x7F);  // U+0121,
  CHECK(vocab.at("\xC5\x83").integer() == 0xAD);  // U+0143,
  CHECK(vocab.at("\xC3\xBF").integer() == 0xFF);  // itself
  CHECK(json.at("model").at("merges").elements()[0].string() == "h e");
}

TEST_CASE("tokenizer.json: merges as pairs are read too; what normlab did not write is refused", "[tokenizer]") {
  std::string json = tokenizer_json(Tokenizer::byte_pairs(BytePairs(Merges{{'a', 'b'}})));
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string out = json;
    const std::size_t at = out.find(from);
    REQUIRE(at != std::string::npos);
    return out.replace(at, from.size(), to);
  };
  CHECK(read_tokenizer_json(changed("\"a b\"", "[\"a\", \"b\"]"), "file").vocab_size() == 257);
  CHECK_THROWS_WITH(
      read_tokenizer_json(changed("\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}"), "t.json"),
      ContainsSubstring("t.json: is no tokenizer.json of normlab: its normalizer is {\"type\":\"NFC\"}"));
  CHECK_THROWS_WITH(read_tokenizer_json(changed("\"a b\"", "\"a zz\""), "t.json"), ContainsSubstring("\"zz\""));
  CHECK_THROWS_WITH(read_tokenizer_json(changed("\"ab\": 256", "\"ab\": 257"), "t.json"),
                    ContainsSubstring("\"ab\" should have the id 256"));
  CHECK_THROWS_WITH(read_tokenizer_json(changed("\"BPE\"", "\"Unigram\""), "t.json"),
                    ContainsSubstring("its model is Unigram"));
  CHECK_THROWS_WITH(read_tokenizer_json("{", "t.json"), ContainsSubstring("t.json:1:2"));
}

TEST_CASE("tokenizer.json: a member that would change the tokens, and that normlab has not, is refused by name",
          "[tokenizer]") {
  const std::string pairs = tokenizer_json(Tokenizer::byte_pairs(BytePairs(Merges{{'a', 'b'}})));
  const NamedText abc[] = {{"abc", "text"}};
  const std::string words = tokenizer_json(Tokenizer::characters(abc));
  const auto read = [](std::string json, std::string_view from, std::string_view to) {
    const std::size_t at = json.find(from);
    REQUIRE(at != std::string::npos);
    return read_tokenizer_json(json.replace(at, from.size(), to), "t.json").vocab_size();
  };
  CHECK(read(pairs, "\"dropout\": null", "\"dropout\": 0.0") == 257);
  CHECK(read(pairs, "\"end_of_word_suffix\": null", "\"end_of_word_suffix\": \"\"") == 257);
  CHECK(read(pairs, "\"ignore_merges\": false,", "") == 257);
  CHECK(read(words, "\"unk_token\": \"<unk>\"", "\"unk_token\": null") == 3);
  const std::string wrong = "t.json: is no tokenizer.json of normlab: its ";
  CHECK_THROWS_WITH(read(pairs, "\"dropout\": null", "\"dropout\": 0.1"),
                    ContainsSubstring(wrong + "model's dropout is 0.1, and normlab writes null"));
  CHECK_THROWS_WITH(read(pairs, "\"unk_token\": null", "\"unk_token\": \"a\""),
                    ContainsSubstring(wrong + "model's unk_token is \"a\", and normlab writes null"));
  CHECK_THROWS_WITH(read(words, "\"unk_token\": \"<unk>\"", "\"unk_token\": \"a\""),
                    ContainsSubstring(wrong + "model's unk_token is \"a\", and normlab writes \"<unk>\""));
  CHECK_THROWS_WITH(read(pairs, "\"ignore_merges\": false", "\"ignore_merges\": true"),
                    ContainsSubstring(wrong + "model's ignore_merges is true, and normlab writes false"));
  CHECK_THROWS_WITH(read(pairs, "\"dropout\": null", "\"max_input_chars_per_word\": 10"),
                    ContainsSubstring(wrong + "model's max_input_chars_per_word is 10, and normlab writes none"));
  CHECK_THROWS_WITH(read(pairs, "\"normalizer\": null", "\"normalizer\": null, \"lowercase\": true"),
                    ContainsSubstring(wrong + "lowercase is true, and normlab writes none"));
}

TEST_CASE("data.tokenizer: bpe is trained on the training part; a tokenizer.json gives the same tokens",
          "[tokenizer]") {
  const TemporaryDirectory directory;
  DataConfig config;
  config.size = 20000;
  const Dataset by_character = Dataset::load(config, 16, 1);
  config.tokenizer = "bpe";
  config.vocab_size = 300;
  const Dataset by_pairs = Dataset::load(config, 16, 1);
  CHECK(by_pairs.tokenizer().vocab_size() == 300);
  CHECK(by_pairs.facts().validation_tokens < by_character.facts().validation_tokens / 3 * 2);
  // The text's own -ln p is the same, whatever the tokens; that of the first token, which is no target, aside.
  const auto nats = [](const Dataset& data) {
    return *data.facts().floor * static_cast<double>(data.facts().validation_tokens - 1);
  };
  CHECK(nats(by_pairs) == Approx(nats(by_character)).margin(10));
  CHECK(by_pairs.facts().bytes_per_token * static_cast<double>(by_pairs.facts().validation_tokens) ==
        Approx(static_cast<double>(by_character.facts().validation_tokens)));

  config.tokenizer = directory.path("tokenizer.json");
  write_file(config.tokenizer, tokenizer_json(by_pairs.tokenizer()));
  const Dataset again = Dataset::load(config, 16, 1);
  CHECK(again.tokenizer() == by_pairs.tokenizer());
  CHECK(again.train_batch(1, 0, 2).tokens == by_pairs.train_batch(1, 0, 2).tokens);
  config.tokenizer = "bpes";
  CHECK_THROWS_WITH(Dataset::load(config, 16, 1), ContainsSubstring("did you mean 'bpe'?"));
}
