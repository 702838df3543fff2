// The linear layer and its matrix products in float.
#define PRECISION "float"
#include "gemm_cases.h"
