// The linear layer and its matrix products in double.
#define PRECISION "double"
#include "gemm_cases.h"
