// The calls behind Screen without a Screen; to go with their last caller, kmeans/screen.py.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

#include "arrays.hpp"
#include "bindings.hpp"
#include "product.hpp"

namespace quickmeans {
namespace {

template <class T>
std::int64_t nearest_centers(const Product<T>& self, const AnyArray& x, Vector<T> offset, Matrix<T> centers,
                             Vector<T> center_offset, std::int64_t n_listed, Cells<std::int64_t> labels,
                             Cells<T> scores, double largest_offset, double growth, int n_threads) {
    ProductJob<T> job{};
    job.rows = view_of(x, self.n_columns());
    const std::int64_t K = self.n_rows(), n_best = std::int64_t(labels.shape(1));
    require(has_size(offset, K) && has_size(center_offset, K), "wrong size of offset");
    require(has_shape(centers, K, self.n_columns()), "wrong shape of centers");
    require(labels.shape(0) == x.shape(0) && scores.shape(0) == x.shape(0) && n_best >= 1 &&
                scores.shape(1) == labels.shape(1),
            "wrong shape of labels or scores");
    require(n_best <= n_listed && n_listed <= K && n_listed >= 2, "wrong n_listed");
    job.offset = offset.data();
    job.largest_offset = largest_offset;
    job.labels = labels.data();
    job.best = scores.data();
    job.n_best = n_best;
    job.n_listed = n_listed;
    job.centers = centers.data();
    job.center_offset = center_offset.data();
    nb::gil_scoped_release release;
    return self.run(job, growth, n_threads, Interrupts());
}

template <class T>
std::tuple<std::int64_t, std::int64_t, std::int64_t> settle(const Product<T>& self, const AnyArray& x,
                                                            const std::optional<AnyArray>& projected,
                                                            std::optional<Vector<std::int64_t>> index, Vector<T> offset,
                                                            Vector<T> mean, Matrix<T> centers, Vector<T> center_offset,
                                                            Vector<T> slack, double reach, std::int64_t shortlist,
                                                            bool settle_all, bool norms_known, Line<T> norms,
                                                            Line<std::int32_t> labels, Line<T> best, Line<T> second,
                                                            double largest_offset, double growth, int n_threads) {
    const std::int64_t n = std::int64_t(x.shape(0)), K = self.n_rows(), D = std::int64_t(centers.shape(1));
    require(has_size(offset, K) && has_size(center_offset, K) && has_size(slack, K),
            "wrong size of offset, center_offset or slack");
    require(has_size(mean, D) && has_shape(centers, K, D), "wrong shape of mean or centers");
    require(!projected || (std::int64_t(projected->shape(0)) == n && norms_known), "wrong projected rows");
    require(has_size(norms, n) && has_size(labels, n) && has_size(best, n) && has_size(second, n),
            "wrong size of norms, labels, best or second");
    require(shortlist >= 0 && shortlist <= K, "shortlist out of range");
    SettleJob<T> job{};
    job.rows = view_of(x, D, index);
    job.screen.rows = view_of(projected ? *projected : x, self.n_columns(), index);
    job.screen.offset = offset.data();
    job.screen.largest_offset = largest_offset;
    job.mean = mean.data();
    job.centers = centers.data();
    job.center_offset = center_offset.data();
    job.slack = slack.data();
    job.margin = T(reach);
    job.shortlist = shortlist;
    job.exact_scores = settle_all;
    job.norms_known = norms_known;
    job.norms = norms.data();
    job.labels = labels.data();
    job.best = best.data();
    job.second = second.data();
    std::int64_t n_listed = 0, n_settled = 0, bad = -1;
    job.n_listed = &n_listed;
    job.n_settled = &n_settled;
    {
        nb::gil_scoped_release release;
        bad = self.run(job, growth, n_threads, Interrupts());
    }
    return {bad, n_listed, n_settled};
}

template <class T>
void bind(nb::module_& m) {
    m.def("nearest_centers", &nearest_centers<T>);
    m.def("settle", &settle<T>, nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg());
}

}  // namespace

void bind_settle(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace quickmeans
