#define QM_ISA baseline
#define QM_NAME "baseline"
#define QM_VECTOR_BYTES 16
#define QM_MAX_TILE_BYTES 128
#define QM_DENSE_VECTORS 2

#include "kernels.hpp"

namespace quickmeans {
extern const InstructionSet baseline_set = baseline::kInstructionSet;
}  // namespace quickmeans
