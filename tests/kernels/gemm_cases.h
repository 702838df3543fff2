// The linear layer's kernels against the plain loop in double; included once with PRECISION "float"
// and once with "double" (a name belongs to one test).
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "catch.h"
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
  switch (act) {
    case Activation::none:
      return x;
    case Activation::gelu:
      return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::relu:
      return x < 0 ? 0 : x;
  }
  return 0;
}

// c [rows, columns] = base + the sum over k of a(i, k) b(k, j), in double, with the size of what was added.
struct Plain {
  std::vector<double> value, size;
  Index terms;

  template <class Base, class A, class B>
  Plain(Index rows, Index columns, Index depth, const Base& base, const A& a, const B& b) : terms(depth + 2) {
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) {
        double sum = base(i, j), total = std::abs(sum);
        for (Index k = 0; k < depth; ++k) {
          const double product = static_cast<double>(a(i, k)) * static_cast<double>(b(k, j));
          sum += product, total += std::abs(product);
        }
        value.push_back(sum), size.push_back(total);
      }
  }

  // A sum of n rounded terms errs by at most n eps / 2 times the sum of their sizes; the plain sum in double errs as
  // much where Real is double.
  double tolerance(std::size_t i) const {
    return static_cast<double>(terms) * std::numeric_limits<Real>::epsilon() * size[i];
  }

  Index wrong(In c) const {
    Index count = c.size() == value.size() ? 0 : 1;
    for (std::size_t i = 0; i < value.size(); ++i) count += !(std::abs(c[i] - value[i]) <= tolerance(i));
    return count;
  }

  // An activation's slope is below 1.2; its own error is taken as up to 8 eps of what it returns or of 1.
  Index wrong_after(Activation act, In y) const {
    Index count = 0;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const double expected = activation(act, value[i]);
      const double own = 8 * std::numeric_limits<Real>::epsilon() * std::max(1.0, std::abs(expected));
      count += !(std::abs(y[i] - expected) <= 1.2 * tolerance(i) + own);
    }
    return count;
  }
};

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
  Real x_at(Index i, Index k) const { return x[at(i * s.in + k)]; }
  Real weight_at(Index j, Index k) const { return weight[at(j * s.in + k)]; }
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

  Plain plain_forward() const {
    return {s.rows,
            s.out,
            s.in,
            [&](Index, Index j) { return double{bias[at(j)]}; },
            [&](Index i, Index k) { return x_at(i, k); },
            [&](Index k, Index j) { return weight_at(j, k); }};
  }
  Plain plain_input(const Values& old = {}) const {
    return {s.rows,
            s.in,
            s.out,
            [&](Index i, Index j) { return old.empty() ? 0.0 : double{old[at(i * s.in + j)]}; },
            [&](Index i, Index k) { return dz_at(i, k); },
            [&](Index k, Index j) { return weight_at(k, j); }};
  }
  Plain plain_weight(const Values& old = {}) const {
    return {s.out,
            s.in,
            s.rows,
            [&](Index i, Index j) { return old.empty() ? 0.0 : double{old[at(i * s.in + j)]}; },
            [&](Index i, Index k) { return dz_at(k, i); },
            [&](Index k, Index j) { return x_at(k, j); }};
  }
  Plain plain_bias(const Values& old = {}) const {
    return {1,
            s.out,
            s.rows,
            [&](Index, Index j) { return old.empty() ? 0.0 : double{old[at(j)]}; },
            [&](Index, Index) { return Real(1); },
            [&](Index k, Index j) { return dz_at(k, j); }};
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

inline void check_products(const Layer& layer) {
  CAPTURE(layer.s.rows, layer.s.in, layer.s.out);
  CHECK(layer.plain_forward().wrong(layer.forward()) == 0);
  CHECK(layer.plain_input().wrong(layer.backward_input()) == 0);
  CHECK(layer.plain_weight().wrong(layer.backward_weight()) == 0);
  CHECK(layer.plain_bias().wrong(layer.backward_bias()) == 0);
}

struct Threads {
  explicit Threads(int count) { set_threads(count); }
  ~Threads() { set_threads(1); }
};

TEST_CASE("linear, " PRECISION ": the products agree with the plain loop at the edges of tiles and vectors") {
  const Index sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 65, 100};
  for (const Index rows : sizes)
    for (const Index in : sizes)
      for (const Index out : sizes) check_products({rows, in, out});
}

TEST_CASE("linear, " PRECISION
          ": the products agree with the plain loop across blocks of the depth and of the columns") {
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
  CHECK(layer.plain_input(dx).wrong(layer.backward_input(dx)) == 0);
  CHECK(layer.plain_weight(dweight).wrong(layer.backward_weight(dweight)) == 0);
  CHECK(layer.plain_bias(dbias).wrong(layer.backward_bias(dbias)) == 0);
}

TEST_CASE("linear, " PRECISION ": an absent bias is zero, also across blocks of the depth") {
  Layer layer(20, 400, 40);
  Values y(20 * 40);
  kernels::linear_forward(layer.s, Activation::none, layer.x, layer.weight, {}, {}, {}, y);
  layer.bias.assign(40, 0);
  CHECK(layer.plain_forward().wrong(y) == 0);
}

TEST_CASE("linear, " PRECISION ": an activation, with and without its slope") {
  const Layer layer(20, 400, 83);
  for (const Activation act : {Activation::gelu, Activation::gelu_tanh, Activation::relu}) {
    const Values alone = layer.forward(act);
    Values slope(alone.size()), y(alone.size());
    kernels::linear_forward(layer.s, act, layer.x, layer.weight, layer.bias, {}, slope, y);
    CHECK(same_bytes(y, alone));
    CHECK(layer.plain_forward().wrong_after(act, y) == 0);
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
