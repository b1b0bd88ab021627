#define QM_ISA baseline
#define QM_NAME "baseline"
#define QM_VECTOR_BYTES 16
#define QM_MAX_TILE_BYTES 128
#define QM_DENSE_ROWS 4
#define QM_DENSE_VECTORS 2

#include "kernels.hpp"

namespace quickmeans {
extern const Kernels<float> baseline_float = baseline::kKernels<float>;
extern const Kernels<double> baseline_double = baseline::kKernels<double>;
extern const Routines baseline_routines = baseline::kRoutines;
}  // namespace quickmeans
