// The norms in float: known values, the plain kernels, padding, large means, threads.
#include <cmath>

#include "kernels/plain.h"
#include "kernels_support.h"

using namespace normlab;
using namespace normlab::kernels;

namespace {

struct Normalized {
  Numbers y, mean, rstd;
};
Normalized normalize(NormView v, NormRule rule, Mask mask, In x, In gain, In bias) {
  Normalized out{zeros(v.size()), zeros(v.groups()), zeros(v.groups())};
  normalize_forward(v, rule, mask, x, gain, bias, out.y, out.mean, out.rstd);
  return out;
}

struct NormGradients {
  Numbers dx, dgain, dbias;
};
NormGradients gradients(NormView v, NormRule rule, Mask mask, In x, In gain, const Normalized& forward, In dy) {
  NormGradients out{zeros(v.size()), zeros(v.channels), zeros(v.channels)};
  normalize_backward(v, rule, mask, x, gain, forward.mean, forward.rstd, dy, Grad{out.dx}, Grad{out.dgain},
                     Grad{out.dbias});
  return out;
}

// The plain kernels group by group, as one channel of BatchNorm, or as one row of RMSNorm.
struct Plain {
  std::vector<double> y, mean, rstd, dx, dgain, dbias;
};
Plain plain_normalize(NormView v, NormRule rule, Mask mask, In x, In gain, In bias, In dy) {
  const auto size = static_cast<std::size_t>(v.size()), channels = static_cast<std::size_t>(v.channels);
  const auto n = static_cast<std::size_t>(v.reduced);
  Plain out{std::vector<double>(size),    {}, {}, std::vector<double>(size), std::vector<double>(channels),
            std::vector<double>(channels)};
  for (Index g = 0; g < v.groups(); ++g) {
    std::vector<std::size_t> at(n);
    std::vector<std::uint8_t> real(n);
    std::vector<double> in(n), d(n), x_hat(n), dx(n), ones(n, 1), sums(n);
    for (std::size_t r = 0; r < n; ++r) {
      at[r] = static_cast<std::size_t>((g / v.inner * v.reduced + static_cast<Index>(r)) * v.inner + g % v.inner);
      real[r] = is_real(mask, static_cast<Index>(at[r] / channels));
      in[r] = x[at[r]];
      d[r] = static_cast<double>(dy[at[r]]) * gain[at[r] % channels];
    }
    double zero = 0, mean = 0, rstd = 0, sum = 0;
    if (rule.centred) {
      plain::batch_norm_forward(v.reduced, 1, rule.eps, real.data(), in.data(), ones.data(), &zero, x_hat.data(), &mean,
                                &rstd);
      plain::batch_norm_backward(v.reduced, 1, real.data(), in.data(), ones.data(), &mean, &rstd, d.data(), dx.data(),
                                 sums.data(), &sum);
    } else {
      plain::rms_norm_forward(1, v.reduced, rule.eps, in.data(), ones.data(), x_hat.data(), &rstd);
      plain::rms_norm_backward(1, v.reduced, in.data(), ones.data(), &rstd, d.data(), dx.data(), sums.data());
    }
    for (std::size_t r = 0; r < n; ++r) {
      const std::size_t c = at[r] % channels;
      out.y[at[r]] = gain[c] * x_hat[r] + bias[c];
      out.dx[at[r]] = dx[r];
      out.dgain[c] += dy[at[r]] * x_hat[r];
      out.dbias[c] += dy[at[r]];
    }
    out.mean.push_back(mean);
    out.rstd.push_back(rstd);
  }
  return out;
}

struct Kind {
  const char* name;
  NormView view;
  bool centred;
};
std::vector<Kind> kinds(Index B, Index T, Index C, Index groups) {
  return {{"layer", {B * T, C, 1, C}, true},
          {"rms", {B * T, C, 1, C}, false},
          {"group", {B * T * groups, C / groups, 1, C}, true},
          {"instance", {B, T, C, C}, true},
          {"layer_seq", {B, T * C, 1, C}, true},
          {"batch", {1, B * T, C, C}, true},
          {"batch_step", {1, B, T * C, C}, true}};
}

}  // namespace

