// The linear layer's kernels against the plain ones; included once with PRECISION "float"
// and once with "double" (a name belongs to one test).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "catch.h"
#include "kernels/plain.h"
#include "normlab/base/parallel.h"
#include "normlab/base/rng.h"
#include "normlab/kernels/kernels.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace gemm_cases {

using Values = std::vector<Real>;

inline Values random_values(Index count, const char* stream) {
  Random random(1, stream);
  Values values(static_cast<std::size_t>(count));
  for (Real& x : values) x = static_cast<Real>(2 * random.uniform() - 1);
  return values;
}

inline bool same_bytes(In a, In b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

inline double activation(Activation act, double x) {
  double y = x < 0 ? 0 : x;  // relu's
  if (act == Activation::gelu) plain::gelu_forward(1, &x, &y);
  if (act == Activation::gelu_tanh) y = x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  return y;
}

// One linear layer with random operands, and its three products.
struct Layer {
  kernels::LinearShape s;
  Values x, weight, bias, dz;

  Layer(Index rows, Index in, Index out)
      : s{rows, in, out},
        x(random_values(rows * in, "x")),
        weight(random_values(in * out, "weight")),
        bias(random_values(out, "bias")),
        dz(random_values(rows * out, "dz")) {}

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  Real dz_at(Index i, Index j) const { return dz[at(i * s.out + j)]; }

  Values forward(Activation act = Activation::none) const {
    Values y(at(s.rows * s.out));
    kernels::linear_forward(s, act, x, weight, bias, {}, {}, y);
    return y;
  }
  Values backward_input(const Values& old = {}) const {
    Values dx = old.empty() ? Values(x.size(), Real(7)) : old;
    kernels::linear_backward_input(s, dz, weight, {dx, !old.empty()});
    return dx;
  }
  Values backward_weight(const Values& old = {}) const {
    Values dweight = old.empty() ? Values(weight.size(), Real(7)) : old;
    kernels::linear_backward_weight(s, dz, x, {dweight, !old.empty()}, {});
    return dweight;
  }
  Values backward_bias(const Values& old = {}) const {
    Values dbias = old.empty() ? Values(bias.size(), Real(7)) : old;
    kernels::linear_backward_weight(s, dz, x, {}, {dbias, !old.empty()});
    return dbias;
  }

  // The layer of rows [begin, end) of x and dz, or of the outputs [begin, end).
  Layer rows(Index begin, Index end) const {
    Layer part = *this;
    part.s.rows = end - begin;
    part.x.assign(x.begin() + begin * s.in, x.begin() + end * s.in);
    part.dz.assign(dz.begin() + begin * s.out, dz.begin() + end * s.out);
    return part;
  }
  Layer outputs(Index begin, Index end) const {
    Layer part = *this;
    part.s.out = end - begin;
    part.weight.assign(weight.begin() + begin * s.in, weight.begin() + end * s.in);
    part.bias.assign(bias.begin() + begin, bias.begin() + end);
    part.dz.clear();
    for (Index i = 0; i < s.rows; ++i)
      for (Index j = begin; j < end; ++j) part.dz.push_back(dz_at(i, j));
    return part;
  }
};

// A layer's products by the plain kernels in double, and the same sums of the terms' sizes.
struct Plain {
  using Doubles = std::vector<double>;
  struct Products {
    Doubles y, dx, dweight, dbias;
  };
  Index depth_y, depth_dx, depth_dweight;
  Products value, size;

  explicit Plain(const Layer& layer)
      : depth_y(layer.s.in),
        depth_dx(layer.s.out),
        depth_dweight(layer.s.rows),
        value(products(layer, [](double x) { return x; })),
        size(products(layer, [](double x) { return std::abs(x); })) {}

  static Products products(const Layer& layer, double (*of)(double)) {
    const auto each = [&](const Values& values) {
      Doubles out(values.size());
      std::transform(values.begin(), values.end(), out.begin(), of);
      return out;
    };
    const auto [rows, in, out] = layer.s;
    const Doubles x = each(layer.x), weight = each(layer.weight), bias = each(layer.bias), dz = each(layer.dz);
    Products p{Doubles(dz.size()), Doubles(x.size()), Doubles(weight.size()), Doubles(bias.size())};
    plain::linear_forward(rows, in, out, x.data(), weight.data(), bias.data(), p.y.data());
    plain::linear_backward(rows, in, out, x.data(), weight.data(), dz.data(), p.dx.data(), p.dweight.data(),
                           p.dbias.data());
    return p;
  }

  Index wrong_y(In y) const { return wrong(y, &Products::y, depth_y, {}); }
  Index wrong_dx(In dx, In old = {}) const { return wrong(dx, &Products::dx, depth_dx, old); }
  Index wrong_dweight(In dweight, In old = {}) const { return wrong(dweight, &Products::dweight, depth_dweight, old); }
  Index wrong_dbias(In dbias, In old = {}) const { return wrong(dbias, &Products::dbias, depth_dweight, old); }

  // How many are wrong, where `old` was there before: a sum of n rounded terms errs by at most n eps / 2 times the sum
  // of their sizes; the plain sum in double errs as much where Real is double.
  Index wrong(In values, Doubles Products::*which, Index depth, In old) const {
    const Doubles &right = value.*which, &sizes = size.*which;
    Index count = values.size() == right.size() ? 0 : 1;
    for (std::size_t i = 0; i < right.size(); ++i) {
      const double before = old.empty() ? 0 : old[i];
      count += !(std::abs(values[i] - before - right[i]) <= tolerance(depth, sizes[i] + std::abs(before)));
    }
    return count;
  }
  static double tolerance(Index depth, double size) {
    return static_cast<double>(depth + 2) * std::numeric_limits<Real>::epsilon() * size;
  }

  // An activation's slope is below 1.2; its own error is taken as up to 8 eps of what it returns or of 1.
  Index wrong_after(Activation act, In y) const {
    Index count = 0;
    for (std::size_t i = 0; i < value.y.size(); ++i) {
      const double expected = activation(act, value.y[i]);
      const double own = 8 * std::numeric_limits<Real>::epsilon() * std::max(1.0, std::abs(expected));
      count += !(std::abs(y[i] - expected) <= 1.2 * tolerance(depth_y, size.y[i]) + own);
    }
    return count;
  }
};

inline void check_products(const Layer& layer) {
  CAPTURE(layer.s.rows, layer.s.in, layer.s.out);
  const Plain plain(layer);
  CHECK(plain.wrong_y(layer.forward()) == 0);
  CHECK(plain.wrong_dx(layer.backward_input()) == 0);
  CHECK(plain.wrong_dweight(layer.backward_weight()) == 0);
  CHECK(plain.wrong_dbias(layer.backward_bias()) == 0);
}

struct Threads {
  explicit Threads(int count) { set_threads(count); }
  ~Threads() { set_threads(1); }
};

TEST_CASE("linear, " PRECISION ": the products agree with the plain kernel at the edges of tiles and vectors") {
  const Index sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 65, 100};
  for (const Index rows : sizes)
    for (const Index in : sizes)
      for (const Index out : sizes) check_products({rows, in, out});
}

