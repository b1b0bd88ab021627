#include "dispatch.hpp"

#include <stdexcept>

namespace quickmeans {

#if defined(QM_X86)
extern const InstructionSet avx512_set, avx2_set;
extern void (*const avx512vnni_scan_list)(const ScanJob&, const ScanList&, const std::int64_t*, std::int64_t,
                                          const Poll&);
#endif
extern const InstructionSet baseline_set;

namespace {

#if defined(QM_X86)
// AVX-512 with a product of bytes.
const InstructionSet& avx512vnni_set() {
    static const InstructionSet set = [] {
        InstructionSet changed = avx512_set;
        changed.name = "avx512vnni";
        changed.routines.scan_list = avx512vnni_scan_list;
        return changed;
    }();
    return set;
}
#endif

// Those that the machine can run, best first.
std::vector<const InstructionSet*> available_sets() {
    std::vector<const InstructionSet*> sets;
#if defined(QM_X86)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (avx512 && __builtin_cpu_supports("avx512vnni")) sets.push_back(&avx512vnni_set());
    if (avx512) sets.push_back(&avx512_set);
    if (avx2) sets.push_back(&avx2_set);
#endif
    sets.push_back(&baseline_set);
    return sets;
}

}  // namespace

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const InstructionSet* set : available_sets()) names.push_back(set->name);
    return names;
}

const InstructionSet& find_instruction_set(const std::string& name) {
    std::string names;
    for (const InstructionSet* set : available_sets()) {
        if (name.empty() || name == set->name) return *set;
        names += (names.empty() ? "" : ", ") + std::string(set->name);
    }
    throw std::invalid_argument("QUICKMEANS_ISA is '" + name + "'; set it to one of " + names + ", or unset it.");
}

}  // namespace quickmeans