TEST_CASE("LayerNorm and RMSNorm of small rows have their known values", "[kernels]") {
  // (1 - 1/4) / sqrt(3/16 + 1e-5) and 3 / sqrt(25/2 + 1e-6): the biased variance, eps inside the root.
  const Numbers layer = normalize({1, 4, 1, 4}, {true, 1e-5}, {}, Numbers{1, 0, 0, 0}, {}, {}).y;
  check_all_near(layer, {1.732005, -0.577335, -0.577335, -0.577335}, 1e-6);
  const Numbers rms = normalize({1, 2, 1, 2}, {false, 1e-6}, {}, Numbers{3, 4}, {}, {}).y;
  check_all_near(rms, {0.848528, 1.131371}, 1e-6);
  for (const bool centred : {false, true})
    check_all_near(normalize({1, 3, 1, 3}, {centred, 1e-6}, {}, Numbers{0, 0, 0}, {}, {}).y, {0, 0, 0}, 0);
}

// Values of PyTorch in float64 for B 2, T 3, C 4.
namespace recorded {
const std::vector<double> x{-2.31, -0.37, -1.06, 1.0,   -0.88, -1.28, -0.62, -0.87, 0.24,  0.73, -1.32, 1.31,
                            -1.49, -0.71, 0.52,  -0.95, 0.67,  1.05,  0.15,  -0.75, -0.72, 0.09, -1.75, 1.04};
const std::vector<double> dy{0.8,  0.21, 0.14,  -0.03, 0.46, 1.12,  0.37, -0.19, -1.13, -0.09, 1.0,  -0.08,
                             0.18, 0.95, -1.76, 1.01,  0.75, -0.56, 0.07, 1.99,  0.45,  1.55,  0.05, 1.47};
const std::vector<double> gain{1.0, 0.5, -1.5, 2.0}, bias{0.1, -0.2, 0.3, 0.0};
const std::vector<double> layer_y{-1.25892415, -0.06828889,  0.770396822,  2.81819962,    0.237486488, -0.977327454,
                                  -1.55606759, 0.359580047,  0.1,          0.0507504501,  2.69492267,  2.19022842,
                                  -1.03081904, -0.235656456, -2.09917013,  -0.794629596,  0.677723891, 0.370317175,
                                  0.588861946, -3.05156722,  -0.274752884, 0.00684412417, 2.36600778,  2.67680631};
const std::vector<double> layer_dx{0.229940038,  0.0144284391, -0.379058712, 0.134690235,  2.08325108,   -0.289817966,
                                   -0.393089863, -1.40034325,  -0.431137254, 0.397396961,  0.0877580262, -0.054017734,
                                   -0.338267834, -1.08261274,  0.052531394,  1.36834918,   0.772447796,  0.484635477,
                                   -2.18816671,  0.93108344,   -0.175140939, -0.662734965, 0.336131387,  0.501744518};
const std::vector<double> layer_dgain{-0.962788843, -1.79631563, -4.08006224, -1.63418693};
const std::vector<double> rms_y{-1.67622071,  -0.134242784, 1.15376231,   1.45127334,   -0.933566808, -0.678957678,
                                0.986610376,  -1.84591619,  0.238542191,  0.362782915,  1.96797308,   2.60408558,
                                -1.50953525,  -0.359654373, -0.790226509, -1.92491073,  0.916768005,  0.718362989,
                                -0.307869852, -2.05246568,  -0.666306876, 0.0416441797, 2.42924382,   1.92488653};
const std::vector<double> rms_dx{0.20004856,   0.0152522454, -0.326967435, 0.121163435,  0.370613501, 0.423342761,
                                 -0.671488322, -0.519184505, -1.20952362,  -0.307488564, -1.01575758, -0.630559762,
                                 -0.263725185, 0.268663618,  2.83029352,   1.76206733,   2.22441555,  1.49462209,
                                 0.124577262,  4.10462631,   0.83508767,   0.664874584,  0.948135085, 2.11604237};
const std::vector<double> rms_dgain{-1.92394841, -3.00136099, -2.65683706, -1.55006216};
const std::vector<double> batch_y{-1.46224698,  -0.379209058, 1.01329361,  1.75197479,    -0.0317155935, -0.944805274,
                                  0.187374693,  -2.01376413,  1.08870059,  0.304478677,   1.5013366,     2.37624167,
                                  -0.641942267, -0.590530721, -1.95250613, -2.17486526,   1.51886038,    0.503369654,
                                  -1.25798341,  -1.77211243,  0.128343862, -0.0933032779, 2.30848464,    1.83252536};
const std::vector<double> batch_dx{0.161927948,  -0.311517875, 0.213785353, -1.03523702,  0.175815101, -0.101379962,
                                   -0.816863709, -2.27039042,  -1.13750643, -0.068303295, -1.04660419, -0.984580385,
                                   -0.255301696, 0.0156089128, 1.62959073,  0.107069803,  0.849643786, -0.235428092,
                                   -1.30184493,  2.17820048,   0.205421287, 0.701020311,  1.32193676,  2.00493754};
const std::vector<double> batch_dgain{-1.48426801, -3.03346032, -3.47686836, -1.44467439};
const std::vector<double> sum_dy{1.51, 3.18, -0.13, 4.17};
}  // namespace recorded

