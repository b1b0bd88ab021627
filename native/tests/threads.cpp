// Every kernel that uses threads, on several of them and under the thread sanitizer: results must have the bits of a
// single thread, calls may overlap, and an exception from the poll must end the work.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "csr_clusters.hpp"
#include "dispatch.hpp"
#include "distances.hpp"
#include "local_search.hpp"
#include "scan.hpp"
#include "screen.hpp"
#include "search.hpp"
#include "seeding.hpp"
#include "sums.hpp"
#include "supports.hpp"
#include "tests/made_up.hpp"

using namespace quickmeans;

namespace {

constexpr int kThreads = 4;
constexpr std::int64_t kRows = 3000, kColumns = 40, kCenters = 300;

// Results of an assignment.
template <class T>
struct Result {
    std::vector<std::int32_t> labels = std::vector<std::int32_t>(kRows);
    std::vector<T> best = std::vector<T>(kRows), second = best, norms = best;
    std::int64_t n_listed = 0, n_settled = 0;

    bool operator==(const Result& other) const {
        return same(labels, other.labels) && same(best, other.best) && same(second, other.second) &&
               same(norms, other.norms) && n_listed == other.n_listed && n_settled == other.n_settled;
    }
};

template <class T>
Result<T> assign(const Screen<T>& screen, const std::vector<T>& x, int n_threads, const Poll& poll = kQuiet) {
    Result<T> result;
    SettleJob<T> job = screen.job();
    job.rows = job.screen.rows = view_of(x, kColumns);
    job.norms = result.norms.data();
    job.labels = result.labels.data();
    job.best = result.best.data();
    job.second = result.second.data();
    job.n_listed = &result.n_listed;
    job.n_settled = &result.n_settled;
    screen.parts->product->run(job, screen.parts->growth, n_threads, poll);
    return result;
}

template <class T>
Screen<T> make_screen(const std::vector<T>& centers, const char* isa) {
    std::vector<T> near = centers;  // the product has the larger entries only
    for (T& value : near) value = value * value > T(0.5) ? value : T(0);
    const Product<T> product = product_of_centers(near.data(), kCenters, kColumns, isa, kQuiet);
    const std::vector<T> zeros(kCenters), slack(kCenters, T(2));
    const auto parts = std::make_shared<ScreenParts<T>>();
    parts->set = &find_instruction_set(isa);
    parts->n_centers = kCenters;
    parts->n_columns = kColumns;
    parts->centers = centers.data();
    parts->mean = std::vector<T>(kColumns);
    parts->center_offset = zeros;
    parts->slack = slack;
    parts->growth = largest_growth(centers.data(), kCenters, kColumns);
    parts->product = product;
    parts->first_factor = product.first_factor();
    return {parts, std::make_shared<const std::vector<T>>(zeros), 0, 0.3, 0};
}

// Assignments, alone and at the same time as another one with the same screen.
template <class T>
void test_screen(const char* isa) {
    const auto x = normal<T>(kRows * kColumns, 0), centers = normal<T>(kCenters * kColumns, 1);
    const Screen<T> screen = make_screen(centers, isa);
    const Result<T> expected = assign(screen, x, 1);
    Result<T> beside;
    std::thread other([&] { beside = assign(screen, x, kThreads); });
    check(assign(screen, x, kThreads) == expected, "assignment");
    other.join();
    check(beside == expected, "assignment beside another");
}

// The nearest of all centers.
template <class T>
void test_nearest(const char* isa) {
    const auto x = normal<T>(kRows * kColumns, 0), centers = normal<T>(kCenters * kColumns, 1);
    std::vector<T> panels, offset;
    pack_panels(centers.data(), kCenters, kColumns, [](std::int64_t) { return 0; }, panels, offset);
    Result<T> results[2];
    for (int i = 0; i < 2; ++i) {
        NearestJob<T> job{};
        job.rows = view_of(x, kColumns);
        job.panels = panels.data();
        job.offset = offset.data();
        job.n_centers = kCenters;
        job.limit = T(100);
        job.labels = results[i].labels.data();
        job.best = results[i].best.data();
        job.next = results[i].second.data();
        check(find_nearest(job, find_instruction_set(isa), i ? kThreads : 1, kQuiet) == -1, "rows within the limit");
    }
    check(results[0] == results[1], "nearest");
}

// Products, their largest entries, and Gaussian kernel values.
template <class T>
void test_product(const char* isa) {
    const auto x = normal<T>(kRows * kColumns, 0), centers = normal<T>(kCenters * kColumns, 1);
    const Product<T> product = product_of_centers(centers.data(), kCenters, kColumns, isa, kQuiet);
    const std::vector<T> offset(kCenters, T(-20)), mean(kColumns, T(0.1));
    std::vector<T> values[2][3];
    std::vector<std::int64_t> labels[2];
    for (int i = 0; i < 2; ++i) {
        const int n_threads = i ? kThreads : 1;
        for (auto& v : values[i]) v.resize(kRows * kCenters);
        labels[i].resize(kRows * 5);
        ProductJob<T> job{};
        job.rows = view_of(x, kColumns);
        job.scores = values[i][0].data();
        job.score_row_step = kCenters;
        job.score_column_step = 1;
        product.run(job, 1, n_threads, kQuiet);
        GaussianJob<T> gaussian{job, mean.data(), T(0.1)};
        gaussian.product.offset = offset.data();
        gaussian.product.scores = values[i][1].data();
        product.run(gaussian, n_threads, kQuiet);
        job.labels = labels[i].data();
        job.best = values[i][2].data();
        job.n_best = job.n_listed = 5;
        product.run(job, 1, n_threads, kQuiet);
    }
    for (int k = 0; k < 3; ++k) check(same(values[0][k], values[1][k]), "product");
    check(same(labels[0], labels[1]), "labels");
}

void test_sums(const InstructionSet& set) {
    const std::int64_t n = 40000;
    const auto x = normal<float>(n * kColumns, 2);
    std::vector<std::int64_t> members(n), starts{0};
    for (std::int64_t i = 0; i < n; ++i) members[std::size_t(i)] = i * 7 % n;
    for (int k = 1; k <= 50; ++k) starts.push_back(k * n / 50);
    const std::vector<double> shift(kColumns, 0.5);
    std::vector<double> sums[2], moments[2], squares[2];
    for (int i = 0; i < 2; ++i) {
        const int n_threads = i ? kThreads : 1;
        sums[i].resize(50 * kColumns);
        moments[i].resize(39 * kColumns);
        squares[i] = moments[i];
        const RowsView rows = view_of(x, kColumns);
        add_members({rows, members.data(), starts.data(), nullptr, sums[i].data()}, 50, set, n_threads, kQuiet);
        add_moments({rows, nullptr, shift.data(), moments[i].data(), squares[i].data()}, 39, set, n_threads, kQuiet);
    }
    check(same(sums[0], sums[1]), "sums");
    check(same(moments[0], moments[1]) && same(squares[0], squares[1]), "moments");
}

template <class T>
void test_distances(const char* isa) {
    const auto x = normal<T>(kRows * kColumns, 1), centers = normal<T>(kCenters * kColumns, 2);
    const std::vector<double> mean(kColumns, 0.5), wide(centers.begin(), centers.end());
    const Distances<T> distances(centers.data(), kCenters, kColumns, mean.data(), false, isa, kQuiet);
    std::vector<std::int32_t> labels(kRows);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = std::int32_t(i % kCenters);
    std::vector<T> all[2];
    std::vector<double> own[2];
    for (int i = 0; i < 2; ++i) {
        const int n_threads = i ? kThreads : 1;
        all[i].resize(kRows * kCenters);
        own[i].resize(kRows);
        const RowsView rows = view_of(x, kColumns);
        check(distances.run(rows, all[i].data(), false, n_threads, kQuiet) == -1, "finite rows");
        squared_differences({rows, labels.data(), wide.data(), nullptr, false, own[i].data()},
                            find_instruction_set(isa), n_threads, kQuiet);
    }
    check(same(all[0], all[1]), "distances");
    check(same(own[0], own[1]), "squared differences");
}

void test_supports(const InstructionSet& set) {
    const std::int64_t n = 300, r = 30, m = 20;
    const auto targets = normal<double>(n * r, 3), rows = normal<double>(n * m, 4), atoms = normal<double>(m * r, 5);
    std::vector<double> gram(r * r, 0.1), weights(n, 2.0);
    for (std::int64_t i = 0; i < r; ++i) gram[std::size_t(i * (r + 1))] = 3;
    const std::vector<std::int64_t> drop(n, 2);
    std::vector<double> values[2], prices[2], products[2];
    for (int i = 0; i < 2; ++i) {
        values[i].resize(n * r);
        prices[i] = products[i] = values[i];
        std::vector<unsigned char> support(n * r, 1);
        const SupportJob job{n,
                             r,
                             gram.data(),
                             targets.data(),
                             weights.data(),
                             drop.data(),
                             support.data(),
                             values[i].data(),
                             prices[i].data()};
        fit_supports(job, set, i ? kThreads : 1, kQuiet);
        masked_product({n, m, r, rows.data(), atoms.data(), support.data(), products[i].data()}, i ? kThreads : 1,
                       kQuiet);
    }
    check(same(values[0], values[1]) && same(prices[0], prices[1]), "least squares on supports");
    check(same(products[0], products[1]), "products on supports");
}

// k-means++ on one thread and on several.
void test_seeding(const InstructionSet& set) {
    const auto rows = normal<float>(kRows * kColumns, 8);
    const std::vector<double> weights(kRows, 1.0);
    auto uniforms = normal<double>(kCenters * 4, 9);
    for (double& u : uniforms) u = std::abs(u) - std::floor(std::abs(u));
    std::vector<std::int64_t> chosen[2];
    for (int i = 0; i < 2; ++i) {
        chosen[i].resize(kCenters);
        seed(rows.data(), kRows, kColumns, weights.data(), 7, uniforms.data(), kCenters, 4, chosen[i].data(), set,
             i ? kThreads : 1, kQuiet);
    }
    check(same(chosen[0], chosen[1]), "starting points");
}

// Iterations and moves of a search on one thread and on several.
void test_search(const InstructionSet& set) {
    const auto rows = normal<float>(10 * kRows * kColumns, 10);
    const std::vector<double> weights(10 * kRows, 1.0);
    std::vector<double> means[2];
    for (int i = 0; i < 2; ++i) {
        Search search(rows.data(), 10 * kRows, kColumns, weights.data(), false, i ? kThreads : 1, set, kQuiet);
        search.place(rows.data(), kCenters, kQuiet);
        search.iterate(3, 0, false, kQuiet);
        search.keep();
        search.swap(kCenters, kQuiet);
        search.iterate(2, 0, false, kQuiet);
        search.shrink(search.grow(20, kQuiet), kQuiet);
        search.iterate(2, 0, false, kQuiet);
        means[i].resize(std::size_t(kCenters * kColumns));
        search.means(means[i].data());
    }
    check(same(means[0], means[1]), "search");
}

// The same among neighbouring centers.
void test_local_search(const InstructionSet& set) {
    const auto rows = normal<float>(10 * kRows * kColumns, 10);
    const std::vector<double> weights(10 * kRows, 1.0);
    std::vector<double> means[2];
    for (int i = 0; i < 2; ++i) {
        LocalSearch search(rows.data(), 10 * kRows, kColumns, weights.data(), false, i ? kThreads : 1, set, kQuiet);
        search.place(rows.data(), 2 * kCenters, kQuiet);
        search.iterate(3, 0, false, kQuiet);
        search.swap(kCenters, kQuiet);
        search.iterate(2, 0, false, kQuiet);
        search.label(kQuiet);
        means[i].resize(std::size_t(2 * kCenters * kColumns));
        search.means(means[i].data());
    }
    check(same(means[0], means[1]), "search among neighbours");
}

// Rows in CSR form, one in four columns: iterations, distances and starting points on one thread and on several.
void test_csr(const InstructionSet& set) {
    constexpr std::int64_t n = 4 * kRows, D = kColumns;
    const auto values = normal<float>(n * D / 4, 11);
    std::vector<std::int32_t> starts, columns;
    for (std::int64_t j = 0; j <= n; ++j) starts.push_back(std::int32_t(j * D / 4));
    for (std::int64_t j = 0; j < n * D / 4; ++j) columns.push_back(std::int32_t(4 * (j % (D / 4)) + j / 7 % 4));
    const CsrView rows{n, D, starts.data(), columns.data(), values.data(), false, false};
    check(check_csr(rows, n * D / 4, kQuiet), "columns of CSR rows");
    const std::vector<double> mean(D, 0.1), ones(n, 1.0), uniforms(kCenters * 4, 0.3);
    const auto centers = normal<double>(kCenters * D, 12);
    std::vector<std::int64_t> index(n), chosen[2];
    for (std::int64_t j = 0; j < n; ++j) index[j] = j;
    std::vector<double> means[2], distances[2];
    for (int i = 0; i < 2; ++i) {
        const int n_threads = i ? kThreads : 1;
        std::vector<double> norms(n);
        csr_norms(rows, mean.data(), norms.data(), n_threads, kQuiet);
        const CsrProblem problem{rows, mean.data(), norms.data(), nullptr, nullptr, 1e6, false};
        CsrClusters<float> clusters(problem, centers.data(), kCenters, set, n_threads, kQuiet);
        for (int step = 0; step < 6; ++step) clusters.iterate(0, kQuiet);
        means[i].resize(kCenters * D);
        clusters.centers(means[i].data());
        distances[i].resize(n * kCenters);
        const CsrGeometry geometry{mean.data(), norms.data(), centers.data(), kCenters, false};
        csr_distances(rows, geometry, set, distances[i].data(), n_threads, kQuiet);
        chosen[i].resize(kCenters);
        csr_seed(rows, index.data(), n, ones.data(), 7, uniforms.data(), kCenters, 4, chosen[i].data(), set, n_threads,
                 kQuiet);
    }
    check(same(means[0], means[1]) && same(distances[0], distances[1]) && same(chosen[0], chosen[1]), "CSR rows");
}

// Threads that share queries, and threads with queries of their own: many short rows, few long ones.
void test_scan(const char* isa) {
    const std::int64_t n_lists = 50, m = 5, k = 8;
    for (const std::int64_t D : {8, 600}) {
        const std::int64_t n_rows = D == 8 ? 20 : 40, n = D == 8 ? 20000 : 1000;
        const auto rows = normal<float>(n_lists * n_rows * D, 0), queries = normal<float>(n * D, 1);
        std::vector<std::int64_t> ids(static_cast<std::size_t>(n_lists * n_rows)), probes;
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = std::int64_t(i);
        std::vector<std::int64_t> labels(static_cast<std::size_t>(n_lists));
        std::vector<ScanList> parts(static_cast<std::size_t>(n_lists));
        for (std::int64_t i = 0; i < n_lists; ++i) {
            labels[i] = i;
            parts[i] = {rows.data() + i * n_rows * D, ids.data() + i * n_rows, n_rows};
        }
        for (std::int64_t i = 0; i < n * m; ++i) probes.push_back((i / m + i % m * 7) % n_lists);
        std::vector<float> values[3];
        std::vector<std::int64_t> found[3];
        for (int i = 0; i < 3; ++i) {  // one thread without codes, several without and with
            const int n_threads = i ? kThreads : 1;
            RowLists lists(n_lists, D, false, i == 2, isa);
            lists.set(labels.data(), parts.data(), n_lists, n_threads, kQuiet);
            values[i].resize(std::size_t(n * k));
            found[i].resize(std::size_t(n * k));
            lists.search(queries.data(), {probes.data(), n, m}, k, values[i].data(), found[i].data(), n_threads,
                         kQuiet);
            check(same(values[0], values[i]) && found[0] == found[i], "scan");
        }
    }
}

// The third poll throws: the call ends early and passes the exception on, and the next call is not harmed. A call in
// which the other threads do nearly all polls less often; the third poll is one of a later call then.
void test_interrupt(const char* isa) {
    const auto x = normal<float>(kRows * kColumns, 0), centers = normal<float>(kCenters * kColumns, 1);
    const Screen<float> screen = make_screen(centers, isa);
    int n_polls = 0;
    const auto fail = [](void* count) {
        if (++*static_cast<int*>(count) == 3) throw std::runtime_error("interrupted");
    };
    bool thrown = false;
    try {
        for (int call = 0; call < 100; ++call) assign(screen, x, kThreads, {fail, &n_polls});
    } catch (const std::runtime_error&) {
        thrown = true;
    }
    check(thrown, "interrupt");
    check(assign(screen, x, kThreads) == assign(screen, x, 1), "assignment after an interrupt");
}

}  // namespace

int main() {
    for (const std::string& isa : instruction_sets()) {
        const InstructionSet& set = find_instruction_set(isa);
        test_nearest<float>(isa.c_str());
        test_product<float>(isa.c_str());
        test_nearest<double>(isa.c_str());
        test_product<double>(isa.c_str());
        test_screen<float>(isa.c_str());
        test_screen<double>(isa.c_str());
        test_distances<float>(isa.c_str());
        test_distances<double>(isa.c_str());
        test_sums(set);
        test_supports(set);
        test_seeding(set);
        test_search(set);
        test_local_search(set);
        test_csr(set);
        test_scan(isa.c_str());
        for (int i = 0; i < 10; ++i) test_interrupt(isa.c_str());
        std::printf("%s: all kernels agree on %d threads\n", isa.c_str(), kThreads);
    }
}
