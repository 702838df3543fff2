// Safetensors and the checksum of checkpoints.
#include "normlab/formats/safetensors.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "catch.h"
#include "normlab/base/check.h"
#include "normlab/formats/crc32c.h"
#include "normlab/host/files.h"

using namespace normlab;

namespace {

// A file name of this process's own, and no file of that name afterwards.
struct TemporaryFile {
  std::string path =
      (std::filesystem::temp_directory_path() / ("normlab_" + std::to_string(::getpid()) + ".safetensors")).string();
  ~TemporaryFile() { std::filesystem::remove(path); }
};

// The file of a header and data, made by hand.
std::string file_of(const std::string& header, const std::string& data, std::uint64_t length) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes + header + data;
}
std::string file_of(const std::string& header, const std::string& data) { return file_of(header, data, header.size()); }

Safetensors read_bytes(const std::string& bytes, Checksum checksum = Checksum::if_present) {
  const TemporaryFile file;
  std::ofstream(file.path, std::ios::binary) << bytes;  // not flushed to the disk: there are thousands
  return Safetensors::read(file.path, checksum);
}

std::string error_of(const std::string& bytes, Checksum checksum = Checksum::if_present) {
  try {
    read_bytes(bytes, checksum);
  } catch (const DataError& error) {
    return error.what();
  }
  return "read without an error";
}

}  // namespace

TEST_CASE("crc-32c has the published values", "[formats]") {
  CHECK(crc32c("123456789") == 0xE3069283u);
  CHECK(crc32c("abcd") == 0x92C80A31u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAu);  // RFC 3720, B.4, as the three below
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43u);
  std::string rising(32, '\0');
  std::iota(rising.begin(), rising.end(), '\0');
  CHECK(crc32c(rising) == 0x46DD794Eu);
  CHECK(crc32c(std::string(rising.rbegin(), rising.rend())) == 0x113FDB5Cu);
  CHECK(crc32c("") == 0);
  for (std::size_t cut = 0; cut <= rising.size(); ++cut) {
    CAPTURE(cut);
    CHECK(crc32c(rising.substr(cut), crc32c(rising.substr(0, cut))) == 0x46DD794Eu);
  }
}

TEST_CASE("a safetensors file made by hand is read", "[formats]") {
  // w: [2, 1] of 1.5f (0x3FC00000) and -2.0f (0xC0000000); s: rank 0, int64 -2; e: no element. Spaces may surround it.
  const std::string header =
      R"( {"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]},)"
      R"("e":{"shape":[0,3],"dtype":"F64","data_offsets":[16,16]},"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}  )";
  const std::string data("\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x00\x00\xC0\x3F\x00\x00\x00\xC0", 16);
  const Safetensors file = read_bytes(file_of(header, data));
  CHECK(file.metadata() == Metadata{{"format", "pt"}});
  CHECK(file.tensors().size() == 3);
  CHECK(file.at("w").shape == std::vector<std::int64_t>{2, 1});
  CHECK(file.at("w").dtype == Dtype::F32);
  CHECK(file.at("w").values<float>() == std::vector<float>{1.5f, -2.0f});
  CHECK(file.at("w").values<double>() == std::vector<double>{1.5, -2.0});
  CHECK(file.at("s").shape.empty());
  CHECK(file.at("s").values<std::int64_t>() == std::vector<std::int64_t>{-2});
  CHECK(file.at("s").values<double>() == std::vector<double>{-2.0});
  CHECK(file.at("e").values<double>().empty());
  CHECK(file.find("v") == nullptr);
  CHECK_THROWS_WITH(file.at("W2"), ContainsSubstring("has no tensor W2"));
  CHECK_THROWS_WITH(file.metadata_at("step"), ContainsSubstring("has no \"step\" in its metadata"));
  CHECK_THROWS_WITH(file.at("w").values<std::int64_t>(), "tensor w holds F32, but whole numbers are needed");
  CHECK(read_bytes(file_of("{}", "")).tensors().empty());
}

