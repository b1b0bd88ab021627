// Centers c_k, and a product whose rows are near them, made ready for the kernel of kernels/shortlist.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nearest.hpp"
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

// |x_j| up to which no score and no squared distance overflows.
template <class T>
T comparable_limit(double growth, double largest_offset, std::int64_t n_columns) {
    const double most = double(std::numeric_limits<T>::max());
    const double limit = (most / 4 - largest_offset) / std::max(growth, 1.0);
    return limit > 0 ? T(std::min(limit, std::sqrt(most / 16 / double(n_columns)))) : T(0);  // 0 also if it is NaN
}

// What the screens of one set of centers share.
template <class T>
struct ScreenParts {
    const InstructionSet* set;
    std::int64_t n_centers, n_columns;
    const T* centers;  // n_centers x n_columns, kept alive by the maker of the parts
    std::vector<T> mean, center_offset, slack;
    double growth;
    std::optional<Product<T>> product;       // its row v_k is near c_k; none: v_k = c_k
    std::optional<Product<T>> first_factor;  // for rows that the other factors have been applied to
    std::vector<T> panels, panel_offset;     // of the centers, if there is no product

    // The product, or else one of the centers themselves, which is made when it is first asked for.
    const Product<T>& listing(const Poll& poll) const {
        if (product) return *product;
        std::call_once(once_, [&] { own_ = product_of_centers(centers, n_centers, n_columns, set->name, poll); });
        return *own_;
    }

    T limit(double largest_offset) const { return comparable_limit<T>(growth, largest_offset, n_columns); }

  private:
    mutable std::once_flag once_;
    mutable std::optional<Product<T>> own_;
};

// A SettleJob that waits for its rows and results.
template <class T>
struct Screen {
    std::shared_ptr<const ScreenParts<T>> parts;
    std::shared_ptr<const std::vector<T>> offset;
    double largest_offset;
    double margin;
    std::int64_t shortlist;

    // Whether rows are compared with all centers.
    bool is_plain() const { return !parts->product && !shortlist; }

    NearestJob<T> nearest_job() const {
        NearestJob<T> job{};
        job.panels = parts->panels.data();
        job.offset = parts->panel_offset.data();
        job.n_centers = parts->n_centers;
        job.limit = parts->limit(largest_offset);
        job.mean = parts->mean.data();
        return job;
    }

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
