// Safetensors: the reader with all its checks, and the writer.
#include "normlab/formats/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "normlab/base/check.h"
#include "normlab/base/did_you_mean.h"
#include "normlab/base/hash.h"
#include "normlab/formats/crc32c.h"
#include "normlab/formats/foreign_format.h"
#include "normlab/formats/json.h"
#include "normlab/host/files.h"

namespace normlab {
namespace {

constexpr std::string_view kMetadata = "__metadata__", kChecksum = "crc32c", kNoDigits = "00000000";
constexpr std::string_view kDamaged = "; the file is damaged or was cut short: take it from its source again";

// The bytes of a tensor, or nothing where they exceed 63 bits.
std::optional<std::int64_t> byte_count(Dtype dtype, std::span<const std::int64_t> shape) {
  std::int64_t count = byte_size(dtype);
  for (const std::int64_t axis : shape)
    if (__builtin_mul_overflow(count, axis, &count)) return std::nullopt;
  return count;
}

struct Range {
  std::int64_t begin, end;
};
using Entry = std::pair<StoredTensor, Range>;

Entry read_entry(const std::string& name, const Json& json) {
  for (const Json::Member& member : json.members())
    check<DataError>(member.name == "dtype" || member.name == "shape" || member.name == "data_offsets",
                     "a tensor has dtype, shape and data_offsets, and no \"", member.name, '"');
  const std::string& dtype_name = json.at("dtype").string();
  const std::optional<Dtype> dtype = parse_dtype(dtype_name);
  check<DataError>(dtype.has_value(), "unsupported dtype ", dtype_name, "; convert the tensor to F32");
  std::vector<std::int64_t> shape;
  for (const Json& axis : json.at("shape").elements()) {
    shape.push_back(axis.integer());
    check<DataError>(shape.back() >= 0, "an axis of ", shape.back(), " elements");
  }
  const Json::Array& offsets = json.at("data_offsets").elements();
  check<DataError>(offsets.size() == 2, "data_offsets needs two numbers, found ", offsets.size());
  const Range range{offsets[0].integer(), offsets[1].integer()};
  check<DataError>(0 <= range.begin && range.begin <= range.end, "data_offsets [", range.begin, ", ", range.end,
                   "] is no range");
  const std::optional<std::int64_t> needed = byte_count(*dtype, shape);
  check<DataError>(needed.has_value(), "its shape needs more than 2^63 bytes");
  check<DataError>(*needed == range.end - range.begin, "dtype and shape need ", *needed, " bytes, but data_offsets [",
                   range.begin, ", ", range.end, "] hold ", range.end - range.begin);
  return {StoredTensor{name, *dtype, std::move(shape), {}}, range};
}

// Gives the tensors their bytes, in the order of the file; the ranges must cover `data` without hole and overlap.
std::vector<StoredTensor> place(std::vector<Entry> entries, std::string_view data) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.second.begin, a.second.end) < std::tie(b.second.begin, b.second.end);
  });
  std::vector<StoredTensor> tensors;
  std::size_t at = 0;
  for (auto& [tensor, range] : entries) {
    const auto begin = static_cast<std::size_t>(range.begin), end = static_cast<std::size_t>(range.end);
    check<DataError>(begin == at, "tensor ", tensor.name, " begins at byte ", begin,
                     " of the data, but the one before it ends at ", at, begin < at ? ": an overlap" : ": a hole",
                     kDamaged);
    check<DataError>(end <= data.size(), "tensor ", tensor.name, " ends at byte ", end, " of the data, which has ",
                     data.size(), kDamaged);
    tensor.bytes = data.substr(begin, end - begin);
    at = end;
    tensors.push_back(std::move(tensor));
  }
  check<DataError>(at == data.size(), "the tensors end at byte ", at, " of the data, which has ", data.size(),
                   kDamaged);
  return tensors;
}

// The header, once its length is known to lie within the file.
std::string_view header_of(std::string_view file) {
  check<DataError>(file.size() >= 8, "has ", file.size(), " bytes, and safetensors have at least 10", kDamaged);
  std::uint64_t length;
  std::memcpy(&length, file.data(), 8);
  check<DataError>(length <= kMaxSafetensorsHeader, "the first 8 bytes say that the header has ",
                   std::to_string(length), " bytes, and at most ", kMaxSafetensorsHeader,
                   " are allowed; is this a safetensors file? If so, it is damaged: take it from its source again");
  check<DataError>(length <= file.size() - 8, "the header should have ", length, " bytes, but only ", file.size() - 8,
                   " follow", kDamaged);
  return file.substr(8, static_cast<std::size_t>(length));
}

std::string hex8(std::uint32_t value) { return hexadecimal(std::uint64_t{value} << 32, 8); }

// Where the eight digits of the checksum stand. Inside a text the quotes of the key would follow backslashes, so
// nothing but the key itself looks like it.
std::size_t place_of_digits(std::string_view bytes) {
  const std::string key = text('"', kChecksum, "\":\"");
  const std::size_t at = bytes.find(key);
  return at == std::string_view::npos ? at : at + key.size();
}

void verify_checksum(std::string_view file, std::string_view header, const std::string& digits) {
  const std::size_t in_header = place_of_digits(header), at = in_header + 8;
  check<DataError>(in_header != std::string_view::npos && file.substr(at, 8) == digits, "the checksum ", digits,
                   " is not where it should be", kDamaged);
  const std::uint32_t crc = crc32c(file.substr(at + 8), crc32c(kNoDigits, crc32c(file.substr(0, at))));
  check<DataError>(hex8(crc) == digits, "the checksum of its bytes is ", hex8(crc), ", and it should be ", digits,
                   kDamaged);
}

