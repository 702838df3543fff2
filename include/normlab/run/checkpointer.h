// Which checkpoints a run keeps.
#pragma once

#include <functional>
#include <string>

#include "normlab/run/checkpoint.h"
#include "normlab/train/observer.h"

namespace normlab {

// Writes DIR/step-NNNNNN.safetensors every `checkpoint.every` steps, after step `last` and when the run stops, keeps
// the newest `checkpoint.keep` of them, and DIR/best.safetensors for the lowest validation loss. Comes last among the
// observers, since it saves what the others have noted in `state`. An evaluation that a signal has cut is noted as due.
class Checkpointer : public Observer {
 public:
  // save(path) writes the checkpoint of this moment, or returns the name of a tensor that is not finite, without having
  // written: then the run ends as `nonfinite`, and the last good checkpoint stays.
  Checkpointer(std::string directory, const CheckpointConfig& config, std::int64_t last, TrainingState& state,
               std::function<std::string(const std::string&)> save);
  void on_step_end(const StepReport& step, const EvalReport* evaluation, RunControl& control) override;
  void on_late_evaluation(const EvalReport& evaluation, RunControl& control) override;
  void on_run_end(const RunReport& report) override;

 private:
  std::string note(const EvalReport& evaluation);  // and saves it if it is the best
  std::string save_step(std::int64_t step);
  void remove_old() const;  // all but the newest `keep`

  std::string directory_;
  CheckpointConfig config_;
  std::int64_t last_;
  TrainingState& state_;
  std::function<std::string(const std::string&)> save_;
};

}  // namespace normlab
