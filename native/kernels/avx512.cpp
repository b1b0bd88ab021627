#define QM_ISA avx512
#define QM_NAME "avx512"
#define QM_VECTOR_BYTES 64
#define QM_MAX_TILE_BYTES 256
#define QM_DENSE_VECTORS 4

#include "kernels.hpp"

namespace quickmeans {
extern const InstructionSet avx512_set = avx512::kInstructionSet;
}  // namespace quickmeans
