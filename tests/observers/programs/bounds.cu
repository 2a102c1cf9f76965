// SPDX-License-Identifier: Apache-2.0
// Bounds, alignment and lifetime. NAME_bug is wrong, NAME_clean is not; the finding is expected on the line marked
// "<- NAME_bug". All kernels: 2 blocks of 64 threads; a: 128 ints to read, b: 128 ints to write, c: 128 ints.

#define KERNEL extern "C" __global__ void __launch_bounds__(64)
#define INDEX (blockIdx.x * 64 + threadIdx.x)

KERNEL past_end_bug(int* a, int* b, int* c) { b[INDEX] = a[INDEX + 1]; }  // <- past_end_bug
KERNEL past_end_clean(int* a, int* b, int* c) { b[INDEX] = a[INDEX < 127 ? INDEX + 1 : 127]; }

KERNEL before_begin_bug(int* a, int* b, int* c) { b[static_cast<int>(INDEX) - 1] = a[INDEX]; }  // <- before_begin_bug
KERNEL before_begin_clean(int* a, int* b, int* c) {
    if (INDEX > 0) b[static_cast<int>(INDEX) - 1] = a[INDEX];
}

KERNEL misaligned_bug(int* a, int* b, int* c) {
    if (INDEX < 16) *reinterpret_cast<int4*>(b + INDEX * 4 + 1) = make_int4(a[INDEX], 1, 2, 3);  // <- misaligned_bug
}
KERNEL misaligned_clean(int* a, int* b, int* c) {
    if (INDEX < 16) *reinterpret_cast<int4*>(b + INDEX * 4) = make_int4(a[INDEX], 1, 2, 3);
}

// The tail guard compares with the wrong number.
KERNEL tail_bug(int* a, int* b, int* c) {
    if (INDEX * 3 < 384) b[INDEX] = a[INDEX * 3];  // <- tail_bug
}
KERNEL tail_clean(int* a, int* b, int* c) {
    if (INDEX * 3 < 128) b[INDEX] = a[INDEX * 3];
}

KERNEL shared_end_bug(int* a, int* b, int* c) {
    __shared__ int s[64];
    s[threadIdx.x + (a[0] + 1)] = a[INDEX];  // <- shared_end_bug
    __syncthreads();
    b[INDEX] = s[threadIdx.x];
}
KERNEL shared_end_clean(int* a, int* b, int* c) {
    __shared__ int s[64];
    s[threadIdx.x + a[0]] = a[INDEX];
    __syncthreads();
    b[INDEX] = s[threadIdx.x];
}

// c was freed before the launch of the wrong one.
KERNEL freed_bug(int* a, int* b, int* c) { b[INDEX] = c[INDEX]; }  // <- freed_bug
KERNEL freed_clean(int* a, int* b, int* c) { b[INDEX] = c[INDEX]; }

// A null pointer that the compiler does not see: a[0] is 0.
KERNEL null_bug(int* a, int* b, int* c) {
    int* p = reinterpret_cast<int*>(static_cast<long long>(a[0]));
    p[INDEX] = 1;  // <- null_bug
}
KERNEL null_clean(int* a, int* b, int* c) {
    int* p = b + a[0];
    p[INDEX] = 1;
}
