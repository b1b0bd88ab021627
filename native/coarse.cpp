#include "coarse.hpp"

#include <algorithm>

#include "kernels/pacer.hpp"
#include "parallel.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

constexpr std::int64_t kQueriesPerChunk = 64;

}  // namespace

Coarse::Coarse(std::vector<std::shared_ptr<const RowLists>> levels, std::int64_t n_columns,
               std::vector<float> directions, const std::string& isa)
    : levels_(std::move(levels)),
      n_columns_(n_columns),
      n_directions_(std::int64_t(directions.size()) / n_columns),
      largest_list_(levels_.back()->largest_id()),
      directions_(std::move(directions)),
      set_(&find_instruction_set(isa)) {}

std::vector<float> Coarse::projected(const float* queries, std::int64_t n, int n_threads, const Poll& poll) const {
    std::vector<float> coordinates(std::size_t(n * (n_directions_ + 1)));
    n_threads = threads_for(work_of_rows(n, n_columns_, n_directions_), n_threads);
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        const Range rows{c * kQueriesPerChunk, std::min(kQueriesPerChunk, n - c * kQueriesPerChunk)};
        set_->routines.project({queries, n_columns_, directions_.data(), n_directions_, coordinates.data()}, rows,
                               own_poll);
        return true;
    };
    for_each_chunk((n + kQueriesPerChunk - 1) / kQueriesPerChunk, n_threads, chunk, poll);
    return coordinates;
}

void Coarse::find(const float* queries, std::int64_t n, const std::vector<std::int64_t>& counts, std::int64_t* lists,
                  int n_threads, const Poll& poll) const {
    std::vector<float> own;
    if (n_directions_) own = projected(queries, n, n_threads, poll);
    std::vector<std::int64_t> probes(std::size_t(n), 0), found;
    std::vector<float> values;
    for (std::size_t level = 0; level < levels_.size(); ++level) {
        const std::int64_t m = counts[level], n_probes = level ? counts[level - 1] : 1;
        const bool last = level + 1 == levels_.size();
        values.resize(std::size_t(n * m));
        if (!last) found.resize(std::size_t(n * m));
        levels_[level]->search(n_directions_ ? own.data() : queries, {probes.data(), n, n_probes}, m, values.data(),
                               last ? lists : found.data(), n_threads, poll);
        probes.swap(found);
    }
}

std::int64_t Coarse::first_bad(const float* queries, std::int64_t n, double limit, const Poll& poll) const {
    Pacer pacer{poll};
    for (std::int64_t i = 0; i < n; ++i) {
        double square = 0;
        set_->routines.square_rows(queries + i * n_columns_, n_columns_, {0, 1}, &square, poll);
        if (!(square < limit)) return i;
        pacer.did(n_columns_);
    }
    return -1;
}

}  // namespace quickmeans
