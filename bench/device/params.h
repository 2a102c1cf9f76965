// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Argument structs of the benchmark's own kernels, shared by device and host as kernels/device/params.h is. No
/// standard header here.
namespace gradguard::bench {

/// Arguments of `unscale_clip_{f32,f16,bf16}`.
struct UnscaleClipArguments {
    unsigned long long gradients;  ///< [elements] F32, F16 or BF16, read only
    unsigned long long clipped;    ///< [elements] F32, written
    unsigned int elements;         ///< > 0
    float reciprocal_scale;        ///< r = 1 / gradient_scale
    float clip;                    ///< In [0, 1]; multiplied in any case, and 1 changes no number
    unsigned int reserved;         ///< 0; keeps the size a multiple of the alignment
};

/// Arguments of `copy_words`, a copy of 16 bytes for each word.
struct CopyArguments {
    unsigned long long source;       ///< [words] of 16 bytes, read only
    unsigned long long destination;  ///< [words] of 16 bytes, written
    unsigned int words;              ///< > 0
    unsigned int reserved;           ///< 0; keeps the size a multiple of the alignment
};

}  // namespace gradguard::bench
