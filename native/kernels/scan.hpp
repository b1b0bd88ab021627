// Queries against the rows of a list.
//
// A few queries times a few rows fill the registers with one vector of sums per pair: the squares of differences, or
// the products. So nothing is transposed or copied, and nothing cancels. Each sum is added up in the same order in
// blocks of every shape, so a query gets the same bits whatever queries and rows are compared with it, and the best by
// (value, id) do not depend on the order in which lists are looked at.
#pragma once

#include "codes.hpp"
#include "pacer.hpp"

namespace quickmeans::QM_ISA {

// Queries of a block; with as many rows as make one pair per lane. AVX-512: 4 x 4.
constexpr int kScanQueries = kWidth<float> / 4 > 0 ? kWidth<float> / 4 : 1;
// Rows that are compared with all queries of a list before the next ones: these bytes, a quarter of a second-level
// cache of 512 KB.
constexpr std::int64_t kScanBytes = std::int64_t(1) << 17;
// Fewer rows are compared as fast as their codes.
constexpr std::int64_t kLeastCoded = 8;

// ---- sums -----------------------------------------------------------------------------------------------------------

// The columns after the last whole vector, in the last lanes of a vector and with zeros before them.
struct Tail {
    using Mask = typename VectorOf<std::int32_t>::type;
    std::int64_t n_columns, count;
    Mask mask;

    explicit Tail(std::int64_t n) : n_columns(n), count(n % kWidth<float>), mask{} {
        for (int i = 0; i < kWidth<float>; ++i) mask[i] = i >= kWidth<float> - count ? -1 : 0;
    }
    Vec<float> of(const float* row) const {
        constexpr int W = kWidth<float>;
        if (n_columns >= W) return Vec<float>(Mask(load(row + n_columns - W)) & mask);
        alignas(64) float line[W] = {};
        for (std::int64_t j = 0; j < count; ++j) line[W - count + j] = row[j];
        return load(line);
    }
};

// Lane i * R + j: the squared distance between q[i] and r[j], or their product with the sign changed.
template <int Q, int R, bool kSimilarity, bool kInOrder = true>
inline Vec<float> compare(const float* const* q, const float* const* r, const Tail& tail) {
    constexpr int W = kWidth<float>;
    Vec<float> sums[W];
    for (int i = 0; i < W; ++i) sums[i] = Vec<float>{};
    const auto add = [&](const Vec<float>* x, Vec<float> y, int j) {
        for (int i = 0; i < Q; ++i) {
            const Vec<float> d = kSimilarity ? y : x[i] - y;
            sums[i * R + j] += (kSimilarity ? x[i] : d) * d;
        }
    };
    const std::int64_t whole = tail.n_columns - tail.count;
    for (std::int64_t d = 0; d < whole; d += W) {
        Vec<float> x[Q];
        for (int i = 0; i < Q; ++i) x[i] = load(q[i] + d);
        for (int j = 0; j < R; ++j) {
            // One query waits for memory: the processor follows fewer rows at a time than these.
            if constexpr (Q == 1 && kInOrder) __builtin_prefetch(r[j] + d + R * tail.n_columns, 0, 2);
            add(x, load(r[j] + d), j);
        }
    }
    if (tail.count) {
        Vec<float> x[Q];
        for (int i = 0; i < Q; ++i) x[i] = tail.of(q[i]);
        for (int j = 0; j < R; ++j) add(x, tail.of(r[j]), j);
    }
    const Vec<float> all = sums_of_lanes(sums);
    return kSimilarity ? -all : all;
}

// ---- the best -------------------------------------------------------------------------------------------------------

inline bool is_before(float a, std::int64_t a_id, float b, std::int64_t b_id) {
    return a < b || (a == b && a_id < b_id);
}

// A heap of one query: parents come after their children.
struct BestOf {
    float* values;
    std::int64_t* ids;
    std::int64_t size;

