// Tokenizers: ids, messages, bytes that are not UTF-8, streaming output.
#include "normlab/data/tokenizer/tokenizer.h"

#include <string>
#include <vector>

#include "catch.h"
#include "normlab/base/check.h"
#include "normlab/base/utf8.h"

using namespace normlab;

namespace {

using Ids = std::vector<std::int32_t>;

Tokenizer characters_of(std::string_view text) {
  const NamedText named[] = {{text, "'book.txt'"}};
  return Tokenizer::characters(named);
}

std::string streamed(const Tokenizer& tokenizer, const Ids& ids) {
  StreamDecoder decoder(tokenizer);
  std::string out;
  for (const std::int32_t id : ids) out += decoder.push(id);
  return out + decoder.finish();
}

}  // namespace

TEST_CASE("char: the characters of the text in order of their code points", "[tokenizer]") {
  const Tokenizer tokenizer = characters_of(
      "b\na\xC3\xA9"
      "b\xF0\x9F\x98\x80");  // b \n a é b 😀
  CHECK(tokenizer.vocab_size() == 5);
  CHECK(tokenizer.encode("\nab\xC3\xA9\xF0\x9F\x98\x80") == Ids{0, 1, 2, 3, 4});
  CHECK(tokenizer.decode(Ids{4, 3, 2, 1, 0}) ==
        "\xF0\x9F\x98\x80\xC3\xA9"
        "ba\n");
  CHECK(tokenizer.newline() == 0);
  CHECK(characters_of("ab").newline() == -1);
}

TEST_CASE("char: the vocabulary takes the characters of every text", "[tokenizer]") {
  const NamedText named[] = {{"ca", "one"}, {"ab", "two"}};
  CHECK(Tokenizer::characters(named).encode("abc") == Ids{0, 1, 2});
}

TEST_CASE("char: an unknown character is named with code point and position", "[tokenizer]") {
  const Tokenizer tokenizer = characters_of("abcd\xC3\xA9");
  CHECK_THROWS_AS(tokenizer.encode("\xCE\xA9"
                                   "d"),
                  DataError);
  CHECK_THROWS_WITH(
      tokenizer.encode("\xCE\xA9"
                       "d",
                       "--prompt"),
      ContainsSubstring("of the vocabulary: '\xCE\xA9' (U+03A9) once; the first is at byte 0; leave it out"));
  CHECK_THROWS_WITH(tokenizer.encode("d\xC3\xA9\n"), ContainsSubstring("'' (U+000A) once; the first is at byte 3;"));
  // All of them, the most frequent first, and 20 at most.
  CHECK_THROWS_WITH(characters_of("abc").encode("axbyyyczx", "'f'"),
                    "'f': 3 characters are not among the 3 of the vocabulary: 'y' (U+0079) 3 times, 'x' (U+0078) 2 "
                    "times, 'z' (U+007A) once; the first is at byte 1; leave them out, or train with "
                    "data.tokenizer=byte or bpe");
  CHECK_THROWS_WITH(characters_of("a").encode("ABCDEFGHIJKLMNOPQRSTUVW"),
                    ContainsSubstring("23 characters are not") && ContainsSubstring("'T' (U+0054) once and 3 more;"));
}

TEST_CASE("char: what is not UTF-8 is told by its byte", "[tokenizer]") {
  CHECK_THROWS_WITH(characters_of("ab\xFF"
                                  "c"),
                    ContainsSubstring("'book.txt': byte 2 is not UTF-8"));
  CHECK_THROWS_WITH(characters_of("ab\xC3"),
                    ContainsSubstring("byte 2 is not UTF-8 (a character is cut off at the end)"));
  CHECK_THROWS_WITH(characters_of("\xED\xA0\x80"), ContainsSubstring("byte 0"));      // a surrogate
  CHECK_THROWS_WITH(characters_of("a\xC0\xAF"), ContainsSubstring("byte 1"));         // overlong
  CHECK_THROWS_WITH(characters_of("\xF4\x90\x80\x80"), ContainsSubstring("byte 0"));  // above U+10FFFF
  CHECK_THROWS_WITH(characters_of("abc").encode("ab\x80"), ContainsSubstring("byte 2 is not UTF-8"));
  CHECK_THROWS_WITH(characters_of("ab\xFF"), ContainsSubstring("data.tokenizer=byte"));
}

