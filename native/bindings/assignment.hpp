// The assignment of rows to centers, as Python and the kernels share it.
#pragma once

#include <vector>

#include "arrays.hpp"

namespace quickmeans {

// The label of every row and what is known of its scores; see SettleJob. It shares the memory of the arrays that it is
// made of, and keeps them alive.
template <class T>
struct Assignment {
    nb::object labels_array, best_array, second_array, norms_array;
    std::int64_t n_rows;
    std::int32_t* labels;
    T *best, *second, *norms;
    bool norms_known;
    std::int64_t n_listed = 0, n_settled = 0;

    Assignment(nb::object a, nb::object b, nb::object c, nb::object d, bool known)
        : labels_array(a), best_array(b), second_array(c), norms_array(d), norms_known(known) {
        const auto line = array_in<Line<std::int32_t>>(a, "labels must be a contiguous, writeable array of int32");
        n_rows = std::int64_t(line.size());
        labels = line.data();
        best = values_in(b);
        second = values_in(c);
        norms = values_in(d);
    }

  private:
    T* values_in(nb::handle array) const {
        const auto line = array_in<Line<T>>(array,
                                            "best, second and norms must be contiguous, writeable arrays of the "
                                            "assignment's type");
        require(std::int64_t(line.size()) == n_rows, "labels, best, second and norms must be equally long");
        return line.data();
    }
};

template <class T>
std::vector<T> converted(Vector<double> values, std::int64_t size, const char* message) {
    require(has_size(values, size), message);
    return std::vector<T>(values.data(), values.data() + values.size());
}

// The rows of x and where their results go: row i of x is row `first + i` of the assignment.
template <class T, class Job>
void set_results(Job& job, const AnyArray& x, Assignment<T>& assignment, std::int64_t first) {
    const std::int64_t n = std::int64_t(x.shape(0));
    require(first >= 0 && first <= assignment.n_rows && n <= assignment.n_rows - first,
            "the rows do not fit the assignment");
    job.norms = assignment.norms + first;
    job.labels = assignment.labels + first;
    job.best = assignment.best + first;
}

}  // namespace quickmeans
