#include "near_centers.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "dispatch.hpp"
#include "float_rows.hpp"
#include "parallel.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

constexpr std::int64_t kChunkRows = 512;  // rows that a thread works on at a time
// Groups whose centers a row without a label is compared with, and a row that is far. Of a mixture in 16 dimensions
// with noise in 64, 16384 of whose rows are the centers, 94 rows in 100 find their nearest one with 16, and 76 with 4.
constexpr std::int64_t kGroups = 16;
constexpr int kHops = 8;                     // from one center to a nearer one, at most: most rows take none
constexpr std::int64_t kChunkClusters = 64;  // whose rows a thread compares at a time

// The turn of a row, from the bits of its norm: it must not depend on where the row is.
std::uint32_t turn_of(float norm) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &norm, sizeof bits);
    bits *= 2654435761U;
    return bits >> 16;
}

}  // namespace

// What is known of the rows of a chunk beside labels and scores.
struct NearCenters::Results {
    std::vector<std::int32_t> seconds;
    std::vector<float> next;
};

NearCenters::NearCenters(const float* centers, std::int64_t n, std::int64_t n_columns, int n_threads,
                         const InstructionSet& set, const Poll& poll)
    : centers_(centers), n_(n), n_columns_(n_columns), set_(set), offset_(std::size_t(n)), places_(std::size_t(n)) {
    for (std::int64_t k = 0; k < n; ++k) {
        double square = 0;
        for (std::int64_t d = 0; d < n_columns; ++d)
            square += double(centers[k * n_columns + d]) * centers[k * n_columns + d];
        offset_[k] = float(-square / 2);
    }
    groups_.divide(this->centers(), true, set, n_threads, poll);
    groups_.find_neighbours(this->centers(), set, n_threads, poll);
    for (std::int64_t i = 0; i < n; ++i) places_[groups_.by_group()[i]] = std::int32_t(i);
}

ListJob NearCenters::job(const Chunk& chunk, Results& results, const std::int64_t* index) const {
    ListJob job{};
    job.rows = float_rows(chunk.rows, chunk.n, n_columns_, index);
    job.centers = centers_;
    job.offset = offset_.data();
    job.labels = chunk.labels;
    job.seconds = results.seconds.data();
    job.best = chunk.best;
    job.next = results.next.data();
    return job;
}

// Rows without a label get one through the groups.
void NearCenters::label_new(const Chunk& chunk, Results& results, int n_threads, const Poll& poll) {
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < chunk.n; ++i)
        if (chunk.labels[i] < 0) rows.push_back(i);
    if (rows.empty()) return;
    groups_.label(job(chunk, results, rows.data()), std::int64_t(rows.size()), kGroups, centers(), set_, n_threads,
                  poll);
}

// Compare rows with their centers and the neighbours of these, and those that have found a nearer one with the
// neighbours of that, and so on.
void NearCenters::follow(const Chunk& chunk, Results& results, int n_threads, const Poll& poll) {
    std::vector<std::int64_t> rows(std::size_t(chunk.n));
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<std::int32_t> before(std::size_t(chunk.n));
    for (int hop = 0; hop < kHops && !rows.empty(); ++hop) {
        for (const std::int64_t i : rows) before[i] = chunk.labels[i];
        compare(chunk, results, rows, n_threads, poll);
        std::erase_if(rows, [&](std::int64_t i) { return chunk.labels[i] == before[i]; });
    }
}

// Compare each of the rows with its center and the neighbours of that. Rows of one cluster go together.
void NearCenters::compare(const Chunk& chunk, Results& results, std::vector<std::int64_t>& rows, int n_threads,
                          const Poll& poll) {
    const auto before = [&](std::int64_t a, std::int64_t b) {
        return places_[chunk.labels[a]] < places_[chunk.labels[b]];
    };
    std::stable_sort(rows.begin(), rows.end(), before);
    const auto n = std::int64_t(rows.size());
    std::vector<std::int64_t> first;  // where the rows of each cluster begin
    for (std::int64_t i = 0; i < n; ++i)
        if (i == 0 || chunk.labels[rows[i]] != chunk.labels[rows[i - 1]]) first.push_back(i);
    std::vector<std::int32_t> labels;
    for (const std::int64_t i : first) labels.push_back(chunk.labels[rows[i]]);
    first.push_back(n);
    n_threads = threads_for(work_of_rows(n, n_columns_, groups_.n_near()), n_threads);
    std::vector<std::vector<float>> memory(static_cast<std::size_t>(n_threads));
    const auto clusters = [&](std::int64_t c, int thread, const Poll& own_poll) {
        memory[thread].resize(std::size_t((n_columns_ + kStagingColumns) * set_.single.nearest.lanes));
        ListJob own = job(chunk, results, rows.data());
        own.n_listed = groups_.n_near();
        for (std::int64_t i = c * kChunkClusters; i < std::min(std::int64_t(labels.size()), (c + 1) * kChunkClusters);
             ++i) {
            own.list = groups_.near(labels[i]);
            set_.routines.nearest_listed(own, {first[i], first[i + 1] - first[i]}, memory[thread].data(), own_poll);
        }
        return true;
    };
    for_each_chunk((std::int64_t(labels.size()) + kChunkClusters - 1) / kChunkClusters, n_threads, clusters, poll);
}

// Compare rows that are far from their centers, and whose turn it is, with the centers of many groups.
void NearCenters::look_widely(const Chunk& chunk, Results& results, double far, std::uint32_t turn, int n_threads,
                              const Poll& poll) {
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < chunk.n; ++i)
        if (chunk.norms[i] - 2 * chunk.best[i] > far && turn_of(chunk.norms[i]) % kTurns == turn % kTurns)
            rows.push_back(i);
    if (rows.empty()) return;
    std::vector<std::int32_t> labels(rows.size());
    std::vector<float> best(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) labels[i] = chunk.labels[rows[i]], best[i] = chunk.best[rows[i]];
    groups_.label(job(chunk, results, rows.data()), std::int64_t(rows.size()), kGroups, centers(), set_, n_threads,
                  poll);
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (!(chunk.best[rows[i]] > best[i])) chunk.labels[rows[i]] = labels[i], chunk.best[rows[i]] = best[i];
}

void NearCenters::square(const Chunk& chunk, int n_threads, const Poll& poll) {
    const auto part = [&](std::int64_t c, int, const Poll& own_poll) {
        const std::int64_t first = c * kChunkRows, count = std::min(kChunkRows, chunk.n - first);
        double squares[kChunkRows];
        set_.routines.square_rows(chunk.rows + first * n_columns_, n_columns_, {0, count}, squares, own_poll);
        std::copy_n(squares, count, chunk.norms + first);
        return true;
    };
    for_each_chunk((chunk.n + kChunkRows - 1) / kChunkRows,
                   threads_for(work_of_rows(chunk.n, n_columns_, 0), n_threads), part, poll);
}

void NearCenters::assign(const Chunk& chunk, double far, std::uint32_t turn, int n_threads, const Poll& poll) {
    for (std::int64_t i = 0; i < chunk.n; ++i)
        if (chunk.labels[i] >= n_) throw std::invalid_argument("a label is no center");
    Results results{std::vector<std::int32_t>(std::size_t(chunk.n)), std::vector<float>(std::size_t(chunk.n))};
    square(chunk, n_threads, poll);
    label_new(chunk, results, n_threads, poll);
    follow(chunk, results, n_threads, poll);
    look_widely(chunk, results, far, turn, n_threads, poll);
}

}  // namespace quickmeans
