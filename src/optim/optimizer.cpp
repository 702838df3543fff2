// AdamW and SGD over a parameter store.
#include "normlab/optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/parallel.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace {

// The parameters cut into pieces of constant length, so that one walk over all of them is one piece of work for the
// team, however many tensors there are.
struct Piece {
  std::size_t parameter, begin, count;

  template <class T>
  std::span<T> of(std::span<T> whole) const {
    return whole.subspan(begin, count);
  }
};
constexpr std::size_t kPiece = 1 << 14;

std::vector<Piece> pieces_of(const ParameterStore& store) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < store.parameters().size(); ++i) {
    const std::size_t size = store.parameters()[i].tensor.values().size();
    for (std::size_t begin = 0; begin < size; begin += kPiece)
      pieces.push_back({i, begin, std::min(kPiece, size - begin)});
  }
  return pieces;
}

template <class F>
void for_pieces(const std::vector<Piece>& pieces, Index cost, const F& f) {
  parallel_for(static_cast<Index>(pieces.size()), cost * static_cast<Index>(kPiece),
               [&](Index i) { f(pieces[static_cast<std::size_t>(i)], static_cast<std::size_t>(i)); });
}

}  // namespace

double gradient_norm(const ParameterStore& store) {
  const std::vector<Piece> pieces = pieces_of(store);
  std::vector<double> squares(pieces.size(), 0.0);
  for_pieces(pieces, 2, [&](const Piece& piece, std::size_t i) {
    if (const In grad = store.parameters()[piece.parameter].tensor.grad(); !grad.empty())
      squares[i] = kernels::squared_norm(piece.of(grad));
  });
  double total = 0;
  for (const double square : squares) total += square;
  return std::sqrt(total);
}

double clip_coefficient(double grad_clip, double norm) {
  return grad_clip == 0 ? 1.0 : std::min(1.0, grad_clip / (norm + 1e-6));
}

bool is_decayed(const Tensor& parameter) { return parameter.shape().rank() == 2; }

Optimizer::Optimizer(const OptimizerConfig& config, const ParameterStore& store) : config_(config), store_(store) {
  for (int average = 0; average < averages_of(config); ++average)
    for (const Named& parameter : store.parameters()) {
      Tensor tensor(parameter.tensor.shape());
      std::ranges::fill(tensor.values(), Real(0));
      state_.push_back({text("optimizer.", "mv"[average], '.', parameter.name), tensor});
    }
}

void Optimizer::step(std::int64_t t, double lr, double grad_scale) {
  const double updates = static_cast<double>(t);
  const double correction1 = 1 - std::pow(config_.betas[0], updates),
               correction2 = 1 - std::pow(config_.betas[1], updates);
  const std::vector<Named>& parameters = store_.parameters();
  for (const Named& parameter : parameters)
    if (parameter.tensor.grad().empty()) std::ranges::fill(parameter.tensor.grad_sink().values, Real(0));
  for_pieces(pieces_of(store_), 12, [&](const Piece& piece, std::size_t) {
    const Tensor& parameter = parameters[piece.parameter].tensor;
    const double decay = is_decayed(parameter) ? config_.weight_decay : 0;
    const In grad = piece.of(parameter.grad());
    const Out values = piece.of(parameter.values()), m = piece.of(state_[piece.parameter].tensor.values());
    if (config_.name == OptimizerKind::sgd)
      kernels::sgd_update({lr, config_.momentum, decay, grad_scale}, grad, m, values);
    else
      kernels::adamw_update(
          {lr, config_.betas[0], config_.betas[1], config_.eps, decay, grad_scale, correction1, correction2}, grad, m,
          piece.of(state_[parameters.size() + piece.parameter].tensor.values()), values);
  });
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
