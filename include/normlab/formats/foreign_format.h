// Files of other formats, known by their first bytes.
#pragma once

#include <string_view>

namespace normlab {

// DataError "NAME: is a gzip file, not EXPECTED; ..." with what to do, where `bytes` begin as a file of a known other
// format does; `expected`: "UTF-8 text".
void refuse_foreign(std::string_view bytes, std::string_view name, std::string_view expected);

}  // namespace normlab