TEST_CASE("layer, rms and batch norm agree with PyTorch's values and gradients", "[kernels]") {
  using namespace recorded;
  const auto in_float = [](const std::vector<double>& values) { return Numbers(values.begin(), values.end()); };
  const auto check = [&](NormView v, bool centred, In offset, const std::vector<double>& y,
                         const std::vector<double>& dx, const std::vector<double>& dgain,
                         const std::vector<double>& dbias) {
    const Numbers in = in_float(x), scale = in_float(gain);
    const Normalized forward = normalize(v, {centred, 1e-5}, {}, in, scale, offset);
    const NormGradients g = gradients(v, {centred, 1e-5}, {}, in, scale, forward, in_float(dy));
    // Numbers up to 4 with a few roundings of 6e-8 each, divided by a deviation of 0.25 at the least.
    check_all_near(forward.y, y, 2e-6);
    check_all_near(g.dx, dx, 4e-6);
    check_all_near(g.dgain, dgain, 4e-6);
    check_all_near(g.dbias, dbias, 2e-6);
  };
  check({6, 4, 1, 4}, true, in_float(bias), layer_y, layer_dx, layer_dgain, sum_dy);
  check({6, 4, 1, 4}, false, {}, rms_y, rms_dx, rms_dgain, sum_dy);
  check({1, 6, 4, 4}, true, in_float(bias), batch_y, batch_dx, batch_dgain, sum_dy);
}

TEST_CASE("the plain layer, rms and batch norm agree with PyTorch's values and gradients", "[kernels]") {
  using namespace recorded;
  std::vector<double> y(24), mean(6), rstd(6), dx(24), dgain(4), dbias(4);
  const auto check = [](const std::vector<double>& values, const std::vector<double>& right) {
    for (std::size_t i = 0; i < right.size(); ++i)
      REQUIRE(std::fabs(values[i] - right[i]) <= 5e-9 * std::max(1.0, std::fabs(right[i])));  // they have nine digits
  };
  plain::layer_norm_forward(6, 4, 1e-5, x.data(), gain.data(), bias.data(), y.data(), mean.data(), rstd.data());
  plain::layer_norm_backward(6, 4, x.data(), gain.data(), mean.data(), rstd.data(), dy.data(), dx.data(), dgain.data(),
                             dbias.data());
  check(y, layer_y), check(dx, layer_dx), check(dgain, layer_dgain), check(dbias, sum_dy);
  plain::rms_norm_forward(6, 4, 1e-5, x.data(), gain.data(), y.data(), rstd.data());
  plain::rms_norm_backward(6, 4, x.data(), gain.data(), rstd.data(), dy.data(), dx.data(), dgain.data());
  check(y, rms_y), check(dx, rms_dx), check(dgain, rms_dgain);
  plain::batch_norm_forward(6, 4, 1e-5, nullptr, x.data(), gain.data(), bias.data(), y.data(), mean.data(),
                            rstd.data());
  plain::batch_norm_backward(6, 4, nullptr, x.data(), gain.data(), mean.data(), rstd.data(), dy.data(), dx.data(),
                             dgain.data(), dbias.data());
  check(y, batch_y), check(dx, batch_dx), check(dgain, batch_dgain), check(dbias, sum_dy);
}

