#define QM_ISA avx2
#define QM_NAME "avx2"
#define QM_VECTOR_BYTES 32
#define QM_MAX_TILE_BYTES 256
#define QM_DENSE_VECTORS 2

#include "kernels.hpp"

namespace quickmeans {
extern const InstructionSet avx2_set = avx2::kInstructionSet;
}  // namespace quickmeans
