// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Constants of the contract that device and host code share. This is the only header outside kernels/device that
/// device code includes, so it names no standard header: NVRTC compiles it as it stands.
namespace gradguard {

/// Threads in every block of every kernel (contract sections 4 and 6).
inline constexpr unsigned int kThreadsPerBlock = 256;

/// First-stage geometry (contract section 4): one block for each 1024 elements, at most 1024 blocks.
inline constexpr unsigned int kElementsPerBlock = 1024;
inline constexpr unsigned int kMaxReductionBlocks = 1024;

/// A triple (scale, sumsq, flag) is three FP32 words, in global memory and in a readback (contract section 4).
inline constexpr unsigned int kTripleWords = 3;
inline constexpr unsigned int kTripleBytes = 12;

/// Three shared arrays of 256 words (contract section 4).
inline constexpr unsigned int kReductionSharedBytes = 3072;

}  // namespace gradguard
