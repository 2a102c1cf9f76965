// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/watched_driver.h"

#include <algorithm>
#include <stdexcept>

namespace gradguard::testing {
namespace {

WatchedDriver* current = nullptr;

// A function with the signature of the driver's for each of them: which one is said by the type it is assigned to.
#define GRADGUARD_WATCH(name, parameters)                                          \
    struct Watched_##name {                                                        \
        template <typename... Arguments>                                           \
        static cuda::CUresult call(Arguments... arguments) {                       \
            if (const auto result = current->enter(#name); result) return *result; \
            return current->inner().name.call(arguments...);                       \
        }                                                                          \
    };
GRADGUARD_CUDA_FUNCTIONS(GRADGUARD_WATCH)
#undef GRADGUARD_WATCH

}  // namespace

WatchedDriver::WatchedDriver(const std::shared_ptr<const cuda::Driver>& inner) : inner_(inner) {
    if (current != nullptr) throw std::logic_error("one watched driver at a time");
    current = this;
    cuda::DriverFunctions functions;
#define GRADGUARD_ASSIGN(name, parameters) functions.name.call = &Watched_##name::call;
    GRADGUARD_CUDA_FUNCTIONS(GRADGUARD_ASSIGN)
#undef GRADGUARD_ASSIGN
    driver_ = cuda::Driver::of(functions, inner->library(), inner->hardware());
}

WatchedDriver::~WatchedDriver() { current = nullptr; }

std::size_t WatchedDriver::count(const std::string& name) const {
    return static_cast<std::size_t>(std::count(calls_.begin(), calls_.end(), name));
}

void WatchedDriver::fail(std::size_t n, cuda::CUresult result) { fail("", n, result); }

void WatchedDriver::fail(const std::string& name, std::size_t n, cuda::CUresult result, std::size_t times) {
    left_ = n;
    times_ = times;
    name_ = name;
    result_ = result;
    failed_.clear();
}

std::optional<cuda::CUresult> WatchedDriver::enter(const char* name) {
    calls_.emplace_back(name);
    if (!left_ || (!name_.empty() && name_ != name)) return std::nullopt;
    if (*left_ > 0) {
        --*left_;
        return std::nullopt;
    }
    if (--times_ == 0) left_.reset();
    failed_ = name;
    return result_;
}

}  // namespace gradguard::testing
