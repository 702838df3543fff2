// Embedding and cross-entropy in float: the plain kernels, large logits, ignored targets, threads.
#include <cmath>

#include "kernels/plain.h"
#include "kernels_support.h"

using namespace normlab;
using namespace normlab::kernels;

namespace {

using Targets = std::vector<std::int32_t>;

struct Loss {
  Numbers rows, log_sum, dlogits;
};
Loss cross_entropy(Index vocab, const Numbers& logits, const Targets& targets, const Numbers& drow) {
  const Index n = static_cast<Index>(targets.size());
  Loss out{zeros(n), zeros(n), zeros(n * vocab)};
  cross_entropy_forward(vocab, logits, targets, out.rows, out.log_sum);
  cross_entropy_backward(vocab, logits, targets, out.log_sum, drow, Grad{out.dlogits});
  return out;
}

}  // namespace

TEST_CASE("cross-entropy and its gradient agree with their definition over odd vocabularies", "[kernels]") {
  for (const Index V : {1, 2, 7, 8, 9, 12, 33, 35, 65, 1000}) {
    CAPTURE(V);
    const Targets targets{0, static_cast<std::int32_t>(V - 1), kIgnore, static_cast<std::int32_t>(V / 2)};
    const Numbers logits = normals(4 * V, "logits", 1, 3), drow{1, 0.5, 7, -2};
    const Loss out = cross_entropy(V, logits, targets, drow);
    const std::vector<double> x = in_double(logits), d = in_double(drow);
    std::vector<double> loss(4), dlogits(x.size());
    plain::cross_entropy_forward(4, V, x.data(), targets.data(), loss.data());
    plain::cross_entropy_backward(4, V, x.data(), targets.data(), d.data(), dlogits.data());
    // Numbers up to 15: roundings of 1e-6; a probability's error is that of the exponent, times up to 2.
    check_all_near(out.rows, loss, 3e-6);
    check_all_near(out.dlogits, dlogits, 5e-6);
    for (const std::size_t row : {0u, 1u, 3u})
      CHECK(std::fabs(out.log_sum[row] - loss[row] -
                      x[row * static_cast<std::size_t>(V) + static_cast<std::size_t>(targets[row])]) < 3e-6);
  }
}

TEST_CASE("cross-entropy is right at logits of 1e4", "[kernels]") {
  const Targets targets{0, 1, 2, 0};
  const Numbers logits{1e4f, -1e4f, 0, 1e4f, -1e4f, 0, 1e4f, 1e4f, 1e4f, -1e4f, -1e4f, -1e4f};
  const Loss out = cross_entropy(3, logits, targets, {1, 1, 1, 1});
  CHECK(out.rows[0] == 0);
  CHECK(out.rows[1] == 2e4f);
  CHECK(std::fabs(out.rows[2] - std::log(3.0)) < 1e-6);
  CHECK(std::fabs(out.rows[3] - std::log(3.0)) < 1e-6);
  for (const Real value : out.dlogits) CHECK(std::fabs(value) <= 1);
  CHECK(out.dlogits[3] == 1);
  CHECK(out.dlogits[4] == -1);
  const Loss one = cross_entropy(1, {-1e4f, 3}, {0, kIgnore}, {1, 1});
  CHECK(one.rows == Numbers{0, 0});
  CHECK(one.dlogits == Numbers{0, 0});
}

TEST_CASE("an embedding is its word's row plus its position's, and zero at padding", "[kernels]") {
  const Targets tokens{2, 0, 1, 1, 3, 0};
  const std::vector<std::uint8_t> mask{1, 1, 1, 1, 0, 0};
  for (const Index C : {1, 7, 8, 9, 33}) {
    const EmbeddingShape s{2, 3, C, 4};
    const Numbers table = normals(4 * C, "table"), position = normals(9 * C, "position");
    Numbers x = normals(6 * C, "x"), words = x;
    embedding_forward(s, tokens, mask, table, position, x);
    embedding_forward(s, tokens, {}, table, {}, words);
    for (Index row = 0; row < 6; ++row)
      for (Index c = 0; c < C; ++c) {
        const Real word = table[static_cast<std::size_t>(tokens[static_cast<std::size_t>(row)] * C + c)];
        const Real place = position[static_cast<std::size_t>((4 + row % 3) * C + c)];
        CHECK(x[static_cast<std::size_t>(row * C + c)] == (row < 4 ? word + place : 0));
        CHECK(words[static_cast<std::size_t>(row * C + c)] == word);
      }
    // Small whole numbers, whose sums are exact.
    Numbers dx = zeros(6 * C), dtable = normals(4 * C, "old"), dposition = dtable;
    dposition.resize(static_cast<std::size_t>(9 * C), 5);
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = static_cast<Real>(i + 1);
    embedding_backward(s, tokens, mask, dx, Grad{dtable}, Grad{dposition});
    const auto of_row = [&](Index row, Index c) { return static_cast<Real>(row * C + c + 1); };
    for (Index c = 0; c < C; ++c) {
      CHECK(dtable[static_cast<std::size_t>(0 * C + c)] == of_row(1, c));
      CHECK(dtable[static_cast<std::size_t>(1 * C + c)] == of_row(2, c) + of_row(3, c));
      CHECK(dtable[static_cast<std::size_t>(2 * C + c)] == of_row(0, c));
      CHECK(dtable[static_cast<std::size_t>(3 * C + c)] == 0);
      CHECK(dposition[static_cast<std::size_t>(3 * C + c)] == 0);
      CHECK(dposition[static_cast<std::size_t>(4 * C + c)] == of_row(0, c) + of_row(3, c));
      CHECK(dposition[static_cast<std::size_t>(6 * C + c)] == of_row(2, c));
    }
  }
}

TEST_CASE("vocabulary kernels give the same bytes for any number of threads", "[kernels]") {
  const Index B = 4, T = 100, C = 70, V = 50;
  Targets tokens;
  for (Index i = 0; i < B * T; ++i) tokens.push_back(static_cast<std::int32_t>(i * 7 % 11));
  const Numbers dx = normals(B * T * C, "dx"), logits = normals(B * T * V, "logits"), drow = normals(B * T, "drow");
  const Numbers table = normals(V * C, "table");
  check_threads([&] {
    Numbers dtable = table, dposition = zeros(T * C), x = zeros(B * T * C);
    embedding_forward({B, T, C}, tokens, {}, table, dx, x);
    embedding_backward({B, T, C}, tokens, {}, dx, Grad{dtable, true}, Grad{dposition});
    const Loss out = cross_entropy(V, logits, tokens, drow);
    return joined({&x, &dtable, &dposition, &out.rows, &out.log_sum, &out.dlogits});
  });
}
