// Memory for large tables that are read at random places: pages of 2 MB where the system has them, so that an access
// seldom waits for the address of its page.
#pragma once

#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace quickmeans {

template <class T>
struct PageAllocator {
    using value_type = T;
    static constexpr std::size_t kLine = 64, kPage = std::size_t(1) << 21;

    PageAllocator() = default;
    template <class U>
    PageAllocator(const PageAllocator<U>&) {}

    T* allocate(std::size_t n) {
        const std::size_t wanted = n * sizeof(T), unit = wanted < kPage ? kLine : kPage;
        void* const memory = std::aligned_alloc(unit, (wanted + unit - 1) / unit * unit);
        if (!memory) throw std::bad_alloc();
#if defined(__linux__)
        if (unit == kPage) madvise(memory, (wanted + unit - 1) / unit * unit, MADV_HUGEPAGE);  // if it fails, no harm
#endif
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t) { std::free(memory); }
    bool operator==(const PageAllocator&) const { return true; }
};

// The same for vectors that are written before they are read: new elements of arithmetic types have no value.
template <class T>
struct RawPages : PageAllocator<T> {
    template <class U>
    struct rebind {
        using other = RawPages<U>;
    };

    RawPages() = default;
    template <class U>
    RawPages(const RawPages<U>&) {}
    template <class U>
    void construct(U* place) {
        ::new (static_cast<void*>(place)) U;
    }
};

}  // namespace quickmeans