TEST_CASE("what is written has the bytes that the format says, and reads back", "[formats]") {
  const TemporaryFile file;
  const std::vector<float> weights{1.5f, -2.0f};
  const std::vector<std::int64_t> step{-2};
  const std::vector<double> empty;
  const char flag = 1;
  write_safetensors(file.path, {{"b", "\"2\""}, {"a", "1"}},
                    {stored("w", {2, 1}, weights),
                     {"flag", Dtype::BOOL, {1}, {&flag, 1}},
                     stored("a", {1, 2}, weights),
                     stored("s", {}, step),
                     stored("e", {0, 3}, empty)});
  const std::string header =
      R"({"__metadata__":{"a":"1","b":"\"2\""},"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("e":{"dtype":"F64","shape":[0,3],"data_offsets":[8,8]},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]},)"
      R"("w":{"dtype":"F32","shape":[2,1],"data_offsets":[16,24]},"flag":{"dtype":"BOOL","shape":[1],"data_offsets":[24,25]}})";
  const std::string floats("\x00\x00\xC0\x3F\x00\x00\x00\xC0", 8);
  const std::string data = "\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF" + floats + floats + "\x01";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  CHECK(read_file(file.path) == file_of(padded, data));
  const Safetensors read = Safetensors::read(file.path);
  CHECK(read.metadata_at("b") == "\"2\"");
  CHECK(read.at("w").values<float>() == weights);
  CHECK(read.at("flag").bytes == std::string_view(&flag, 1));
  CHECK_THROWS_AS(read.at("flag").values<double>(), DataError);
}

TEST_CASE("a writer's mistake is told before a byte is written", "[formats]") {
  const TemporaryFile file;
  const std::vector<float> two{1, 2};
  CHECK_THROWS_AS(write_safetensors(file.path, {}, {stored("w", {3}, two)}), ShapeError);
  CHECK_THROWS_AS(write_safetensors(file.path, {}, {stored("w", {2}, two), stored("w", {1, 2}, two)}), ShapeError);
  CHECK_THROWS_AS(write_safetensors(file.path, {}, {stored("__metadata__", {2}, two)}), ShapeError);
  CHECK(!std::filesystem::exists(file.path));
}

