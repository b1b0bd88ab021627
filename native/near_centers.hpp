// The nearest of many centers for rows that come in chunks, with the labels that they had before.
//
// As in local_search.hpp a row is compared with the neighbours of its center, so that the cost hardly depends on the
// number of centers. A row without a label is first compared with the centers of some groups; then its label is one,
// and it is compared with the neighbours of that. In the end the rows that are far from their centers, which are most
// of those that a nearer center has missed, are compared with the centers of many groups: those that are farther than a
// given distance, one part of them in every turn. Nothing depends on the other rows of a chunk.
#pragma once

#include <cstdint>
#include <vector>

#include "center_groups.hpp"
#include "kernels/types.hpp"

namespace quickmeans {

class NearCenters {
  public:
    static constexpr std::uint32_t kTurns = 4;  // in so many turns all rows that are far are looked at

    // Rows, n x n_columns, about the origin of the centers.
    struct Chunk {
        const float* rows;
        std::int64_t n;
        std::int32_t* labels;  // IN/OUT  -1: none
        float* best;           // OUT  <x, c> - |c|^2 / 2 for the nearest center c
        float* norms;          // OUT  |x|^2
    };

    // The centers, n x n_columns, are not copied: they must outlive this.
    NearCenters(const float* centers, std::int64_t n, std::int64_t n_columns, int n_threads, const InstructionSet& set,
                const Poll& poll);

    // Find the nearest centers. Rows whose squared distance is larger than `far` are looked at more widely in one of
    // kTurns turns.
    void assign(const Chunk& chunk, double far, std::uint32_t turn, int n_threads, const Poll& poll);

    std::int64_t n_centers() const { return n_; }
    std::int64_t n_columns() const { return n_columns_; }

  private:
    struct Results;
    ListJob job(const Chunk& chunk, Results& results, const std::int64_t* index) const;
    void label_new(const Chunk& chunk, Results& results, int n_threads, const Poll& poll);
    void follow(const Chunk& chunk, Results& results, int n_threads, const Poll& poll);
    void compare(const Chunk& chunk, Results& results, std::vector<std::int64_t>& rows, int n_threads,
                 const Poll& poll);
    void look_widely(const Chunk& chunk, Results& results, double far, std::uint32_t turn, int n_threads,
                     const Poll& poll);
    void square(const Chunk& chunk, int n_threads, const Poll& poll);
    CentersView centers() const { return {centers_, offset_.data(), n_, n_columns_}; }

    const float* centers_;
    std::int64_t n_, n_columns_;
    const InstructionSet& set_;
    std::vector<float> offset_;         // -|c|^2 / 2
    std::vector<std::int32_t> places_;  // of the centers, group by group: neighbours are near each other
    CenterGroups groups_;
};

}  // namespace quickmeans
