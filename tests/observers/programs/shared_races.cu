// SPDX-License-Identifier: Apache-2.0
// Races in shared memory. NAME_bug is wrong, NAME_clean is not; the finding is expected on the line marked "<- NAME_bug".
// All kernels: blocks of 256 threads, a: n ints to read, b: n ints to write.

#define KERNEL extern "C" __global__ void __launch_bounds__(256)

// A tree whose barrier number kDropped (0: before level 128) is missing. Dropped at 16 and below the sum is still right.
template <int kDropped>
__device__ void tree(const int* a, int* b) {
    __shared__ int s[256];
    const unsigned t = threadIdx.x;
    s[t] = a[blockIdx.x * 256 + t];
    int level = 0;
#pragma unroll
    for (unsigned offset = 128; offset > 0; offset /= 2, ++level) {
        if (level != kDropped) __syncthreads();
        if (t < offset) s[t] += s[t + offset];  // <- tree
    }
    if (t == 0) b[blockIdx.x] = s[0];
}
KERNEL tree_clean(const int* a, int* b, int) { tree<-1>(a, b); }
KERNEL tree_0_bug(const int* a, int* b, int) { tree<0>(a, b); }
KERNEL tree_1_bug(const int* a, int* b, int) { tree<1>(a, b); }
KERNEL tree_2_bug(const int* a, int* b, int) { tree<2>(a, b); }
KERNEL tree_3_bug(const int* a, int* b, int) { tree<3>(a, b); }
KERNEL tree_4_bug(const int* a, int* b, int) { tree<4>(a, b); }
KERNEL tree_5_bug(const int* a, int* b, int) { tree<5>(a, b); }
KERNEL tree_6_bug(const int* a, int* b, int) { tree<6>(a, b); }
KERNEL tree_7_bug(const int* a, int* b, int) { tree<7>(a, b); }

// Two buffers in turn: one barrier a round is enough, one buffer needs two.
template <int kBuffers>
__device__ void rounds(const int* a, int* b, int n) {
    __shared__ int s[kBuffers][256];
    const unsigned t = threadIdx.x;
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < n / 256; ++i) {
        s[i % kBuffers][t] = a[i * 256 + t];  // <- rounds_bug
        __syncthreads();
        sum += s[i % kBuffers][255 - t];
    }
    b[t] = sum;
}
KERNEL rounds_bug(const int* a, int* b, int n) { rounds<1>(a, b, n); }
KERNEL rounds_clean(const int* a, int* b, int n) { rounds<2>(a, b, n); }

// The last warp's part of a tree, relying on lanes in lockstep.
template <bool kSync, class Word>
__device__ void warp_tail(const int* a, int* b) {
    __shared__ int memory[32];
    Word* s = memory;
    const unsigned t = threadIdx.x;
    if (t >= 32) return;
    s[t] = a[t];
    if (kSync) __syncwarp();
    if (t < 16) s[t] = s[t] + s[t + 16];  // <- warp_tail_bug
    if (kSync) __syncwarp();
    if (t < 8) s[t] = s[t] + s[t + 8];
    if (kSync) __syncwarp();
    if (t == 0) b[0] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}
KERNEL warp_tail_bug(const int* a, int* b, int) { warp_tail<false, int>(a, b); }
KERNEL warp_tail_volatile_bug(const int* a, int* b, int) { warp_tail<false, volatile int>(a, b); }
KERNEL warp_tail_clean(const int* a, int* b, int) { warp_tail<true, int>(a, b); }

// Counting into shared bins.
template <bool kAtomic>
__device__ void histogram(const int* a, int* b) {
    __shared__ int bins[16];
    const unsigned t = threadIdx.x;
    if (t < 16) bins[t] = 0;
    __syncthreads();
    if (kAtomic) {
        atomicAdd(&bins[a[t] & 15], 1);
    } else {
        bins[a[t] & 15] += 1;  // <- histogram_bug
    }
    __syncthreads();
    if (t < 16) b[t] = bins[t];
}
KERNEL histogram_bug(const int* a, int* b, int) { histogram<false>(a, b); }
KERNEL histogram_clean(const int* a, int* b, int) { histogram<true>(a, b); }

