// SPDX-License-Identifier: Apache-2.0
// Variables that nobody gave a value, which nvcc leaves in registers that nobody wrote. NAME_bug is wrong, NAME_clean is
// not; the finding is expected on the line marked "<- NAME_bug". All kernels: one block of 64 threads; a: 64 ints to
// read (0, 1, 2, ...), b: 64 ints to write, n = 50.

#define KERNEL extern "C" __global__ void __launch_bounds__(64)
#define T threadIdx.x

// An accumulator that begins with whatever there is.
KERNEL sum_bug(const int* a, int* b, int n) {
    int sum;
    for (int i = 0; i < n; ++i) sum += a[i];
    b[T] = sum;  // <- sum_bug
}
KERNEL sum_clean(const int* a, int* b, int n) {
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += a[i];
    b[T] = sum;
}

// The greatest of those that pass: threads from 44 on find none. The clean twins ask first.
__device__ bool find_greatest(const int* a, int n, int& best) {
    bool found = false;
    for (int i = 0; i < n; ++i) {
        const int value = a[i];
        if (value <= static_cast<int>(T) + 5) continue;
        best = found ? max(best, value) : value;
        found = true;
    }
    return found;
}
KERNEL best_bug(const int* a, int* b, int n) {
    int best;
    find_greatest(a, n, best);
    b[T] = best;  // <- best_bug
}
KERNEL best_clean(const int* a, int* b, int n) {
    int best;
    const bool found = find_greatest(a, n, best);
    b[T] = found ? best : -1;
}
KERNEL choice_bug(const int* a, int* b, int n) {
    int best;
    find_greatest(a, n, best);
    if (best > 30) b[T] = a[T];  // <- choice_bug
}
KERNEL choice_clean(const int* a, int* b, int n) {
    int best;
    if (find_greatest(a, n, best) && best > 30) b[T] = a[T];
}
KERNEL total_bug(const int* a, int* b, int n) {
    int best;
    find_greatest(a, n, best);
    atomicAdd(b, best);  // <- total_bug
}
KERNEL total_clean(const int* a, int* b, int n) {
    int best;
    if (find_greatest(a, n, best)) atomicAdd(b, best);
}

// Used in a round before the one that sets it.
KERNEL late_bug(const int* a, int* b, int n) {
    int kept;
    for (int i = 0; i < n; ++i) {
        if (i == 2) kept = a[T];
        if (i > a[1]) b[T] = kept;
        if (i == 1 && a[T] > 60) b[T] = kept;  // <- late_bug
    }
}
KERNEL late_clean(const int* a, int* b, int n) {
    int kept;
    for (int i = 0; i < n; ++i) {
        if (i == 2) kept = a[T];
        if (i > a[1]) b[T] = kept;
    }
}

// Where to write is known only to threads whose number is in the list.
template <bool kKnown>
__device__ void place(const int* a, int* b, int n) {
    int where;
    if (kKnown) where = T;
    for (int i = 0; i < n; ++i) {
        if (a[i] == static_cast<int>(T)) where = i;
    }
    b[where] = 1;  // <- place_bug
}
KERNEL place_bug(const int* a, int* b, int n) { place<false>(a, b, n); }
KERNEL place_clean(const int* a, int* b, int n) { place<true>(a, b, n); }
