// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/contract/tensor_layout.h"
#include "reference/model/gradient_view.h"

namespace gradguard::python {

namespace nb = nanobind;

/// Where an array comes from, for messages.
struct Operand {
    std::optional<std::size_t> entry;
    const char* name = "";
};

/// A Python array's memory: never a copy. Valid while the array's owner is.
struct ArrayView {
    TensorLayout layout;  ///< Strides in elements; byte_offset > 0 only where the memory is not aligned.
    std::byte* data = nullptr;
    bool dense = false;            ///< Row-major without gaps and aligned, so that it can be used as it is.
    nb::ndarray<nb::ro> imported;  ///< Keeps a DLPack import alive; not valid for a NumPy array.

    std::uint64_t elements() const;
    std::uint64_t bytes() const { return elements() * element_bytes(layout.dtype); }
};

/// Once, at module initialisation: NumPy's C API.
void load_numpy();

/// A NumPy array (float32, float16, bfloat16 of ml_dtypes) or anything that speaks DLPack, in host memory.
/// Throws Error{InvalidTensor} for other dtypes, byte orders and devices, nb::type_error for what is no array.
ArrayView view_array(nb::handle object, const Operand& operand);

/// The same as the oracle reads it. Throws Error{InvalidTensor} also where it is not dense.
ArrayView view_dense(nb::handle object, const Operand& operand);
reference::GradientView gradient_view(const ArrayView& view);

/// Dense gradients of a sequence, whose items may die with its iterator. Throws Error as view_dense() does.
struct Gradients {
    std::vector<nb::object> kept;
    std::vector<ArrayView> arrays;
    std::vector<reference::GradientView> views;

    explicit Gradients(const nb::object& sequence);
};
/// What every operation of the reference on gradients asks first: sound arithmetic and a valid scale (Error), at least
/// one block (nb::value_error).
void require_scale(float gradient_scale);
void require_blocks(std::uint32_t block_limit);
/// [n] copied out. Throws Error{InvalidTensor} also for another dtype than float32.
std::vector<float> copy_floats(nb::handle object, const Operand& operand);

/// A float32 NumPy array over memory that `base` keeps alive: no copy.
nb::object array_over(void* data, std::span<const std::uint64_t> shape, nb::object base);

/// New NumPy arrays; `data` is theirs.
enum class NewArray : std::uint8_t { kFloat32, kFloat64, kBool };
nb::object new_array(NewArray kind, std::span<const std::uint64_t> shape, void** data);
/// A copy of `bytes` in a new array of any of the contract's dtypes.
nb::object new_array_of(DType dtype, std::span<const std::uint64_t> shape, std::span<const std::byte> bytes);
nb::object new_array_of(std::span<const std::uint64_t> shape, std::span<const float> values);

}  // namespace gradguard::python
