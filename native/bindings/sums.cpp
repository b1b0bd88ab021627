// Groups of rows and their sums.
#include "arrays.hpp"
#include "bindings.hpp"
#include "grouping.hpp"

namespace quickmeans {
namespace {

template <class Label>
void group(Vector<Label> labels, std::int64_t n_labels, Line<std::int64_t> order, Line<std::int64_t> starts) {
    require(order.size() == labels.size(), "wrong size of order");
    require(n_labels >= 0 && starts.size() == std::size_t(n_labels) + 1, "wrong size of starts");
    nb::gil_scoped_release release;
    group_by_label(labels.data(), std::int64_t(labels.size()), n_labels, order.data(), starts.data(), Interruptible());
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
}

}  // namespace quickmeans
