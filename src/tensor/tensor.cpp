// The graph: recording, and running it backward.
#include "normlab/tensor/tensor.h"

#include <algorithm>
#include <queue>
#include <unordered_set>
#include <utility>
#include <vector>

#include "normlab/base/memory.h"

namespace normlab {
inline namespace NORMLAB_REAL {

// The memory of the values or of the gradient.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Index size)
      : data_(static_cast<Real*>(allocate(static_cast<std::size_t>(size) * sizeof(Real)))), size_(size) {}
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { release(data_, static_cast<std::size_t>(size_) * sizeof(Real)); }

  Out span() const { return {data_, static_cast<std::size_t>(size_)}; }

 private:
  Real* data_ = nullptr;
  Index size_ = 0;
};

namespace {

// What recording needs to know besides its arguments. One graph is built at a time, by one thread.
struct Recorder {
  std::uint64_t created = 0;
  bool keeps_graph = true;
  const std::string* place = nullptr;
  std::function<void(const Seen&)>* watch = nullptr;

  std::string place_name() const { return place ? *place : std::string(); }
};
Recorder recorder;

}  // namespace

struct Node {
  Shape shape;
  Buffer values;
  Buffer grad;
  bool has_grad = false;    // grad holds a contribution
  bool needs_grad = false;  // somebody below wants it
  bool keeps_grad = false;
  std::uint64_t created = 0;
  const char* op = "";
  std::string place;
  std::vector<Tensor> inputs;
  std::function<void(const Tensor&)> backward;
};

Tensor::Tensor(Shape shape) : node_(std::make_shared<Node>()) {
  node_->shape = shape;
  node_->values = Buffer(shape.numel());
}
const Shape& Tensor::shape() const { return node_->shape; }
Out Tensor::values() const { return node_->values.span(); }
Real Tensor::item() const {
  check(shape().numel() == 1, "item: a tensor of one element is required, got ", shape());
  return values()[0];
}
bool Tensor::needs_grad() const { return node_ && node_->needs_grad; }
In Tensor::grad() const { return node_->has_grad ? In(node_->grad.span()) : In(); }
Grad Tensor::grad_sink() const {
  if (!needs_grad()) return {};
  if (node_->grad.span().empty()) node_->grad = Buffer(shape().numel());
  return {node_->grad.span(), std::exchange(node_->has_grad, true)};
}
void Tensor::hand_grad_to(const Tensor& x) const {
  if (!x.needs_grad()) return;
  if (x.node_->has_grad || x.node_->keeps_grad || node_->keeps_grad) {
    kernels::accumulate(1, grad(), x.grad_sink());
  } else {
    x.node_->grad = std::move(node_->grad);
    x.node_->has_grad = std::exchange(node_->has_grad, false);
  }
}
void Tensor::clear_grad() const { node_->has_grad = false; }
void Tensor::retain_grad() const { node_->keeps_grad = true; }

Tensor parameter_tensor(Shape shape) {
  Tensor tensor(shape);
  tensor.node_->needs_grad = true;
  tensor.node_->keeps_grad = true;
  return tensor;
}

Tensor attach(const char* op, Tensor y, std::initializer_list<Tensor> inputs,
              std::function<void(const Tensor&)> backward) {
  Node& node = *y.node_;
  node.needs_grad = true;
  node.created = ++recorder.created;
  node.op = op;
  if (recorder.watch) node.place = recorder.place_name();
  for (const Tensor& input : inputs)
    if (input.needs_grad()) node.inputs.push_back(input);
  node.backward = std::move(backward);
  return y;
}

WithoutGraph::WithoutGraph() : outer_(std::exchange(recorder.keeps_graph, false)) {}
WithoutGraph::~WithoutGraph() { recorder.keeps_graph = outer_; }

bool keeps_graph(std::initializer_list<Tensor> inputs) {
  return recorder.keeps_graph && std::ranges::any_of(inputs, [](const Tensor& input) { return input.needs_grad(); });
}

void announce(const char* op, const Tensor& y) {
  if (recorder.watch) (*recorder.watch)({true, op, recorder.place_name(), y.shape(), y.values()});
}

void backward(const Tensor& loss) {
  check(loss.shape().numel() == 1, "backward: the loss must have one element, got ", loss.shape());
  if (!loss.needs_grad()) return;
  const auto created_earlier = [](const Tensor& a, const Tensor& b) { return a.node_->created < b.node_->created; };
  std::priority_queue<Tensor, std::vector<Tensor>, decltype(created_earlier)> waiting(created_earlier);
  std::unordered_set<const Node*> met;  // asked for membership only; its order is never used

  loss.grad_sink().values[0] = 1;
  waiting.push(loss);
  while (!waiting.empty()) {
    const Tensor y = waiting.top();
    waiting.pop();
    Node& node = *y.node_;
    if (!node.backward) continue;  // a leaf
    if (node.has_grad) node.backward(y);
    for (const Tensor& input : node.inputs) {
      if (recorder.watch && input.node_->has_grad)
        (*recorder.watch)({false, node.op, node.place, input.shape(), input.grad()});
      if (met.insert(input.node_.get()).second) waiting.push(input);
    }
    node.backward = nullptr;
    node.inputs.clear();
    if (!node.keeps_grad) {
      node.grad = Buffer();
      node.has_grad = false;
    }
  }
}

Place::Place(const std::string& path) : outer_(std::exchange(recorder.place, &path)) {}
Place::~Place() { recorder.place = outer_; }

Watch::Watch(std::function<void(const Seen&)> see) : outer_(std::exchange(recorder.watch, &see_)) {
  see_ = [outer = outer_, inner = std::move(see)](const Seen& seen) {
    if (outer) (*outer)(seen);
    inner(seen);
  };
}
Watch::~Watch() { recorder.watch = outer_; }

}  // namespace NORMLAB_REAL
}  // namespace normlab
