// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gradguard::cuda {

/// SHA-256 (FIPS 180-4), for names and checks of cached files.
class Sha256 {
  public:
    Sha256& add(std::string_view bytes);
    /// The same after a length, so that two neighbouring texts cannot be read as others: what a key is made of.
    Sha256& add_field(std::string_view bytes);
    /// 64 hexadecimal digits, lower case. Ends the computation: nothing may be added afterwards.
    std::string hex();

  private:
    void compress(const unsigned char* block);

    std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, 64> block_ = {};
    std::size_t filled_ = 0;
    std::uint64_t bytes_ = 0;
};

inline std::string sha256_hex(std::string_view bytes) { return Sha256().add(bytes).hex(); }

}  // namespace gradguard::cuda
