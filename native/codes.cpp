#include "codes.hpp"

namespace quickmeans {
namespace {

constexpr std::int64_t kLine = 64, kLanes = 16;  // bytes of the longest vector, and its numbers

}  // namespace

Codes::Codes(std::int64_t n_rows, std::int64_t n_columns, bool is_query)
    : stride_((n_columns + kLine - 1) / kLine * kLine),
      codes_(std::size_t(n_rows * stride_)),
      facts_(std::size_t(3 * (n_rows + kLanes))),
      shifts_(std::size_t(is_query ? n_rows : 0)) {}

CodedRows Codes::view() {
    if (facts_.empty()) return {};
    const std::size_t n = facts_.size() / 3;
    float* const facts = facts_.data();
    return {codes_.data(), stride_, facts, facts + n, facts + 2 * n, shifts_.empty() ? nullptr : shifts_.data()};
}

}  // namespace quickmeans
