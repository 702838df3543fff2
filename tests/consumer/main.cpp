// Another project that uses the library: what it compiles and links is what matters.
#include <iostream>

#include "normlab/base/parallel.h"
#include "normlab/formats/json.h"

int main() {
  const double sum = normlab::ordered_sum(1000, [](normlab::Index begin, normlab::Index end) { return end - begin; });
  std::cout << normlab::Json::object({{"sum", sum}}).line() << '\n';
}
