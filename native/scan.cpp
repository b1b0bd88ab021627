#include "scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "grouping.hpp"
#include "kernels/pacer.hpp"
#include "parallel.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

// Multiply-adds that a thread takes at a time: enough to hide the poll after them, few enough to divide small work.
constexpr double kWorkPerChunk = 1 << 20;
// To begin with a list takes as long as so many multiply-adds.
constexpr double kWorkPerList = 2000;
// To read a number of a row from memory takes a thread as long as so many multiply-adds.
constexpr double kWorkPerNumber = 8;
// Threads that share queries wait for each other's best ones. So each takes queries of its own, if they are so many
// that reading the rows again for them is at most this share of the work; and no more than so many.
constexpr double kReading = 0.25;
constexpr std::int64_t kMostOwnQueries = 1024, kFewestOwnQueries = 64;
// Codes are compared if at most this share of the rows is then compared exactly: codes themselves take a part of the
// time of rows, and more where processors have no product of bytes.
constexpr double kMostCompared = 0.25;
// Rows to compare first, as many times as are wanted.
constexpr double kFirstRows = 2;

}  // namespace

// What all threads of a call know.
struct RowLists::Work {
    ScanJob job;
    Probes probes;
    double amount;
    double rows;  // that a query is compared with, on average
};

RowLists::RowLists(std::int64_t n_lists, std::int64_t n_columns, bool similarity, bool with_codes,
                   const std::string& isa)
    : lists_(static_cast<std::size_t>(n_lists), ScanList{nullptr, nullptr, 0}),
      n_columns_(n_columns),
      similarity_(similarity),
      set_(&find_instruction_set(isa)) {
    if (with_codes && set_->routines.encode_rows && n_columns <= Codes::kMostColumns)
        codes_.resize(static_cast<std::size_t>(n_lists));
}

void RowLists::set(const std::int64_t* labels, const ScanList* rows, std::int64_t n, int n_threads, const Poll& poll) {
    double numbers = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        lists_[std::size_t(labels[i])] = rows[i];
        numbers += double(rows[i].n_rows * n_columns_);
    }
    if (codes_.empty()) return;
    const auto chunk = [&](std::int64_t i, int, const Poll& own_poll) {
        ScanList& list = lists_[std::size_t(labels[i])];
        Codes& codes = codes_[std::size_t(labels[i])];
        codes = list.n_rows ? Codes(list.n_rows, n_columns_, false) : Codes();
        const CodedRows coded = codes.view();
        Pacer pacer{own_poll};
        for (std::int64_t first = 0; first < list.n_rows; first += kFewestOwnQueries) {
            const Range rows{first, std::min(kFewestOwnQueries, list.n_rows - first)};
            set_->routines.encode_rows({list.rows, n_columns_, similarity_, false, coded}, rows);
            pacer.did(std::int64_t(kWorkPerEntry) * rows.count * n_columns_);
        }
        list.coded = coded;  // whole, whatever ends this
        return true;
    };
    for_each_chunk(n, threads_for(kWorkPerEntry * numbers, n_threads), chunk, poll);
}

// Whether most rows are excluded by their codes. Of n rows in any order, about k (1 + log(n / k)) are among the best k
// of those before them, and as many again may come within the rounding of codes.
bool RowLists::codes_pay(const Work& work, std::int64_t k) const {
    if (codes_.empty()) return false;
    const double ratio = work.rows / double(k);
    return ratio > 1 && 2 * (1 + std::log(ratio)) < kMostCompared * ratio;
}

std::int64_t RowLists::largest_id() const {
    std::int64_t largest = -1;
    for (const ScanList& list : lists_)
        for (std::int64_t i = 0; i < list.n_rows; ++i) largest = std::max(largest, list.ids[i]);
    return largest;
}

void RowLists::search(const float* queries, const Probes& probes, std::int64_t k, float* values, std::int64_t* ids,
                      int n_threads, const Poll& poll) const {
    const std::int64_t n = probes.n_queries, m = probes.n_probes;
    std::vector<std::int64_t> sizes(std::size_t(n), 0);
    std::vector<float> bounds(std::size_t(n), std::numeric_limits<float>::infinity());
    const ScanHeaps heaps{k, values, ids, sizes.data(), bounds.data(), nullptr};
    Work work{{queries, n_columns_, similarity_, heaps, {}}, probes, 0, 0};
    std::vector<bool> seen(std::size_t(n > 1 ? n_lists() : 0), false);
    double numbers = 0;
    for (std::int64_t i = 0; i < n * m; ++i) {
        const std::int64_t list = probes.lists[i];
        if (list < 0) continue;
        const double size = double(lists_[std::size_t(list)].n_rows * n_columns_);
        work.amount += kWorkPerList + size;
        work.rows += double(lists_[std::size_t(list)].n_rows) / double(n);
        if (n == 1 || seen[std::size_t(list)]) continue;
        seen[std::size_t(list)] = true;
        numbers += size;
    }
    n_threads = threads_for(work.amount, n_threads);
    Codes coded;
    if (n && codes_pay(work, k)) {
        coded = Codes(n, n_columns_, true);
        work.job.coded = coded.view();
        encode(work.job, n, n_threads, poll);
    }
    // So many queries of their own are worth it; see above.
    const double enough =
        kWorkPerNumber * numbers / (kReading * work.amount / double(std::max<std::int64_t>(n, 1)) + 1);
    const auto own = std::clamp(std::int64_t(enough), kFewestOwnQueries, kMostOwnQueries);
    if (n == 1 || n * m < n_lists() / 4)
        by_query(work, n_threads, poll);
    else if (enough <= double(kMostOwnQueries) && (n_threads == 1 || n >= own * n_threads))
        by_block(work, own, n_threads, poll);
    else
        shared(work, n_threads, poll);
    sort(work, n_threads, poll);
}

