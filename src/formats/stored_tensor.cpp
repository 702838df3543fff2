// The element types of safetensors, and elements as numbers.
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <utility>

#include "normlab/base/check.h"
#include "normlab/formats/safetensors.h"

namespace normlab {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian, and copied as they are");

constexpr std::array<std::pair<std::string_view, std::int64_t>, 19> kDtypes{{{"BOOL", 1},
                                                                             {"U8", 1},
                                                                             {"I8", 1},
                                                                             {"F8_E5M2", 1},
                                                                             {"F8_E4M3", 1},
                                                                             {"F8_E8M0", 1},
                                                                             {"F8_E4M3FNUZ", 1},
                                                                             {"F8_E5M2FNUZ", 1},
                                                                             {"I16", 2},
                                                                             {"U16", 2},
                                                                             {"F16", 2},
                                                                             {"BF16", 2},
                                                                             {"I32", 4},
                                                                             {"U32", 4},
                                                                             {"F32", 4},
                                                                             {"C64", 8},
                                                                             {"F64", 8},
                                                                             {"I64", 8},
                                                                             {"U64", 8}}};

template <class T>
StoredTensor stored_as(Dtype dtype, std::string name, std::vector<std::int64_t> shape, std::span<const T> values) {
  return {std::move(name), dtype, std::move(shape),
          std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes())};
}

template <class From, class To>
std::vector<To> converted(const StoredTensor& tensor) {
  if constexpr (std::floating_point<From> && std::integral<To>) {
    throw DataError(text("tensor ", tensor.name, " holds ", to_string(tensor.dtype), ", but whole numbers are needed"));
  } else {
    std::vector<To> values(tensor.bytes.size() / sizeof(From));
    for (std::size_t i = 0; i < values.size(); ++i) {
      From value;
      std::memcpy(&value, tensor.bytes.data() + i * sizeof(From), sizeof(From));
      values[i] = static_cast<To>(value);
    }
    return values;
  }
}

}  // namespace

std::string_view to_string(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)].first; }
std::int64_t byte_size(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)].second; }

std::optional<Dtype> parse_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kDtypes.size(); ++i)
    if (kDtypes[i].first == name) return static_cast<Dtype>(i);
  return std::nullopt;
}

StoredTensor stored(std::string name, std::vector<std::int64_t> shape, std::span<const float> values) {
  return stored_as(Dtype::F32, std::move(name), std::move(shape), values);
}
StoredTensor stored(std::string name, std::vector<std::int64_t> shape, std::span<const double> values) {
  return stored_as(Dtype::F64, std::move(name), std::move(shape), values);
}
StoredTensor stored(std::string name, std::vector<std::int64_t> shape, std::span<const std::int64_t> values) {
  return stored_as(Dtype::I64, std::move(name), std::move(shape), values);
}

template <class T>
std::vector<T> StoredTensor::values() const {
  switch (dtype) {
    case Dtype::F32:
      return converted<float, T>(*this);
    case Dtype::F64:
      return converted<double, T>(*this);
    case Dtype::I64:
      return converted<std::int64_t, T>(*this);
    case Dtype::I32:
      return converted<std::int32_t, T>(*this);
    default:
      throw DataError(text("tensor ", name, " holds ", to_string(dtype),
                           ", but numbers are read from F32, F64, I64 and I32 only; convert the file"));
  }
}

template std::vector<float> StoredTensor::values<float>() const;
template std::vector<double> StoredTensor::values<double>() const;
template std::vector<std::int64_t> StoredTensor::values<std::int64_t>() const;

}  // namespace normlab
