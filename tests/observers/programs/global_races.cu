// SPDX-License-Identifier: Apache-2.0
// Races in global memory. NAME_bug is wrong, NAME_clean is not; the finding is expected on the line marked "<- NAME_bug".
// All kernels: 8 blocks of 64 threads; a: 4096 ints to read, b: 4096 ints to write (zero), c: 64 words (zero).

#define KERNEL extern "C" __global__ void __launch_bounds__(64)
#define INDEX (blockIdx.x * 64 + threadIdx.x)

enum class Fence { None, Block, Device };
template <Fence kFence>
__device__ void fence() {
    if (kFence == Fence::Block) __threadfence_block();
    if (kFence == Fence::Device) __threadfence();
}

// The block that counts last adds up the partial sums of all. kAll: the whole block writes, thread 0 fences for it.
template <Fence kFence, bool kAll>
__device__ void last_block(const int* a, int* b, int* c) {
    __shared__ bool is_last;
    if (kAll) {
        b[INDEX] = a[INDEX];
        __syncthreads();
    } else if (threadIdx.x == 0) {
        b[blockIdx.x * 64] = a[INDEX];
    }
    if (threadIdx.x == 0) {
        fence<kFence>();
        is_last = atomicAdd(c, 1) == static_cast<int>(gridDim.x) - 1;
    }
    __syncthreads();
    if (!is_last) return;
    if (kAll) {
        int sum = 0;
        for (unsigned i = 0; i < gridDim.x; ++i) sum += b[i * 64 + threadIdx.x];  // <- last_block_all
        c[threadIdx.x + 1] = sum;
    } else if (threadIdx.x < gridDim.x) {
        c[threadIdx.x + 1] = b[threadIdx.x * 64];  // <- last_block
    }
}
KERNEL last_block_bug(const int* a, int* b, int* c) { last_block<Fence::None, false>(a, b, c); }
KERNEL last_block_narrow_bug(const int* a, int* b, int* c) { last_block<Fence::Block, false>(a, b, c); }
KERNEL last_block_clean(const int* a, int* b, int* c) { last_block<Fence::Device, false>(a, b, c); }
KERNEL last_block_all_bug(const int* a, int* b, int* c) { last_block<Fence::None, true>(a, b, c); }
KERNEL last_block_all_clean(const int* a, int* b, int* c) { last_block<Fence::Device, true>(a, b, c); }

// Who takes ticket kTicket sets the counter back by a plain store: thread kThread of its block, after a barrier or not.
template <int kTicket, unsigned kThread, bool kBarrier>
__device__ void ticket(int* c) {
    __shared__ volatile bool is_mine;
    if (threadIdx.x == 0) is_mine = atomicAdd(c, 1) == kTicket;  // <- ticket
    if (kBarrier) __syncthreads();
    if (threadIdx.x == kThread && (!kBarrier || is_mine)) *c = 0;  // <- ticket
}
KERNEL ticket_first_bug(const int* a, int* b, int* c) { ticket<0, 0, true>(c); }
KERNEL ticket_middle_bug(const int* a, int* b, int* c) { ticket<4, 33, true>(c); }
KERNEL ticket_lane_bug(const int* a, int* b, int* c) { ticket<7, 1, false>(c); }
KERNEL ticket_clean(const int* a, int* b, int* c) { ticket<7, 0, true>(c); }
KERNEL ticket_other_clean(const int* a, int* b, int* c) { ticket<7, 33, true>(c); }

// Block 0 publishes, block 1 spins on a flag. All blocks are resident.
template <bool kProducerFence, bool kConsumerFence>
__device__ void flag(const int* a, int* b, int* c) {
    volatile int* f = c;
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) {
        b[0] = a[0];
        if (kProducerFence) __threadfence();
        *f = 1;
    } else if (blockIdx.x == 1) {
        while (*f == 0) {
        }
        if (kConsumerFence) __threadfence();
        b[1] = b[0];  // <- flag
    }
}
KERNEL flag_producer_bug(const int* a, int* b, int* c) { flag<false, true>(a, b, c); }
KERNEL flag_consumer_bug(const int* a, int* b, int* c) { flag<true, false>(a, b, c); }
KERNEL flag_clean(const int* a, int* b, int* c) { flag<true, true>(a, b, c); }

