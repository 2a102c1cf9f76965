// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <sstream>

#include "harness/vdriver/export.h"
#include "harness/vdriver/image.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT

namespace {

/// PTX without the lines that a module has once.
std::string without_header(const std::string& ptx) {
    std::istringstream lines(ptx);
    std::string result("\n");
    for (std::string line; std::getline(lines, line);) {
        const std::size_t first = line.find_first_not_of(" \t");
        const bool header = first != std::string::npos &&
                            (line.compare(first, 8, ".version") == 0 || line.compare(first, 7, ".target") == 0 ||
                             line.compare(first, 13, ".address_size") == 0);
        if (header) result += "//";  // so that lines keep their numbers
        result += line;
        result += '\n';
    }
    return result;
}

JitOptions options_of(const Linker& linker) { return jit_options(linker.option_count, linker.options, linker.values); }

[[noreturn]] void refuse(Driver& driver, const Linker& linker, CUresult code, const std::string& words) {
    options_of(linker).error(words);
    driver.record.refused(words);
    fail(code);
}

const char* name_of_input(int type) {
    switch (type) {
        case CU_JIT_INPUT_CUBIN:
            return "a cubin (machine code)";
        case CU_JIT_INPUT_OBJECT:
            return "a host object";
        case CU_JIT_INPUT_LIBRARY:
            return "a library of host objects";
        default:
            return "an input of this kind";
    }
}

void add(Driver& driver, Linker& linker, int type, const void* data, std::size_t size, const std::string& name) {
    if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY && type != CU_JIT_INPUT_CUBIN) {
        refuse(driver, linker, CUDA_ERROR_NOT_SUPPORTED,
               "linker: " + name + " is " + name_of_input(type) + "; the virtual driver links PTX");
    }
    try {
        linker.inputs.emplace_back(name, ptx_of_image(data, size));
    } catch (const Failure& failure) {
        refuse(driver, linker, failure.code, "linker: " + name + ": " + failure.what());
    }
}

CUresult create(const char* function, unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
    return initialized(function, [&](Driver& driver) {
        require(state != nullptr);
        jit_options(count, options, values);
        const auto linker = std::make_shared<Linker>();
        linker->option_count = count;
        linker->options = options;
        linker->values = values;
        *state = driver.linkers.add(linker);
    });
}

CUresult add_data(const char* function, CUlinkState state, int type, const void* data, std::size_t size,
                  const char* name) {
    return initialized(function, [&](Driver& driver) {
        const std::shared_ptr<Linker> linker = driver.linkers.get(state);
        require(data != nullptr && size > 0);
        add(driver, *linker, type, data, size, name != nullptr ? name : next_module_name());
    });
}

CUresult add_file(const char* function, CUlinkState state, int type, const char* path) {
    return initialized(function, [&](Driver& driver) {
        const std::shared_ptr<Linker> linker = driver.linkers.get(state);
        require(path != nullptr);
        const std::string content = read_file(path);
        add(driver, *linker, type, content.data(), content.size(), path);
    });
}

}  // namespace

GRADGUARD_DRIVER_API cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
    return create(__func__, count, options, values, state);
}
GRADGUARD_DRIVER_API cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
    return create(__func__, count, options, values, state);
}
GRADGUARD_DRIVER_API cuLinkAddData(CUlinkState state, int type, void* data, std::size_t size, const char* name,
                                   unsigned, CUjit_option*, void**) {
    return add_data(__func__, state, type, data, size, name);
}
GRADGUARD_DRIVER_API cuLinkAddData_v2(CUlinkState state, int type, void* data, std::size_t size, const char* name,
                                      unsigned, CUjit_option*, void**) {
    return add_data(__func__, state, type, data, size, name);
}
GRADGUARD_DRIVER_API cuLinkAddFile(CUlinkState state, int type, const char* path, unsigned, CUjit_option*, void**) {
    return add_file(__func__, state, type, path);
}
GRADGUARD_DRIVER_API cuLinkAddFile_v2(CUlinkState state, int type, const char* path, unsigned, CUjit_option*, void**) {
    return add_file(__func__, state, type, path);
}

/// The image is PTX: one module with what all inputs have. It is checked here, as a linker would.
GRADGUARD_DRIVER_API cuLinkComplete(CUlinkState state, void** image, std::size_t* size) {
    return initialized(__func__, [&](Driver& driver) {
        const std::shared_ptr<Linker> linker = driver.linkers.get(state);
        require(image != nullptr);
        require(!linker->inputs.empty(), CUDA_ERROR_INVALID_IMAGE);
        linker->output.clear();
        std::string names;
        for (const auto& [name, ptx] : linker->inputs) {
            linker->output += linker->output.empty() ? ptx : without_header(ptx);
            if (!names.empty()) names += '+';
            names += name;
        }
        load_program(driver, linker->output, names, options_of(*linker));
        *image = linker->output.data();
        if (size != nullptr) *size = linker->output.size() + 1;
    });
}

GRADGUARD_DRIVER_API cuLinkDestroy(CUlinkState state) {
    return initialized(__func__,
                       [&](Driver& driver) { require(driver.linkers.erase(state), CUDA_ERROR_INVALID_HANDLE); });
}
