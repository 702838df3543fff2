// Decimal text to the nearest double. The standard library's from_chars would do, but libc++ has had it for double only
// since version 20.
#include <algorithm>
#include <bit>
#include <limits>

#include "normlab/base/text.h"

namespace normlab {
namespace {

// A natural number of any size, its lowest 32 bits first.
class Natural {
 public:
  void multiply_add(std::uint32_t factor, std::uint32_t addend) {
    std::uint64_t carry = addend;
    for (std::uint32_t& word : words_) {
      carry += std::uint64_t{word} * factor;
      word = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry > 0) words_.push_back(static_cast<std::uint32_t>(carry));
  }
  void multiply_by_ten_to(int power) {
    for (; power >= 9; power -= 9) multiply_add(1'000'000'000, 0);
    for (; power > 0; --power) multiply_add(10, 0);
  }
  void shift_left(int bits) {
    words_.insert(words_.begin(), static_cast<std::size_t>(bits / 32), 0);
    multiply_add(std::uint32_t{1} << bits % 32, 0);
  }
  int bits() const {
    return words_.empty() ? 0 : static_cast<int>(32 * words_.size()) - std::countl_zero(words_.back());
  }
  bool is_zero() const { return words_.empty(); }
  bool less_than(const Natural& other) const {
    if (words_.size() != other.words_.size()) return words_.size() < other.words_.size();
    return std::lexicographical_compare(words_.rbegin(), words_.rend(), other.words_.rbegin(), other.words_.rend());
  }
  // Takes away `other`, which is no larger.
  void subtract(const Natural& other) {
    std::int64_t carry = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      carry += std::int64_t{words_[i]} - (i < other.words_.size() ? std::int64_t{other.words_[i]} : 0);
      words_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    while (!words_.empty() && words_.back() == 0) words_.pop_back();
  }

 private:
  std::vector<std::uint32_t> words_;  // the last one is not 0
};

constexpr int kMostDigits = 800;  // 768 decide every tie between doubles; of the rest it counts whether one is not 0

// Digits (those before the point and after it) times ten to the power of `exponent`.
struct Decimal {
  std::string digits;
  std::int64_t exponent = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// (\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
std::optional<Decimal> read_decimal(std::string_view s) {
  Decimal out;
  bool any = false, rest = false;
  std::size_t i = 0;
  for (bool point = false; i < s.size() && (is_digit(s[i]) || (s[i] == '.' && !point)); ++i) {
    if (s[i] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (static_cast<int>(out.digits.size()) < kMostDigits) {
      if (s[i] != '0' || !out.digits.empty()) out.digits += s[i];
      out.exponent -= point;
    } else {
      rest |= s[i] != '0';
      out.exponent += !point;
    }
  }
  if (!any) return std::nullopt;
  if (rest) {
    out.digits += '1';
    --out.exponent;
  }
  if (i == s.size()) return out;
  if (s[i] != 'e' && s[i] != 'E') return std::nullopt;
  ++i;
  const bool negative = i < s.size() && s[i] == '-';
  if (i < s.size() && (s[i] == '-' || s[i] == '+')) ++i;
  if (i == s.size()) return std::nullopt;
  std::int64_t power = 0;
  for (; i < s.size(); ++i) {
    if (!is_digit(s[i])) return std::nullopt;
    power = std::min<std::int64_t>(10 * power + (s[i] - '0'), std::int64_t{1} << 52);
  }
  out.exponent += negative ? -power : power;
  return out;
}

// The nearest double, ties to even; nothing where that would be 0 or infinite. `decimal` is not 0.
std::optional<double> nearest_double(const Decimal& decimal) {
  const std::int64_t magnitude = static_cast<std::int64_t>(decimal.digits.size()) + decimal.exponent;
  if (magnitude > 310 || magnitude < -330) return std::nullopt;
  const int exponent = static_cast<int>(decimal.exponent);
  Natural numerator, denominator;
  for (const char digit : decimal.digits) numerator.multiply_add(10, static_cast<std::uint32_t>(digit - '0'));
  denominator.multiply_add(0, 1);
  (exponent < 0 ? denominator : numerator).multiply_by_ten_to(exponent < 0 ? -exponent : exponent);

  // quotient = numerator 2^shift / denominator has 55 or 56 bits: the 53 of a double, one to round by, and a spare one.
  const int shift = 55 - (numerator.bits() - denominator.bits());
  if (shift > 0) numerator.shift_left(shift);
  if (shift < 0) denominator.shift_left(-shift);
  denominator.shift_left(55);
  std::uint64_t quotient = 0;
  for (int bit = 55; bit >= 0; --bit) {
    quotient <<= 1;
    if (!numerator.less_than(denominator)) {
      numerator.subtract(denominator);
      quotient |= 1;
    }
    numerator.shift_left(1);
  }
  // 2^lowest is what the last bit of the double is worth: at the least 2^-1074, that of the subnormal ones.
  const int lowest = std::max(static_cast<int>(std::bit_width(quotient)) - shift - 53, -1074);
  const int dropped = lowest + shift;
  if (dropped > 57) return std::nullopt;
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1), remainder = quotient & (2 * half - 1);
  std::uint64_t mantissa = quotient >> dropped;
  if (remainder > half || (remainder == half && (!numerator.is_zero() || mantissa % 2 == 1))) ++mantissa;
  // The leading bit of the mantissa adds 1 to the exponent's field, and so does a carry into the next power of two.
  const std::uint64_t bits = (static_cast<std::uint64_t>(lowest + 1074) << 52) + mantissa;
  if (bits == 0 || bits >= std::uint64_t{0x7FF} << 52) return std::nullopt;
  return std::bit_cast<double>(bits);
}

// Numbers whose digits and power of ten are both exact in a double need one operation, which rounds as it should.
std::optional<double> exact_parts(const Decimal& decimal) {
  if (decimal.digits.empty()) return 0.0;
  static constexpr double kTens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  if (decimal.digits.size() > 15 || decimal.exponent < -22 || decimal.exponent > 22) return std::nullopt;
  std::int64_t digits = 0;
  for (const char digit : decimal.digits) digits = 10 * digits + (digit - '0');
  const auto whole = static_cast<double>(digits);
  return decimal.exponent < 0 ? whole / kTens[-decimal.exponent] : whole * kTens[decimal.exponent];
}

}  // namespace

std::optional<double> parse_double(std::string_view s) {
  const bool negative = s.starts_with('-');
  const std::string_view magnitude = s.substr(negative);
  std::optional<double> value;
  if (magnitude == "inf") {
    value = std::numeric_limits<double>::infinity();
  } else if (magnitude == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (const auto decimal = read_decimal(magnitude)) {
    value = exact_parts(*decimal);
    if (!value) value = nearest_double(*decimal);
  }
  return value && negative ? -*value : value;
}

}  // namespace normlab
