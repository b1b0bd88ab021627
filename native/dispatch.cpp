// Which instruction sets there are.
#include "dispatch.hpp"

#include <stdexcept>

namespace quickmeans {

#if defined(QM_X86)
extern const Kernels<float> avx512_float, avx2_float;
extern const Kernels<double> avx512_double, avx2_double;
extern const FitRows avx512_fit_rows, avx2_fit_rows;
extern const Refine avx512_refine, avx2_refine;
extern const SparseTimes avx512_sparse_times, avx2_sparse_times;
#endif
extern const Kernels<float> baseline_float;
extern const Kernels<double> baseline_double;
extern const FitRows baseline_fit_rows;
extern const Refine baseline_refine;
extern const SparseTimes baseline_sparse_times;

namespace {

struct Entry {
    bool available;
    const Kernels<float>* single;
    const Kernels<double>* twofold;
    FitRows fit_rows;
    Refine refine;
    SparseTimes sparse_times;
};

std::vector<Entry> entries() {
    std::vector<Entry> all;
#if defined(QM_X86)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    all.push_back({avx512, &avx512_float, &avx512_double, avx512_fit_rows, avx512_refine, avx512_sparse_times});
    all.push_back({avx2, &avx2_float, &avx2_double, avx2_fit_rows, avx2_refine, avx2_sparse_times});
#endif
    all.push_back({true, &baseline_float, &baseline_double, baseline_fit_rows, baseline_refine, baseline_sparse_times});
    return all;
}

}  // namespace

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const Entry& entry : entries())
        if (entry.available) names.push_back(entry.single->name);
    return names;
}

namespace {

Entry find_entry(const std::string& isa) {
    for (const Entry& entry : entries())
        if (entry.available && (isa.empty() || isa == entry.single->name)) return entry;
    std::string offers;
    for (const std::string& name : instruction_sets()) offers += (offers.empty() ? "" : ", ") + name;
    throw std::invalid_argument("QUICKMEANS_ISA is '" + isa + "'; set it to one of " + offers + ", or unset it.");
}

}  // namespace

template <class T>
const Kernels<T>* find_kernels(const std::string& isa) {
    if constexpr (sizeof(T) == 4)
        return find_entry(isa).single;
    else
        return find_entry(isa).twofold;
}

FitRows find_fit_rows(const std::string& isa) { return find_entry(isa).fit_rows; }
Refine find_refine(const std::string& isa) { return find_entry(isa).refine; }
SparseTimes find_sparse_times(const std::string& isa) { return find_entry(isa).sparse_times; }

template const Kernels<float>* find_kernels<float>(const std::string&);
template const Kernels<double>* find_kernels<double>(const std::string&);

}  // namespace quickmeans
