// SPDX-License-Identifier: Apache-2.0
// nvcc 13.0.88 gets the inner trip count wrong from -O2 on: it computes the value of `a` in closed form, i (i - 1) / 2
// with i taken modulo 4, where the low two bits of the result depend on i modulo 8. From the fifth round on the inner
// loop is entered with a trip count of 0 and runs for ever. Found by tools/fuzz_compilers.py.
extern "C" __global__ void trip_count(const unsigned* in, unsigned* out) {
    unsigned a = in[threadIdx.x], sum = 0;
    const unsigned rounds = in[32 + threadIdx.x];
    for (unsigned i = 0; i < rounds; ++i) {
        for (unsigned j = 0, end = a & 3; j < end; ++j) sum += j * j + 1;
        a += i;
    }
    out[threadIdx.x] = sum;
}
