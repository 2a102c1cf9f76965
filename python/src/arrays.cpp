// SPDX-License-Identifier: Apache-2.0
#include "python/src/arrays.h"

#include <nanobind/stl/string.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <cstring>

#include "reference/contract/error.h"

namespace gradguard::python {
namespace {

constexpr int kDlpackCpu = 1, kDlpackCudaHost = 3, kDlpackCudaManaged = 13;

[[noreturn]] void refuse(const Operand& operand, const std::string& message) {
    throw Error(ErrorKind::kInvalidTensor, {.entry = operand.entry, .operand = operand.name}, message);
}

/// ml_dtypes registers bfloat16 while a process runs: its number is known once one is seen.
bool is_bfloat16(PyArray_Descr* descr) {
    static int known = -1;
    if (known >= 0) return descr->type_num == known;
    if (descr->type_num < NPY_USERDEF) return false;
    const nb::object name = nb::borrow(reinterpret_cast<PyObject*>(descr)).attr("name");
    if (nb::cast<std::string>(name) != "bfloat16") return false;
    known = descr->type_num;
    return true;
}

DType dtype_of(PyArray_Descr* descr, const Operand& operand) {
    if (PyArray_ISNBO(descr->byteorder)) {
        if (descr->type_num == NPY_FLOAT) return DType::kF32;
        if (descr->type_num == NPY_HALF) return DType::kF16;
        if (is_bfloat16(descr)) return DType::kBF16;
    }
    const std::string name = nb::cast<std::string>(nb::str(nb::handle(reinterpret_cast<PyObject*>(descr))));
    refuse(operand, "want dtype float32, float16 or bfloat16 in the machine's byte order, got " + name);
}

/// Fills `dense`, and moves data and byte_offset so that data has the element's alignment.
void settle(ArrayView& view) {
    const std::uint64_t size = element_bytes(view.layout.dtype);
    const std::uint64_t off = reinterpret_cast<std::uintptr_t>(view.data) % size;
    view.data -= off;
    view.layout.byte_offset = off;
    view.dense = off == 0;
    std::int64_t stride = 1;
    for (std::size_t i = view.layout.shape.size(); i-- > 0;) {
        if (view.layout.shape[i] != 1 && view.layout.strides[i] != stride) view.dense = false;
        stride *= static_cast<std::int64_t>(view.layout.shape[i]);
    }
}

ArrayView view_numpy(PyArrayObject* array, const Operand& operand) {
    ArrayView view;
    view.layout.dtype = dtype_of(PyArray_DESCR(array), operand);
    const auto size = static_cast<npy_intp>(element_bytes(view.layout.dtype));
    const int rank = PyArray_NDIM(array);
    const npy_intp* const shape = PyArray_DIMS(array);
    const npy_intp* const strides = PyArray_STRIDES(array);
    view.layout.shape.assign(shape, shape + rank);
    view.layout.strides.resize(static_cast<std::size_t>(rank));
    for (int i = 0; i < rank; ++i) {
        if (strides[i] % size != 0 && shape[i] > 1) {
            refuse(operand, "want strides of whole elements, got one of " + std::to_string(strides[i]) +
                                " bytes; numpy.ascontiguousarray makes a dense copy");
        }
        view.layout.strides[static_cast<std::size_t>(i)] = strides[i] / size;
    }
    view.data = static_cast<std::byte*>(PyArray_DATA(array));
    settle(view);
    return view;
}

DType dtype_of(nb::dlpack::dtype dtype, const Operand& operand) {
    using Code = nb::dlpack::dtype_code;
    if (dtype.lanes == 1) {
        if (dtype.code == static_cast<std::uint8_t>(Code::Float) && dtype.bits == 32) return DType::kF32;
        if (dtype.code == static_cast<std::uint8_t>(Code::Float) && dtype.bits == 16) return DType::kF16;
        if (dtype.code == static_cast<std::uint8_t>(Code::Bfloat) && dtype.bits == 16) return DType::kBF16;
    }
    refuse(operand, "want dtype float32, float16 or bfloat16, got DLPack type code " + std::to_string(dtype.code) +
                        " with " + std::to_string(dtype.bits) + " bits");
}

void require_host_memory(nb::handle object, const Operand& operand) {
    const nb::tuple device = nb::cast<nb::tuple>(object.attr("__dlpack_device__")());
    const int type = nb::cast<int>(nb::int_(device[0]));
    if (type == kDlpackCpu || type == kDlpackCudaHost || type == kDlpackCudaManaged) return;
    refuse(operand, "want memory that the host can read, got a tensor on DLPack device type " + std::to_string(type) +
                        "; copy it to the host first (tensor.cpu() in PyTorch)");
}

ArrayView view_dlpack(nb::handle object, const Operand& operand) {
    ArrayView view;
    try {
        require_host_memory(object, operand);
        const nb::object capsule = object.attr("__dlpack__")();
        view.imported = nb::cast<nb::ndarray<nb::ro>>(capsule);
    } catch (nb::python_error& error) {
        // PyTorch refuses tensors that require gradients, NumPy what DLPack has no word for.
        refuse(operand,
               "the object does not give its memory away by DLPack: " + nb::cast<std::string>(nb::str(error.value())));
    }
    view.layout.dtype = dtype_of(view.imported.dtype(), operand);
    for (std::size_t i = 0; i < view.imported.ndim(); ++i) {
        view.layout.shape.push_back(view.imported.shape(i));
        view.layout.strides.push_back(view.imported.stride(i));
    }
    // Read only: the device maps the memory, and the observers watch that no kernel writes there.
    view.data = static_cast<std::byte*>(view.imported.data_handle()) + view.imported.byte_offset();
    settle(view);
    return view;
}

int type_number(NewArray kind) {
    return kind == NewArray::kFloat32 ? NPY_FLOAT : kind == NewArray::kFloat64 ? NPY_DOUBLE : NPY_BOOL;
}

nb::object checked(PyObject* array) {
    if (array == nullptr) throw nb::python_error();
    return nb::steal(array);
}

}  // namespace

std::uint64_t ArrayView::elements() const {
    std::uint64_t count = 1;
    for (const std::uint64_t dimension : layout.shape) count *= dimension;
    return count;
}

void load_numpy() {
    if (_import_array() < 0) throw nb::python_error();
}

ArrayView view_array(nb::handle object, const Operand& operand) {
    if (PyArray_Check(object.ptr())) return view_numpy(reinterpret_cast<PyArrayObject*>(object.ptr()), operand);
    if (nb::hasattr(object, "__dlpack__")) return view_dlpack(object, operand);
    const std::string text = std::string(operand.name) + ": want a NumPy array or an object that speaks DLPack, got " +
                             nb::cast<std::string>(nb::str(object.type().attr("__name__")));
    throw nb::type_error(text.c_str());
}

ArrayView view_dense(nb::handle object, const Operand& operand) {
    ArrayView view = view_array(object, operand);
    if (!view.dense && view.elements() > 0) {
        refuse(operand, "want a dense, aligned array, got shape " + list_to_string(view.layout.shape) +
                            " with strides " + list_to_string(view.layout.strides) + " in elements");
    }
    return view;
}

reference::GradientView gradient_view(const ArrayView& view) { return {view.layout.dtype, view.data, view.elements()}; }

std::vector<float> copy_floats(nb::handle object, const Operand& operand) {
    const ArrayView view = view_dense(object, operand);
    if (view.layout.dtype != DType::kF32) {
        refuse(operand, "want dtype F32, got " + std::string(to_string(view.layout.dtype)));
    }
    std::vector<float> values(view.elements());
    if (!values.empty()) std::memcpy(values.data(), view.data, view.bytes());
    return values;
}

nb::object array_over(void* data, std::span<const std::uint64_t> shape, nb::object base) {
    const std::vector<npy_intp> dimensions(shape.begin(), shape.end());
    nb::object array = checked(PyArray_New(&PyArray_Type, static_cast<int>(shape.size()), dimensions.data(), NPY_FLOAT,
                                           nullptr, data, 0, NPY_ARRAY_CARRAY, nullptr));
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()), base.release().ptr()) < 0) {
        throw nb::python_error();
    }
    return array;
}

