#include "csr_clusters.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dispatch.hpp"
#include "grouping.hpp"
#include "kernels/pacer.hpp"
#include "parallel.hpp"

namespace quickmeans {
namespace {

constexpr std::int64_t kRowsPerChunk = 256;
constexpr std::int64_t kColumnsPerChunk = 1024;
constexpr std::int64_t kBlock = 64;  // columns of all centers that stay in the cache while they are transposed
// With more changes than this share of the rows, clusters are summed anew: a change costs two additions of a row.
constexpr double kSumAgain = 0.4;
constexpr double kCancelled = 1e-9;  // a cluster that keeps less than this share of its weight is summed again
// The distance to the own center is computed before those to all centers where these are more, and where bounds have
// proven this share of the labels in the last iteration.
constexpr std::int64_t kTighten = 16;
constexpr double kWorthTightening = 0.05;
constexpr double kEqual = 1e-12;  // rows whose squared distance is a smaller share of their squares are equal

// An update is not interrupted.
const Poll kQuiet{[](void*) {}, nullptr};

}  // namespace

template <class T>
CsrClusters<T>::CsrClusters(const CsrProblem& problem, const double* centers, std::int64_t n_centers,
                            const InstructionSet& set, int n_threads, const Poll& poll)
    : p_(problem),
      n_(problem.rows.n_rows),
      D_(problem.rows.n_columns),
      K_(n_centers),
      set_(set),
      n_threads_(n_threads),
      entries_(double(n_entries(problem.rows))),
      table_(n_centers, problem.rows.n_columns, set),
      sums_(std::size_t(n_centers * problem.rows.n_columns)),
      weights_(std::size_t(n_centers), 0),
      squares_(std::size_t(n_centers), 0),
      along_(std::size_t(n_centers), 0),
      gains_(std::size_t(n_centers), 0),
      sizes_(std::size_t(n_centers), 0),
      changed_(std::size_t(n_centers), 1),
      labels_(std::size_t(n_), -1),
      upper_(std::size_t(n_), std::numeric_limits<T>::infinity()),
      lower_(std::size_t(n_), 0),
      best_(std::size_t(n_)),
      second_(std::size_t(n_)) {
    const std::vector<double> zero(std::size_t(K_), 0);
    for (std::int64_t k = 0; k < K_; ++k)
        for (std::int64_t d = 0; d < D_; ++d) {
            const double c = double(T(centers[k * D_ + d]));
            squares_[k] += c * c;
            along_[k] += c * p_.mean[d];
        }
    for (std::int64_t d = 0; d < D_; ++d) mean_square_ += p_.mean[d] * p_.mean[d];
    table_.fill(centers, zero.data(), n_threads, poll);
    for (std::int64_t k = 0; k < K_; ++k) set_offset(k);
    const double longest = with_entries(p_.rows, [&](const auto& x) {
        std::int64_t most = 0;
        for (std::int64_t i = 0; i < n_; ++i) most = std::max(most, x.end(i) - x.begin(i));
        return double(most);
    });
    // Scores are wrong by at most so large a share of the squares in them: twice the root of the roundings, and some.
    rounding_ = double(std::numeric_limits<T>::epsilon()) * (8 + std::sqrt(longest));
}

// ---- assignment -----------------------------------------------------------------------------------------------------

template <class T>
double CsrClusters<T>::own_score(std::int64_t row) const {
    const T* const center = table_.column(0) + labels_[row];
    const std::int64_t stride = table_.stride();
    double score = 0;
    with_entries(p_.rows, [&](const auto& x) {
        for (std::int64_t j = x.begin(row); j < x.end(row); ++j)
            score += double(x.values[j]) * double(center[std::int64_t(x.columns[j]) * stride]);
    });
    return p_.spherical ? score : score - (squares_[labels_[row]] / 2 + along_[labels_[row]]);
}

// The squared distance that belongs to a score.
template <class T>
double CsrClusters<T>::square_of(std::int64_t row, double score) const {
    return p_.spherical ? 2 - 2 * score / std::sqrt(p_.norms[row]) : p_.norms[row] - 2 * score;
}

// Whether bounds prove the label of a row. With `tighten`, the distance to its center is computed if need be.
template <class T>
bool CsrClusters<T>::is_proven(std::int64_t row, bool tighten, double slack) {
    if (labels_[row] < 0) return false;
    if (upper_[row] < lower_[row]) return true;
    if (!tighten || !(lower_[row] > 0)) return false;
    upper_[row] = T(std::sqrt(std::max(square_of(row, own_score(row)) + slack, 0.0)));
    return upper_[row] < lower_[row];
}

template <class T>
void CsrClusters<T>::assign(const Poll& poll) {
    const std::int64_t n_chunks = (n_ + kRowsPerChunk - 1) / kRowsPerChunk;
    const double largest = *std::max_element(squares_.begin(), squares_.end());
    const bool tighten = K_ > kTighten && double(n_compared_) < (1 - kWorthTightening) * double(n_);
    std::vector<std::int64_t> compared(std::size_t(n_chunks), 0), bad(std::size_t(n_chunks), -1);
    std::vector<std::vector<T>> scratch(std::size_t(std::max(n_threads_, 1)));
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        const std::int64_t first = c * kRowsPerChunk, end = std::min(n_, first + kRowsPerChunk);
        const auto slack = [&](std::int64_t i) {
            return rounding_ * (p_.spherical ? 4.0 : 2 * (p_.norms[i] + mean_square_) + largest);
        };
        std::int64_t doubtful[kRowsPerChunk], count = 0;
        for (std::int64_t i = first; i < end; ++i)
            if (!is_proven(i, tighten, slack(i))) doubtful[count++] = i;
        scratch[thread].resize(std::size_t(table_.stride()));
        const CsrNearestJob<T> job{p_.rows, table_.table(), doubtful, labels_.data(), best_.data(), second_.data()};
        bad[c] = kernels_of<T>(set_).csr_nearest(job, {0, count}, scratch[thread].data(), own_poll);
        for (std::int64_t j = 0; j < count && bad[c] < 0; ++j) {
            const std::int64_t i = doubtful[j];
            upper_[i] = T(std::sqrt(std::max(square_of(i, double(best_[i])) + slack(i), 0.0)));
            lower_[i] = T(std::sqrt(std::max(square_of(i, double(second_[i])) - slack(i), 0.0)));
        }
        compared[c] = count;
        return bad[c] < 0;
    };
    for_each_chunk(n_chunks, csr_threads(entries_ * double(table_.stride()) / 4, n_threads_), chunk, poll);
    bad_row_ = -1;
    for (const std::int64_t row : bad)
        if (bad_row_ < 0) bad_row_ = row;
    n_compared_ = std::accumulate(compared.begin(), compared.end(), std::int64_t(0));
}