    void set(std::int64_t at, float value, std::int64_t id) { values[at] = value, ids[at] = id; }
    // Put a pair into the free place `at`, or above it.
    void rise(std::int64_t at, float value, std::int64_t id) {
        for (std::int64_t up; at > 0; at = up) {
            up = (at - 1) / 2;
            if (!is_before(values[up], ids[up], value, id)) break;
            set(at, values[up], ids[up]);
        }
        set(at, value, id);
    }
    // Put a pair into the free root, or below it.
    void sink(float value, std::int64_t id) {
        std::int64_t at = 0;
        for (std::int64_t down; (down = 2 * at + 1) < size; at = down) {
            if (down + 1 < size) {
                const float left = values[down], right = values[down + 1];
                bool is_right = right > left;  // no branch: nobody can foretell it
                if (__builtin_expect(right == left, 0)) is_right = ids[down + 1] > ids[down];
                down += is_right;
            }
            if (!is_before(value, id, values[down], ids[down])) break;
            set(at, values[down], ids[down]);
        }
        set(at, value, id);
    }
};

// Offer a pair to a query; returns the new bound.
inline float push(const ScanHeaps& heaps, std::int64_t query, float value, std::int64_t id) {
    while (heaps.locks && __atomic_test_and_set(heaps.locks + query, __ATOMIC_ACQUIRE)) {
    }
    const std::int64_t k = heaps.k;
    BestOf best{heaps.values + query * k, heaps.ids + query * k, heaps.sizes[query]};
    if (best.size < k) {
        heaps.sizes[query] = best.size + 1;
        best.rise(best.size, value, id);
    } else if (is_before(value, id, best.values[0], best.ids[0])) {
        best.sink(value, id);
    }
    float bound = __builtin_inff();
    if (heaps.sizes[query] == k) {
        bound = best.values[0];
        __atomic_store(heaps.bounds + query, &bound, __ATOMIC_RELAXED);
    }
    if (heaps.locks) __atomic_clear(heaps.locks + query, __ATOMIC_RELEASE);
    return bound;
}

inline float bound_of(const ScanHeaps& heaps, std::int64_t query) {
    float bound;
    __atomic_load(heaps.bounds + query, &bound, __ATOMIC_RELAXED);
    return bound;
}

// ---- blocks ---------------------------------------------------------------------------------------------------------

// Q queries and their bounds, compared with rows of a list.
template <int Q, bool kSimilarity>
struct QueryBlock {
    static constexpr int W = kWidth<float>;
    const ScanJob& job;
    const ScanList& list;
    const Tail& tail;
    const std::int64_t* members;
    const float* queries[Q];
    float bounds[Q];

    QueryBlock(const ScanJob& j, const ScanList& l, const Tail& t, const std::int64_t* m)
        : job(j), list(l), tail(t), members(m) {
        for (int i = 0; i < Q; ++i) {
            queries[i] = job.queries + members[i] * job.n_columns;
            bounds[i] = bound_of(job.heaps, members[i]);
        }
    }

    bool is_bounded() const {
        bool all = true;
        for (int i = 0; i < Q; ++i) all &= bounds[i] < __builtin_inff();
        return all;
    }

    // The rows [at, at + count) of the list, where count is at most R.
    template <int R>
    void take(std::int64_t at, int count) {
        const float* rows[R];
        for (int j = 0; j < R; ++j) rows[j] = list.rows + (at + (j < count ? j : count - 1)) * job.n_columns;
        const Vec<float> values = compare<Q, R, kSimilarity>(queries, rows, tail);
        Vec<float> most = splat(-__builtin_inff());
        for (int i = 0; i < Q * R; ++i) most[i] = bounds[i / R];
        unsigned bits = lane_bits<float>(values <= most);
        if (!bits) return;
        alignas(64) float found[W];
        store(found, values);
        for (; bits; bits &= bits - 1) {
            const int lane = __builtin_ctz(bits), i = lane / R, j = lane % R;
            if (j < count) bounds[i] = push(job.heaps, members[i], found[lane], list.ids[at + j]);
        }
    }

