// A line of metrics.jsonl or timing.jsonl in tidy form: one number at a time, with what it measures and of what.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "normlab/formats/json.h"
#include "normlab/host/files.h"

namespace normlab {

struct Figure {
  std::int64_t step = 0;
  std::optional<std::int64_t> layer;  // of what belongs to a block
  // Of what: the line's kind (train, eval, layers, ...; timing without one); `block` for a figure of each block; the
  // name of a parameter or norm, within its block: attn.qkv.weight; position.3 for a figure of each position.
  std::string part;
  std::string measure;    // loss, grad_norm, residual_rms, ...
  bool of_model = false;  // whether `part` is in the model, and no kind of line
  double value = 0;       // NaN where the line says that it is not finite
};

// A line of a log as it stands in the file: the object with one more member after the others, "crc", the CRC-32C of
// the line's bytes up to there, which tells any change of it.
std::string log_line(const Json& line);

// metrics.jsonl or timing.jsonl while a run writes it.
class LogWriter {
 public:
  LogWriter(const std::string& path, LineWriter::Start start) : file_(path, start) {}

  void write(const Json& line);
  // Who gets each line, too, once it is written.
  void tell(std::function<void(const Json& line)> listener) { listener_ = std::move(listener); }
  void flush() { file_.flush(); }  // to the disk

 private:
  LineWriter file_;
  std::function<void(const Json& line)> listener_;
};

// The whole lines of a log in turn, without their checksums, while `act` wants more; `end` is where the next one
// begins. The last one may have been cut short by a crash, and is left out. DataError with file and line for one that
// is no object with a step (and a text where it has a kind), or that is not what was written, and what `act` says of
// it. Logs of earlier versions have no checksum in any line; a line without one among others that have it is refused.
void read_log(std::string_view jsonl, const std::string& path,
              const std::function<bool(const Json& line, const std::string& place, std::size_t end)>& act);

// Whether any line of a log has a checksum; and a log of whole lines none of which has.
bool has_checksums(std::string_view jsonl);
std::string with_checksums(std::string_view jsonl);

// Figures that are unknown (null) are left out.
std::vector<Figure> figures_of(const Json& line);

// The lines of a metrics.jsonl as CSV (RFC 4180): step,layer,part,measure,value, one number a row.
std::string metrics_csv(std::string_view jsonl, const std::string& path);

}  // namespace normlab
