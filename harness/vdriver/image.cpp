// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/image.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "harness/vgpu/error.h"

namespace gradguard::vdriver {

using namespace cuda;  // NOLINT: the names of the driver API

namespace {

constexpr std::uint32_t kElfMagic = 0x464C457F;
constexpr std::uint32_t kWrapperMagic = 0x466243B1;  // of what nvcc puts around a fat binary in a host object
constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;
constexpr char kWhatToDo[] =
    "the virtual GPU runs PTX: compile with nvcc -ptx or -gencode arch=compute_80,code=compute_80 (NVRTC: "
    "--gpu-architecture=compute_80 and nvrtcGetPTX), or set the framework to produce PTX instead of a cubin";

/// Fat binary: a header, then parts with a header each. Undocumented but stable for years.
struct FatbinHeader {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t header_bytes;
    std::uint64_t bytes;  ///< Of the parts.
};
struct PartHeader {
    std::uint16_t kind;
    std::uint16_t version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;  ///< Of the payload.
    std::uint32_t compressed_bytes;
    std::uint32_t unused;
    std::uint16_t minor;
    std::uint16_t major;
    std::uint32_t architecture;
    std::uint32_t name_offset;
    std::uint32_t name_bytes;
    std::uint64_t flags;
    std::uint64_t zero;
    std::uint64_t whole_bytes;  ///< Before compression, 0: not compressed.
};
constexpr std::uint16_t kPtxPart = 1;

template <class T>
T at(const std::byte* data) {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
}

[[noreturn]] void refuse(CUresult code, const std::string& words) { throw Failure(code, words); }

/// `size`: of all of it; 0: only the header knows.
std::string ptx_of_fatbin(const std::byte* data, std::size_t size) {
    const auto cut_short = [] { refuse(CUDA_ERROR_INVALID_IMAGE, "this fat binary ends before its header says so"); };
    if (size != 0 && size < sizeof(FatbinHeader)) cut_short();
    const auto header = at<FatbinHeader>(data);
    if (size != 0 && (header.header_bytes > size || header.bytes > size - header.header_bytes)) cut_short();
    const std::byte* part = data + header.header_bytes;
    const std::byte* const end = part + header.bytes;
    std::string best;
    std::uint32_t best_architecture = 0;
    bool compressed = false;
    while (static_cast<std::size_t>(end - part) >= sizeof(PartHeader)) {
        const auto entry = at<PartHeader>(part);
        const auto left = static_cast<std::size_t>(end - part);
        if (entry.header_bytes < sizeof(PartHeader) || entry.header_bytes > left ||
            entry.bytes > left - entry.header_bytes)
            break;
        const std::byte* const payload = part + entry.header_bytes;
        const bool packed = entry.whole_bytes != 0;
        if (entry.kind == kPtxPart && packed) compressed = true;
        if (entry.kind == kPtxPart && !packed && entry.architecture >= best_architecture) {
            best.assign(reinterpret_cast<const char*>(payload), entry.bytes);
            best.resize(std::min(best.size(), best.find('\0')));
            best_architecture = entry.architecture;
        }
        part = payload + entry.bytes;
    }
    if (!best.empty()) return best;
    if (compressed) {
        refuse(CUDA_ERROR_NO_BINARY_FOR_GPU,
               "the PTX in this fat binary is compressed, which the virtual driver does not undo: compile with nvcc "
               "--no-compress, or load PTX");
    }
    refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, std::string("this fat binary holds machine code only (no PTX); ") + kWhatToDo);
}

const int* find_option(const JitOptions& options, int wanted) {
    const auto it = std::find(options.options.begin(), options.options.end(), wanted);
    return it == options.options.end() ? nullptr : &*it;
}

void write_log(const JitOptions& options, int buffer_option, int size_option, const std::string& text) {
    const int* const buffer = find_option(options, buffer_option);
    const int* const size = find_option(options, size_option);
    if (buffer == nullptr || size == nullptr) return;
    void* const target = options.values[static_cast<std::size_t>(buffer - options.options.data())];
    // The size is the number itself in place of a pointer; the driver puts the length there.
    void** const place = const_cast<void**>(&options.values[static_cast<std::size_t>(size - options.options.data())]);
    const std::size_t room = reinterpret_cast<std::uintptr_t>(*place) & 0xFFFFFFFF;
    if (target == nullptr || room == 0) return;
    const std::size_t fits = std::min(room - 1, text.size());
    std::memcpy(target, text.data(), fits);
    static_cast<char*>(target)[fits] = 0;
    *place = reinterpret_cast<void*>(text.empty() ? 0 : fits + 1);
}

/// 1000 * major + 10 * minor of the CUDA version whose driver first took PTX of a version ("9.0").
int cuda_version_of_ptx(int major, int minor) {
    if (major < 7) return 0;
    if (major == 7) return 11000 + 10 * minor;
    if (major == 8) {
        // 8.5 came with 12.5 and stayed for 12.6; from then on they are one apart.
        return 12000 + 10 * (minor <= 5 ? minor : minor + 1);
    }
    return 13000 + 1000 * (major - 9) + 10 * minor;
}

void check_version(const Driver& driver, const std::string& ptx) {
    if (!driver.configuration.version_was_given) return;
    const std::size_t directive = ptx.find(".version");
    int major = 0, minor = 0;
    if (directive == std::string::npos || std::sscanf(ptx.c_str() + directive, ".version %d.%d", &major, &minor) != 2 ||
        cuda_version_of_ptx(major, minor) <= driver.configuration.driver_version)
        return;
    refuse(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
           "PTX version " + std::to_string(major) + "." + std::to_string(minor) + " is newer than a driver of CUDA " +
               std::to_string(driver.configuration.driver_version / 1000) + "." +
               std::to_string(driver.configuration.driver_version % 1000 / 10) + " takes");
}

std::string words_for(const vgpu::PtxError& error, const Driver& driver) {
    std::string words = error.what();
    if (words.find("approximat") != std::string::npos && !driver.configuration.machine.allow_approximate)
        words += " (\"allow_approximate\": true in GRADGUARD_VDRIVER allows it)";
    return words;
}

}  // namespace