// Adjust the bounds to centers that have moved so far.
template <class T>
void CsrClusters<T>::move_bounds(const std::vector<double>& shift) {
    const T up = 1 + 2 * std::numeric_limits<T>::epsilon(), down = 1 - 2 * std::numeric_limits<T>::epsilon();
    const std::int64_t farthest = std::max_element(shift.begin(), shift.end()) - shift.begin();
    double next = 0;
    for (std::int64_t k = 0; k < K_; ++k)
        if (k != farthest) next = std::max(next, shift[k]);
    for (std::int64_t i = 0; i < n_; ++i) {
        const std::int32_t k = labels_[i];
        upper_[i] = (upper_[i] + T(shift[k]) * up) * up;
        lower_[i] = std::max(lower_[i] - T(k == farthest ? next : shift[farthest]) * up, T(0)) * down;
    }
}

// ---- sums -----------------------------------------------------------------------------------------------------------

// Add rows times their factors to the sums of these clusters, in the order in which they are given.
template <class T>
void CsrClusters<T>::add(const Members& members, const Poll& poll) {
    const std::int64_t m = std::int64_t(members.rows.size());
    std::vector<std::int64_t> order(members.rows.size()), starts(std::size_t(K_ + 1));
    group_by_label(members.clusters.data(), m, K_, order.data(), starts.data(), poll);
    const auto chunk = [&](std::int64_t k, int, const Poll& own_poll) {
        double* const sum = sums_.data() + k * D_;
        Pacer pacer{own_poll};
        with_entries(p_.rows, [&](const auto& x) {
            for (std::int64_t j = starts[k]; j < starts[k + 1]; ++j) {
                const std::int64_t row = members.rows[order[j]];
                const double factor = members.factors[order[j]] * sum_weight(row);
                for (std::int64_t e = x.begin(row); e < x.end(row); ++e)
                    sum[x.columns[e]] += factor * double(x.values[e]);
                pacer.did(2 * (x.end(row) - x.begin(row) + 1));
            }
        });
        return true;
    };
    for_each_chunk(K_, csr_threads(entries_ * double(m) / double(n_), n_threads_), chunk, poll);
    for (std::int64_t j = 0; j < m; ++j) {
        const double w = weight(members.rows[j]), factor = members.factors[j];
        weights_[members.clusters[j]] += factor * w;
        if (w > 0) sizes_[members.clusters[j]] += factor > 0 ? 1 : -1;
    }
}