KERNEL histogram_bug(const int* a, int* b, int* c) { c[a[INDEX] & 15] += 1; }  // <- histogram_bug
KERNEL histogram_clean(const int* a, int* b, int* c) { atomicAdd(&c[a[INDEX] & 15], 1); }

// A sum of neighbours, in place or not.
KERNEL stencil_bug(const int* a, int* b, int* c) {
    if (INDEX + 1 < gridDim.x * 64) b[INDEX] += b[INDEX + 1];  // <- stencil_bug
}
KERNEL stencil_clean(const int* a, int* b, int* c) {
    if (INDEX + 1 < gridDim.x * 64) b[INDEX] = a[INDEX] + a[INDEX + 1];
}

// Each block writes its part; the wrong one writes one element of the next part as well.
template <int kWidth>
__device__ void parts(const int* a, int* b) {
    for (unsigned i = threadIdx.x; i < kWidth; i += 64) b[blockIdx.x * 64 + i] = a[INDEX] * static_cast<int>(i);  // <- parts_bug
}
KERNEL parts_bug(const int* a, int* b, int* c) { parts<65>(a, b); }
KERNEL parts_clean(const int* a, int* b, int* c) { parts<64>(a, b); }

// All blocks meet in the middle; with the barrier each may then read what the next block wrote.
template <bool kFence>
__device__ void grid_barrier(const int* a, int* b, int* c) {
    b[INDEX] = a[INDEX];
    __syncthreads();
    if (threadIdx.x == 0) {
        if (kFence) __threadfence();
        atomicAdd(c, 1);
        while (*static_cast<volatile int*>(c) < static_cast<int>(gridDim.x)) {
        }
        if (kFence) __threadfence();
    }
    __syncthreads();
    b[1024 + INDEX] = b[(INDEX + 64) % (gridDim.x * 64)];  // <- grid_barrier_bug
}
KERNEL grid_barrier_bug(const int* a, int* b, int* c) { grid_barrier<false>(a, b, c); }
KERNEL grid_barrier_clean(const int* a, int* b, int* c) { grid_barrier<true>(a, b, c); }

// Scratch in global memory, used by one block alone: a barrier is enough.
template <bool kBarrier>
__device__ void scratch(const int* a, int* b) {
    b[INDEX] = a[INDEX];
    if (kBarrier) __syncthreads();
    b[2048 + INDEX] = b[blockIdx.x * 64 + 63 - threadIdx.x];  // <- scratch_bug
}
KERNEL scratch_bug(const int* a, int* b, int* c) { scratch<false>(a, b); }
KERNEL scratch_clean(const int* a, int* b, int* c) { scratch<true>(a, b); }

// Halves of a word, written by threads of different blocks.
KERNEL halves_clean(const int* a, int* b, int* c) {
    unsigned short* h = reinterpret_cast<unsigned short*>(b);
    h[threadIdx.x * 8 + blockIdx.x] = static_cast<unsigned short>(a[INDEX]);
}
KERNEL halves_bug(const int* a, int* b, int* c) {
    unsigned short* h = reinterpret_cast<unsigned short*>(b);
    h[threadIdx.x * 4 + blockIdx.x / 2] = static_cast<unsigned short>(a[INDEX]);  // <- halves_bug
}

// Whoever finds something says so: one value, harmless. Who found it is a race.
KERNEL found_clean(const int* a, int* b, int* c) {
    if (a[INDEX] > 3) c[0] = 1;
}
KERNEL found_bug(const int* a, int* b, int* c) {
    if (a[INDEX] > 3) c[0] = static_cast<int>(INDEX) + 1;  // <- found_bug
}

// A lock around a sum.
template <bool kFence>
__device__ void lock(const int* a, int* c) {
    if (threadIdx.x != 0) return;
    while (atomicCAS(c, 0, 1) != 0) {
    }
    if (kFence) __threadfence();
    c[1] += a[INDEX];  // <- lock_bug
    if (kFence) __threadfence();
    atomicExch(c, 0);
}
KERNEL lock_bug(const int* a, int* b, int* c) { lock<false>(a, c); }
KERNEL lock_clean(const int* a, int* b, int* c) { lock<true>(a, c); }
