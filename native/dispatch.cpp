// Which instruction sets there are.
#include "dispatch.hpp"

#include <stdexcept>

namespace quickmeans {

#if defined(QM_X86)
extern const Kernels<float> avx512_float, avx2_float;
extern const Kernels<double> avx512_double, avx2_double;
#endif
extern const Kernels<float> baseline_float;
extern const Kernels<double> baseline_double;

namespace {

struct Entry {
    bool available;
    const Kernels<float>* single;
    const Kernels<double>* twofold;
};

std::vector<Entry> entries() {
    std::vector<Entry> all;
#if defined(QM_X86)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    all.push_back({avx512, &avx512_float, &avx512_double});
    all.push_back({avx2, &avx2_float, &avx2_double});
#endif
    all.push_back({true, &baseline_float, &baseline_double});
    return all;
}

}  // namespace

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const Entry& entry : entries())
        if (entry.available) names.push_back(entry.single->name);
    return names;
}

template <class T>
const Kernels<T>* find_kernels(const std::string& isa) {
    for (const Entry& entry : entries()) {
        const Kernels<T>* kernels;
        if constexpr (sizeof(T) == 4)
            kernels = entry.single;
        else
            kernels = entry.twofold;
        if (entry.available && (isa.empty() || isa == kernels->name)) return kernels;
    }
    std::string message = "QUICKMEANS_ISA is '" + isa + "', but this machine offers";
    for (const std::string& name : instruction_sets()) message += " '" + name + "'";
    throw std::invalid_argument(message + ".");
}

template const Kernels<float>* find_kernels<float>(const std::string&);
template const Kernels<double>* find_kernels<double>(const std::string&);

}  // namespace quickmeans
