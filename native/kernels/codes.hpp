// Rows rounded to eight bits: a cheap bound that excludes most rows from exact comparison.
//
// A row x is its code plus a rest, x = s c + e with whole numbers c from -127 to 127, and so is a query. The products
// of codes are exact. For distances
//
//     |q - x| >= |s_q c_q - s_x c_x| - |e_q| - |e_x|,
//
// and for inner products <q, x> <= s_q s_x <c_q, c_x> + |s_q c_q| |e_x| + |e_q| |x|. What is computed in float32, here
// and in the exact comparison, errs by a few units of rounding, for which sizes and rests are widened: a row that the
// bound excludes would not have been found.
#pragma once

#include "lanes.hpp"
#include "types.hpp"

namespace quickmeans::QM_ISA {

// Two products of 16 bits are added up at a time on AVX2; the baseline has nothing faster than floats.
constexpr bool kHasCodes = QM_VECTOR_BYTES >= 32;

// Rows have codes if their largest number is above the one and the sum of their squares below the other: so that
// neither products of scales nor what is left out of sums is too small for float32, and no square too large.
constexpr float kLeastCodedNumber = 1e-12f;
constexpr double kMostCodedSquare = 1e36;

// Lane k of the sum grows by the products of the bytes of its four columns; those of rows have no sign.
inline Vec<std::int32_t> add_products(Vec<std::int32_t> sum, Vec<std::uint8_t> row, Vec<std::int8_t> query) {
#if defined(__AVX512VNNI__)
    return Vec<std::int32_t>(_mm512_dpbusd_epi32(__m512i(sum), __m512i(row), __m512i(query)));
#elif QM_VECTOR_BYTES == 64 && defined(__AVX512BW__)
    const __m512i low = _mm512_madd_epi16(_mm512_cvtepu8_epi16(_mm512_castsi512_si256(__m512i(row))),
                                          _mm512_cvtepi8_epi16(_mm512_castsi512_si256(__m512i(query))));
    const __m512i high = _mm512_madd_epi16(_mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(__m512i(row), 1)),
                                           _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(__m512i(query), 1)));
    return sum + Vec<std::int32_t>(low) + Vec<std::int32_t>(high);
#elif QM_VECTOR_BYTES == 32 && defined(__AVX2__)
    const __m256i low = _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(__m256i(row))),
                                          _mm256_cvtepi8_epi16(_mm256_castsi256_si128(__m256i(query))));
    const __m256i high = _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm256_extracti128_si256(__m256i(row), 1)),
                                           _mm256_cvtepi8_epi16(_mm256_extracti128_si256(__m256i(query), 1)));
    return sum + Vec<std::int32_t>(low) + Vec<std::int32_t>(high);
#else
    for (int i = 0; i < kWidth<std::uint8_t>; ++i) sum[i / 4] += std::int32_t(row[i]) * query[i];
    return sum;
#endif
}

// The first R numbers at p again and again, or the first W / R of them R times each.
template <int R>
struct Again {
    static constexpr int at(int i) { return i % R; }
};
template <int R>
struct Each {
    static constexpr int at(int i) { return i / R; }
};
template <class Index, class T>
inline Vec<T> lanes(const T* p) {
    const Vec<T> v = load(p);
    return shuffle<Index>(v, v, std::make_index_sequence<kWidth<T>>());
}

// Q queries and, in lane i * R + j, what is known of query i.
template <int Q, bool kSimilarity>
struct CodeBlock {
    static constexpr int W = kWidth<float>, R = W / Q;
    static constexpr unsigned kAll = Q * R == 32 ? ~0u : (1u << Q * R) - 1;
    const std::int8_t* queries[Q];
    std::int64_t stride;
    float rests[W] = {}, limits[W] = {};
    Vec<float> scale, size, rest, limit;
    Vec<std::int32_t> shift;

