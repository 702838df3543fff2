// Reports: one self-contained HTML file for a run, several runs or a sweep; the same in characters for the terminal;
// and two runs side by side.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "normlab/lab/run_files.h"
#include "normlab/lab/sweep.h"

namespace normlab {

// The page of one run, or of several beside one another.
std::string run_page(std::span<const RunFiles> runs);
// The page of a sweep: verdicts, curves of the main arms, maps, what happened layer by layer.
std::string sweep_page(const Sweep& sweep, const std::string& directory, const SweepResult& result);

void write_run_report(const std::string& directory);  // DIRECTORY/report.html
// The same by a process of `program`, whose memory goes with it: a long run's log is large when read at once.
// SystemError when it is not done within a minute.
void write_run_report_apart(const std::string& program, const std::string& directory);
void write_sweep_report(const Sweep& sweep, const std::string& directory, const SweepResult& result);

// The pictures of a sweep that say most: the main arms' loss, the maps, and one layer figure; for a file of its own.
std::string sweep_picture(const Sweep& sweep, const std::string& directory, const SweepResult& result);

// For the terminal, `columns` wide.
// Of a sweep: its table, curves and maps, and its verdicts.
std::string sweep_text(const Sweep& sweep, const std::string& directory, const SweepResult& result, int columns);
std::string run_text(const RunFiles& run, int columns);
std::string diff_text(const RunFiles& left, const RunFiles& right, int columns);

}  // namespace normlab
