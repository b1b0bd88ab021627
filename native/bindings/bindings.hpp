// The parts of the Python module, one file each. quickmeans/kernels.py makes types and layouts right before it calls
// them; they check sizes and indices themselves, so that no call can read or write out of bounds.
#pragma once

#include <nanobind/nanobind.h>

namespace quickmeans {

void bind_product(nanobind::module_& m);
void bind_screen(nanobind::module_& m);  // after the products, which its signatures name
void bind_groups(nanobind::module_& m);  // after the screens, whose assignments it fills
void bind_distances(nanobind::module_& m);
void bind_sums(nanobind::module_& m);
void bind_csr(nanobind::module_& m);
void bind_search(nanobind::module_& m);
void bind_near_centers(nanobind::module_& m);
void bind_solvers(nanobind::module_& m);
void bind_palm(nanobind::module_& m);
void bind_selection(nanobind::module_& m);
void bind_balance(nanobind::module_& m);
void bind_scan(nanobind::module_& m);

}  // namespace quickmeans
