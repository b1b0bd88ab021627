// A screen over centers, and the assignment of rows to them.
#include "screen.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "assignment.hpp"
#include "bindings.hpp"

namespace quickmeans {
namespace {

using Index = std::optional<Vector<std::int64_t>>;

template <class T>
struct BoundParts : ScreenParts<T> {
    Matrix<T> owner;  // of the centers
};

template <class T>
Screen<T> with_margin(const Screen<T>& self, double margin, const std::optional<Vector<double>>& offset,
                      std::optional<std::int64_t> shortlist) {
    Screen<T> other = self;
    other.margin = margin;
    if (shortlist) other.shortlist = *shortlist;
    if (offset) {
        other.offset = std::make_shared<const std::vector<T>>(
            converted<T>(*offset, self.parts->n_centers, "wrong size of offset"));
        other.largest_offset = std::max(self.largest_offset, largest_size(offset->data(), offset->size()));
    }
    require(other.margin >= 0, "margin must not be negative");
    require(other.shortlist >= 0 && other.shortlist <= self.parts->n_centers, "shortlist out of range");
    return other;
}

// Without a product the centers are compared themselves: offset and slack are then those of the centers.
template <class T>
Screen<T> make_screen(const Product<T>* product, Matrix<T> centers, Vector<double> mean, Vector<double> offset,
                      Vector<double> center_offset, Vector<double> slack, double margin, std::int64_t shortlist,
                      const std::string& isa) {
    const std::int64_t K = std::int64_t(centers.shape(0)), D = std::int64_t(centers.shape(1));
    require(K > 0 && D > 0 && K < (std::int64_t(1) << 31), "wrong shape of centers");
    require(!product || (product->n_rows() == K && product->n_columns() == D), "the product does not fit the centers");
    const auto parts = std::make_shared<BoundParts<T>>();
    parts->owner = centers;
    parts->set = &find_instruction_set(isa);
    parts->n_centers = K;
    parts->n_columns = D;
    parts->centers = centers.data();
    parts->mean = converted<T>(mean, D, "wrong size of mean");
    parts->center_offset = converted<T>(center_offset, K, "wrong size of center_offset");
    parts->slack = converted<T>(slack, K, "wrong size of slack");
    parts->growth = largest_growth(centers.data(), K, D);
    if (product) {
        parts->product = *product;
        parts->first_factor = product->first_factor();
    } else {
        const auto offset_of = [&](std::int64_t k) { return center_offset.data()[k]; };
        pack_panels(centers.data(), K, D, offset_of, parts->panels, parts->panel_offset);
    }
    const double largest = largest_size(center_offset.data(), center_offset.size());
    const Screen<T> bare{parts, nullptr, largest, 0, 0};
    return with_margin<T>(bare, margin, offset, shortlist);
}

template <class T>
std::int64_t assign_plainly(const Screen<T>& self, const AnyArray& x, Assignment<T>& assignment, std::int64_t first,
                            const Index& index, int n_threads) {
    NearestJob<T> job = self.nearest_job();
    job.rows = view_of(x, self.parts->n_columns, index);
    set_results(job, x, assignment, first);
    job.next = assignment.second + first;
    if (assignment.norms_known) job.norms = nullptr;
    assignment.n_listed += job.rows.n_rows;
    nb::gil_scoped_release release;
    return find_nearest(job, *self.parts->set, n_threads, Interrupts());
}

// Find the nearest centers of the rows of x, or of those that the index names, which are rows from `first` on of the
// assignment. Returns -1, or the number (among these) of the first row in the first tile that holds a row that cannot
// be compared.
template <class T>
std::int64_t assign(const Screen<T>& self, const AnyArray& x, Assignment<T>& assignment, std::int64_t first,
                    const Index& index, const std::optional<AnyArray>& projected, bool exact_scores, int n_threads) {
    const ScreenParts<T>& parts = *self.parts;
    require(!projected || (parts.product && projected->shape(0) == x.shape(0) && assignment.norms_known),
            "wrong projected rows");
    if (self.is_plain()) return assign_plainly(self, x, assignment, first, index, n_threads);
    const Product<T>* listing = nullptr;
    {
        nb::gil_scoped_release release;  // another thread may be making it, and wait for the lock
        listing = projected ? &*parts.first_factor : &parts.listing(Interrupts());
    }
    const Product<T>& product = *listing;
    SettleJob<T> job = self.job();
    job.rows = view_of(x, parts.n_columns, index);
    job.screen.rows = view_of(projected ? *projected : x, product.n_columns(), index);
    set_results(job, x, assignment, first);
    job.exact_scores = exact_scores;
    job.norms_known = assignment.norms_known;
    job.second = assignment.second + first;
    std::int64_t n_listed = 0, n_settled = 0, bad = -1;
    job.n_listed = &n_listed;
    job.n_settled = &n_settled;
    {
        nb::gil_scoped_release release;
        bad = product.run(job, parts.growth, n_threads, Interrupts());
    }
    assignment.n_listed += n_listed;
    assignment.n_settled += n_settled;
    return bad;
}

// The nearest center of every row of x, and nothing else. Returns as `assign`.
template <class T>
std::int64_t label(const Screen<T>& self, const AnyArray& x, Line<std::int32_t> labels, int n_threads) {
    require(self.is_plain(), "only a screen of the centers themselves can label");
    NearestJob<T> job = self.nearest_job();
    job.rows = view_of(x, self.parts->n_columns);
    require(has_size(labels, job.rows.n_rows), "wrong size of labels");
    job.labels = labels.data();
    nb::gil_scoped_release release;
    return find_nearest(job, *self.parts->set, n_threads, Interrupts());
}

// The nearest centers of every row, as many as `labels` has columns, in any order; the product lists `n_listed`
// candidates, and exact scores decide among them. Returns as `assign`.
template <class T>
std::int64_t nearest(const Screen<T>& self, const AnyArray& x, std::int64_t n_listed, Cells<std::int64_t> labels,
                     Cells<T> scores, int n_threads) {
    const ScreenParts<T>& parts = *self.parts;
    const std::int64_t K = parts.n_centers, m = std::int64_t(labels.shape(1));
    require(m >= 1 && m <= K, "m out of range");
    ProductJob<T> job{};
    job.rows = view_of(x, parts.n_columns);
    require(has_shape(labels, job.rows.n_rows, m) && has_shape(scores, job.rows.n_rows, m),
            "wrong shape of labels or scores");
    job.largest_offset = self.largest_offset;
    job.labels = labels.data();
    job.best = scores.data();
    job.n_best = m;
    nb::gil_scoped_release release;
    if (!parts.product || K == 1) {
        job.offset = parts.center_offset.data();
        job.n_listed = m;
        if (!parts.product) return parts.listing(Interrupts()).run(job, 1, n_threads, Interrupts());
        return product_of_centers(parts.centers, K, parts.n_columns, parts.set->name, Interrupts())
            .run(job, 1, n_threads, Interrupts());
    }
    job.offset = self.offset->data();
    job.n_listed = std::min(std::max({n_listed, m, std::int64_t(2)}), K);
    job.centers = parts.centers;
    job.center_offset = parts.center_offset.data();
    return parts.product->run(job, parts.growth, n_threads, Interrupts());
}

template <class T>
void bind(nb::module_& m, const char* assignment, const char* screen) {
    nb::class_<Assignment<T>>(m, assignment)
        .def(nb::init<nb::object, nb::object, nb::object, nb::object, bool>(), "labels"_a, "best"_a, "second"_a,
             "norms"_a, "norms_known"_a = false)
        .def("__len__", [](const Assignment<T>& self) { return self.n_rows; })
        .def_ro("labels", &Assignment<T>::labels_array)
        .def_ro("best", &Assignment<T>::best_array)
        .def_ro("second", &Assignment<T>::second_array)
        .def_ro("norms", &Assignment<T>::norms_array)
        .def_rw("norms_known", &Assignment<T>::norms_known)
        .def_rw("n_listed", &Assignment<T>::n_listed)
        .def_rw("n_settled", &Assignment<T>::n_settled);
    nb::class_<Screen<T>>(m, screen)
        .def_static("bind", &make_screen<T>, "product"_a.none(), "centers"_a.noconvert(), "mean"_a.noconvert(),
                    "offset"_a.noconvert(), "center_offset"_a.noconvert(), "slack"_a.noconvert(), "margin"_a,
                    "shortlist"_a, "isa"_a = "")
        .def("with_margin", &with_margin<T>, "margin"_a, "offset"_a.noconvert().none(), "shortlist"_a.none())
        .def("assign", &assign<T>, "x"_a.noconvert(), "assignment"_a, "first"_a, "index"_a.noconvert().none(),
             "projected"_a.noconvert().none(), "exact_scores"_a, "n_threads"_a)
        .def("label", &label<T>, "x"_a.noconvert(), "labels"_a.noconvert(), "n_threads"_a)
        .def("nearest", &nearest<T>, "x"_a.noconvert(), "n_listed"_a, "labels"_a.noconvert(), "scores"_a.noconvert(),
             "n_threads"_a)
        .def_ro("margin", &Screen<T>::margin)
        .def_ro("shortlist", &Screen<T>::shortlist);
}

}  // namespace

void bind_screen(nb::module_& m) {
    bind<float>(m, "Assignment32", "Screen32");
    bind<double>(m, "Assignment64", "Screen64");
}

}  // namespace quickmeans
