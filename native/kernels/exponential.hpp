// The exponential function of vectors, for arguments that are not positive.
//
//   exp(x) = 2^n exp(r),   n = round(x / ln 2),   r = x - n ln 2,   |r| <= ln 2 / 2,
//
// with exp(r) by its Taylor polynomial, to the last bit or two. ln 2 is subtracted in two parts, of which the first has
// so few digits that its product with n is exact. Results below the normal numbers are zero.
#pragma once

#include "vector.hpp"

namespace quickmeans::QM_ISA {

template <class T>
struct Exponential;

template <>
struct Exponential<float> {
    using Bits = std::int32_t;
    static constexpr int kDegree = 7, kMantissa = 23;
    static constexpr float kRound = 0x1.8p23f;  // adding it moves the integer part to the lowest bits
    static constexpr float kLow = -87.0f, kLn2High = 0x1.63p-1f, kLn2Low = -2.12194440e-4f;
};

template <>
struct Exponential<double> {
    using Bits = std::int64_t;
    static constexpr int kDegree = 13, kMantissa = 52;
    static constexpr double kRound = 0x1.8p52;
    static constexpr double kLow = -708.0, kLn2High = 6.93145751953125e-1, kLn2Low = 1.42860682030941723212e-6;
};

// 1 / 0!, 1 / 1!, ... 1 / n!
template <class T, int n>
struct Reciprocals {
    T value[n + 1] = {};
    constexpr Reciprocals() {
        double factorial = 1;
        for (int k = 0; k <= n; ++k) {
            if (k > 0) factorial *= k;
            value[k] = T(1 / factorial);
        }
    }
};

template <class T>
inline Vec<T> exponential(Vec<T> x) {
    using E = Exponential<T>;
    constexpr Reciprocals<T, E::kDegree> taylor;
    const Vec<T> z = x > E::kLow ? x : splat(E::kLow);
    const Vec<T> shifted = z * T(1.4426950408889634) + E::kRound;
    const Vec<T> n = shifted - E::kRound;
    const Vec<T> r = (z - n * E::kLn2High) - n * E::kLn2Low;
    Vec<T> p = splat(taylor.value[E::kDegree]);
    for (int k = E::kDegree - 1; k >= 0; --k) p = p * r + taylor.value[k];
    using Bits = Vec<typename E::Bits>;
    const Vec<T> value = Vec<T>(Bits(p) + (Bits(shifted) << E::kMantissa));
    return x > E::kLow ? value : Vec<T>{};
}

}  // namespace quickmeans::QM_ISA