    // The rows [at, end) of the list; stops after some rows once every query has a bound, if asked.
    template <int R = W / Q>
    std::int64_t scan(std::int64_t at, std::int64_t end, bool until_bounded) {
        for (; end - at >= R && !(until_bounded && is_bounded()); at += R) take<R>(at, R);
        if (at == end || (until_bounded && is_bounded())) return at;
        if constexpr (R > 4) {
            return scan<R / 2>(at, end, until_bounded);
        } else {
            take<R>(at, int(end - at));
            return end;
        }
    }
};

// The same with rows that codes do not exclude.
template <int Q, bool kSimilarity>
struct CodedBlock {
    static constexpr int W = kWidth<float>, R = W / Q;
    QueryBlock<Q, kSimilarity>& block;
    CodeBlock<Q, kSimilarity> codes;
    std::int64_t waiting[Q][W];
    int counts[Q] = {};

    explicit CodedBlock(QueryBlock<Q, kSimilarity>& b) : block(b), codes(b.job.coded, b.members) {
        for (int i = 0; i < Q; ++i) codes.set_bound(i, block.bounds[i]);
    }

    // Compare a query with the first rows that wait for it, at most `Rows`.
    template <int Rows>
    void settle(int i) {
        const ScanList& list = block.list;
        const float* rows[Rows];
        const int count = counts[i];
        for (int j = 0; j < Rows; ++j)
            rows[j] = list.rows + waiting[i][j < count ? j : count - 1] * block.job.n_columns;
        alignas(64) float found[W];
        store(found, compare<1, Rows, kSimilarity, false>(block.queries + i, rows, block.tail));
        for (int j = 0; j < count; ++j)
            if (found[j] <= block.bounds[i])
                block.bounds[i] = push(block.job.heaps, block.members[i], found[j], list.ids[waiting[i][j]]);
        codes.set_bound(i, block.bounds[i]);
        counts[i] = 0;
    }

    void scan(std::int64_t at, std::int64_t end) {
        for (; at < end; at += R) {
            const int count = end - at < R ? int(end - at) : R;
            for (unsigned bits = codes.possible(block.list.coded, at, count); bits; bits &= bits - 1) {
                const int lane = __builtin_ctz(bits), i = lane / R, j = lane % R;
                if (j >= count) continue;
                waiting[i][counts[i]++] = at + j;
                if constexpr (Q == 1) prefetch(at + j);
                if (counts[i] == W) settle<W>(i);
            }
        }
        for (int i = 0; i < Q; ++i) {
            if (counts[i] > 4) settle<W>(i);
            if (counts[i]) settle<4>(i);
        }
    }