Metadata read_metadata(const Json& json) {
  Metadata metadata;
  for (const Json::Member& member : json.members()) metadata[member.name] = member.value.string();
  return metadata;
}

// Length and header, in the order of `tensors`.
std::string header_bytes(const Metadata& metadata, std::span<const StoredTensor> tensors) {
  Json::Object header;
  if (!metadata.empty()) {
    Json::Object pairs;
    for (const auto& [key, value] : metadata) pairs.push_back({key, value});
    header.push_back({std::string(kMetadata), Json::object(std::move(pairs))});
  }
  std::size_t at = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::size_t end = at + tensor.bytes.size();
    header.push_back({tensor.name, Json::object({{"dtype", to_string(tensor.dtype)},
                                                 {"shape", tensor.shape},
                                                 {"data_offsets", Json::array({at, end})}})});
    at = end;
  }
  std::string json = Json::object(std::move(header)).line();
  json.append((8 - json.size() % 8) % 8, ' ');  // the data begin at a multiple of 8
  const std::uint64_t length = json.size();
  check(length <= kMaxSafetensorsHeader, "safetensors: a header of ", length, " bytes, and at most ",
        kMaxSafetensorsHeader, " are allowed");
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + json;
}

void write(const std::string& path, const Metadata& metadata, std::vector<StoredTensor> tensors, bool checksummed) {
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(b.dtype, a.name) < std::tie(a.dtype, b.name);
  });
  std::set<std::string_view> names{kMetadata};
  for (const StoredTensor& tensor : tensors) {
    check(byte_count(tensor.dtype, tensor.shape) == static_cast<std::int64_t>(tensor.bytes.size()),
          "safetensors: ", tensor.name, " has ", tensor.bytes.size(), " bytes, which do not fit its shape");
    check(names.insert(tensor.name).second, "safetensors: the name ", tensor.name, " is taken");
  }
  std::string header = header_bytes(metadata, tensors);
  std::vector<std::string_view> parts{header};
  for (const StoredTensor& tensor : tensors) parts.push_back(tensor.bytes);
  if (checksummed) {
    std::uint32_t crc = 0;
    for (const std::string_view part : parts) crc = crc32c(part, crc);
    header.replace(place_of_digits(header), 8, hex8(crc));
  }
  write_file(path, parts);
}

}  // namespace

Safetensors Safetensors::read(const std::string& path, Checksum checksum) {
  return parse(read_file(path), path, checksum);
}

Safetensors Safetensors::parse(std::string content, const std::string& path, Checksum checksum) {
  Safetensors file;
  file.path_ = path;
  file.bytes_ = std::make_shared<const std::string>(std::move(content));
  const std::string_view bytes = *file.bytes_;
  if (bytes.size() > 8 && bytes[8] != '{') refuse_foreign(bytes, path, "safetensors");
  std::string place_in_file = text(path, ": ");
  std::string_view advice;  // where the message itself has none
  try {
    const std::string_view header = header_of(bytes);
    // A checkpoint is a file of ours: nothing is wrong with its header unless it was damaged.
    if (checksum == Checksum::required) advice = kDamaged;
    std::vector<Entry> entries;
    const Json root = parse_json(header, "header");
    for (const auto& [name, json] : root.members()) {
      place_in_file = text(path, ": ", name, ": ");
      if (name == kMetadata)
        file.metadata_ = read_metadata(json);
      else
        entries.push_back(read_entry(name, json));
    }
    place_in_file = text(path, ": ");
    advice = "";
    file.tensors_ = place(std::move(entries), bytes.substr(8 + header.size()));
    const auto digits = file.metadata_.find(std::string(kChecksum));
    check<DataError>(checksum == Checksum::if_present || digits != file.metadata_.end(), "has no ", kChecksum,
                     " in its metadata, as every checkpoint of normlab has; name a checkpoint, or take the file from "
                     "its source again");
    if (digits != file.metadata_.end()) verify_checksum(bytes, header, digits->second);
  } catch (const DataError& error) {
    throw DataError(text(place_in_file, error.what(), advice));
  }
  for (std::size_t i = 0; i < file.tensors_.size(); ++i) file.index_[file.tensors_[i].name] = i;
  return file;
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

const StoredTensor& Safetensors::at(std::string_view name) const {
  if (const StoredTensor* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const StoredTensor& tensor : tensors_) names.push_back(tensor.name);
  throw DataError(text(path_, ": has no tensor ", name, did_you_mean(name, names)));
}

const std::string& Safetensors::metadata_at(std::string_view key) const {
  const auto found = metadata_.find(std::string(key));
  check<DataError>(found != metadata_.end(), path_, ": has no \"", key,
                   "\" in its metadata; was it written by normlab?");
  return found->second;
}

void write_safetensors(const std::string& path, const Metadata& metadata, std::vector<StoredTensor> tensors) {
  write(path, metadata, std::move(tensors), false);
}

void write_checksummed(const std::string& path, const Metadata& metadata, std::vector<StoredTensor> tensors) {
  Metadata with_checksum = metadata;
  with_checksum[std::string(kChecksum)] = kNoDigits;
  write(path, with_checksum, std::move(tensors), true);
}

}  // namespace normlab
