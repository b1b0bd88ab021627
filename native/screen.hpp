// Centers c_k, and a product whose rows are near them, made ready for the kernel of kernels/shortlist.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "product.hpp"

namespace quickmeans {

// One product row per center, made of the centers themselves. Zeros are left out if most entries are zero.
template <class T>
Product<T> product_of_centers(const T* centers, std::int64_t n_rows, std::int64_t n_columns, const std::string& isa,
                              const Poll& poll) {
    const std::int64_t size = n_rows * n_columns;
    const std::int64_t n_zeros = std::count(centers, centers + size, T(0));
    if (2 * n_zeros < size) return Product<T>({{n_rows, n_columns, nullptr, nullptr, centers}}, isa, poll);
    std::vector<std::int64_t> indptr{0};
    std::vector<std::int32_t> indices;
    std::vector<T> values;
    for (std::int64_t k = 0; k < n_rows; ++k) {
        for (std::int64_t j = 0; j < n_columns; ++j)
            if (const T value = centers[k * n_columns + j]; value != T(0)) {
                indices.push_back(std::int32_t(j));
                values.push_back(value);
            }
        indptr.push_back(std::int64_t(values.size()));
    }
    return Product<T>({{n_rows, n_columns, indptr.data(), indices.data(), values.data()}}, isa, poll);
}

// |x|_1 <= sqrt(n) |x|_2 for a row x of n entries: no <x, c_k> exceeds the largest |x_j| by more than this factor.
template <class T>
double largest_growth(const T* centers, std::int64_t n_rows, std::int64_t n_columns) {
    double largest = 0;
    for (std::int64_t k = 0; k < n_rows; ++k) {
        double square[4] = {};  // four sums, so that no addition waits for the last
        for (std::int64_t j = 0; j < n_columns; ++j) {
            const double c = double(centers[k * n_columns + j]);
            square[j % 4] += c * c;
        }
        largest = std::max(largest, (square[0] + square[1]) + (square[2] + square[3]));
    }
    return std::sqrt(double(n_columns) * largest);
}

inline double largest_size(const double* values, std::size_t n) {
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(values[i]));
    return largest;
}

// What the screens of one set of centers share.
template <class T>
struct ScreenParts {
    Product<T> product;       // its row v_k is near c_k
    Product<T> first_factor;  // for rows that the other factors have been applied to
    bool exact;               // whether v_k = c_k
    const T* centers;         // n_centers x n_columns, kept alive by the maker of the parts
    std::int64_t n_columns;
    std::vector<T> mean, center_offset, slack;
    double growth;
};

// A SettleJob that waits for its rows and results.
template <class T>
struct Screen {
    std::shared_ptr<const ScreenParts<T>> parts;
    std::shared_ptr<const std::vector<T>> offset;
    double largest_offset;
    double margin;
    std::int64_t shortlist;

    SettleJob<T> job() const {
        SettleJob<T> job{};
        job.screen.offset = offset->data();
        job.screen.largest_offset = largest_offset;
        job.mean = parts->mean.data();
        job.centers = parts->centers;
        job.center_offset = parts->center_offset.data();
        job.slack = parts->slack.data();
        job.margin = T(margin);
        job.shortlist = shortlist;
        return job;
    }
};

}  // namespace quickmeans