TEST_CASE("linear, " PRECISION
          ": the products agree with the plain kernel across blocks of the depth and of the columns") {
  check_products({30, 700, 45});
  check_products({30, 45, 700});
  check_products({700, 30, 45});
  check_products({5, 1100, 3});
  check_products({13, 256, 512});
  check_products({768, 64, 100});
  check_products({60, 768, 65});
}

TEST_CASE("linear, " PRECISION ": a gradient is added to what is there when asked") {
  const Layer layer(400, 40, 410);
  const Values dx = random_values(400 * 40, "dx"), dweight = random_values(40 * 410, "dw");
  const Values dbias = random_values(410, "db");
  const Plain plain(layer);
  CHECK(plain.wrong_dx(layer.backward_input(dx), dx) == 0);
  CHECK(plain.wrong_dweight(layer.backward_weight(dweight), dweight) == 0);
  CHECK(plain.wrong_dbias(layer.backward_bias(dbias), dbias) == 0);
}

TEST_CASE("linear, " PRECISION ": an absent bias is zero, also across blocks of the depth") {
  Layer layer(20, 400, 40);
  Values y(20 * 40);
  kernels::linear_forward(layer.s, Activation::none, layer.x, layer.weight, {}, {}, {}, y);
  layer.bias.assign(40, 0);
  CHECK(Plain(layer).wrong_y(y) == 0);
}

TEST_CASE("linear, " PRECISION ": an activation, with and without its slope") {
  const Layer layer(20, 400, 83);
  for (const Activation act : {Activation::gelu, Activation::gelu_tanh, Activation::relu}) {
    const Values alone = layer.forward(act);
    Values slope(alone.size()), y(alone.size());
    kernels::linear_forward(layer.s, act, layer.x, layer.weight, layer.bias, {}, slope, y);
    CHECK(same_bytes(y, alone));
    CHECK(Plain(layer).wrong_after(act, y) == 0);
    // The slope's values are checked in kernels_f64_test.cpp and simd_test.cpp; here, that each lies in its place.
    const Values z = layer.forward();
    Values from_z(z.size()), z_again(z.size());
    kernels::linear_forward({static_cast<Index>(z.size()), 1, 1}, act, z, Values{1}, {}, {}, from_z, z_again);
    CHECK(same_bytes(slope, from_z));
  }
}

