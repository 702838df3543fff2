// Checkpoints, with whatever metadata and tensors: nothing is built that the file does not hold, and what loads is
// equal when it is saved and loaded again.
#include "normlab/run/checkpoint.h"

#include "fuzz.h"
#include "normlab/config/loader.h"
#include "normlab/host/files.h"

namespace normlab::fuzz {
namespace {

void look_at(const Checkpoint& checkpoint) {
  promise(checkpoint.state().step >= 0 && checkpoint.state().diverging_steps >= 0, "no negative counts");
  promise(Tokenizer::load(checkpoint.tokenizer().save()) == checkpoint.tokenizer(), "the tokenizer reads back equal");
  const auto model = accepted([&] { return checkpoint.model(); });
  if (!model) return;
  Optimizer optimizer(checkpoint.config().optimizer, model->store());
  if (!accepted([&] { return checkpoint.restore(optimizer), true; })) return;
  const auto hash = accepted([&] { return checkpoint.data_hash(); });
  if (!hash) return;
  save_checkpoint(scratch_file(), checkpoint.config(), checkpoint.tokenizer(), *hash, checkpoint.state(), *model,
                  optimizer);
  const std::string saved = read_file(scratch_file());
  const Checkpoint again(Safetensors::parse(saved, "again", Checksum::required));
  promise(config::differences(checkpoint.config(), again.config()).empty(), "the configuration reads back equal");
  save_checkpoint(scratch_file(), again.config(), again.tokenizer(), again.data_hash(), again.state(), *model,
                  optimizer);
  promise(read_file(scratch_file()) == saved, "saved again it is the same");
}

}  // namespace

void checkpoint(std::string_view bytes) {
  const auto file = accepted([&] { return Safetensors::parse(std::string(bytes), "f.safetensors"); });
  if (!file) return;
  Metadata metadata = file->metadata();
  metadata.erase("crc32c");
  write_checksummed(scratch_file(), metadata, file->tensors());
  const auto checkpoint = accepted([] { return Checkpoint(scratch_file()); });
  if (checkpoint) look_at(*checkpoint);
}

}  // namespace normlab::fuzz
