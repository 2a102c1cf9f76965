// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Entry names and argument structs, shared by the kernels and the host library. Each kernel takes one struct by value.
/// Device addresses are 64-bit integers, so that the layout is the same in both compilers. No standard header here.
namespace gradguard::kernels {

/// Arguments of `gradient_statistics_{f32,f16,bf16}`, first stage of the scan (contract section 4).
struct StatisticsArguments {
    unsigned long long gradients;  ///< [elements] F32, F16 or BF16, read only
    unsigned long long triples;    ///< [3 * gridDim.x] F32, written: (scale, sumsq, flag) of each block
    unsigned int elements;         ///< > 0; an empty tensor is never launched
    float reciprocal_scale;        ///< r = 1 / gradient_scale
};

/// Arguments of `gradient_statistics_merge`, second stage of the scan, one block (contract section 4).
struct MergeArguments {
    unsigned long long triples;  ///< [3 * blocks] F32, read only
    unsigned long long summary;  ///< [3] F32, written
    unsigned int blocks;         ///< > 1
    unsigned int reserved;       ///< 0; keeps the size a multiple of the alignment
};

/// Arguments of `adamw_{f32,f16,bf16}[_first][_amsgrad][_clipped]` (contract section 6). Old moments are not read by
/// the `first` variants, the maxima only by the `amsgrad` ones, `clip` only by the `clipped` ones.
struct UpdateArguments {
    unsigned long long parameters;             ///< [elements] F32, read only
    unsigned long long gradients;              ///< [elements] F32, F16 or BF16, read only
    unsigned long long first_moment;           ///< [elements] F32, read only
    unsigned long long second_moment;          ///< [elements] F32, read only
    unsigned long long max_second_moment;      ///< [elements] F32, read only
    unsigned long long new_parameters;         ///< [elements] F32, written
    unsigned long long new_first_moment;       ///< [elements] F32, written
    unsigned long long new_second_moment;      ///< [elements] F32, written
    unsigned long long new_max_second_moment;  ///< [elements] F32, written
    unsigned int elements;                     ///< > 0
    float reciprocal_scale;                    ///< r
    float clip;
    float direction;  ///< -1 to maximize, else 1: the product is exact
    float beta1;
    float one_minus_beta1;
    float beta2;
    float one_minus_beta2;
    float inverse_bias1;
    float inverse_bias2;
    float epsilon;
    float learning_rate;
    float decay;
    unsigned int reserved;  ///< 0; keeps the size a multiple of the alignment
};

inline constexpr const char* kMergeEntry = "gradient_statistics_merge";

}  // namespace gradguard::kernels
