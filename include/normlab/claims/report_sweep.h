// The report of a sweep: a page, pictures, and text for the terminal.
#pragma once

#include <string>

#include "normlab/claims/sweep_result.h"

namespace normlab {

// The page of a sweep: verdicts, curves of the main arms, maps, what happened layer by layer.
std::string sweep_page(SweepDirectory& directory, const SweepResult& result);

void write_sweep_report(SweepDirectory& directory, const SweepResult& result);

// The pictures of a sweep that say most: the main arms' loss, the maps, and one layer figure; for a file of its own.
std::string sweep_picture(SweepDirectory& directory, const SweepResult& result);

// For the terminal, `columns` wide: its table, curves and maps, and its verdicts.
std::string sweep_text(SweepDirectory& directory, const SweepResult& result, int columns);

}  // namespace normlab