std::string read_file(const char* path) {
    std::ifstream file(path, std::ios::binary);
    require(file.good(), CUDA_ERROR_FILE_NOT_FOUND);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string ptx_of_image(const void* image, std::size_t size) {
    require(image != nullptr);
    const auto* const data = static_cast<const std::byte*>(image);
    // Byte by byte: text may be shorter than a magic number.
    const auto starts_with = [&](std::uint32_t magic) {
        for (std::size_t i = 0; i < sizeof magic; ++i) {
            if ((size != 0 && i >= size) || data[i] != static_cast<std::byte>(magic >> (8 * i))) return false;
        }
        return true;
    };
    if (starts_with(kElfMagic)) {
        refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, std::string("this module is machine code (a cubin); ") + kWhatToDo);
    }
    // A wrapper points to what it wraps, which no file can.
    if (starts_with(kWrapperMagic) && size == 0) return ptx_of_image(at<const void*>(data + 8));
    if (starts_with(kFatbinMagic)) return ptx_of_fatbin(data, size);
    const auto* const text = static_cast<const char*>(image);
    return {text, size == 0 ? std::strlen(text) : strnlen(text, size)};
}

void JitOptions::info(const std::string& text) const {
    write_log(*this, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, text);
}
void JitOptions::error(const std::string& text) const {
    write_log(*this, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, text);
}
JitOptions jit_options(unsigned count, const CUjit_option* options, void** values) {
    require(count == 0 || (options != nullptr && values != nullptr));
    if (count == 0) return {};
    return {{reinterpret_cast<const int*>(options), count}, {values, count}};
}

std::string next_module_name() {
    static std::uint64_t last = 0;
    return "module-" + std::to_string(++last) + ".ptx";
}

std::shared_ptr<const vgpu::Module> load_program(Driver& driver, const std::string& ptx, const std::string& name,
                                                 const JitOptions& options) {
    const auto refused = [&](const std::string& words) {
        options.info("");
        options.error(words);
        driver.record.refused(words);
    };
    try {
        check_version(driver, ptx);
        auto program = vgpu::Module::load(ptx, name, driver.configuration.machine.allow_approximate);
        options.info("");
        options.error("");
        return program;
    } catch (const vgpu::PtxError& error) {
        refused(words_for(error, driver));
        fail(CUDA_ERROR_INVALID_PTX);
    } catch (const Failure& failure) {
        refused(name + ": " + failure.what());
        throw;
    }
}

std::shared_ptr<const vgpu::Module> load_image(Driver& driver, const void* image, const JitOptions& options) {
    const std::string name = next_module_name();
    std::string ptx;
    try {
        ptx = ptx_of_image(image);
    } catch (const Failure& failure) {
        if (*failure.what() != 0) {
            options.info("");
            options.error(name + ": " + failure.what());
            driver.record.refused(name + ": " + failure.what());
        }
        throw;
    }
    return load_program(driver, ptx, name, options);
}

}  // namespace gradguard::vdriver
