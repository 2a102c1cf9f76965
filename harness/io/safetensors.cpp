// SPDX-License-Identifier: Apache-2.0
#include "harness/io/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>

#include "harness/io/atomic_file.h"

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian and used as it lies");

namespace gradguard::harness {
namespace {

constexpr std::uint64_t kLengthBytes = 8;

/// Closes at the end of its scope.
class Descriptor {
  public:
    explicit Descriptor(int value) : value_(value) {}
    ~Descriptor() {
        if (value_ >= 0) ::close(value_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int value() const { return value_; }

  private:
    int value_;
};

struct Mapping {
    std::shared_ptr<const std::byte> bytes;
    std::uint64_t size = 0;
};

Mapping map_file(const std::string& path) {
    // O_NONBLOCK: opening a pipe that nobody writes to must not hang; it is refused below.
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.value() < 0) throw FileError(path, std::string("cannot open: ") + std::strerror(errno));
    struct stat status = {};
    if (::fstat(file.value(), &status) != 0) throw FileError(path, std::string("cannot read: ") + std::strerror(errno));
    if (S_ISDIR(status.st_mode)) throw FileError(path, "is a folder, want a safetensors file");
    if (!S_ISREG(status.st_mode)) throw FileError(path, "is not a regular file");
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size < kLengthBytes) {
        throw FileError(path, "truncated: " + std::to_string(size) +
                                  " bytes, a safetensors file begins with 8 bytes of "
                                  "header length");
    }
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value(), 0);
    if (address == MAP_FAILED) throw FileError(path, std::string("cannot map: ") + std::strerror(errno));
    return {std::shared_ptr<const std::byte>(static_cast<const std::byte*>(address),
                                             [address, size](const std::byte*) { ::munmap(address, size); }),
            size};
}

std::string header_text(const std::map<std::string, SafetensorsOutput>& tensors,
                        const std::map<std::string, std::string>& metadata,
                        const std::vector<const std::pair<const std::string, SafetensorsOutput>*>& data_order) {
    std::map<std::string_view, std::uint64_t> begins;
    std::uint64_t offset = 0;
    for (const auto* item : data_order) {
        begins[item->first] = offset;
        offset += item->second.data.size();
    }
    nlohmann::json header = nlohmann::json::object();  // a sorted map
    if (!metadata.empty()) header["__metadata__"] = metadata;
    for (const auto& [name, tensor] : tensors) {
        const std::uint64_t begin = begins[name];
        header[name] = {
            {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, begin + tensor.data.size()}}};
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
}

void check_output(const std::string& name, const SafetensorsOutput& tensor) {
    const std::optional<std::uint64_t> bits = safetensors_element_bits(tensor.dtype);
    std::uint64_t total = bits.value_or(0);
    bool right = bits.has_value() && name != "__metadata__";
    for (const std::uint64_t dimension : tensor.shape)
        right = right && !__builtin_mul_overflow(total, dimension, &total);
    if (!right || total % 8 != 0 || total / 8 != tensor.data.size()) {
        throw std::invalid_argument("write_safetensors: tensor " + in_quotes(name) + " has " +
                                    std::to_string(tensor.data.size()) +
                                    " bytes, which do not fit its dtype and shape");
    }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
    const Mapping mapping = map_file(path);
    mapping_ = mapping.bytes;
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, mapping_.get(), kLengthBytes);
    if (header_bytes > kMaxSafetensorsHeaderBytes) {
        throw FileError(path, "the header claims " + std::to_string(header_bytes) + " bytes, at most " +
                                  std::to_string(kMaxSafetensorsHeaderBytes) + " are accepted");
    }
    const std::uint64_t rest = mapping.size - kLengthBytes;
    if (header_bytes > rest) {
        throw FileError(path, "truncated: the header claims " + std::to_string(header_bytes) + " bytes, the file has " +
                                  std::to_string(rest) + " after the length");
    }
    data_offset_ = kLengthBytes + header_bytes;
    const std::string_view json(reinterpret_cast<const char*>(mapping_.get()) + kLengthBytes, header_bytes);
    header_ = parse_safetensors_header(path, json, mapping.size - data_offset_);
}

std::span<const std::byte> SafetensorsFile::data(const SafetensorsTensor& tensor) const {
    return {mapping_.get() + data_offset_ + tensor.begin, tensor.end - tensor.begin};
}

void write_safetensors(const std::string& path, const std::map<std::string, SafetensorsOutput>& tensors,
                       const std::map<std::string, std::string>& metadata) {
    std::vector<const std::pair<const std::string, SafetensorsOutput>*> data_order;
    for (const auto& item : tensors) {
        check_output(item.first, item.second);
        data_order.push_back(&item);
    }
    std::ranges::stable_sort(data_order, std::ranges::greater{},
                             [](const auto* item) { return *safetensors_element_bits(item->second.dtype); });
    const std::string header = header_text(tensors, metadata, data_order);
    const std::uint64_t header_bytes = header.size();
    AtomicFile file(path);
    file.write(std::as_bytes(std::span(&header_bytes, 1)));
    file.write(std::as_bytes(std::span(header)));
    for (const auto* item : data_order) file.write(item->second.data);
    file.commit();
}

}  // namespace gradguard::harness