nb::object new_array(NewArray kind, std::span<const std::uint64_t> shape, void** data) {
    const std::vector<npy_intp> dimensions(shape.begin(), shape.end());
    nb::object array = checked(PyArray_SimpleNew(static_cast<int>(shape.size()), dimensions.data(), type_number(kind)));
    *data = PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr()));
    return array;
}

nb::object new_array_of(DType dtype, std::span<const std::uint64_t> shape, std::span<const std::byte> bytes) {
    const std::vector<npy_intp> dimensions(shape.begin(), shape.end());
    const int rank = static_cast<int>(shape.size());
    nb::object array;
    if (dtype == DType::kBF16) {
        PyArray_Descr* descr = nullptr;
        const nb::object type = nb::module_::import_("ml_dtypes").attr("bfloat16");
        if (PyArray_DescrConverter(type.ptr(), &descr) == 0) throw nb::python_error();
        array =
            checked(PyArray_NewFromDescr(&PyArray_Type, descr, rank, dimensions.data(), nullptr, nullptr, 0, nullptr));
    } else {
        array = checked(PyArray_SimpleNew(rank, dimensions.data(), dtype == DType::kF16 ? NPY_HALF : NPY_FLOAT));
    }
    auto* const numpy = reinterpret_cast<PyArrayObject*>(array.ptr());
    if (static_cast<std::size_t>(PyArray_NBYTES(numpy)) != bytes.size()) {
        throw nb::value_error("a tensor's values do not fit its shape");
    }
    if (!bytes.empty()) std::memcpy(PyArray_DATA(numpy), bytes.data(), bytes.size());
    return array;
}

nb::object new_array_of(std::span<const std::uint64_t> shape, std::span<const float> values) {
    return new_array_of(DType::kF32, shape, std::as_bytes(values));
}

}  // namespace gradguard::python
