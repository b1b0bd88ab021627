#define QM_ISA avx2
#define QM_NAME "avx2"
#define QM_VECTOR_BYTES 32
#define QM_MAX_TILE_BYTES 256
#define QM_DENSE_ROWS 4
#define QM_DENSE_VECTORS 2

#include "chain.hpp"
#include "refine.hpp"
#include "sparse.hpp"
#include "support.hpp"

namespace quickmeans {
extern const Kernels<float> avx2_float = avx2::kKernels<float>;
extern const Kernels<double> avx2_double = avx2::kKernels<double>;
extern const FitRows avx2_fit_rows = avx2::fit_rows;
extern const Refine avx2_refine = avx2::refine;
extern const SparseTimes avx2_sparse_times = avx2::sparse_times;
}  // namespace quickmeans
