// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/validation.h"

#include <limits>
#include <string>

#include "reference/contract/constants.h"
#include "reference/contract/error.h"

namespace gradguard::kernels {
namespace {

/// Checks the operands of one entry; remembers which queue the group is on.
class GroupValidator {
  public:
    void select_entry(std::size_t entry) { entry_ = entry; }

    void check_tensor(const Tensor& tensor, const std::string& operand, bool is_gradient) {
        const TensorLayout& layout = tensor.layout;
        if (!is_gradient && layout.dtype != DType::kF32) {
            fail(ErrorKind::kInvalidTensor, operand, "want dtype F32, got " + std::string(to_string(layout.dtype)));
        }
        const ElementCount count = count_elements(layout.shape);
        if (count.problem) fail(ErrorKind::kInvalidTensor, operand, *count.problem);
        check_dense(layout, count.count, operand);
        check_storage(tensor, count.count, operand);
        check_queue(tensor, operand);
    }

    void check_same_shape(const Tensor& tensor, const Tensor& parameters, const std::string& operand) {
        if (tensor.layout.shape != parameters.layout.shape) {
            fail(ErrorKind::kShapeMismatch, operand,
                 "want the parameters' shape " + list_to_string(parameters.layout.shape) + ", got " +
                     list_to_string(tensor.layout.shape));
        }
    }

    void check_state(const AdamWState& state, const Tensor& parameters, bool amsgrad, bool advances) {
        const auto check_moment = [&](const Tensor& moment, const std::string& operand) {
            check_tensor(moment, operand, false);
            check_same_shape(moment, parameters, operand);
        };
        check_moment(state.first_moment, "first_moment");
        check_moment(state.second_moment, "second_moment");
        if (state.max_second_moment.has_value() != amsgrad) {
            fail(ErrorKind::kInvalidState, "max_second_moment",
                 amsgrad ? "want it present with AMSGrad, got none" : "want none without AMSGrad, got one");
        }
        if (amsgrad) check_moment(*state.max_second_moment, "max_second_moment");
        if (state.step == 0) fail(ErrorKind::kInvalidState, "step", "want at least 1 completed step, got 0");
        if (advances && state.step == std::numeric_limits<std::uint64_t>::max()) {
            fail(ErrorKind::kStepOverflow, "step",
                 "want step + 1 to fit in 64 bits, got " + std::to_string(state.step));
        }
    }

  private:
    [[noreturn]] void fail(ErrorKind kind, const std::string& operand, const std::string& message) const {
        throw Error(kind, {.entry = entry_, .operand = operand}, message);
    }

    void check_dense(const TensorLayout& layout, std::uint64_t elements, const std::string& operand) const {
        if (layout.strides.size() != layout.shape.size()) {
            fail(ErrorKind::kInvalidTensor, operand,
                 "want one stride for each dimension of " + list_to_string(layout.shape) + ", got strides " +
                     list_to_string(layout.strides));
        }
        if (elements == 0) return;
        std::uint64_t dense = 1;
        for (std::size_t i = layout.shape.size(); i-- > 0;) {
            // The stride of a dimension of size 1 is never used.
            if (layout.shape[i] != 1 && layout.strides[i] != static_cast<std::int64_t>(dense)) {
                fail(ErrorKind::kInvalidTensor, operand,
                     "want dense contiguous strides for shape " + list_to_string(layout.shape) + ", got " +
                         list_to_string(layout.strides));
            }
            dense *= layout.shape[i];
        }
    }

    void check_storage(const Tensor& tensor, std::uint64_t elements, const std::string& operand) const {
        const std::uint64_t size = element_bytes(tensor.layout.dtype);
        const std::uint64_t offset = tensor.layout.byte_offset;
        if (offset % size != 0) {
            fail(
                ErrorKind::kInvalidTensor, operand,
                "want a byte offset that is a multiple of " + std::to_string(size) + ", got " + std::to_string(offset));
        }
        const std::uint64_t bytes = elements * size;
        if (offset > tensor.storage.bytes || bytes > tensor.storage.bytes - offset) {
            fail(ErrorKind::kInvalidTensor, operand,
                 "want offset " + std::to_string(offset) + " plus " + std::to_string(bytes) +
                     " bytes inside the allocation, got one of " + std::to_string(tensor.storage.bytes) + " bytes");
        }
    }

    void check_queue(const Tensor& tensor, const std::string& operand) {
        if (tensor.queue == nullptr) {
            fail(ErrorKind::kDifferentExecutionQueue, operand, "want a device and queue, got none");
        }
        if (queue_ == nullptr) queue_ = tensor.queue.get();
        if (queue_ != tensor.queue.get()) {
            const bool same_device = &queue_->device() == &tensor.queue->device();
            fail(ErrorKind::kDifferentExecutionQueue, operand,
                 std::string("want one device and queue for the whole group, got another ") +
                     (same_device ? "queue of the same device" : "device"));
        }
    }

    std::size_t entry_ = 0;
    const Queue* queue_ = nullptr;
};

}  // namespace

void validate_entries(std::span<const AdamWEntry> entries, const AdamWOptions& options, const StepControl& control) {
    GroupValidator validator;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const AdamWEntry& entry = entries[i];
        validator.select_entry(i);
        validator.check_tensor(entry.parameters, "parameters", false);
        validator.check_tensor(entry.gradients, "gradients", true);
        validator.check_same_shape(entry.gradients, entry.parameters, "gradients");
        if (entry.state) {
            const bool advances = !control.skip_update && !entry.parameters.empty();
            validator.check_state(*entry.state, entry.parameters, options.amsgrad, advances);
        }
    }
}

void validate_gradients(std::span<const Tensor> gradients) {
    GroupValidator validator;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        validator.select_entry(i);
        validator.check_tensor(gradients[i], "gradients", true);
    }
}

void validate_device(const DeviceProperties& properties, bool with_reduction) {
    const auto require = [&](std::uint64_t has, std::uint64_t wanted, const char* what) {
        if (has < wanted) {
            throw Error(ErrorKind::kUnsupportedDevice, {.operand = "device"},
                        "want " + std::to_string(wanted) + " " + what + ", got " + std::to_string(has) + " on " +
                            properties.name);
        }
    };
    require(properties.max_threads_per_block, kThreadsPerBlock, "threads in a block");
    require(properties.max_threads_in_x, kThreadsPerBlock, "threads in x");
    require(properties.max_blocks_in_x, 1, "block in x");
    if (with_reduction) {
        require(properties.max_shared_bytes_per_block, kReductionSharedBytes, "bytes of shared memory in a block");
    }
}

}  // namespace gradguard::kernels