TEST_CASE("every norm and its gradients agree with the plain kernels, over odd sizes and padding", "[kernels]") {
  const Index B = 3, T = 23;  // 69 rows: several chunks of rows
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(B * T), 1);
  for (Index row = 0; row < B * T; ++row) mask[static_cast<std::size_t>(row)] = row % T < 5 + 7 * (row / T);
  for (const Index C : {1, 7, 8, 9, 12, 33, 35, 520})
    for (const bool padded : {false, true}) {
      const Numbers gain = normals(C, "gain", 1, 0.2), bias = normals(C, "bias");
      for (const Kind& kind : kinds(B, T, C, C % 4 == 0 ? 4 : C % 7 == 0 ? 7 : C % 3 == 0 ? 3 : 1)) {
        if (padded && !kind.centred) continue;  // a row alone: no model gives it a mask
        INFO(kind.name << " C " << C << (padded ? " padded" : ""));
        const Numbers x = normals(kind.view.size(), "x", 0.5, 2);
        const NormRule rule{kind.centred, 1e-5};
        const Mask m = padded ? Mask(mask) : Mask();
        Numbers dy = normals(kind.view.size(), "dy");
        for (Index i = 0; i < kind.view.size(); ++i)  // no loss sees padding; kernels_f64_test.cpp has gradients there
          if (!is_real(m, i / C)) dy[static_cast<std::size_t>(i)] = 0;
        const Plain right = plain_normalize(kind.view, rule, m, x, gain, bias, dy);
        const Normalized out = normalize(kind.view, rule, m, x, gain, bias);
        const NormGradients g = gradients(kind.view, rule, m, x, gain, out, dy);
        const double largest = std::max(1.0, *std::ranges::max_element(right.rstd));
        // A mean is right to 1e-7 of a size of 2 or so; where a group's deviation is small (or a group is empty) rstd
        // multiplies that, and numbers up to 8. In dx that error meets rstd once more, and gradients up to 6. The sums
        // have 69 terms.
        for (std::size_t i = 0; i < right.rstd.size(); ++i) REQUIRE(std::fabs(out.rstd[i] / right.rstd[i] - 1) < 1e-5);
        check_all_near(out.mean, right.mean, 1e-6);
        check_all_near(out.y, right.y, 4e-6 * largest);
        for (std::size_t i = 0; i < right.dx.size(); ++i) {
          const double r =
              std::max(1.0, right.rstd[static_cast<std::size_t>(kind.view.group_of(static_cast<Index>(i)))]);
          REQUIRE(std::fabs(g.dx[i] - right.dx[i]) <= 4e-5 * r * r);
        }
        check_all_near(g.dgain, right.dgain, 3e-5 * largest);
        check_all_near(g.dbias, right.dbias, 3e-5);
      }
    }
}

TEST_CASE("a large mean spoils neither the mean nor the variance", "[kernels]") {
  const Index rows = 100, C = 1536;
  for (const Kind& kind : kinds(2, rows / 2, C, 4)) {
    if (!kind.centred || kind.view.reduced < 16) continue;  // over two rows, float's own steps of 1e-3 are 1e-3
    INFO(kind.name);
    const Numbers x = normals(rows * C, "noise", 1e4, 1);
    const Normalized out = normalize(kind.view, {true, 1e-5}, {}, x, {}, {});
    const Numbers ones(static_cast<std::size_t>(C), 1), nothing = zeros(C);
    const Plain right = plain_normalize(kind.view, {true, 1e-5}, {}, x, ones, nothing, x);
    for (std::size_t g = 0; g < out.rstd.size(); ++g) {
      REQUIRE(std::fabs(out.rstd[g] / right.rstd[g] - 1) < 5e-4);
      REQUIRE(std::fabs(out.mean[g] - right.mean[g]) < 6e-4);  // floats near 1e4 lie 9.8e-4 apart
    }
  }
}

