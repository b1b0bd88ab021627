#define QM_ISA baseline
#define QM_NAME "baseline"
#define QM_VECTOR_BYTES 16
#define QM_MAX_TILE_BYTES 128
#define QM_DENSE_ROWS 4
#define QM_DENSE_VECTORS 2

#include "chain.hpp"
#include "refine.hpp"
#include "sparse.hpp"
#include "support.hpp"

namespace quickmeans {
extern const Kernels<float> baseline_float = baseline::kKernels<float>;
extern const Kernels<double> baseline_double = baseline::kKernels<double>;
extern const FitRows baseline_fit_rows = baseline::fit_rows;
extern const Refine baseline_refine = baseline::refine;
extern const SparseTimes baseline_sparse_times = baseline::sparse_times;
}  // namespace quickmeans