// Sum the rows of these clusters anew.
template <class T>
void CsrClusters<T>::sum_again(const std::vector<char>& clusters, const Poll& poll) {
    Members members;
    for (std::int64_t k = 0; k < K_; ++k) {
        if (!clusters[k]) continue;
        std::fill_n(sums_.begin() + k * D_, D_, 0.0);
        weights_[k] = 0;
        sizes_[k] = 0;
    }
    for (std::int64_t i = 0; i < n_; ++i)
        if (clusters[labels_[i]]) members.push(labels_[i], i, 1);
    add(members, poll);
}

// Bring the sums to the labels. Returns how many labels have changed.
template <class T>
std::int64_t CsrClusters<T>::exchange(const Poll& poll) {
    std::vector<std::int32_t> old;
    old.swap(summed_);  // until all is done no sums are sound
    std::int64_t n_changed = 0;
    for (std::int64_t i = 0; i < n_ && !old.empty(); ++i) n_changed += old[i] != labels_[i];
    if (old.empty() || double(n_changed) > kSumAgain * double(n_)) {
        std::fill(changed_.begin(), changed_.end(), 1);
        sum_again(changed_, poll);
        summed_ = labels_;
        return old.empty() ? n_ : n_changed;
    }
    Members members;
    for (std::int64_t i = 0; i < n_; ++i) {
        if (old[i] == labels_[i]) continue;
        members.push(old[i], i, -1);
        members.push(labels_[i], i, 1);
        changed_[old[i]] = changed_[labels_[i]] = 1;
    }
    const std::vector<double> before = weights_;
    add(members, poll);
    std::vector<char> cancelled(std::size_t(K_), 0);
    bool any = false;
    for (std::int64_t k = 0; k < K_; ++k)
        if (!sizes_[k] || weights_[k] < kCancelled * before[k]) any = true, cancelled[k] = 1;
    if (any) sum_again(cancelled, poll);
    summed_.swap(old);
    std::copy(labels_.begin(), labels_.end(), summed_.begin());
    return n_changed;
}

// ---- empty clusters -------------------------------------------------------------------------------------------------

