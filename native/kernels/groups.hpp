// The nearest center of every row by way of groups of centers.
//
// Let B have orthonormal columns, y = x - m (or x / |x| if only directions count), and let every center c and every row
// have a point in the space of B and one dimension more:
//
//     c~ = (B'c, z |c - BB'c|),   x~ = (B'y, |y - BB'y|)   with the margin z.
//
// Then u_k = <x~, c~_k> - |c~_k|^2 / 2 is at least the exact score of center k if z = 1, and mostly if z is smaller;
// u_k - 2 z |y - BB'y| |c - BB'c| is at most that score. If z is small, u_k is about the exact score less the
// gain
// (|c|^2 - |c~|^2) / 2 where c is the nearest center, because x lies in its direction. As
// |x~ - c~|^2 = |y|^2 - 2 u, a large u is a small distance of points. Groups have middles g and radii r in the space of
// A, the first columns of B. By the triangle inequality no member can beat the threshold t on the scores if
//
//     |A'y - g| > sqrt(|y|^2 - 2 t) + r,
//
// which decides where results must be certain. Else a row first looks into a group near it, finds a center at the
// distance d there, and then looks into the groups with
//
//     |A'y - g|^2 <= min_h |A'y - h|^2 + reach d,
//
// because for most rows the bound says much less than that. Those within a part of the reach come first, and the
// distance of the best center there is the d for the others. All rows of a chunk that look into a group do so together.
// Members that reach the threshold are candidates, which exact scores decide among. A row takes the same steps in the
// same order whatever rows are with it, so it has the same results.
#pragma once

#include "group_chunk.hpp"

namespace quickmeans::QM_ISA {

template <class T>
constexpr int kPointVectors = kPanel / kWidth<T>;
template <class T>
constexpr int kPointRows = 12 / kPointVectors<T> > 0 ? 12 / kPointVectors<T> : 1;

// Up to kPointRows points of rows; past the last one, it is repeated.
template <class T>
struct PointGroup {
    static constexpr int R = kPointRows<T>, V = kPointVectors<T>;
    const T* points[R];
    std::int64_t rows[R];
    int count;

    template <class Number>
    PointGroup(const GroupChunk<T>& chunk, const Number& number, std::int64_t left) : count(int(left < R ? left : R)) {
        for (int r = 0; r < R; ++r) {
            rows[r] = number(r < count ? r : count - 1);
            points[r] = chunk.point(rows[r]);
        }
    }
    // window[r * stride + ...] = the scores of a panel.
    void multiply(const T* panel, const T* offset, std::int64_t n, T* window, std::int64_t stride) const {
        constexpr int W = kWidth<T>;
        Vec<T> sum[R][V];
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v) sum[r][v] = load(offset + v * W);
        for (std::int64_t d = 0; d < n; ++d) {
            Vec<T> c[V];
            for (int v = 0; v < V; ++v) c[v] = load(panel + d * kPanel + v * W);
            for (int r = 0; r < R; ++r) {
                const Vec<T> x = splat(points[r][d]);
                for (int v = 0; v < V; ++v) sum[r][v] += x * c[v];
            }
        }
        for (int r = 0; r < R; ++r)
            for (int v = 0; v < V; ++v) store(window + r * stride + v * W, sum[r][v]);
    }
};

template <class T>
inline T largest_lane(Vec<T> v) {
    T largest = v[0];
    for (int i = 1; i < kWidth<T>; ++i) largest = v[i] > largest ? v[i] : largest;
    return largest;
}

// Raise the threshold of a row to what one of the points [first, last) reaches, as far as the margin holds.
template <class T>
void raise_by_bounds(const GroupChunk<T>& chunk, std::int64_t i, const T* scores, std::int64_t first,
                     std::int64_t last) {
    constexpr int W = kWidth<T>;
    const T spread = 2 * chunk.point(i)[chunk.job.n_coordinates - 1];
    Vec<T> lower = splat(-T(__builtin_inf()));
    for (std::int64_t p = first; p < last; p += W) {
        const Vec<T> least = load(scores + (p - first)) - spread * load(chunk.job.slack + p);
        lower = least > lower ? least : lower;
    }
    const T reached = largest_lane<T>(lower);
    if (reached > chunk.m.search[i].threshold) chunk.m.search[i].threshold = reached;
}

