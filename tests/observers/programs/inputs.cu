// SPDX-License-Identifier: Apache-2.0
// Writes to inputs, and bounds. NAME_bug is wrong, NAME_clean is not; the finding is expected on the line marked
// "<- NAME_bug". All kernels: 2 blocks of 64 threads. a: 128 ints, an input that lies right behind b's 128 ints in one
// allocation; b: output.

#define KERNEL extern "C" __global__ void __launch_bounds__(64)
#define INDEX (blockIdx.x * 64 + threadIdx.x)

KERNEL past_output_bug(int* a, int* b, int n) { b[INDEX + 1] = a[INDEX] + 1; }  // <- past_output_bug
KERNEL past_output_clean(int* a, int* b, int n) { b[INDEX] = a[INDEX] + 1; }

KERNEL in_place_bug(int* a, int* b, int n) { a[INDEX] = b[INDEX] = static_cast<int>(INDEX); }  // <- in_place_bug
KERNEL in_place_clean(int* a, int* b, int n) { b[INDEX] = a[INDEX]; }

KERNEL count_bug(int* a, int* b, int n) { atomicAdd(&a[INDEX & 7], 1); }  // <- count_bug
KERNEL count_clean(int* a, int* b, int n) { atomicAdd(&b[a[INDEX] & 7], 1); }

KERNEL vector_bug(int* a, int* b, int n) {
    if (INDEX <= 32) *reinterpret_cast<int4*>(b + INDEX * 4) = make_int4(a[INDEX], 0, 0, 0);  // <- vector_bug
}
KERNEL vector_clean(int* a, int* b, int n) {
    if (INDEX < 32) *reinterpret_cast<int4*>(b + INDEX * 4) = make_int4(a[INDEX], 0, 0, 0);
}

KERNEL byte_bug(int* a, int* b, int n) {
    reinterpret_cast<char*>(b)[INDEX * 4 + 4] = static_cast<char>(n);  // <- byte_bug
}
KERNEL byte_clean(int* a, int* b, int n) { reinterpret_cast<char*>(b)[INDEX * 4 + 3] = static_cast<char>(n); }

// A generic pointer that is sometimes the wrong one.
KERNEL generic_bug(int* a, int* b, int n) {
    __shared__ int s[64];
    int* p = INDEX == 77 ? a : s + threadIdx.x;
    *p = n;  // <- generic_bug
    __syncthreads();
    b[INDEX] = s[threadIdx.x ^ 1];
}
KERNEL generic_clean(int* a, int* b, int n) {
    __shared__ int s[64];
    int* p = INDEX == 77 ? b + 500 : s + threadIdx.x;
    if (INDEX == 77) p = b + INDEX;
    *p = n;
    __syncthreads();
    if (INDEX != 77) b[INDEX] = n;
}