// Lower the squared distances of all rows to those from one row.
template <class T>
void CsrClusters<T>::lower_to(std::int64_t row, std::vector<double>& distances, const Poll& poll) const {
    std::vector<double> other(std::size_t(D_), 0);
    double size = 0;
    with_entries(p_.rows, [&](const auto& x) {
        for (std::int64_t j = x.begin(row); j < x.end(row); ++j) {
            other[std::size_t(x.columns[j])] = double(x.values[j]);
            size += double(x.values[j]) * double(x.values[j]);
        }
    });
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        Pacer pacer{own_poll};
        with_entries(p_.rows, [&](const auto& x) {
            for (std::int64_t i = c * kRowsPerChunk; i < std::min(n_, (c + 1) * kRowsPerChunk); ++i) {
                double own = 0, product = 0;
                for (std::int64_t j = x.begin(i); j < x.end(i); ++j) {
                    own += double(x.values[j]) * double(x.values[j]);
                    product += double(x.values[j]) * other[std::size_t(x.columns[j])];
                }
                const double both = p_.spherical ? 2 : own + size;
                const double apart = both - 2 * product / (p_.spherical ? std::sqrt(own * size) : 1.0);
                distances[i] = std::min(distances[i], apart > kEqual * both ? apart : 0.0);
                pacer.did(2 * (x.end(i) - x.begin(i) + 1));
            }
        });
        return true;
    };
    for_each_chunk((n_ + kRowsPerChunk - 1) / kRowsPerChunk, csr_threads(entries_, n_threads_), chunk, poll);
}

// Give every empty cluster a row that is far from all centers and whose cluster has another row. Returns how many.
template <class T>
std::int64_t CsrClusters<T>::refill(const Poll& poll) {
    std::vector<double> distances(std::size_t(n_), 0);
    const auto chunk = [&](std::int64_t c, int, const Poll&) {
        for (std::int64_t i = c * kRowsPerChunk; i < std::min(n_, (c + 1) * kRowsPerChunk); ++i) {
            const double square = square_of(i, own_score(i)), size = p_.spherical ? 2.0 : p_.norms[i] + mean_square_;
            if (weight(i) > 0 && square > kEqual * (size + squares_[labels_[i]])) distances[i] = square;
        }
        return true;
    };
    for_each_chunk((n_ + kRowsPerChunk - 1) / kRowsPerChunk, csr_threads(entries_, n_threads_), chunk, poll);
    std::vector<std::int64_t> sizes = sizes_;
    std::int64_t n_moved = 0;
    for (std::int64_t k = 0; k < K_; ++k) {
        if (sizes[k]) continue;
        std::int64_t row = -1;
        for (std::int64_t i = 0; i < n_; ++i)
            if (distances[i] > 0 && sizes[labels_[i]] > 1 && (row < 0 || distances[i] > distances[row])) row = i;
        if (row < 0) break;
        --sizes[labels_[row]];
        sizes[k] = 1;
        labels_[row] = std::int32_t(k);
        upper_[row] = std::numeric_limits<T>::infinity();
        lower_[row] = 0;  // it was a bound on all centers but the old one
        ++n_moved;
        lower_to(row, distances, poll);
    }
    if (n_moved) exchange(poll);
    return n_moved;
}

// ---- the update -----------------------------------------------------------------------------------------------------

// Move the centers of clusters that have changed to sum / divisor - mean in these columns; where the divisor is zero
// they stay.
template <class T>
void CsrClusters<T>::move_centers(const std::vector<double>& divisors, const Range& columns, Tally* tallies) {
    for (std::int64_t d = columns.first; d < columns.first + columns.count; d += kBlock)
        for (std::int64_t k = 0; k < K_; ++k) {
            if (!changed_[k]) continue;
            const double *const sum = sums_.data() + k * D_, divisor = divisors[k], weight = weights_[k];
            Tally tally = tallies[k];
            for (std::int64_t e = d; e < std::min(d + kBlock, columns.first + columns.count); ++e) {
                T& center = table_.column(e)[k];
                const double old = double(center), mean = p_.mean[e], centered = sum[e] - weight * mean;
                const double moved = divisor > 0 ? sum[e] / divisor - mean : old;
                center = T(moved);
                const double now = double(center);
                tally.shift += (now - old) * (now - old);
                tally.square += now * now;
                tally.along += now * mean;
                tally.before += old * centered;
                tally.after += moved * centered;
            }
            tallies[k] = tally;
        }
}

