// The operations that vector extensions do not have: gather, the lanes for which a comparison holds, the square root.
#pragma once

#include "vector.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace quickmeans::QM_ISA {

// x[index[0]], x[index[1]], ... in one vector; indices are below 2^31.
template <class T>
inline Vec<T> gather(const T* x, const std::uint32_t* index) {
#if QM_VECTOR_BYTES == 64 && defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
        return Vec<T>(_mm512_i32gather_ps(_mm512_loadu_si512(index), x, 4));
    else
        return Vec<T>(_mm512_i32gather_pd(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(index)), x, 8));
#elif QM_VECTOR_BYTES == 32 && defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
        return Vec<T>(_mm256_i32gather_ps(x, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(index)), 4));
    else
        return Vec<T>(_mm256_i32gather_pd(x, _mm_loadu_si128(reinterpret_cast<const __m128i*>(index)), 8));
#else
    Vec<T> v;
    for (int i = 0; i < kWidth<T>; ++i) v[i] = x[index[i]];
    return v;
#endif
}

// One bit per lane of a comparison.
template <class T, class Mask>
inline unsigned lane_bits(Mask mask) {
#if QM_VECTOR_BYTES == 64 && defined(__AVX512DQ__)
    return sizeof(T) == 4 ? _mm512_movepi32_mask(__m512i(mask)) : _mm512_movepi64_mask(__m512i(mask));
#elif QM_VECTOR_BYTES == 32 && defined(__AVX2__)
    return unsigned(sizeof(T) == 4 ? _mm256_movemask_ps(__m256(mask)) : _mm256_movemask_pd(__m256d(mask)));
#else
    unsigned bits = 0;
    for (int i = 0; i < kWidth<T>; ++i) bits |= unsigned(mask[i] & 1) << i;
    return bits;
#endif
}

// The square root of every lane; NaN of numbers below zero.
template <class T>
inline Vec<T> square_root(Vec<T> v) {
#if QM_VECTOR_BYTES == 64 && defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
        return Vec<T>(_mm512_sqrt_ps(__m512(v)));
    else
        return Vec<T>(_mm512_sqrt_pd(__m512d(v)));
#elif QM_VECTOR_BYTES == 32 && defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
        return Vec<T>(_mm256_sqrt_ps(__m256(v)));
    else
        return Vec<T>(_mm256_sqrt_pd(__m256d(v)));
#else
    for (int i = 0; i < kWidth<T>; ++i)
        v[i] = sizeof(T) == 4 ? T(__builtin_sqrtf(float(v[i]))) : T(__builtin_sqrt(v[i]));
    return v;
#endif
}

}  // namespace quickmeans::QM_ISA
