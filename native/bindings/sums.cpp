// Groups of rows by label, their sums, the moments of rows, and starting points.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"
#include "grouping.hpp"
#include "seeding.hpp"
#include "sums.hpp"

namespace quickmeans {
namespace {

using Weights = std::optional<Vector<double>>;
using Origin = Weights;

template <class Label>
void group(Vector<Label> labels, std::int64_t n_labels, Line<std::int64_t> order, Line<std::int64_t> starts) {
    const auto n = std::int64_t(labels.size());
    require(has_size(order, n), "wrong size of order");
    require(n_labels >= 0 && has_size(starts, n_labels + 1), "wrong size of starts");
    nb::gil_scoped_release release;
    group_by_label(labels.data(), n, n_labels, order.data(), starts.data(), Interrupts());
}

// sums[k] += the weighted rows of cluster k; see SumJob.
void add(const AnyArray& x, Vector<std::int64_t> members, Vector<std::int64_t> starts, const Weights& weights,
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
    const InstructionSet& set = find_instruction_set(isa);
    nb::gil_scoped_release release;
    add_members(job, n_clusters, set, n_threads, Interrupts());
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
    const InstructionSet& set = find_instruction_set(isa);
    nb::gil_scoped_release release;
    add_moments(job, n_blocks, set, n_threads, Interrupts());
}

// The rows about an origin in float32; see CenterJob.
void center(const AnyArray& x, const Origin& origin, double scale, Cells<float> out, int n_threads,
            const std::string& isa) {
    const auto n_columns = std::int64_t(out.shape(1));
    const CenterJob job{
        .rows = view_of(x, n_columns), .origin = origin ? origin->data() : nullptr, .scale = scale, .out = out.data()};
    require(has_shape(out, job.rows.n_rows, n_columns), "wrong shape of out");
    require(!origin || has_size(*origin, n_columns), "wrong size of origin");
    const InstructionSet& set = find_instruction_set(isa);
    nb::gil_scoped_release release;
    center_rows(job, set, n_threads, Interrupts());
}

// Starting points by k-means++; see seeding.hpp. Returns their number.
std::int64_t choose_seeds(Matrix<float> rows, Vector<double> weights, std::int64_t first, Matrix<double> uniforms,
                          Line<std::int64_t> chosen, int n_threads, const std::string& isa) {
    const auto n = std::int64_t(rows.shape(0)), n_centers = std::int64_t(chosen.size());
    const auto n_trials = std::int64_t(uniforms.shape(1));
    require(has_size(weights, n), "wrong size of weights");
    require(n_centers > 0 && n_trials > 0 && has_shape(uniforms, n_centers, n_trials), "wrong shape of uniforms");
    require(first >= 0 && first < n, "first out of range");
    const InstructionSet& set = find_instruction_set(isa);
    require(n_trials <= kTrials, "too many uniforms for a center");
    nb::gil_scoped_release release;
    return seed(rows.data(), n, std::int64_t(rows.shape(1)), weights.data(), first, uniforms.data(), n_centers,
                n_trials, chosen.data(), set, n_threads, Interrupts());
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
    m.def("add_members", &add, "x"_a.noconvert(), "members"_a.noconvert(), "starts"_a.noconvert(),
          "weights"_a.noconvert().none(), "sums"_a.noconvert(), "n_threads"_a, "isa"_a);
    m.def("moments", &moments, "x"_a.noconvert(), "weights"_a.noconvert().none(), "shift"_a.noconvert(),
          "sums"_a.noconvert(), "squares"_a.noconvert(), "n_threads"_a, "isa"_a);
    m.def("center_rows", &center, "x"_a.noconvert(), "origin"_a.noconvert().none(), "scale"_a, "out"_a.noconvert(),
          "n_threads"_a, "isa"_a);
    m.def("seed", &choose_seeds, "rows"_a.noconvert(), "weights"_a.noconvert(), "first"_a, "uniforms"_a.noconvert(),
          "chosen"_a.noconvert(), "n_threads"_a, "isa"_a);
}

}  // namespace quickmeans
