// SPDX-License-Identifier: Apache-2.0
// CUB's radix ranks: where each of 256 keys goes in a stable sort by its low 4 bits, one block of 128 threads.
#include <cub/block/block_radix_rank.cuh>
#include <cub/block/radix_rank_sort_operations.cuh>

namespace {

using Digit = cub::BFEDigitExtractor<unsigned>;

}  // namespace

/// Threads hold keys 2 i and 2 i + 1. out[i] = rank of key i.
extern "C" __global__ void rank_u32(const unsigned* in, int* out) {
    using Rank = cub::BlockRadixRank<128, 4, false>;
    __shared__ typename Rank::TempStorage storage;
    unsigned keys[2] = {in[2 * threadIdx.x], in[2 * threadIdx.x + 1]};
    int ranks[2];
    Rank(storage).RankKeys(keys, ranks, Digit(0, 4));
    out[2 * threadIdx.x] = ranks[0];
    out[2 * threadIdx.x + 1] = ranks[1];
}

/// Each warp holds 64 keys, lane l keys l and l + 32 of them. out[i] = rank of key i.
extern "C" __global__ void match_rank_u32(const unsigned* in, int* out) {
    using Rank = cub::BlockRadixRankMatch<128, 4, false>;
    __shared__ typename Rank::TempStorage storage;
    const unsigned first = threadIdx.x / 32 * 64 + threadIdx.x % 32;
    unsigned keys[2] = {in[first], in[first + 32]};
    int ranks[2];
    Rank(storage).RankKeys(keys, ranks, Digit(0, 4));
    out[first] = ranks[0];
    out[first + 32] = ranks[1];
}
