// Reports: one self-contained HTML file for a run or several; the same in characters for the terminal; and two runs
// side by side.
#pragma once

#include <span>
#include <string>

#include "normlab/run/run_reader.h"

namespace normlab {

// The page of one run, or of several side by side.
std::string run_page(std::span<const RunFiles> runs);
void write_run_report(const std::string& directory);  // DIRECTORY/report.html
// The same by a process of `program`, whose memory goes with it: a long run's log is large when read at once.
// SystemError when it is not done within a minute.
void write_run_report_apart(const std::string& program, const std::string& directory);
// For the terminal, `columns` wide.
std::string run_text(const RunFiles& run, int columns);
std::string diff_text(const RunFiles& left, const RunFiles& right, int columns);

}  // namespace normlab
