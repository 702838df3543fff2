#include <iostream>

#include "normlab/data/dataset.h"
#include "normlab/nn/gpt.h"
#include "normlab/optim/optimizer.h"
#include "normlab/optim/schedule.h"
using namespace normlab;  // Real is float; normlab::f64 has the same names in double

int main() {
  DataConfig text;  // built-in tales, one token a character
  text.size = 100000;
  ModelConfig shape;  // the keys under `model:` of a configuration
  shape.n_layers = 2, shape.d_model = 32, shape.context_length = 32, shape.norm = NormKind::rms;
  shape.resolve();
  ScheduleConfig schedule;
  schedule.warmup_steps = 20, schedule.min_lr = 0;
  const Dataset data = Dataset::load(text, shape.context_length, 1);
  const Gpt model(shape, data.tokenizer().vocab_size(), 1);
  Optimizer adamw({}, model.store());
  for (int step = 1; step <= 300; ++step) {
    const Batch batch = data.train_batch(step, 0, 8);
    Pass pass;
    pass.training = true;
    model.store().clear_gradients();
    const Tensor loss = model.loss(batch, pass);
    backward(loss);
    adamw.step(step, learning_rate(schedule, 5e-3, step, 300), clip_coefficient(1, gradient_norm(model.store())));
    if (step % 100 == 0 || step == 1) std::cout << "step " << step << " loss " << loss.item() << '\n';
  }
}