// Bytes next to each other belong to different threads: no race. Setting bits of one word is one.
KERNEL bytes_clean(const int* a, int* b, int) {
    __shared__ unsigned char s[256];
    s[threadIdx.x] = static_cast<unsigned char>(a[threadIdx.x]);
    __syncthreads();
    b[threadIdx.x] = s[255 - threadIdx.x];
}
KERNEL bytes_bug(const int* a, int* b, int) {
    __shared__ unsigned int s[64];
    if (threadIdx.x < 64) s[threadIdx.x] = 0;
    __syncthreads();
    s[threadIdx.x / 4] |= (a[threadIdx.x] & 255U) << (threadIdx.x % 4 * 8);  // <- bytes_bug
    __syncthreads();
    b[threadIdx.x] = static_cast<int>(s[threadIdx.x / 4]);
}

// Vectors of four that overlap by one element.
template <int kStride>
__device__ void vectors(const int* a, int* b) {
    __shared__ __align__(16) int s[1040];
    const unsigned t = threadIdx.x;
    *reinterpret_cast<int4*>(s + t * 4) = make_int4(a[t], 1, 2, static_cast<int>(t));
    s[t * 4 + kStride] = 0;  // <- vectors_bug
    __syncthreads();
    b[t] = s[t * 4 + 3];
}
KERNEL vectors_bug(const int* a, int* b, int) { vectors<4>(a, b); }
KERNEL vectors_clean(const int* a, int* b, int) { vectors<2>(a, b); }

// Two lanes of a warp write one word with one instruction.
KERNEL pairs_bug(const int* a, int* b, int) {
    __shared__ int s[256];
    s[threadIdx.x] = 0;
    __syncthreads();
    s[threadIdx.x / 2] = a[threadIdx.x];  // <- pairs_bug
    __syncthreads();
    b[threadIdx.x] = s[threadIdx.x];
}
KERNEL pairs_clean(const int* a, int* b, int) {
    __shared__ int s[256];
    s[threadIdx.x] = 0;
    __syncthreads();
    s[threadIdx.x / 2] = a[0];  // one value: harmless
    __syncthreads();
    b[threadIdx.x] = s[threadIdx.x];
}

// Thread 0 hands a word to all, twice.
template <bool kSecondBarrier>
__device__ void hand_out(const int* a, int* b, int n) {
    __shared__ int word;
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < n / 256; ++i) {
        if (threadIdx.x == 0) word = a[i];  // <- hand_out_bug
        __syncthreads();
        sum += word;
        if (kSecondBarrier) __syncthreads();
    }
    b[threadIdx.x] = sum;
}
KERNEL hand_out_bug(const int* a, int* b, int n) { hand_out<false>(a, b, n); }
KERNEL hand_out_clean(const int* a, int* b, int n) { hand_out<true>(a, b, n); }

// A flag between two warps of a block.
template <bool kFence>
__device__ void shared_flag(const int* a, int* b) {
    __shared__ int data;
    __shared__ volatile int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 32) {
        data = a[0];
        if (kFence) __threadfence_block();
        flag = 1;
    }
    if (threadIdx.x == 0) {
        while (flag == 0) {
        }
        __threadfence_block();
        b[0] = data;  // <- shared_flag_bug
    }
}
KERNEL shared_flag_bug(const int* a, int* b, int) { shared_flag<false>(a, b); }
KERNEL shared_flag_clean(const int* a, int* b, int) { shared_flag<true>(a, b); }

// Producer warps arrive, consumer warps wait, at a barrier of their own.
template <bool kWait>
__device__ void producer(const int* a, int* b) {
    __shared__ int s[128];
    const unsigned t = threadIdx.x;
    if (t < 128) {
        s[t] = a[t];
        asm volatile("bar.arrive 1, 256;" ::: "memory");
    } else {
        if (kWait) asm volatile("bar.sync 1, 256;" ::: "memory");
        b[t - 128] = s[255 - t];  // <- producer_bug
        if (!kWait) asm volatile("bar.sync 1, 256;" ::: "memory");
    }
}
KERNEL producer_bug(const int* a, int* b, int) { producer<false>(a, b); }
KERNEL producer_clean(const int* a, int* b, int) { producer<true>(a, b); }
