#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "dispatch.hpp"

NB_MODULE(_native, m) {
    m.doc() = "The native code of quickmeans; quickmeans.kernels is its only user.";
    m.def("instruction_sets", &quickmeans::instruction_sets);
    quickmeans::bind_product(m);
    quickmeans::bind_screen(m);
    quickmeans::bind_groups(m);
    quickmeans::bind_distances(m);
    quickmeans::bind_sums(m);
    quickmeans::bind_csr(m);
    quickmeans::bind_search(m);
    quickmeans::bind_near_centers(m);
    quickmeans::bind_solvers(m);
    quickmeans::bind_palm(m);
    quickmeans::bind_selection(m);
    quickmeans::bind_balance(m);
    quickmeans::bind_scan(m);
}