TEST_CASE("padding stays out of the statistics, and out of what real rows become, bit for bit", "[kernels]") {
  const std::vector<std::uint8_t> half{1, 1, 1, 1, 1, 0, 0, 0, 0, 0};
  const Numbers counted{1, 2, 3, 4, 5, 0, 0, 0, 0, 0};
  const Normalized known = normalize({1, 10, 1, 1}, {true, 0}, half, counted, {}, {});
  CHECK(known.mean[0] == 3);
  CHECK(std::fabs(1 / (known.rstd[0] * known.rstd[0]) - 2) < 1e-6);  // 1.5 and 3.25 with the zeros counted

  const Index B = 3, T = 40, C = 12;
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(B * T));
  for (Index row = 0; row < B * T; ++row) mask[static_cast<std::size_t>(row)] = row % T < 5 + 15 * (row / T);
  for (const Kind& kind : kinds(B, T, C, 3)) {
    INFO(kind.name);
    Numbers x = normals(B * T * C, "x");
    const Numbers gain = normals(C, "gain"), dy = normals(B * T * C, "dy");
    const NormRule rule{kind.centred, 1e-5};
    const Normalized before = normalize(kind.view, rule, mask, x, gain, {});
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!is_real(mask, static_cast<Index>(i) / C)) x[i] = i % 2 ? 1e30f : std::nanf("");
    const Normalized after = normalize(kind.view, rule, mask, x, gain, {});
    for (std::size_t i = 0; i < x.size(); ++i)
      if (is_real(mask, static_cast<Index>(i) / C)) REQUIRE(before.y[i] == after.y[i]);
    CHECK(same_bytes(before.mean, after.mean));
  }
}

TEST_CASE("a norm with given statistics is (x - mean) rstd gain + bias", "[kernels]") {
  for (const Index C : {1, 7, 8, 9, 12, 33, 35}) {
    const Index rows = 70;
    const Numbers x = normals(rows * C, "x"), gain = normals(C, "gain"), bias = normals(C, "bias");
    const Numbers mean = normals(C, "mean"), rstd = normals(C, "rstd", 2, 0.1);
    Numbers y = zeros(rows * C);
    normalize_by_forward({1, rows, C, C}, x, gain, bias, mean, rstd, y);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t c = i % static_cast<std::size_t>(C);
      const double right = (static_cast<double>(x[i]) - mean[c]) * rstd[c] * gain[c] + bias[c];
      REQUIRE(std::fabs(y[i] - right) < 1e-5);  // numbers up to about 30, a few roundings of 6e-8 each
    }
  }
}

TEST_CASE("norms give the same bytes for any number of threads, and a row the same alone and in company", "[kernels]") {
  const Index B = 5, T = 60, C = 36;
  const Numbers x = normals(B * T * C, "x"), dy = normals(B * T * C, "dy"), gain = normals(C, "gain");
  const Numbers bias = normals(C, "bias");
  for (const Kind& kind : kinds(B, T, C, 4)) {
    INFO(kind.name);
    const NormRule rule{kind.centred, 1e-5};
    check_threads([&] {
      const Normalized forward = normalize(kind.view, rule, {}, x, gain, bias);
      const NormGradients g = gradients(kind.view, rule, {}, x, gain, forward, dy);
      return joined({&forward.y, &forward.mean, &forward.rstd, &g.dx, &g.dgain, &g.dbias});
    });
  }
  const Numbers all = normalize({B * T, C, 1, C}, {true, 1e-5}, {}, x, gain, bias).y;
  for (const Index row : {Index{0}, Index{37}, B * T - 1}) {
    const Numbers one =
        normalize({1, C, 1, C}, {true, 1e-5}, {}, In(x).subspan(static_cast<std::size_t>(row * C), C), gain, bias).y;
    CHECK(std::equal(one.begin(), one.end(), all.begin() + row * C));
  }
}
