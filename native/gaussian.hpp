// The Python face of the Gaussian kernel.
#pragma once

#include <nanobind/nanobind.h>

namespace quickmeans {

void bind_gaussian(nanobind::module_& m);

}  // namespace quickmeans