// Move every center to the mean of its rows. Returns the sum of the squared shifts.
template <class T>
double CsrClusters<T>::update() {
    std::vector<double> divisors = weights_;
    for (std::int64_t k = 0; k < K_ && p_.spherical; ++k) {
        const double* const sum = sums_.data() + k * D_;
        if (changed_[k] && weights_[k] > 0) divisors[k] = std::sqrt(std::inner_product(sum, sum + D_, sum, 0.0));
    }
    const std::int64_t n_chunks = (D_ + kColumnsPerChunk - 1) / kColumnsPerChunk;
    std::vector<Tally> tallies(std::size_t(n_chunks * K_));
    const auto chunk = [&](std::int64_t c, int, const Poll&) {
        const Range columns{c * kColumnsPerChunk, std::min(kColumnsPerChunk, D_ - c * kColumnsPerChunk)};
        move_centers(divisors, columns, tallies.data() + c * K_);
        return true;
    };
    for_each_chunk(n_chunks, csr_threads(double(K_ * D_), n_threads_), chunk, kQuiet);
    std::vector<double> shift(std::size_t(K_), 0);
    double before = 0, after = 0, shifts = 0;
    for (std::int64_t k = 0; k < K_; ++k) {
        if (!changed_[k]) {
            before += gains_[k];
            after += gains_[k];
            continue;
        }
        Tally all;
        for (std::int64_t c = 0; c < n_chunks; ++c) all.add(tallies[c * K_ + k]);
        const double weight = weights_[k];
        before += 2 * all.before - weight * squares_[k];
        gains_[k] = p_.spherical || !(weight > 0) ? 2 * all.after - weight * all.square : all.after;
        after += gains_[k];
        squares_[k] = all.square;
        along_[k] = all.along;
        shift[k] = std::sqrt(all.shift);
        shifts += all.shift;
        set_offset(k);
        changed_[k] = 0;
    }
    objective_ = std::max(p_.scatter - after, 0.0);
    assigned_ = std::max(p_.scatter - before, objective_);
    move_bounds(shift);
    return shifts;
}

template <class T>
double CsrClusters<T>::current_objective() const {
    double gain = 0;
    for (std::int64_t k = 0; k < K_; ++k) {
        double along = 0;
        for (std::int64_t d = 0; d < D_; ++d)
            along += double(table_.column(d)[k]) * (sums_[k * D_ + d] - weights_[k] * p_.mean[d]);
        gain += 2 * along - weights_[k] * squares_[k];
    }
    return std::max(p_.scatter - gain, 0.0);
}

template <class T>
std::int64_t CsrClusters<T>::iterate(double tol, const Poll& poll) {
    assign(poll);
    if (bad_row_ >= 0) return bad_row_;
    const std::int64_t n_changed = exchange(poll);
    const bool empty = std::count(sizes_.begin(), sizes_.end(), 0) > 0;
    const double assigned = empty ? current_objective() : 0;
    const std::int64_t n_moved = empty ? refill(poll) : 0;
    const double shifts = update();
    if (empty) assigned_ = assigned;
    converged_ = (!n_changed && !n_moved) || shifts <= tol;
    return -1;
}

template <class T>
void CsrClusters<T>::centers(double* out) const {
    for (std::int64_t d = 0; d < D_; d += kBlock)
        for (std::int64_t k = 0; k < K_; ++k)
            for (std::int64_t e = d; e < std::min(d + kBlock, D_); ++e) out[k * D_ + e] = double(table_.column(e)[k]);
}

template class CsrClusters<float>;
template class CsrClusters<double>;

}  // namespace quickmeans
