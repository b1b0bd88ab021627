// Rows in lists and the queries that are compared with them: plain data, as in types.hpp.
#pragma once

#include <cstdint>

namespace quickmeans {

// The best so far of every query: the k smallest by (value, id), as a heap with the largest at its root. Squared
// distances, or inner products with the sign changed. Several threads may look and push at the same time.
struct ScanHeaps {
    std::int64_t k;
    float* values;         // n_queries x k
    std::int64_t* ids;     // n_queries x k
    std::int64_t* sizes;   // how many there are
    float* bounds;         // a value above this is not among the best; infinity until there are k
    unsigned char* locks;  // null if no two threads have the same query
};

// Rows rounded to eight bits, and what bounds need to know of each; see codes.hpp. Of rows of lists the last three
// arrays have as many numbers more as a vector.
struct CodedRows {
    std::uint8_t* codes;  // null: there are none
    std::int64_t stride;  // bytes of a row
    float *scales, *sizes, *rests;
    std::int32_t* shifts;  // of queries
};

// Rows of n_columns numbers each, one after the other.
struct ScanList {
    const float* rows;
    const std::int64_t* ids;
    std::int64_t n_rows;
    CodedRows coded = {};
};

struct EncodeJob {
    const float* rows;
    std::int64_t n_columns;
    bool similarity, is_query;
    CodedRows out;
};

struct ScanJob {
    const float* queries;  // n_columns numbers each
    std::int64_t n_columns;
    bool similarity;  // whether inner products are compared, and not distances
    ScanHeaps heaps;
    CodedRows coded;  // of the queries, if codes are to be used
};

// The products of queries with directions, and a zero after them.
struct ProjectJob {
    const float* queries;  // n_columns numbers each
    std::int64_t n_columns;
    const float* directions;  // n_directions x n_columns
    std::int64_t n_directions;
    float* out;  // OUT  n_queries x (n_directions + 1)
};

}  // namespace quickmeans