void RowLists::encode(const ScanJob& job, std::int64_t n, int n_threads, const Poll& poll) const {
    const auto chunk = [&](std::int64_t c, int, const Poll&) {
        const std::int64_t first = c * kFewestOwnQueries;
        set_->routines.encode_rows({job.queries, n_columns_, similarity_, true, job.coded},
                                   {first, std::min(kFewestOwnQueries, n - first)});
        return true;
    };
    for_each_chunk((n + kFewestOwnQueries - 1) / kFewestOwnQueries, n_threads, chunk, poll);
}

void RowLists::sort(const Work& work, int n_threads, const Poll& poll) const {
    const std::int64_t n = work.probes.n_queries, step = kMostOwnQueries;
    const auto chunk = [&](std::int64_t c, int, const Poll&) {
        set_->routines.sort_best(work.job, {c * step, std::min(step, n - c * step)});
        return true;
    };
    for_each_chunk((n + step - 1) / step, n_threads, chunk, poll);
}

// Every thread takes so many queries at a time.
void RowLists::by_block(const Work& work, std::int64_t step, int n_threads, const Poll& poll) const {
    const std::int64_t n = work.probes.n_queries;
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        by_list(work, {c * step, std::min(step, n - c * step)}, 1, own_poll);
        return true;
    };
    for_each_chunk((n + step - 1) / step, n_threads, chunk, poll);
}

// Every query goes through its lists.
void RowLists::by_query(const Work& work, int n_threads, const Poll& poll) const {
    const std::int64_t n = work.probes.n_queries, m = work.probes.n_probes;
    const auto step = std::max<std::int64_t>(1, std::int64_t(double(n) * kWorkPerChunk / work.amount));
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        for (std::int64_t i = c * step; i < std::min(n, (c + 1) * step); ++i)
            for (std::int64_t j = 0; j < m; ++j)
                if (const std::int64_t list = work.probes.lists[i * m + j]; list >= 0)
                    set_->routines.scan_list(work.job, lists_[std::size_t(list)], &i, 1, own_poll);
        return true;
    };
    for_each_chunk((n + step - 1) / step, n_threads, chunk, poll);
}

// Threads take lists, and share the queries.
void RowLists::shared(Work work, int n_threads, const Poll& poll) const {
    std::vector<unsigned char> locks(std::size_t(work.probes.n_queries), 0);
    work.job.heaps.locks = locks.data();
    by_list(work, {0, work.probes.n_queries}, n_threads, poll);
}

void RowLists::by_list(const Work& work, const Range& queries, int n_threads, const Poll& poll) const {
    const std::int64_t m = work.probes.n_probes;
    std::int64_t first = 0;
    // The lists that come first have the nearest rows, which exclude most of the others.
    if (work.job.coded.codes) {
        const double enough = kFirstRows * double(work.job.heaps.k * m) / std::max(work.rows, 1.0);
        first = std::clamp(std::int64_t(enough) + 1, std::int64_t(1), m);
        by_list(work, queries, {0, first}, n_threads, poll);
    }
    if (first < m) by_list(work, queries, {first, m - first}, n_threads, poll);
}

// Every list is compared with those of the queries that look into it; a list with much work is divided by queries.
void RowLists::by_list(const Work& work, const Range& queries, const Range& ranks, int n_threads,
                       const Poll& poll) const {
    const std::int64_t n = queries.count, m = ranks.count, K = n_lists();
    std::vector<std::int64_t> labels(std::size_t(n * m)), members(std::size_t(n * m)), starts(std::size_t(K + 2));
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t* const probed = work.probes.lists + (queries.first + i) * work.probes.n_probes + ranks.first;
        for (std::int64_t j = 0; j < m; ++j) labels[std::size_t(i * m + j)] = probed[j] + 1;
    }
    group_by_label(labels.data(), n * m, K + 1, members.data(), starts.data(), poll);
    for (std::int64_t& pair : members) pair = queries.first + pair / m;
    struct Piece {
        std::int64_t list, first, count;
    };
    std::vector<Piece> pieces;
    std::vector<std::size_t> ends;  // of chunks
    double amount = 0;
    for (std::int64_t list = 0; list < K; ++list) {
        const double each = double(lists_[std::size_t(list)].n_rows * n_columns_);
        const std::int64_t first = starts[std::size_t(list + 1)], end = starts[std::size_t(list + 2)];
        const auto step = std::max<std::int64_t>(16, std::int64_t(kWorkPerChunk / (each + 1)) / 16 * 16);
        for (std::int64_t i = first; i < end && each > 0; i += step) {
            pieces.push_back({list, i, std::min(step, end - i)});
            amount += kWorkPerList + each * double(pieces.back().count);
            if (amount < kWorkPerChunk) continue;
            ends.push_back(pieces.size());
            amount = 0;
        }
    }
    ends.push_back(pieces.size());
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        for (std::size_t i = c ? ends[std::size_t(c - 1)] : 0; i < ends[std::size_t(c)]; ++i)
            set_->routines.scan_list(work.job, lists_[std::size_t(pieces[i].list)], members.data() + pieces[i].first,
                                     pieces[i].count, own_poll);
        return true;
    };
    for_each_chunk(std::int64_t(ends.size()), n_threads, chunk, poll);
}

}  // namespace quickmeans
