// Attention in float against the plain kernels; cached and uncached queries bit for bit; dropout; rotary
// positions.
#include <cmath>
#include <numeric>

#include "kernels/plain.h"
#include "kernels_support.h"

using namespace normlab;
using namespace normlab::kernels;

namespace {

Index rows(AttentionShape s) { return s.batch * s.time; }
Index channels(AttentionShape s) { return s.heads * s.head_dim; }

struct Attended {
  Numbers y, log_sum;
};
Attended attend(AttentionShape s, Dropout drop, In qkv) {
  Attended out{zeros(rows(s) * channels(s)), zeros(s.batch * s.heads * s.time)};
  attention_forward(s, drop, qkv, out.y, out.log_sum);
  return out;
}

double keep_factor(Dropout drop, Index element) {
  const std::uint64_t draw = mix(drop.key + (static_cast<std::uint64_t>(element) + 1) * Random::kStep) >> 32;
  return static_cast<double>(draw) >= static_cast<double>(drop.p) * 0x1p32 ? 1 / (1 - static_cast<double>(drop.p)) : 0;
}

struct Plain {
  std::vector<double> y, log_sum, dqkv;
};
Plain plain_attention(AttentionShape s, Dropout drop, In qkv, In dy) {
  const Index C = channels(s), queries = s.batch * s.heads * s.time;
  const std::vector<double> x = in_double(qkv), out = in_double(dy);
  std::vector<double> kept(static_cast<std::size_t>(queries * s.time)), weights(kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = keep_factor(drop, static_cast<Index>(i));
  Plain plain{std::vector<double>(out.size()), {}, std::vector<double>(x.size())};
  plain::attention_forward(s.batch, s.time, s.heads, s.head_dim, x.data(), kept.data(), weights.data(), plain.y.data());
  plain::attention_backward(s.batch, s.time, s.heads, s.head_dim, x.data(), kept.data(), weights.data(), out.data(),
                            plain.dqkv.data());
  for (Index query = 0; query < queries; ++query) {  // the sum of exp(scores), from the score and weight of key 0
    const Index head = query / s.time, sample = head / s.heads * s.time, column = head % s.heads * s.head_dim;
    const double *q = x.data() + (sample + query % s.time) * 3 * C + column,
                 *k = x.data() + sample * 3 * C + C + column;
    const double score = std::inner_product(q, q + s.head_dim, k, 0.0) / std::sqrt(static_cast<double>(s.head_dim));
    plain.log_sum.push_back((score - std::log(weights[static_cast<std::size_t>(query * s.time)])) / std::log(2.0));
  }
  return plain;
}

}  // namespace

TEST_CASE("attention agrees with its definition over odd sizes, several blocks and dropout", "[kernels]") {
  const auto check = [](AttentionShape s, Dropout drop) {
    INFO("time " << s.time << " head_dim " << s.head_dim << " first " << s.first << " dropout " << drop.p);
    const Numbers qkv = normals(rows(s) * 3 * channels(s), "qkv");
    Plain plain = plain_attention(s, drop, qkv, zeros(rows(s) * channels(s)));
    const Attended out = attend(s, drop, qkv);
    const auto not_asked_for = [&](std::vector<double>& all, Index width) {  // queries before the first stay 0
      for (Index i = 0; i < static_cast<Index>(all.size()); ++i)
        if (i / width % s.time < s.first) all[static_cast<std::size_t>(i)] = 0;
    };
    not_asked_for(plain.y, channels(s));
    not_asked_for(plain.log_sum, 1);
    // Scores up to 5 with errors of 1e-6 (64 products), values up to 4, 1 / (1 - p) up to 2.
    check_all_near(out.y, plain.y, 2e-5);
    check_all_near(out.log_sum, plain.log_sum, 5e-6);
  };
  for (const Index time : {1, 7, 8, 9, 12, 16, 17, 33, 64, 65, 130}) check({2, time, 2, 8}, {});
  for (const Index D : {1, 7, 8, 9, 16, 32, 33, 35, 64}) check({1, 20, 3, D}, {});
  check({2, 70, 2, 16}, {Real(0.5), 77});
  check({2, 40, 2, 16, 21}, {});
}

TEST_CASE("the gradients of attention agree with their definition in float, over odd sizes, several blocks and dropout",
          "[kernels]") {
  const auto check = [](AttentionShape s, Dropout drop) {
    INFO("time " << s.time << " head_dim " << s.head_dim << " dropout " << drop.p);
    const Numbers qkv = normals(rows(s) * 3 * channels(s), "qkv"), dy = normals(rows(s) * channels(s), "dy");
    const Attended out = attend(s, drop, qkv);
    Numbers dqkv = zeros(rows(s) * 3 * channels(s));
    attention_backward(s, drop, qkv, out.y, out.log_sum, dy, Grad{dqkv});
    // Sums of up to 130 products of numbers up to 30, with errors of 1e-6 of the products' size.
    check_all_near(dqkv, plain_attention(s, drop, qkv, dy).dqkv, 1e-4);
  };
  for (const Index time : {1, 15, 16, 17, 31, 63, 64, 65, 130}) check({2, time, 2, 16}, {});
  for (const Index D : {1, 7, 8, 9, 32, 33, 64, 72}) check({1, 70, 2, D}, {});
  check({2, 70, 2, 16}, {Real(0.5), 77});
}

TEST_CASE("a query's result depends neither on the first query nor on how many follow, bit for bit", "[kernels]") {
  for (const Index D : {7, 16, 32, 64}) {
    const AttentionShape s{2, 150, 2, D};
    const Index C = channels(s);
    const Numbers qkv = normals(rows(s) * 3 * C, "qkv", 0, 2);
    const Numbers all = attend(s, {}, qkv).y;
    for (Index t = 0; t < s.time; ++t) {
      AttentionShape one = s;
      one.time = t + 1;
      one.first = t;
      Numbers cached;  // the rows up to t of both samples, as a cache would hold them
      for (Index b = 0; b < s.batch; ++b)
        cached.insert(cached.end(), qkv.begin() + b * s.time * 3 * C, qkv.begin() + (b * s.time + t + 1) * 3 * C);
      const Numbers y = attend(one, {}, cached).y;
      for (Index b = 0; b < s.batch; ++b) {
        INFO("head_dim " << D << " query " << t << " sample " << b);
        REQUIRE(std::equal(y.begin() + (b * one.time + t) * C, y.begin() + (b * one.time + t + 1) * C,
                           all.begin() + (b * s.time + t) * C));
      }
    }
    AttentionShape rest = s;
    rest.first = 37;
    const Numbers y = attend(rest, {}, qkv).y;
    CHECK(std::equal(y.begin() + 37 * C, y.begin() + s.time * C, all.begin() + 37 * C));
    CHECK(std::all_of(y.begin(), y.begin() + 37 * C, [](Real value) { return value == 0; }));  // not touched
  }
}

TEST_CASE("scores of 1e4 and equal scores stay finite and right", "[kernels]") {
  const AttentionShape s{1, 40, 1, 16};
  Numbers qkv = zeros(rows(s) * 48);
  for (Index t = 0; t < s.time; ++t) {
    Real* row = qkv.data() + t * 48;
    row[0] = 200;
    row[16] = (t % 2 ? 200 : -200) + static_cast<Real>(t);  // scores about +-1e4, 50 apart: the latest odd key wins
    row[32] = static_cast<Real>(t);
  }
  const Attended out = attend(s, {}, qkv);
  for (Index t = 0; t < s.time; ++t) {
    const double expected = t == 0 ? 0 : t % 2 ? t : t - 1;
    CHECK(out.y[static_cast<std::size_t>(t * 16)] == expected);  // the others weigh exp(-100) at the most
  }
  Numbers dqkv = zeros(rows(s) * 48);
  attention_backward(s, {}, qkv, out.y, out.log_sum, normals(rows(s) * 16, "dy"), Grad{dqkv});
  CHECK(std::all_of(dqkv.begin(), dqkv.end(), [](Real value) { return std::isfinite(value); }));

  // Scores of 1e9, whose own rounding is 64: the weights of the backward are still at most 1.
  for (Index t = 0; t < s.time; ++t) qkv[static_cast<std::size_t>(t * 48)] = Real(2e7) + static_cast<Real>(t);
  const Attended large = attend(s, {}, qkv);
  Numbers ones = zeros(rows(s) * 16);
  std::fill(ones.begin(), ones.end(), Real(1));
  attention_backward(s, {}, qkv, large.y, large.log_sum, ones, Grad{dqkv});
  double all = 0;
  for (Index t = 0; t < s.time; ++t) all += dqkv[static_cast<std::size_t>(t * 48 + 32)];
  CHECK(all == Approx(40).epsilon(1e-6));  // dv: each query hands out its weights, 1 in all

  std::fill(qkv.begin(), qkv.end(), Real(0));
  for (Index t = 0; t < s.time; ++t) qkv[static_cast<std::size_t>(t * 48 + 32)] = 3;
  for (const Real value : {attend(s, {}, qkv).y[0], attend(s, {}, qkv).y[39 * 16]}) CHECK(std::fabs(value - 3) < 1e-6);
}

TEST_CASE("a later key, even a wild one, changes no earlier query", "[kernels]") {
  const AttentionShape s{1, 50, 2, 16};
  Numbers qkv = normals(rows(s) * 96, "qkv");
  const Numbers before = attend(s, {}, qkv).y;
  for (Index i = 30 * 96; i < 50 * 96; ++i) qkv[static_cast<std::size_t>(i)] = 1e5f;
  const Numbers after = attend(s, {}, qkv).y;
  CHECK(std::equal(before.begin(), before.begin() + 30 * 32, after.begin()));
}

TEST_CASE("attention gives the same bytes for any number of threads", "[kernels]") {
  // Of few heads a thread has one block at a time, of many the whole.
  const AttentionShape s = GENERATE(AttentionShape{3, 70, 3, 20}, AttentionShape{1, 200, 1, 16});
  const Dropout drop = GENERATE(Dropout{}, Dropout{Real(0.2), 5});
  const Index size = rows(s) * 3 * channels(s);
  const Numbers qkv = normals(size, "qkv"), dy = normals(size / 3, "dy"), old = normals(size, "old");
  check_threads([&] {
    const Attended out = attend(s, drop, qkv);
    Numbers dqkv = old, rotated = zeros(size);
    attention_backward(s, drop, qkv, out.y, out.log_sum, dy, Grad{dqkv, true});
    rope_forward(s, 10000, qkv, rotated);
    return joined({&out.y, &out.log_sum, &dqkv, &rotated});
  });
}

TEST_CASE("rotary positions turn the halves of q and k by the angle of their position, and copy v", "[kernels]") {
  const AttentionShape s{2, 5, 2, 6, 3};
  const Index C = channels(s);
  const Numbers qkv = normals(rows(s) * 3 * C, "qkv");
  Numbers rotated = zeros(rows(s) * 3 * C);
  rope_forward(s, 10000, qkv, rotated);
  for (Index row = 0; row < rows(s); ++row)
    for (Index c = 0; c < 3 * C; ++c) {
      const std::size_t i = static_cast<std::size_t>(row * 3 * C + c);
      if (c >= 2 * C) {
        REQUIRE(rotated[i] == qkv[i]);
        continue;
      }
      const Index in_head = c % 6, pair = in_head % 3;
      const double angle = static_cast<double>(3 + row % 5) * std::pow(10000.0, -static_cast<double>(pair) / 3);
      const double other = in_head < 3 ? -qkv[i + 3] : qkv[i - 3];
      REQUIRE(std::fabs(rotated[i] - (qkv[i] * std::cos(angle) + other * std::sin(angle))) < 1e-6);  // size 4
    }
}
