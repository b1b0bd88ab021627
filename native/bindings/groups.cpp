// Centers in groups, and the assignment of rows to them.
#include "groups.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <memory>
#include <string>

#include "assignment.hpp"
#include "bindings.hpp"

namespace quickmeans {
namespace {

template <class T>
struct BoundGroups {
    Matrix<T> owner;  // of the centers
    std::shared_ptr<const Groups<T>> groups;
};

template <class T>
BoundGroups<T> make_groups(Matrix<T> centers, Vector<double> center_offset, Vector<double> mean, Matrix<T> directions,
                           Matrix<T> points, Vector<std::int32_t> labels, std::int64_t n_groups, std::int64_t n_narrow,
                           bool spherical, const std::string& isa) {
    const std::int64_t K = std::int64_t(centers.shape(0)), D = std::int64_t(centers.shape(1));
    const std::int64_t r = std::int64_t(directions.shape(0));
    require(K > 0 && D > 0 && K < (std::int64_t(1) << 31), "wrong shape of centers");
    require(has_size(center_offset, K), "wrong size of center_offset");
    require(has_size(mean, D), "wrong size of mean");
    require(r > 0 && has_shape(directions, r, D), "wrong shape of directions");
    require(has_shape(points, K, r + 1), "wrong shape of points");
    require(has_size(labels, K), "wrong size of labels");
    require(n_groups > 0 && n_groups <= K, "n_groups must be between 1 and the number of centers");
    require(n_narrow > 0 && n_narrow <= r, "n_narrow must be between 1 and the number of directions");
    const typename Groups<T>::Source source{K,
                                            D,
                                            r,
                                            n_narrow,
                                            n_groups,
                                            centers.data(),
                                            center_offset.data(),
                                            mean.data(),
                                            directions.data(),
                                            points.data(),
                                            labels.data(),
                                            spherical};
    const InstructionSet& set = find_instruction_set(isa);
    std::shared_ptr<const Groups<T>> groups;
    {
        nb::gil_scoped_release release;
        groups = std::make_shared<const Groups<T>>(source, set, Interrupts());
    }
    return {centers, groups};
}

// Find the nearest centers of the rows of x, or of those that the index names, which are rows from `first` on of the
// assignment. If it is `known`, it has labels and scores to be made certain. Returns -1 or a bad row as Screen.assign
// does, and how many points rows were compared with.
template <class T>
std::pair<std::int64_t, std::int64_t> assign(const BoundGroups<T>& self, const AnyArray& x, Assignment<T>& assignment,
                                             std::int64_t first, const std::optional<Vector<std::int64_t>>& index,
                                             double reach, bool known, int n_threads) {
    require(reach >= 0, "reach must not be negative");
    GroupJob<T> job = self.groups->job();
    job.rows = view_of(x, self.groups->n_columns(), index);
    set_results(job, x, assignment, first);
    job.second = assignment.second + first;
    job.reach = T(reach * std::sqrt(self.groups->mean_square()));
    job.known = known;
    GroupCounts counts;
    std::int64_t bad = -1;
    {
        nb::gil_scoped_release release;
        bad = self.groups->run(job, n_threads, counts, Interrupts());
    }
    assignment.n_listed += counts.n_listed;
    assignment.n_settled += counts.n_settled;
    return {bad, counts.n_compared};
}

template <class T>
void bind(nb::module_& m, const char* name) {
    nb::class_<BoundGroups<T>>(m, name)
        .def_static("bind", &make_groups<T>, "centers"_a.noconvert(), "center_offset"_a.noconvert(),
                    "mean"_a.noconvert(), "directions"_a.noconvert(), "points"_a.noconvert(), "labels"_a.noconvert(),
                    "n_groups"_a, "n_narrow"_a, "spherical"_a, "isa"_a = "")
        .def("assign", &assign<T>, "x"_a.noconvert(), "assignment"_a, "first"_a, "index"_a.noconvert().none(),
             "reach"_a, "known"_a, "n_threads"_a);
}

}  // namespace

void bind_groups(nb::module_& m) {
    bind<float>(m, "Groups32");
    bind<double>(m, "Groups64");
}

}  // namespace quickmeans
