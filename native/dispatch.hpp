// The choice of an instruction set at run time.
#pragma once

#include <string>
#include <vector>

#include "kernels/types.hpp"

namespace quickmeans {

// The instruction sets that this machine has and this build knows, best first.
std::vector<std::string> instruction_sets();

// The kernels of the named set, or of the best one for an empty name; std::invalid_argument if it is not there.
template <class T>
const Kernels<T>* find_kernels(const std::string& isa);
FitRows find_fit_rows(const std::string& isa);
Refine find_refine(const std::string& isa);
SparseTimes find_sparse_times(const std::string& isa);

}  // namespace quickmeans