    CodeBlock(const CodedRows& coded, const std::int64_t* members) : stride(coded.stride) {
        float scales[W] = {}, sizes[W] = {};
        std::int32_t shifts[W] = {};
        for (int i = 0; i < Q; ++i) {
            const std::int64_t query = members[i];
            queries[i] = reinterpret_cast<const std::int8_t*>(coded.codes) + query * stride;
            scales[i] = (kSimilarity ? -1 : -2) * coded.scales[query];
            sizes[i] = coded.sizes[query];
            rests[i] = coded.rests[query];
            shifts[i] = coded.shifts[query];
        }
        scale = lanes<Each<R>>(scales), size = lanes<Each<R>>(sizes), rest = lanes<Each<R>>(rests);
        shift = lanes<Each<R>>(shifts);
    }
    void set_bound(int i, float bound) {
        limits[i] = kSimilarity ? bound : __builtin_sqrtf(bound) * 1.0000004f + rests[i];
        limit = lanes<Each<R>>(limits);
    }
    // One bit per pair of a query and one of the rows from `at` on that may be within the query's bound.
    unsigned possible(const CodedRows& rows, std::int64_t at, int count) const {
        constexpr int step = QM_VECTOR_BYTES;
        const std::uint8_t* codes[R];
        for (int j = 0; j < R; ++j) codes[j] = rows.codes + (at + (j < count ? j : count - 1)) * stride;
        Vec<std::int32_t> sums[W];
        for (int i = 0; i < W; ++i) sums[i] = Vec<std::int32_t>{};
        for (std::int64_t d = 0; d < stride; d += step) {
            Vec<std::int8_t> x[Q];
            for (int i = 0; i < Q; ++i) x[i] = load(queries[i] + d);
            for (int j = 0; j < R; ++j) {
                if constexpr (Q == 1) __builtin_prefetch(codes[j] + d + R * stride, 0, 2);
                const Vec<std::uint8_t> y = load(codes[j] + d);
                for (int i = 0; i < Q; ++i) sums[i * R + j] = add_products(sums[i * R + j], y, x[i]);
            }
        }
        const Vec<float> products = __builtin_convertvector(sums_of_lanes(sums) - shift, Vec<float>);
        const Vec<float> scaled = scale * products * lanes<Again<R>>(rows.scales + at);
        const Vec<float> sizes = lanes<Again<R>>(rows.sizes + at), theirs = lanes<Again<R>>(rows.rests + at);
        if constexpr (kSimilarity) {
            return ~lane_bits<float>(scaled - size * theirs - rest * sizes > limit) & kAll;
        } else {
            const Vec<float> most = limit + theirs;
            return ~lane_bits<float>(size + sizes + scaled > most * most) & kAll;
        }
    }
};

// What the code of a row is made from, and how far it is from the row.
struct Rounding {
    float largest = 0;
    double length = 0;
    bool is_coded;  // else squares may not be numbers of float32, and nothing is known of the row

    Rounding(const float* row, std::int64_t n) {
        for (std::int64_t d = 0; d < n; ++d) {
            const float size = __builtin_fabsf(row[d]);
            largest = size > largest ? size : largest;
            length += double(row[d]) * row[d];
        }
        is_coded = largest > kLeastCodedNumber && length < kMostCodedSquare;
        length = __builtin_sqrt(length);
    }
};

// Round the rows of a range; codes of rows are stored with 128 added, those of queries as they are.
inline void encode_rows(const EncodeJob& job, const Range& range) {
    const CodedRows& out = job.out;
    // Of sums of so many products in float32, and of what is computed from them, relative to the sum of their sizes.
    const double rounding = (double(job.n_columns) / 4 + 16) * 0x1p-23;
    for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
        const float* const row = job.rows + i * job.n_columns;
        const Rounding of(row, job.n_columns);
        const float scale = of.is_coded ? of.largest / 127 : 0, per_unit = of.is_coded ? 127 / of.largest : 0;
        std::uint8_t* const codes = out.codes + i * out.stride;
        for (std::int64_t d = 0; d < out.stride; ++d) codes[d] = 0;
        double square = 0, rest = 0;
        std::int32_t sum = 0;
        for (std::int64_t d = 0; of.is_coded && d < job.n_columns; ++d) {
            const float place = row[d] * per_unit;
            const auto code = std::int32_t(place < 0 ? place - 0.5f : place + 0.5f);
            const double coded = double(scale) * code, left = double(row[d]) - coded;
            codes[d] = std::uint8_t(code + (job.is_query ? 0 : 128));
            sum += code;
            square += coded * coded;
            rest += left * left;
        }
        const double length = (job.is_query ? __builtin_sqrt(square) : of.length) * 1.000001;
        out.scales[i] = scale;
        out.rests[i] = of.is_coded ? float(__builtin_sqrt(rest) * 1.000001) : __builtin_inff();
        out.sizes[i] = of.is_coded ? float(job.similarity ? length : square * (1 - rounding)) : 0;
        // The error of a product is that share of both lengths.
        if (job.similarity && !job.is_query) out.rests[i] += float(1.001 * rounding * of.length);
        if (out.shifts) out.shifts[i] = 128 * sum;
    }
}

}  // namespace quickmeans::QM_ISA
