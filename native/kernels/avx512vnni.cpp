// The scan of lists with the instruction that multiplies bytes; all else is that of AVX-512.
#define QM_ISA avx512vnni
#define QM_VECTOR_BYTES 64

#include "scan.hpp"

namespace quickmeans {
extern void (*const avx512vnni_scan_list)(const ScanJob&, const ScanList&, const std::int64_t*, std::int64_t,
                                          const Poll&);
void (*const avx512vnni_scan_list)(const ScanJob&, const ScanList&, const std::int64_t*, std::int64_t,
                                   const Poll&) = avx512vnni::scan_list;
}  // namespace quickmeans
