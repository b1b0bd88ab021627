// Made-up numbers, and what the driver of threads does with them.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/types.hpp"

namespace quickmeans {

inline void nothing(void*) {}
inline const Poll kQuiet{nothing, nullptr};

inline void check(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
}

template <class T>
std::vector<T> normal(std::int64_t n, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> distribution;
    std::vector<T> values(static_cast<std::size_t>(n));
    for (T& value : values) value = T(distribution(generator));
    return values;
}

template <class T>
RowsView view_of(const std::vector<T>& x, std::int64_t n_columns) {
    return {.data = reinterpret_cast<const char*>(x.data()),
            .n_rows = std::int64_t(x.size()) / n_columns,
            .n_columns = n_columns,
            .row_stride = n_columns * std::int64_t(sizeof(T)),
            .column_stride = sizeof(T),
            .scalar = sizeof(T) == 4 ? Scalar::f32 : Scalar::f64,
            .index = nullptr,
            .end = reinterpret_cast<const char*>(x.data() + x.size())};
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace quickmeans