    void prefetch(std::int64_t row) const {
        const float* const first = block.list.rows + row * block.job.n_columns;
        for (std::int64_t d = 0; d < block.job.n_columns; d += 16) __builtin_prefetch(first + d, 0, 2);
    }
};

template <int Q, bool kSimilarity>
void scan_block(const ScanJob& job, const ScanList& list, const Tail& tail, const Range& rows,
                const std::int64_t* members) {
    QueryBlock<Q, kSimilarity> block(job, list, tail, members);
    const std::int64_t end = rows.first + rows.count;
    if constexpr (kHasCodes) {
        const bool is_coded = job.coded.codes && list.coded.codes && rows.count >= kLeastCoded;
        const std::int64_t at = block.scan(rows.first, end, is_coded);
        if (at < end) CodedBlock<Q, kSimilarity>(block).scan(at, end);
    } else {
        block.scan(rows.first, end, false);
    }
}

// The queries from `members` on, in blocks of Q, then of fewer.
template <int Q, bool kSimilarity>
void scan_queries(const ScanJob& job, const ScanList& list, const Tail& tail, const Range& rows,
                  const std::int64_t* members, std::int64_t n_members, Pacer& pacer) {
    std::int64_t i = 0;
    for (; n_members - i >= Q; i += Q) {
        scan_block<Q, kSimilarity>(job, list, tail, rows, members + i);
        pacer.did(rows.count * job.n_columns * Q);
    }
    if constexpr (Q > 1)
        if (i < n_members) scan_queries<Q / 2, kSimilarity>(job, list, tail, rows, members + i, n_members - i, pacer);
}

// Compare the queries with these numbers with all rows of a list.
inline void scan_list(const ScanJob& job, const ScanList& list, const std::int64_t* members, std::int64_t n_members,
                      const Poll& poll) {
    const Tail tail(job.n_columns);
    Pacer pacer{poll};
    const std::int64_t most = kScanBytes / (4 * job.n_columns), step = most > 16 ? most / 16 * 16 : 16;
    for (std::int64_t at = 0; at < list.n_rows; at += step) {
        const Range rows{at, list.n_rows - at < step ? list.n_rows - at : step};
        if (job.similarity)
            scan_queries<kScanQueries, true>(job, list, tail, rows, members, n_members, pacer);
        else
            scan_queries<kScanQueries, false>(job, list, tail, rows, members, n_members, pacer);
    }
}

// Q queries, the last of which repeats the last of the range, times all directions.
template <int Q>
void project_some(const ProjectJob& job, const Tail& tail, std::int64_t at, std::int64_t end) {
    constexpr int W = kWidth<float>, R = W / Q;
    const float* queries[Q];
    for (int i = 0; i < Q; ++i) queries[i] = job.queries + (at + i < end ? at + i : end - 1) * job.n_columns;
    for (std::int64_t j = 0; j < job.n_directions; j += R) {
        const float* rows[R];
        for (int r = 0; r < R; ++r) rows[r] = job.directions + (j + r < job.n_directions ? j + r : j) * job.n_columns;
        const Vec<float> products = -compare<Q, R, true>(queries, rows, tail);
        for (int i = 0; i < Q && at + i < end; ++i)
            for (int r = 0; r < R && j + r < job.n_directions; ++r)
                job.out[(at + i) * (job.n_directions + 1) + j + r] = products[i * R + r];
    }
    for (int i = 0; i < Q && at + i < end; ++i) job.out[(at + i) * (job.n_directions + 1) + job.n_directions] = 0;
}

// The coordinates of the queries of a range; see ProjectJob.
inline void project(const ProjectJob& job, const Range& queries, const Poll& poll) {
    const Tail tail(job.n_columns);
    Pacer pacer{poll};
    const std::int64_t end = queries.first + queries.count;
    for (std::int64_t i = queries.first; i < end; i += kScanQueries) {
        if (end - i > kScanQueries / 2)
            project_some<kScanQueries>(job, tail, i, end);
        else
            for (std::int64_t j = i; j < end; ++j) project_some<1>(job, tail, j, end);
        pacer.did(kScanQueries * job.n_directions * job.n_columns);
    }
}

// Put the best of the queries of a range in order, the smallest first; the rest is infinite, with the id -1.
inline void sort_best(const ScanJob& job, const Range& queries) {
    const ScanHeaps& heaps = job.heaps;
    for (std::int64_t i = queries.first; i < queries.first + queries.count; ++i) {
        BestOf best{heaps.values + i * heaps.k, heaps.ids + i * heaps.k, heaps.sizes[i]};
        for (std::int64_t j = best.size; j < heaps.k; ++j) best.set(j, __builtin_inff(), -1);
        while (best.size > 1) {
            const float value = best.values[--best.size];
            const std::int64_t id = best.ids[best.size];
            best.set(best.size, best.values[0], best.ids[0]);
            best.sink(value, id);
        }
        if (job.similarity)
            for (std::int64_t j = 0; j < heaps.k; ++j) best.values[j] = -best.values[j];
    }
}

}  // namespace quickmeans::QM_ISA
