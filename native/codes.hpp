// The memory of rows rounded to eight bits; kernels/codes.hpp says what they are for.
#pragma once

#include <vector>

#include "dispatch.hpp"
#include "pages.hpp"

namespace quickmeans {

class Codes {
  public:
    static constexpr std::int64_t kMostColumns = 1 << 16;  // so that the products of codes add up to 32 bits

    // Codes of no rows yet.
    Codes() = default;
    // Memory for so many rows, or queries.
    Codes(std::int64_t n_rows, std::int64_t n_columns, bool is_query);

    CodedRows view();

  private:
    std::int64_t stride_ = 0;
    std::vector<std::uint8_t, RawPages<std::uint8_t>> codes_;
    std::vector<float> facts_;
    std::vector<std::int32_t> shifts_;
};

}  // namespace quickmeans
