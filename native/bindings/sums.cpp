// Groups of rows by label, their sums, the moments of rows, and starting points.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"
#include "grouping.hpp"
#include "parallel.hpp"

namespace quickmeans {
namespace {

using Weights = std::optional<Vector<double>>;

// Columns of a sum that one thread adds at a time: 8 KB of sums stay in the first-level cache.
constexpr std::int64_t kSumColumns = 1024;
// With fewer entries than this, one thread is faster than two: adding them takes about as long as starting a thread
// (benchmarks/cost_model.py measures both).
constexpr double kEntriesPerThread = 1e6;

template <class Label>
void group(Vector<Label> labels, std::int64_t n_labels, Line<std::int64_t> order, Line<std::int64_t> starts) {
    const auto n = std::int64_t(labels.size());
    require(has_size(order, n), "wrong size of order");
    require(n_labels >= 0 && has_size(starts, n_labels + 1), "wrong size of starts");
    nb::gil_scoped_release release;
    group_by_label(labels.data(), n, n_labels, order.data(), starts.data(), Interrupts());
}

int threads_for(int n_threads, std::int64_t n_rows, std::int64_t n_columns) {
    return double(n_rows) * double(n_columns) < kEntriesPerThread ? 1 : n_threads;
}

// sums[k] += the weighted rows of cluster k; see SumJob.
void add_members(const AnyArray& x, Vector<std::int64_t> members, Vector<std::int64_t> starts, const Weights& weights,
                 Cells<double> sums, int n_threads, const std::string& isa) {
    const auto n_clusters = std::int64_t(sums.shape(0)), n_columns = std::int64_t(sums.shape(1));
    const auto n_members = std::int64_t(members.size());
    const SumJob job{.rows = view_of(x, n_columns),
                     .members = members.data(),
                     .starts = starts.data(),
                     .weights = weights ? weights->data() : nullptr,
                     .sums = sums.data()};
    require(has_size(starts, n_clusters + 1) && job.starts[0] == 0 && job.starts[n_clusters] == n_members,
            "wrong starts");
    for (std::int64_t k = 0; k < n_clusters; ++k) require(job.starts[k] <= job.starts[k + 1], "wrong starts");
    for (std::int64_t m = 0; m < n_members; ++m)
        require(job.members[m] >= 0 && job.members[m] < job.rows.n_rows, "member out of range");
    require(!weights || has_size(*weights, n_members), "wrong size of weights");
    const auto add = find_instruction_set(isa).routines.add_members;
    const std::int64_t n_blocks = (n_columns + kSumColumns - 1) / kSumColumns;
    nb::gil_scoped_release release;
    const auto chunk = [&](std::int64_t i, int, const Poll& poll) {
        const std::int64_t first = i % n_blocks * kSumColumns;
        add(job, i / n_blocks, {first, std::min(kSumColumns, n_columns - first)}, poll);
        return true;
    };
    for_each_chunk(n_clusters * n_blocks, threads_for(n_threads, n_members, n_columns), chunk, Interrupts());
}

// Sums of d = x - shift and of d^2 over the rows, in as many blocks as `sums` has rows; see MomentJob.
void moments(const AnyArray& x, const Weights& weights, Vector<double> shift, Cells<double> sums, Cells<double> squares,
             int n_threads, const std::string& isa) {
    const auto n_blocks = std::int64_t(sums.shape(0)), n_columns = std::int64_t(sums.shape(1));
    const MomentJob job{.rows = view_of(x, n_columns),
                        .weights = weights ? weights->data() : nullptr,
                        .shift = shift.data(),
                        .sums = sums.data(),
                        .squares = squares.data()};
    const std::int64_t n = job.rows.n_rows;
    require(n_blocks > 0 && has_size(shift, n_columns), "wrong size of shift");
    require(has_shape(squares, n_blocks, n_columns), "wrong shape of squares");
    require(!weights || has_size(*weights, n), "wrong size of weights");
    const auto add = find_instruction_set(isa).routines.moments;
    nb::gil_scoped_release release;
    const auto chunk = [&](std::int64_t block, int, const Poll& poll) {
        const std::int64_t first = n / n_blocks * block + std::min(block, n % n_blocks);
        add(job, block, {first, n / n_blocks + (block < n % n_blocks)}, poll);
        return true;
    };
    for_each_chunk(n_blocks, threads_for(n_threads, n, n_columns), chunk, Interrupts());
}

// Starting points by k-means++; see SeedJob. Returns their number.
std::int64_t seed(Matrix<float> points, Vector<float> residuals, Vector<double> weights, std::int64_t first,
                  Matrix<double> uniforms, Line<std::int64_t> chosen, const std::string& isa) {
    const auto n = std::int64_t(points.shape(1)), n_centers = std::int64_t(chosen.size());
    const auto n_trials = std::int64_t(uniforms.shape(1));
    require(has_size(residuals, n) && has_size(weights, n), "wrong size of residuals or weights");
    require(n_centers > 0 && n_trials > 0 && has_shape(uniforms, n_centers, n_trials), "wrong shape of uniforms");
    require(first >= 0 && first < n, "first out of range");
    const auto routine = find_instruction_set(isa).routines.seed;
    nb::gil_scoped_release release;
    std::vector<float> distances(std::size_t(3 * n));
    std::vector<double> sums(std::size_t(3 * (n / kSeedBlock + 1)));
    const SeedJob job{.n_points = n,
                      .n_columns = std::int64_t(points.shape(0)),
                      .points = points.data(),
                      .residuals = residuals.data(),
                      .weights = weights.data(),
                      .n_centers = n_centers,
                      .n_trials = n_trials,
                      .first = first,
                      .uniforms = uniforms.data(),
                      .chosen = chosen.data(),
                      .distances = distances.data(),
                      .sums = sums.data()};
    return routine(job, Interrupts());
}

template <class Label>
void bind_group(nb::module_& m) {
    m.def("group_by_label", &group<Label>, "labels"_a.noconvert(), "n_labels"_a, "order"_a.noconvert(),
          "starts"_a.noconvert());
}

}  // namespace

void bind_sums(nb::module_& m) {
    bind_group<std::int32_t>(m);
    bind_group<std::int64_t>(m);
    m.def("add_members", &add_members, "x"_a.noconvert(), "members"_a.noconvert(), "starts"_a.noconvert(),
          "weights"_a.noconvert().none(), "sums"_a.noconvert(), "n_threads"_a, "isa"_a);
    m.def("moments", &moments, "x"_a.noconvert(), "weights"_a.noconvert().none(), "shift"_a.noconvert(),
          "sums"_a.noconvert(), "squares"_a.noconvert(), "n_threads"_a, "isa"_a);
    m.def("seed", &seed, "points"_a.noconvert(), "residuals"_a.noconvert(), "weights"_a.noconvert(), "first"_a,
          "uniforms"_a.noconvert(), "chosen"_a.noconvert(), "isa"_a);
}

}  // namespace quickmeans
