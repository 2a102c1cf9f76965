// SPDX-License-Identifier: Apache-2.0
// Barriers. NAME_bug is wrong, NAME_clean is not. All kernels: one block of 128 threads; a: 128 ints to read,
// b: 128 ints to write.

#define KERNEL extern "C" __global__ void __launch_bounds__(128)
#define T threadIdx.x

// The sides of a branch inside each warp have a barrier each.
KERNEL sides_bug(const int* a, int* b, int n) {
    if (T % 2 == 0) {
        b[T] = a[T];
        __syncthreads();  // <- sides_bug
    } else {
        b[T] = a[T] + 1;
        __syncthreads();  // <- sides_bug
        b[T] += b[T - 1];
    }
}
KERNEL sides_clean(const int* a, int* b, int n) {
    b[T] = a[T];
    __syncthreads();
    if (T % 2 == 0) b[T] += b[T + 1];
}

// The same with whole warps on either side.
KERNEL warps_bug(const int* a, int* b, int n) {
    if (T < 64) {
        b[T] = a[T];
        __syncthreads();  // <- warps_bug
    } else {
        __syncthreads();  // <- warps_bug
        b[T] = b[T - 64];
    }
}
KERNEL warps_clean(const int* a, int* b, int n) {
    if (T < 64) b[T] = a[T];
    __syncthreads();
    if (T >= 64) b[T] = b[T - 64];
}

// A barrier that only some threads of a warp reach, while the others wait for the next one.
KERNEL some_bug(const int* a, int* b, int n) {
    if (T < 100) {
        b[T] = a[T];
        asm volatile("bar.sync 1;" ::: "memory");  // <- some_bug
    }
    asm volatile("bar.sync 2;" ::: "memory");  // <- some_bug
}
KERNEL some_clean(const int* a, int* b, int n) {
    if (T >= 100) return;  // threads that are gone need not arrive
    b[T] = a[T];
    __syncthreads();
    if (T < 50) b[T] += b[99 - T];
}

// Rounds that differ between threads.
KERNEL rounds_bug(const int* a, int* b, int n) {
#pragma unroll 1
    for (unsigned i = 0; i <= T / 32; ++i) {
        b[T] = a[T] + static_cast<int>(i);
        asm volatile("bar.sync 3;" ::: "memory");
    }
    asm volatile("bar.sync 4;" ::: "memory");
}
KERNEL rounds_clean(const int* a, int* b, int n) {
#pragma unroll 1
    for (unsigned i = 0; i < 4; ++i) {
        b[T] = a[T] + static_cast<int>(i);
        asm volatile("bar.sync 3;" ::: "memory");
    }
    asm volatile("bar.sync 4;" ::: "memory");
}

// Thread counts that do not agree.
template <int kCount>
__device__ void counts(const int* a, int* b) {
    b[T] = a[T];
    if (T < 64) {
        asm volatile("bar.sync 1, 128;" ::: "memory");  // <- counts_bug
    } else {
        asm volatile("bar.sync 1, %0;" ::"r"(kCount) : "memory");  // <- counts_bug
    }
}
KERNEL counts_bug(const int* a, int* b, int n) { counts<64>(a, b); }
KERNEL counts_clean(const int* a, int* b, int n) { counts<128>(a, b); }

// A barrier that waits for more threads than there are.
template <int kCount>
__device__ void too_many(const int* a, int* b) {
    b[T] = a[T];
    asm volatile("bar.sync 1, %0;" ::"n"(kCount) : "memory");  // <- too_many_bug
}
KERNEL too_many_bug(const int* a, int* b, int n) { too_many<160>(a, b); }
KERNEL too_many_clean(const int* a, int* b, int n) { too_many<128>(a, b); }