TEST_CASE("byte: any bytes, id = byte", "[tokenizer]") {
  const Tokenizer tokenizer = Tokenizer::bytes();
  CHECK(tokenizer.vocab_size() == 256);
  CHECK(tokenizer.encode(std::string_view("a\xFF\0", 3)) == Ids{97, 255, 0});
  CHECK(tokenizer.decode(Ids{0xE2, 0x82, 0xAC}) == "\xE2\x82\xAC");
  CHECK(tokenizer.newline() == 10);
}

TEST_CASE("byte: only what is truly invalid becomes U+FFFD, one for each longest start of a character", "[tokenizer]") {
  const Tokenizer tokenizer = Tokenizer::bytes();
  // The Unicode standard's own example (section 3.9, table 3-11): 61 F1 80 80 E1 80 C2 62 80 63 80 BF 64.
  const Ids ids{0x61, 0xF1, 0x80, 0x80, 0xE1, 0x80, 0xC2, 0x62, 0x80, 0x63, 0x80, 0xBF, 0x64};
  const std::string mark(kReplacement);
  const std::string expected = "a" + mark + mark + mark + "b" + mark + "c" + mark + mark + "d";
  CHECK(tokenizer.decode(ids) == expected);
  CHECK(streamed(tokenizer, ids) == expected);
}

TEST_CASE("streaming holds an incomplete character back and completes it", "[tokenizer]") {
  const Tokenizer tokenizer = Tokenizer::bytes();
  StreamDecoder decoder(tokenizer);
  CHECK(decoder.push(0xE2).empty());
  CHECK(decoder.push(0x82).empty());
  CHECK(decoder.push(0xAC) == "\xE2\x82\xAC");
  CHECK(decoder.push(0xE2).empty());
  CHECK(decoder.push('x') == std::string(kReplacement) + "x");
  CHECK(decoder.push(0xF0).empty());
  CHECK(decoder.finish() == kReplacement);
  CHECK(decoder.finish().empty());
}

TEST_CASE("streaming gives the same as decoding at once, for any bytes", "[tokenizer]") {
  const Tokenizer tokenizer = Tokenizer::bytes();
  const std::int32_t interesting[] = {'a', 0x80, 0xBF, 0xC2, 0xE0, 0xA0, 0xED, 0x9F, 0xF0, 0x90, 0xF4, 0x8F, 0xFF};
  Ids ids;
  for (std::size_t i = 0; i < 3000; ++i) ids.push_back(interesting[(i * i * 7 + i / 13) % std::size(interesting)]);
  CHECK(streamed(tokenizer, ids) == tokenizer.decode(ids));
  CHECK(characters_of(tokenizer.decode(ids)).vocab_size() > 1);  // it is UTF-8
}

TEST_CASE("a tokenizer is saved as text and comes back", "[tokenizer]") {
  const Tokenizer characters = characters_of("\nhello \"\\ \xC3\xA9");
  CHECK(Tokenizer::load(characters.save()) == characters);
  CHECK(characters_of("ba").save() == "char:ab");
  CHECK(Tokenizer::load(Tokenizer::bytes().save()) == Tokenizer::bytes());
  CHECK_THROWS_WITH(Tokenizer::load("chars"), ContainsSubstring("'chars' is not a saved tokenizer"));
  CHECK_THROWS_WITH(Tokenizer::load("char:ba"), ContainsSubstring("U+0061 is out of order"));
  CHECK_THROWS_AS(Tokenizer::load("char:"), DataError);
}

TEST_CASE("an id outside of the vocabulary is the program's own mistake", "[tokenizer]") {
  CHECK_THROWS_AS(characters_of("ab").decode(Ids{2}), ShapeError);
  CHECK_THROWS_AS(Tokenizer::bytes().decode(Ids{-1}), ShapeError);
}
