// SPDX-License-Identifier: Apache-2.0
// CUB's warp-wide reductions and scans, one block of whole warps.
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

namespace {
struct Largest {
    __device__ int operator()(int a, int b) const { return a > b ? a : b; }
};
}  // namespace

/// out[w] = sum of the 32 values of warp w.
extern "C" __global__ void warp_sum_i32(const int* in, int* out) {
    using Reduce = cub::WarpReduce<int>;
    __shared__ typename Reduce::TempStorage storage[8];
    const int sum = Reduce(storage[threadIdx.x / 32]).Sum(in[threadIdx.x]);
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = sum;
}

/// out[w] = largest of the 32 values of warp w.
extern "C" __global__ void warp_max_i32(const int* in, int* out) {
    using Reduce = cub::WarpReduce<int>;
    __shared__ typename Reduce::TempStorage storage[8];
    const int largest = Reduce(storage[threadIdx.x / 32]).Reduce(in[threadIdx.x], Largest());
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = largest;
}

/// out[w] = sum of the 32 values of warp w, in CUB's order: lane i adds lane i + 1, then i + 2, 4, 8, 16.
extern "C" __global__ void warp_sum_f32(const float* in, float* out) {
    using Reduce = cub::WarpReduce<float>;
    __shared__ typename Reduce::TempStorage storage[8];
    const float sum = Reduce(storage[threadIdx.x / 32]).Sum(in[threadIdx.x]);
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = sum;
}

/// out[i] = sum of the values of i's warp up to and with i.
extern "C" __global__ void warp_inclusive_sum_i32(const int* in, int* out) {
    using Scan = cub::WarpScan<int>;
    __shared__ typename Scan::TempStorage storage[8];
    int value;
    Scan(storage[threadIdx.x / 32]).InclusiveSum(in[threadIdx.x], value);
    out[threadIdx.x] = value;
}

/// out[i] = largest of the values of i's group of 16 before i, INT_MIN for the first.
extern "C" __global__ void half_warp_exclusive_max_i32(const int* in, int* out) {
    using Scan = cub::WarpScan<int, 16>;
    __shared__ typename Scan::TempStorage storage[16];
    int value;
    Scan(storage[threadIdx.x / 16]).ExclusiveScan(in[threadIdx.x], value, -2147483647 - 1, Largest());
    out[threadIdx.x] = value;
}
