// SPDX-License-Identifier: Apache-2.0
// Reads of memory that nobody wrote. NAME_bug is wrong, NAME_clean is not; the finding is expected on the line marked
// "<- NAME_bug". All kernels: one block of 64 threads; a: 64 ints to read, b: 1024 ints that nobody wrote, n = 50.

#define KERNEL extern "C" __global__ void __launch_bounds__(64)
#define T threadIdx.x

// Only n elements reach shared memory, all 64 are added.
template <bool kFill>
__device__ void tail(const int* a, int* b, int n) {
    __shared__ int s[64];
    if (static_cast<int>(T) < n) {
        s[T] = a[T];
    } else if (kFill) {
        s[T] = 0;
    }
    __syncthreads();
    if (T < 32) b[T] = s[T] + s[T + 32];  // <- tail_bug
}
KERNEL tail_bug(const int* a, int* b, int n) { tail<false>(a, b, n); }
KERNEL tail_clean(const int* a, int* b, int n) { tail<true>(a, b, n); }

// Scratch in global memory of which n elements are written, n + 1 read.
template <int kMore>
__device__ void scratch(const int* a, int* b, int n) {
    if (static_cast<int>(T) < n) b[T] = a[T];
    __syncthreads();
    if (static_cast<int>(T) < n + kMore) b[512 + T] = b[T];  // <- scratch_bug
}
KERNEL scratch_bug(const int* a, int* b, int n) { scratch<1>(a, b, n); }
KERNEL scratch_clean(const int* a, int* b, int n) { scratch<0>(a, b, n); }

// An accumulator that nobody set to zero.
KERNEL accumulate_bug(const int* a, int* b, int n) { b[T] += a[T]; }  // <- accumulate_bug
KERNEL accumulate_clean(const int* a, int* b, int n) { b[T] = a[T]; }

// Shared bins that nobody set to zero.
template <bool kZero>
__device__ void bins(const int* a, int* b) {
    __shared__ int s[16];
    if (kZero && T < 16) s[T] = 0;
    __syncthreads();
    atomicAdd(&s[a[T] & 15], 1);  // <- bins_bug
    __syncthreads();
    if (T < 16) b[T] = s[T];
}
KERNEL bins_bug(const int* a, int* b, int n) { bins<false>(a, b); }
KERNEL bins_clean(const int* a, int* b, int n) { bins<true>(a, b); }

// Vectors of four of which three elements were written.
template <int kWritten>
__device__ void vectors(const int* a, int* b) {
    for (int i = 0; i < kWritten; ++i) b[T * 4 + i] = a[T] + i;
    __syncthreads();
    const int4 v = *reinterpret_cast<const int4*>(b + (T ^ 1) * 4);  // <- vectors_bug
    b[512 + T] = v.x + v.y + v.z + v.w;
}
KERNEL vectors_bug(const int* a, int* b, int n) { vectors<3>(a, b); }
KERNEL vectors_clean(const int* a, int* b, int n) { vectors<4>(a, b); }

// Only every other element was written.
template <int kStep>
__device__ void comb(const int* a, int* b) {
    __shared__ short s[128];
    for (int i = 0; i < 2; i += kStep) s[T * 2 + i] = static_cast<short>(a[T]);
    __syncthreads();
    b[T] = s[T] + s[T + 64];  // <- comb_bug
}
KERNEL comb_bug(const int* a, int* b, int n) { comb<2>(a, b); }
KERNEL comb_clean(const int* a, int* b, int n) { comb<1>(a, b); }
