// How much work a loop is, in multiply-adds of a product that fills the vectors, and how many threads it is worth.
#pragma once

#include <algorithm>
#include <cstdint>

namespace quickmeans {

// Comparing a row with a center takes as long as this many multiply-adds on top of those of its columns, and reading
// and writing a row as long as this many (benchmarks/cost_model.py: 3 and 170, at 42 multiply-adds in a nanosecond).
constexpr double kWorkPerScore = 4, kWorkPerRow = 160;
// An entry of a row that has to come from memory takes as long as this many.
constexpr double kWorkPerEntry = 8;
// Keeping the bounds of a row that is not compared takes as long as this many.
constexpr double kWorkPerSkipped = 160;
// What a thread must have to do: about a quarter of a millisecond. To start one takes 30 microseconds where a processor
// is free; where other threads spin, as those of BLAS and OpenMP do after a call, the caller does the work alone.
constexpr double kWorkPerThread = 1e7;

inline double work_of_rows(std::int64_t n_rows, std::int64_t n_columns, std::int64_t n_centers) {
    return double(n_rows) *
           (kWorkPerRow + double(n_centers) * (kWorkPerScore + double(n_columns)) + kWorkPerEntry * double(n_columns));
}

inline int threads_for(double work, int n_threads) {
    return std::max(1, std::min(n_threads, int(std::min(work / kWorkPerThread, 1e6))));
}

}  // namespace quickmeans
