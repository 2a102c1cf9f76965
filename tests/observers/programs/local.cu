// SPDX-License-Identifier: Apache-2.0
// Local memory: what threads keep for themselves. NAME_bug is wrong, NAME_clean is not; the finding is expected on the
// line marked "<- NAME_bug". All kernels: one block of 64 threads; a: 64 ints to read (0, 1, 2, ...), b: 64 ints.

#define KERNEL extern "C" __global__ void __launch_bounds__(64)
#define T threadIdx.x

// A window of 8 of which kFill are filled. Which one is read differs by thread, so it cannot live in registers.
template <int kFill>
__device__ void window(const int* a, int* b) {
    int kept[8];
#pragma unroll 1
    for (int i = 0; i < kFill; ++i) kept[i] = a[(T + i) % 64];
    b[T] = kept[a[T] % 8];  // <- window_bug
}
KERNEL window_bug(const int* a, int* b) { window<6>(a, b); }
KERNEL window_clean(const int* a, int* b) { window<8>(a, b); }

// Of one record only one part is written, both are read.
struct Record {
    short first;
    int second;
};
template <bool kBoth>
__device__ void record(const int* a, int* b) {
    Record records[4];
    for (int i = 0; i < 4; ++i) {
        records[(a[T] + i) % 4].second = i;
        if (kBoth || i < 3) records[(a[T] + i) % 4].first = static_cast<short>(i);
    }
    b[T] = records[(a[T] + 3) % 4].first + records[a[T] % 4].second;  // <- record_bug
}
KERNEL record_bug(const int* a, int* b) { record<false>(a, b); }
KERNEL record_clean(const int* a, int* b) { record<true>(a, b); }

// A histogram of a thread's own that nobody set to zero, handed to a function by address.
__device__ __noinline__ void count(int* bins, const int* a) {
    for (int i = 0; i < 4; ++i) ++bins[a[(T + i) % 64] % 16];  // <- bins_bug
}
template <bool kZero>
__device__ void bins(const int* a, int* b) {
    int own[16];
    for (int i = 0; kZero && i < 16; ++i) own[i] = 0;
    count(own, a);
    b[T] = own[a[T] % 16];
}
KERNEL bins_bug(const int* a, int* b) { bins<false>(a, b); }
KERNEL bins_clean(const int* a, int* b) { bins<true>(a, b); }

// Written in a branch that some threads do not take. The others must not define it for them.
template <bool kAll>
__device__ void some(const int* a, int* b) {
    int kept[8];
    const int limit = kAll ? 64 : 40;
    for (int i = 0; i < 8; ++i) {
        if (a[T] < limit) kept[(a[T] + i) % 8] = i;
    }
    b[T] = kept[a[T] % 8];  // <- some_bug
}
KERNEL some_bug(const int* a, int* b) { some<false>(a, b); }
KERNEL some_clean(const int* a, int* b) { some<true>(a, b); }

// Behind the end of all that a thread has.
template <int kBound>
__device__ void end(const int* a, int* b) {
    int kept[8];
    for (int i = 0; i < 8; ++i) kept[i] = 0;
    kept[a[T] % kBound] = 1;  // <- end_bug
    b[T] = kept[a[T] % 7];
}
KERNEL end_bug(const int* a, int* b) { end<1000>(a, b); }
KERNEL end_clean(const int* a, int* b) { end<8>(a, b); }

// The same behind a pointer that a function got.
__device__ __noinline__ int take(const int* kept, int i) { return kept[i]; }  // <- pointer_bug
template <int kBound>
__device__ void pointer(const int* a, int* b) {
    int kept[8];
    for (int i = 0; i < 8; ++i) kept[i] = a[(T + i) % 64];
    b[T] = take(kept, a[T] % kBound - (kBound > 8 ? 60 : 0));
}
KERNEL pointer_bug(const int* a, int* b) { pointer<64>(a, b); }
KERNEL pointer_clean(const int* a, int* b) { pointer<8>(a, b); }

// Two words at an address for one.
template <int kStep>
__device__ void pair(const int* a, int* b) {
    __align__(8) int kept[8];
    for (int i = 0; i < 8; ++i) kept[i] = a[(T + i) % 64];
    const int2 two = *reinterpret_cast<const int2*>(kept + a[T] % 4 * kStep);  // <- pair_bug
    b[T] = two.x + two.y;
}
KERNEL pair_bug(const int* a, int* b) { pair<1>(a, b); }
KERNEL pair_clean(const int* a, int* b) { pair<2>(a, b); }

// A struct with padding, copied whole by a function: of bytes that are never set nothing is used.
struct Padded {
    char tag;
    int value;
};
__device__ __noinline__ void put(Padded* to, int i, const Padded* from, int j) { to[i] = from[j]; }
template <bool kValue>
__device__ void copies(const int* a, int* b) {
    Padded from[4], to[4];
    for (int i = 0; i < 4; ++i) {
        from[i].tag = static_cast<char>(i);
        if (kValue) from[i].value = a[(T + i) % 64];
    }
    for (int i = 0; i < 4; ++i) put(to, (a[T] + i) % 4, from, i);
    b[T] = to[a[T] % 4].tag + (kValue ? to[a[T] % 4].value : 0);
}
KERNEL padding_clean(const int* a, int* b) { copies<true>(a, b); }
KERNEL unset_clean(const int* a, int* b) { copies<false>(a, b); }

// The same, whole in global memory: nobody can tell padding. A member of its own is another thing.
template <bool kMember>
__device__ void published(const int* a, int* b) {
    Padded from[4], to[4];
    for (int i = 0; i < 4; ++i) {
        from[i].tag = static_cast<char>(i);
        if (!kMember) from[i].value = a[(T + i) % 64];
    }
    for (int i = 0; i < 4; ++i) put(to, (a[T] + i) % 4, from, i);  // <- member_bug
    if (kMember) {
        b[T] = to[a[T] % 4].value;  // <- member_bug
    } else if (T < 32) {
        reinterpret_cast<Padded*>(b)[T] = to[a[T] % 4];
    }
}
KERNEL member_bug(const int* a, int* b) { published<true>(a, b); }
KERNEL member_clean(const int* a, int* b) { published<false>(a, b); }

// A field of some bits, taken out of a word of which the others were never set.
struct Fields {
    unsigned low : 5;
    unsigned high : 27;
};
template <bool kBoth>
__device__ void fields(const int* a, int* b) {
    Fields kept[4];
    for (int i = 0; i < 4; ++i) kept[(a[T] + i) % 4].low = i;
    const int i = (a[T] + 1) % 4;  // of the first one that is written nvcc makes all bits 0
    b[T] = kept[i].low + (kBoth ? kept[i].high : 0);  // <- fields_bug
}
KERNEL fields_bug(const int* a, int* b) { fields<true>(a, b); }
KERNEL fields_clean(const int* a, int* b) { fields<false>(a, b); }