TEST_CASE("linear, " PRECISION ": a residual is added last, as a sum of its own would") {
  for (const auto& [rows, in, out] : {std::array<Index, 3>{20, 400, 83}, {3, 16, 64}}) {
    const Layer layer(rows, in, out);
    const Values residual = random_values(rows * out, "residual"), product = layer.forward();
    Values y(product.size()), sum(product.size());
    kernels::linear_forward(layer.s, Activation::none, layer.x, layer.weight, layer.bias, residual, {}, y);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = residual[i] + product[i];
    CHECK(same_bytes(y, sum));
  }
}

TEST_CASE("linear, " PRECISION ": no rows give a weight gradient of zero") {
  const Layer layer(0, 3, 5);
  CHECK(layer.backward_weight() == Values(15, 0));
  CHECK(layer.backward_bias() == Values(5, 0));
  CHECK(layer.backward_weight(Values(15, 2)) == Values(15, 2));
}

TEST_CASE("linear, " PRECISION ": a row alone has the bits that it has in company") {
  const Layer layer(61, 700, 75);
  const Values y = layer.forward(Activation::gelu), dx = layer.backward_input();
  for (const Index count : {1, 2, 5, 14, 30})
    for (Index begin = 0; begin + count <= layer.s.rows; begin += 7) {
      CAPTURE(begin, count);
      const Layer part = layer.rows(begin, begin + count);
      const auto of = [&](const Values& all, Index columns) {
        return In(all).subspan(Layer::at(begin * columns), Layer::at(count * columns));
      };
      CHECK(same_bytes(part.forward(Activation::gelu), of(y, layer.s.out)));
      CHECK(same_bytes(part.backward_input(), of(dx, layer.s.in)));
    }
}

TEST_CASE("linear, " PRECISION ": an output's weight gradient alone has the bits that it has in company") {
  const Layer layer(700, 45, 61);
  const Values dweight = layer.backward_weight(), dbias = layer.backward_bias();
  for (const Index count : {1, 5, 30})
    for (Index begin = 0; begin + count <= layer.s.out; begin += 7) {
      CAPTURE(begin, count);
      const Layer part = layer.outputs(begin, begin + count);
      CHECK(same_bytes(part.backward_weight(),
                       In(dweight).subspan(Layer::at(begin * layer.s.in), Layer::at(count * layer.s.in))));
      CHECK(same_bytes(part.backward_bias(), In(dbias).subspan(Layer::at(begin), Layer::at(count))));
    }
}

TEST_CASE("linear, " PRECISION ": any number of threads gives the same bytes") {
  for (const Layer& layer : {Layer(150, 300, 310), Layer(3, 520, 1200), Layer(900, 20, 33)}) {
    CAPTURE(layer.s.rows, layer.s.in, layer.s.out);
    const Values y = layer.forward(Activation::gelu_tanh), dx = layer.backward_input();
    const Values dweight = layer.backward_weight(), dbias = layer.backward_bias();
    for (const int count : {2, 3, 8}) {
      CAPTURE(count);
      const Threads team(count);
      CHECK(same_bytes(layer.forward(Activation::gelu_tanh), y));
      CHECK(same_bytes(layer.backward_input(), dx));
      CHECK(same_bytes(layer.backward_weight(), dweight));
      CHECK(same_bytes(layer.backward_bias(), dbias));
    }
  }
}

TEST_CASE("linear, " PRECISION ": zero times infinity is not a number, and stays in its row and column") {
  Layer layer(20, 33, 40);
  std::fill_n(layer.x.begin() + 3 * 33, 33, Real(0));
  layer.weight[7 * 33 + 5] = std::numeric_limits<Real>::infinity();
  const Values y = layer.forward();
  Index not_numbers = 0, infinite = 0;
  for (const Real value : y) not_numbers += std::isnan(value), infinite += std::isinf(value);
  CHECK(std::isnan(y[3 * 40 + 7]));
  CHECK(not_numbers == 1);
  CHECK(infinite == 19);
}

}  // namespace gemm_cases
}  // namespace NORMLAB_REAL
}  // namespace normlab
