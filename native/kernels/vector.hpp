// Vectors of a fixed width by the compiler's vector extensions: one source for every instruction set.
#pragma once

#include <cstdint>
#include <utility>

// Make the compiler compute v once and keep it in a register, instead of again at every use.
#if defined(__x86_64__)
#define QM_IN_REGISTER(v) __asm__("" : "+v"(v))
#else
#define QM_IN_REGISTER(v) __asm__("" : "+w"(v))
#endif

namespace quickmeans::QM_ISA {

template <class T>
struct VectorOf {
    typedef T type __attribute__((vector_size(QM_VECTOR_BYTES)));
};
template <class T>
using Vec = typename VectorOf<T>::type;
template <class T>
constexpr int kWidth = QM_VECTOR_BYTES / int(sizeof(T));

template <class T>
inline Vec<T> load(const T* p) {
    Vec<T> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

template <class T>
inline void store(T* p, Vec<T> v) {
    __builtin_memcpy(p, &v, sizeof v);
}

// All lanes equal to x. (0 + x would not do: it turns -0 into 0, so the compiler may not drop the addition.)
template <class T>
inline Vec<T> splat(T x) {
    return x - Vec<T>{};
}

template <class Index, class V, std::size_t... I>
inline V shuffle(V a, V b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, Index::at(int(I))...);
}

// Within each 16-byte lane, groups of `Group` elements of a and b alternate, from the lane's lower or upper half.
template <int Width, int Lane, int Group, int Half>
struct Unpack {
    static constexpr int at(int i) {
        const int lane = i / Lane, j = i % Lane;
        const int source = lane * Lane + Half * Lane / 2 + j / (2 * Group) * Group + j % Group;
        return source + ((j / Group) % 2) * Width;
    }
};

// Blocks of `Block` elements: the even (Half = 0) or odd (Half = 1) blocks of a and b alternate.
template <int Width, int Block, int Half>
struct Exchange {
    static constexpr int at(int i) {
        const int block = i / Block;
        return (block - block % 2 + Half) * Block + i % Block + (block % 2) * Width;
    }
};

template <template <int, int, int, int> class Pattern, class T, int Group>
inline void unpack_pair(Vec<T>& a, Vec<T>& b) {
    constexpr int W = kWidth<T>, L = 16 / int(sizeof(T));
    const Vec<T> low = shuffle<Pattern<W, L, Group, 0>>(a, b, std::make_index_sequence<W>());
    b = shuffle<Pattern<W, L, Group, 1>>(a, b, std::make_index_sequence<W>());
    a = low;
}

template <class T, int Block>
inline void exchange_pair(Vec<T>& a, Vec<T>& b) {
    constexpr int W = kWidth<T>;
    const Vec<T> even = shuffle<Exchange<W, Block, 0>>(a, b, std::make_index_sequence<W>());
    b = shuffle<Exchange<W, Block, 1>>(a, b, std::make_index_sequence<W>());
    a = even;
}

// Transpose the 4 x 4 (float) or 2 x 2 (double) blocks that sit in the 16-byte lanes of consecutive vectors.
template <class T>
inline void transpose_lanes(Vec<T>* m) {
    if constexpr (sizeof(T) == 4) {
        unpack_pair<Unpack, T, 1>(m[0], m[1]);
        unpack_pair<Unpack, T, 1>(m[2], m[3]);
        unpack_pair<Unpack, T, 2>(m[0], m[2]);
        unpack_pair<Unpack, T, 2>(m[1], m[3]);
        std::swap(m[1], m[2]);
    } else {
        unpack_pair<Unpack, T, 1>(m[0], m[1]);
    }
}

template <class T, int Blocks>
inline void transpose_blocks(Vec<T>* m) {
    constexpr int W = kWidth<T>, L = 16 / int(sizeof(T));
    if constexpr (Blocks * L < W) {
        for (int i = 0; i < W; ++i)
            if (!(i & (Blocks * L))) exchange_pair<T, Blocks * L>(m[i], m[i + Blocks * L]);
        transpose_blocks<T, 2 * Blocks>(m);
    }
}

// Transpose a W x W block held in W vectors.
template <class T>
inline void transpose(Vec<T>* m) {
    constexpr int W = kWidth<T>, L = 16 / int(sizeof(T));
    for (int i = 0; i < W; i += L) transpose_lanes<T>(m + i);
    transpose_blocks<T, 1>(m);
}

}  // namespace quickmeans::QM_ISA