// List the candidates of a few rows among the points [first, last), a whole number of panels and at most kGroupPoints.
template <class T>
void list_points(const GroupChunk<T>& chunk, const PointGroup<T>& group, std::int64_t first, std::int64_t last) {
    constexpr int W = kWidth<T>;
    const GroupJob<T>& job = chunk.job;
    T* const window = chunk.m.window;
    const std::int64_t C = job.n_coordinates;
    for (std::int64_t p = first; p < last; p += kPanel)
        group.multiply(job.points.panels + p * C, job.points.offset + p, C, window + (p - first), kGroupPoints);
    for (int r = 0; r < group.count; ++r) {
        const std::int64_t i = group.rows[r];
        const T* const scores = window + r * kGroupPoints;
        T& threshold = chunk.m.search[i].threshold;
        unsigned any = 0;
        for (std::int64_t p = 0; p < last - first; p += W) any |= lane_bits<T>(load(scores + p) >= splat(threshold));
        if (!any) continue;
        raise_by_bounds(chunk, i, scores, first, last);
        for (std::int64_t p = first; p < last; p += W) {
            unsigned bits = lane_bits<T>(load(scores + (p - first)) >= splat(threshold));
            for (; __builtin_expect(bits != 0, 0); bits &= bits - 1) {
                const std::int64_t at = p + __builtin_ctz(bits);
                if (job.members[at] >= 0) chunk.add(i, scores[at - first], job.members[at]);
            }
        }
    }
    chunk.pacer.did((last - first) * C * PointGroup<T>::R);
}

// Compare rows of the chunk with the members of a group.
template <class T, class Number>
void look_into(const GroupChunk<T>& chunk, std::int64_t g, std::int64_t n_rows, const Number& number) {
    const std::int64_t begin = chunk.job.starts[g], end = chunk.job.starts[g + 1];
    for (std::int64_t i = 0; i < n_rows; i += kPointRows<T>) {
        const PointGroup<T> group(chunk, [&](int r) { return number(i + r); }, n_rows - i);
        for (std::int64_t p = begin; p < end; p += kGroupPoints)
            list_points(chunk, group, p, p + kGroupPoints < end ? p + kGroupPoints : end);
    }
    chunk.m.n_compared += n_rows * (end - begin);
}

template <class T>
void choose(const GroupMemory<T>& m, std::int64_t g, std::int64_t i) {
    m.chosen[g * kGroupWords + i / 64] |= std::uint64_t(1) << (i % 64);
}

// Have a row look into the groups that the triangle inequality does not exclude; `scores` are those of all groups.
template <class T>
void choose_certain(const GroupChunk<T>& chunk, std::int64_t i, const T* scores) {
    constexpr int W = kWidth<T>;
    const T room = chunk.room(i), inside = chunk.m.search[i].inside;
    for (std::int64_t g = 0; g < chunk.job.groups.n_points; g += W) {
        const Vec<T> far = room + load(chunk.job.radii + g);
        for (unsigned bits = lane_bits<T>(load(scores + g) >= (inside - far * far) / 2); bits; bits &= bits - 1) {
            const std::int64_t at = g + __builtin_ctz(bits);
            if (at < chunk.job.groups.n_points) choose(chunk.m, at, i);
        }
    }
}

// Note the groups in reach of a row: the near ones to look into, the others for later.
template <class T>
void note_groups(const GroupChunk<T>& chunk, std::int64_t i, const T* scores) {
    constexpr int W = kWidth<T>;
    const std::int64_t G = chunk.job.groups.n_points, first = chunk.block.group[chunk.in_block(i)];
    GroupSearch<T>& s = chunk.m.search[i];
    Vec<T> largest = load(scores);
    for (std::int64_t g = W; g < G; g += W) largest = load(scores + g) > largest ? load(scores + g) : largest;
    s.closest = largest_lane<T>(largest);
    const T near = s.closest - T(kNearPart) * s.farther / 2;
    const Vec<T> least = splat(s.closest - s.farther / 2);
    for (std::int64_t g = 0; g < G; g += W)
        for (unsigned bits = lane_bits<T>(load(scores + g) >= least); bits; bits &= bits - 1) {
            const std::int64_t at = g + __builtin_ctz(bits);
            if (at >= G || at == first) continue;
            if (scores[at] >= near)
                choose(chunk.m, at, i);
            else
                chunk.m.later[chunk.m.n_later++] = {scores[at], std::int32_t(at), std::int32_t(i)};
        }
}

