// The parts of the Python module. Arguments are checked for sense in Python; here for whatever memory safety needs.
#pragma once

#include <nanobind/nanobind.h>

namespace quickmeans {

void bind_screen(nanobind::module_& m);  // after the products, which its signatures name
void bind_sums(nanobind::module_& m);

}  // namespace quickmeans
