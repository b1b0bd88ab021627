#define QM_ISA avx512
#define QM_NAME "avx512"
#define QM_VECTOR_BYTES 64
#define QM_MAX_TILE_BYTES 256
#define QM_DENSE_ROWS 4
#define QM_DENSE_VECTORS 4

#include "chain.hpp"
#include "refine.hpp"
#include "sparse.hpp"
#include "support.hpp"

namespace quickmeans {
extern const Kernels<float> avx512_float = avx512::kKernels<float>;
extern const Kernels<double> avx512_double = avx512::kKernels<double>;
extern const FitRows avx512_fit_rows = avx512::fit_rows;
extern const Refine avx512_refine = avx512::refine;
extern const SparseTimes avx512_sparse_times = avx512::sparse_times;
}  // namespace quickmeans