// Compare all rows with the middles of the groups.
template <class T>
void look_around(const GroupChunk<T>& chunk) {
    const GroupJob<T>& job = chunk.job;
    T* const scores = chunk.m.group_scores;
    const std::int64_t A = job.n_narrow, G = (job.groups.n_points + kPanel - 1) / kPanel * kPanel;
    for (std::int64_t i = 0; i < chunk.rows.count; i += kPointRows<T>) {
        const PointGroup<T> group(chunk, [&](int r) { return i + r; }, chunk.rows.count - i);
        for (std::int64_t g = 0; g < G; g += kPanel)
            group.multiply(job.groups.panels + g * A, job.groups.offset + g, A, scores + g, G);
        for (int r = 0; r < group.count; ++r) {
            if (job.known)
                choose_certain(chunk, group.rows[r], scores + r * G);
            else
                note_groups(chunk, group.rows[r], scores + r * G);
        }
        chunk.pacer.did(G * A * kPointRows<T>);
    }
}

// Look into the groups that rows have chosen, which are none afterwards.
template <class T>
void look_into_chosen(const GroupChunk<T>& chunk) {
    GroupMemory<T>& m = chunk.m;
    for (std::int64_t g = 0; g < chunk.job.groups.n_points; ++g) {
        std::int64_t n = 0;
        for (std::int64_t w = 0; w < kGroupWords; ++w) {
            for (std::uint64_t bits = m.chosen[g * kGroupWords + w]; bits; bits &= bits - 1)
                m.rows[n++] = std::int32_t(64 * w + __builtin_ctzll(bits));
            m.chosen[g * kGroupWords + w] = 0;
        }
        if (n) look_into(chunk, g, n, [&](std::int64_t j) { return std::int64_t(m.rows[j]); });
    }
}

// Choose those of the groups that were noted for later that are in reach of what was found since.
template <class T>
void choose_later(const GroupChunk<T>& chunk) {
    GroupMemory<T>& m = chunk.m;
    for (std::int64_t i = 0; i < chunk.rows.count; ++i) {
        chunk.look_again(i);
        m.search[i].least = m.search[i].closest - m.search[i].farther / 2;
    }
    for (std::int64_t j = 0; j < m.n_later; ++j)
        if (m.later[j].score >= m.search[m.later[j].row].least) choose(m, m.later[j].group, m.later[j].row);
    m.n_later = 0;
}

// Look into the first group of every row.
template <class T>
void look_first(const GroupChunk<T>& chunk) {
    const GroupBlock<T>& block = chunk.block;
    for (std::int64_t i = 0, n; i < chunk.rows.count; i += n) {  // rows with the same one
        const std::int32_t g = block.group[chunk.in_block(i)];
        for (n = 1; i + n < chunk.rows.count && block.group[chunk.in_block(i + n)] == g;) ++n;
        look_into(chunk, g, n, [&](std::int64_t j) { return i + j; });
        for (std::int64_t j = i; j < i + n; ++j) chunk.look_once(j);
    }
}

// The nearest centers of at most kGroupRows rows, by their numbers in the order of the block.
template <class T>
void search_groups(const GroupJob<T>& job, const GroupBlock<T>& block, const Range& rows, GroupMemory<T>& m) {
    Pacer pacer{m.poll};
    const GroupChunk<T> chunk{job, block, rows, m, pacer};
    for (std::int64_t i = 0; i < rows.count; ++i) chunk.begin(i);
    for (std::int64_t i = 0; i < job.groups.n_points * kGroupWords; ++i) m.chosen[i] = 0;
    if (!job.known) look_first(chunk);
    look_around(chunk);
    look_into_chosen(chunk);
    if (!job.known) {
        choose_later(chunk);
        look_into_chosen(chunk);
    }
    for (std::int64_t i = 0; i < rows.count; ++i) chunk.prune(i);
    for (std::int64_t i = 0; i < rows.count; ++i) {
        if (i + 1 < rows.count) chunk.fetch(i + 1);
        chunk.end(i);
    }
}

}  // namespace quickmeans::QM_ISA
