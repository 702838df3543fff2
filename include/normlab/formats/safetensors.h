// Safetensors, the files of named tensors: an 8-byte length, a JSON header, the bytes (huggingface/safetensors, README
// "Format"). Read strictly: whatever is not exactly as that text says is refused with the file's name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes: the reference reader's cap

// The element types, in the order in which the format sorts tensors. What has no whole bytes (F4, F6) is refused.
enum class Dtype {
  BOOL,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64
};

std::string_view to_string(Dtype dtype);
std::int64_t byte_size(Dtype dtype);
std::optional<Dtype> parse_dtype(std::string_view name);

// A tensor in a file or on its way there; `bytes` row-major and little-endian, owned by someone else, unaligned.
struct StoredTensor {
  std::string name;
  Dtype dtype;
  std::vector<std::int64_t> shape;  // rank 0 and axes of size 0 are allowed
  std::string_view bytes;

  // The elements as T (double, float or std::int64_t), from F64, F32, I64 or I32, rounded where T is narrower.
  // DataError for other types, and from a number with a point to an integer.
  template <class T>
  std::vector<T> values() const;
};

StoredTensor stored(std::string name, std::vector<std::int64_t> shape, std::span<const float> values);
StoredTensor stored(std::string name, std::vector<std::int64_t> shape, std::span<const double> values);
StoredTensor stored(std::string name, std::vector<std::int64_t> shape, std::span<const std::int64_t> values);

using Metadata = std::map<std::string, std::string>;

// Replaces the file (see write_file): tensors by falling dtype, then by name, as the reference writer orders them.
void write_safetensors(const std::string& path, const Metadata& metadata, std::vector<StoredTensor> tensors);

// Likewise, with one entry more in the metadata, "crc32c": the CRC-32C of the whole file, as eight hexadecimal digits
// in lower case, computed with these digits as 0.
void write_checksummed(const std::string& path, const Metadata& metadata, std::vector<StoredTensor> tensors);

enum class Checksum { if_present, required };  // a wrong one is an error in both cases

// A file in memory. Copies share the bytes; the tensors' bytes live as long as one of them.
class Safetensors {
 public:
  // DataError with the file's name, what is wrong, and what to do; UserError and SystemError of read_file.
  static Safetensors read(const std::string& path, Checksum checksum = Checksum::if_present);
  // The same of a file's bytes; `path` is what messages call them.
  static Safetensors parse(std::string bytes, const std::string& path, Checksum checksum = Checksum::if_present);

  const std::string& path() const { return path_; }
  const Metadata& metadata() const { return metadata_; }                 // "crc32c" included
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // as they lie in the file

  const StoredTensor* find(std::string_view name) const;
  const StoredTensor& at(std::string_view name) const;         // DataError when missing, with the nearest name
  const std::string& metadata_at(std::string_view key) const;  // likewise

 private:
  std::string path_;
  std::shared_ptr<const std::string> bytes_;
  Metadata metadata_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace normlab
