// A tensor is a handle to a node of the recorded graph: values, gradient, and how to pass the gradient on.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "normlab/base/check.h"
#include "normlab/base/shape.h"
#include "normlab/kernels/kernels.h"

namespace normlab {
inline namespace NORMLAB_REAL {

struct Node;

// Copies share the node. A default-constructed handle is empty.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Shape shape);  // values are not initialised

  explicit operator bool() const { return node_ != nullptr; }
  const Shape& shape() const;
  Out values() const;
  Real item() const;  // the value of a tensor of one element

  bool needs_grad() const;
  In grad() const;         // what has been added so far; empty when nothing has
  Grad grad_sink() const;  // where the next contribution goes; an empty one when no gradient is needed
  // Adds the gradient to that of x, which takes the memory over where it can. The last use of it in an op's backward.
  void hand_grad_to(const Tensor& x) const;
  void clear_grad() const;
  void retain_grad() const;  // keep the gradient after backward() has passed this tensor

 private:
  friend Tensor parameter_tensor(Shape);
  friend void backward(const Tensor&);
  friend Tensor attach(const char*, Tensor, std::initializer_list<Tensor>, std::function<void(const Tensor&)>);

  std::shared_ptr<Node> node_;
};

// The values of a tensor that an op may do without; empty for an empty handle.
inline In values_or_none(const Tensor& tensor) { return tensor ? In(tensor.values()) : In(); }

// A leaf that needs a gradient; it is kept until clear_grad().
Tensor parameter_tensor(Shape shape);

// Puts y into the graph as computed by `op` from `inputs`. `backward(y)` adds to the inputs' gradients from y.grad().
// It captures inputs and saved statistics by value, and takes y as an argument (capturing it would be a cycle).
Tensor attach(const char* op, Tensor y, std::initializer_list<Tensor> inputs,
              std::function<void(const Tensor&)> backward);

// Tells the watch about y (below).
void announce(const char* op, const Tensor& y);

// While it lives no graph is kept, though parameters need gradients: evaluation and sampling free each tensor at once.
class WithoutGraph {
 public:
  WithoutGraph();
  ~WithoutGraph();
  WithoutGraph(const WithoutGraph&) = delete;
  WithoutGraph& operator=(const WithoutGraph&) = delete;

 private:
  bool outer_;
};

// True when an op with these inputs goes into the graph: one of them needs a gradient, and no WithoutGraph lives.
bool keeps_graph(std::initializer_list<Tensor> inputs);

template <class Backward>
Tensor record(const char* op, Tensor y, std::initializer_list<Tensor> inputs, Backward backward) {
  announce(op, y);
  if (keeps_graph(inputs)) return attach(op, std::move(y), inputs, std::move(backward));
  return y;
}

// Gradients of `loss` (one element) with respect to all it was computed from, added to what is there. Nodes are run
// in falling order of creation, which is a topological order, and are taken apart as the work passes them: a graph is
// good for one backward().
void backward(const Tensor& loss);

// Names the part of the model that ops belong to while it lives, as "blocks.3.attn".
class Place {
 public:
  explicit Place(const std::string& path);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  const std::string* outer_;
};

// While it lives, `see` is called with each op's result in the forward, and each gradient it adds to in the backward.
// For the search of the first non-finite value; `see` may throw to stop the work. Of watches within one another the
// outer one sees first.
struct Seen {
  bool forward;
  std::string_view op, place;
  const Shape& shape;
  In values;  // in the backward: the gradient of an input of that shape
};
class Watch {
 public:
  explicit Watch(std::function<void(const Seen&)> see);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  std::function<void(const Seen&)> see_;
  std::function<void(const Seen&)>* outer_;
};

}  // namespace NORMLAB_REAL
}  // namespace normlab
