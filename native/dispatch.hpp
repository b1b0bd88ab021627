// The choice of an instruction set at run time.
#pragma once

#include <string>
#include <vector>

#include "kernels/types.hpp"

namespace quickmeans {

// The instruction sets that this build has and this machine can run, best first.
std::vector<std::string> instruction_sets();

// The named instruction set, or the best for an empty name. Throws std::invalid_argument for a name that is not there.
const InstructionSet& find_instruction_set(const std::string& name);

template <class T>
const Kernels<T>& kernels_of(const InstructionSet& set) {
    if constexpr (sizeof(T) == 4)
        return set.single;
    else
        return set.twofold;
}

}  // namespace quickmeans
