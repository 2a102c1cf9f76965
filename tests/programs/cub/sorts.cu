// SPDX-License-Identifier: Apache-2.0
// CUB's block and warp sorts, histograms, exchanges and loads of several items a thread.
#include <cub/cub.cuh>

constexpr int kThreads = 128, kItems = 4;

template <cub::BlockLoadAlgorithm kLoad, cub::BlockStoreAlgorithm kStore>
__device__ void load_and_store(const unsigned* in, unsigned* out) {
    using Load = cub::BlockLoad<unsigned, kThreads, kItems, kLoad>;
    using Store = cub::BlockStore<unsigned, kThreads, kItems, kStore>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
    } shared;
    unsigned items[kItems];
    Load(shared.load).Load(in, items);
    for (unsigned& item : items) item = item * 3 + threadIdx.x;
    __syncthreads();
    Store(shared.store).Store(out, items);
}
extern "C" __global__ void direct(const unsigned* in, unsigned* out) {
    load_and_store<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT>(in, out);
}
extern "C" __global__ void striped(const unsigned* in, unsigned* out) {
    load_and_store<cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED>(in, out);
}
extern "C" __global__ void vectorized(const unsigned* in, unsigned* out) {
    load_and_store<cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE>(in, out);
}
extern "C" __global__ void transposed(const unsigned* in, unsigned* out) {
    load_and_store<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE>(in, out);
}
extern "C" __global__ void warp_transposed(const unsigned* in, unsigned* out) {
    load_and_store<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>(in, out);
}

extern "C" __global__ void radix_sort(const unsigned* in, unsigned* out) {
    using Sort = cub::BlockRadixSort<unsigned, kThreads, kItems>;
    __shared__ typename Sort::TempStorage shared;
    unsigned items[kItems];
    for (int k = 0; k < kItems; ++k) items[k] = in[threadIdx.x * kItems + k];
    Sort(shared).Sort(items);
    for (int k = 0; k < kItems; ++k) out[threadIdx.x * kItems + k] = items[k];
}

template <cub::BlockHistogramAlgorithm kAlgorithm>
__device__ void histogram(const unsigned* in, unsigned* out) {
    using Histogram = cub::BlockHistogram<unsigned char, kThreads, kItems, 64, kAlgorithm>;
    __shared__ typename Histogram::TempStorage shared;
    __shared__ unsigned bins[64];
    unsigned char items[kItems];
    for (int k = 0; k < kItems; ++k) items[k] = static_cast<unsigned char>(in[threadIdx.x * kItems + k] % 64);
    Histogram(shared).Histogram(items, bins);
    __syncthreads();
    if (threadIdx.x < 64) out[threadIdx.x] = bins[threadIdx.x];
}
extern "C" __global__ void histogram_atomic(const unsigned* in, unsigned* out) {
    histogram<cub::BLOCK_HISTO_ATOMIC>(in, out);
}
extern "C" __global__ void histogram_sort(const unsigned* in, unsigned* out) {
    histogram<cub::BLOCK_HISTO_SORT>(in, out);
}

struct Less {
    __device__ bool operator()(unsigned a, unsigned b) const { return a < b; }
};
extern "C" __global__ void warp_merge_sort(const unsigned* in, unsigned* out) {
    using Sort = cub::WarpMergeSort<unsigned, kItems, 32>;
    __shared__ typename Sort::TempStorage shared[kThreads / 32];
    unsigned items[kItems];
    for (int k = 0; k < kItems; ++k) items[k] = in[threadIdx.x * kItems + k];
    Sort(shared[threadIdx.x / 32]).Sort(items, Less{});
    for (int k = 0; k < kItems; ++k) out[threadIdx.x * kItems + k] = items[k];
}
extern "C" __global__ void block_merge_sort(const unsigned* in, unsigned* out) {
    using Sort = cub::BlockMergeSort<unsigned, kThreads, kItems>;
    __shared__ typename Sort::TempStorage shared;
    unsigned items[kItems];
    for (int k = 0; k < kItems; ++k) items[k] = in[threadIdx.x * kItems + k];
    Sort(shared).Sort(items, Less{});
    for (int k = 0; k < kItems; ++k) out[threadIdx.x * kItems + k] = items[k];
}
extern "C" __global__ void exchange(const unsigned* in, unsigned* out) {
    using Exchange = cub::BlockExchange<unsigned, kThreads, kItems>;
    __shared__ typename Exchange::TempStorage shared;
    unsigned items[kItems];
    for (int k = 0; k < kItems; ++k) items[k] = in[k * kThreads + threadIdx.x];
    Exchange(shared).StripedToBlocked(items, items);
    for (int k = 0; k < kItems; ++k) out[threadIdx.x * kItems + k] = items[k];
}
extern "C" __global__ void heads(const unsigned* in, unsigned* out) {
    using Heads = cub::BlockDiscontinuity<unsigned, kThreads>;
    __shared__ typename Heads::TempStorage shared;
    unsigned items[kItems];
    int flags[kItems];
    for (int k = 0; k < kItems; ++k) items[k] = in[threadIdx.x * kItems + k] / 64;
    Heads(shared).FlagHeads(flags, items, cuda::std::not_equal_to<>());
    for (int k = 0; k < kItems; ++k) out[threadIdx.x * kItems + k] = static_cast<unsigned>(flags[k]);
}