TEST_CASE("every malformed safetensors file is refused, by name and with the reason", "[formats]") {
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
  };
  const std::string w = "{\"w\":" + entry("F32", "[2]", "[0,8]") + "}", eight(8, 'x');
  CHECK(read_bytes(file_of(w, eight)).tensors().size() == 1);
  const auto pair = [&](const std::string& first, const std::string& second) {
    return "{\"a\":" + entry("U8", "[4]", first) + ",\"b\":" + entry("U8", "[4]", second) + "}";
  };
  const auto [bytes, message] = GENERATE_COPY(table<std::string, std::string>({
      {"", "has 0 bytes, and safetensors have at least 10"},
      {"1234567", "has 7 bytes"},
      {file_of(w, eight, 100'000'001), "the header has 100000001 bytes, and at most 100000000 are allowed"},
      {file_of(w, eight, ~std::uint64_t{0}), "18446744073709551615 bytes"},
      {file_of(w, eight, 1000), "the header should have 1000 bytes, but only"},
      {file_of("[]", ""), "expected an object, found an array"},
      {file_of("x", ""), "header:1:1: expected a value"},
      {file_of("{\"w\": \xFF}", ""), "header:1:7:"},
      {file_of(w + "{}", eight), "expected the end of the document"},
      {file_of("{\"w\":1}", ""), "w: expected an object, found the number 1"},
      {file_of("{\"w\":{}}", ""), "w: expected a member \"dtype\", found none"},
      {file_of("{\"w\":" + entry("F4", "[2]", "[0,1]") + "}", "x"), "w: unsupported dtype F4"},
      {file_of("{\"w\":" + entry("F32", "2", "[0,8]") + "}", eight), "w: expected an array, found the number 2"},
      {file_of("{\"w\":" + entry("F32", "[2.0]", "[0,8]") + "}", eight), "w: expected a whole number"},
      {file_of("{\"w\":" + entry("F32", "[-2]", "[0,8]") + "}", eight), "w: an axis of -2 elements"},
      {file_of("{\"w\":" + entry("F32", "[2]", "[0]") + "}", eight), "w: data_offsets needs two numbers, found 1"},
      {file_of("{\"w\":" + entry("F32", "[2]", "[8,0]") + "}", eight), "w: data_offsets [8, 0] is no range"},
      {file_of("{\"w\":" + entry("F32", "[2]", "[-8,0]") + "}", eight), "w: data_offsets [-8, 0] is no range"},
      {file_of("{\"w\":" + entry("F32", "[3]", "[0,8]") + "}", eight), "w: dtype and shape need 12 bytes"},
      // 2^62 floats are 2^64 bytes, which 64 bits would show as 0
      {file_of("{\"w\":" + entry("F32", "[4611686018427387904]", "[0,0]") + "}", ""), "needs more than 2^63 bytes"},
      {file_of("{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", "x"), "and no \"x\""},
      {file_of("{\"w\":" + entry("U8", "[1]", "[0,1]") + ",\"w\":" + entry("U8", "[1]", "[1,2]") + "}", "xx"),
       "the name \"w\" stands here a second time"},
      {file_of(pair("[0,4]", "[0,4]"), "xxxx"),
       "tensor b begins at byte 0 of the data, but the one before it ends at 4: an overlap"},
      {file_of(pair("[0,4]", "[3,7]"), "xxxxxxx"), ": an overlap"},
      {file_of(pair("[0,4]", "[5,9]"), "xxxxxxxxx"), ": a hole"},
      {file_of(pair("[1,5]", "[5,9]"), "xxxxxxxxx"),
       "tensor a begins at byte 1 of the data, but the one before it ends at 0: a hole"},
      {file_of(w, eight + "x"), "the tensors end at byte 8 of the data, which has 9"},
      {file_of(w, "xxxxxxx"), "tensor w ends at byte 8 of the data, which has 7"},
      {file_of("{}", "x"), "the tensors end at byte 0 of the data, which has 1"},
      {file_of("{\"__metadata__\":{\"step\":1}}", ""), "__metadata__: expected a text, found the number 1"},
      {file_of("{\"__metadata__\":[]}", ""), "__metadata__: expected an object"},
  }));
  CHECK_THAT(error_of(bytes), ContainsSubstring(message) && ContainsSubstring(".safetensors: "));
}

TEST_CASE("the checksum of a checkpoint finds every flipped bit and every cut", "[formats]") {
  const TemporaryFile file;
  const std::vector<float> weights{1.5f, -2.0f};
  // The metadata hold a text that looks like the checksum's key.
  write_checksummed(file.path, {{"a", R"("crc32c":"00000000")"}}, {stored("w", {2}, weights)});
  const std::string bytes = read_file(file.path);
  const Safetensors read = Safetensors::read(file.path, Checksum::required);
  CHECK(read.at("w").values<float>() == weights);

  // The digits, by the rule: the checksum of all bytes with these eight as '0'.
  const std::string digits = read.metadata_at("crc32c");
  std::string zeroed = bytes;
  zeroed.replace(bytes.find(digits), 8, "00000000");
  char expected[9];
  std::snprintf(expected, sizeof expected, "%08x", static_cast<unsigned>(crc32c(zeroed)));
  CHECK(digits == expected);

  std::size_t undetected = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    if (error_of(flipped, Checksum::required).find(".safetensors: ") == std::string::npos) ++undetected;
  }
  CHECK(undetected == 0);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK_THAT(error_of(bytes.substr(0, size), Checksum::required), ContainsSubstring(".safetensors: "));
  }
  std::string other = bytes;
  other.back() = 'x';
  CHECK_THAT(error_of(other),
             ContainsSubstring("the checksum of its bytes is ") && ContainsSubstring("it should be " + digits));

  write_safetensors(file.path, {}, {stored("w", {2}, weights)});
  CHECK_THROWS_WITH(Safetensors::read(file.path, Checksum::required),
                    ContainsSubstring("has no crc32c in its metadata"));
}
