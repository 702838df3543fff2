// Safetensors: tensors cover the data and have the bytes that their shapes ask for, and are equal when they are
// written, with a checksum, and read again; no file with another bit set is taken for that one.
#include "normlab/formats/safetensors.h"

#include "fuzz.h"
#include "normlab/host/files.h"

namespace normlab::fuzz {
namespace {

void look_at(const Safetensors& file, std::size_t size) {
  std::size_t bytes = 0;
  for (const StoredTensor& tensor : file.tensors()) {
    std::int64_t count = byte_size(tensor.dtype);
    for (const std::int64_t axis : tensor.shape) count *= axis;
    promise(count == static_cast<std::int64_t>(tensor.bytes.size()), "as many bytes as the shape asks for");
    promise(&file.at(tensor.name) == &tensor, "no name twice");
    accepted([&] { return tensor.values<double>(); });
    accepted([&] { return tensor.values<std::int64_t>(); });
    bytes += tensor.bytes.size();
  }
  promise(bytes <= size, "no bytes but those of the file");
}

void compare(const Safetensors& a, const Safetensors& b) {
  promise(a.tensors().size() == b.tensors().size(), "as many tensors");
  for (const StoredTensor& tensor : a.tensors()) {
    const StoredTensor& other = b.at(tensor.name);
    promise(other.dtype == tensor.dtype && other.shape == tensor.shape && other.bytes == tensor.bytes, "equal tensors");
  }
}

}  // namespace

void safetensors(std::string_view bytes) {
  const auto file = accepted([&] { return Safetensors::parse(std::string(bytes), "f.safetensors"); });
  if (!file) return;
  look_at(*file, bytes.size());
  Metadata metadata = file->metadata();
  metadata.erase("crc32c");
  write_checksummed(scratch_file(), metadata, file->tensors());
  std::string written = read_file(scratch_file());
  const Safetensors again = Safetensors::parse(written, "again", Checksum::required);
  compare(*file, again);
  for (const auto& [key, value] : metadata) promise(again.metadata_at(key) == value, "equal metadata");
  // A bit that the input chooses: the checksum, or the form, tells.
  const std::size_t bit = (bytes.size() * 131 + static_cast<unsigned char>(bytes.back())) % (8 * written.size());
  written[bit / 8] = static_cast<char>(written[bit / 8] ^ (1 << bit % 8));
  promise(!accepted([&] { return Safetensors::parse(written, "damaged", Checksum::required); }), "a flipped bit shows");
}

}  // namespace normlab::fuzz
