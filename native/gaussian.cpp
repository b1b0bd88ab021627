#include "gaussian.hpp"

#include "arrays.hpp"
#include "product.hpp"

namespace quickmeans {
namespace {

template <class T>
std::int64_t gaussian(const Product<T>& product, const AnyArray& x, Vector<T> mean, Vector<T> offset,
                      double largest_offset, double gamma,
                      nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> out, int n_threads) {
    GaussianJob<T> job{};
    job.product.rows = view_of(x, product.n_columns());
    require(std::int64_t(mean.size()) == product.n_columns(), "wrong size of mean");
    require(std::int64_t(offset.size()) == product.n_rows(), "wrong size of offset");
    require(out.shape(0) == x.shape(0) && std::int64_t(out.shape(1)) == product.n_rows(), "wrong shape of out");
    job.product.offset = offset.data();
    job.product.largest_offset = largest_offset;
    job.product.scores = out.data();
    job.product.score_row_step = product.n_rows();
    job.product.score_column_step = 1;
    job.mean = mean.data();
    job.gamma = T(gamma);
    nb::gil_scoped_release release;
    return product.gaussian(job, n_threads, Interruptible());
}

template <class T>
void bind(nb::module_& m) {
    m.def("gaussian", &gaussian<T>, "product"_a, "x"_a.noconvert(), "mean"_a.noconvert(), "offset"_a.noconvert(),
          "largest_offset"_a, "gamma"_a, "out"_a.noconvert(), "n_threads"_a);
}

}  // namespace

void bind_gaussian(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace quickmeans
