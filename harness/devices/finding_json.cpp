// SPDX-License-Identifier: Apache-2.0
#include "harness/devices/finding_json.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace gradguard::harness {
namespace {

using Json = nlohmann::ordered_json;

std::string hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

const char* name_of(vgpu::AccessKind access) {
    switch (access) {
        case vgpu::AccessKind::Load:
            return "read";
        case vgpu::AccessKind::Store:
            return "write";
        case vgpu::AccessKind::Atomic:
            return "atomic";
    }
    return "?";
}

Json dim_json(const vgpu::Dim3& dim) { return {dim.x, dim.y, dim.z}; }

void add_place(Json& json, const vgpu::Place& place, const vgpu::Dim3& block, const vgpu::Dim3& thread) {
    json["kernel"] = place.kernel;
    json["ptx_file"] = place.ptx_file;
    json["ptx_line"] = place.ptx_line;
    json["instruction"] = place.instruction;
    json["source_file"] = place.source_line != 0 ? Json(place.source_file) : Json(nullptr);
    json["source_line"] = place.source_line != 0 ? Json(place.source_line) : Json(nullptr);
    if (place.inlined_line != 0) {
        json["inlined_file"] = place.inlined_file;
        json["inlined_line"] = place.inlined_line;
    }
    json["block"] = dim_json(block);
    json["thread"] = dim_json(thread);
}

}  // namespace

std::string finding_to_json(const vgpu::Finding& finding) {
    Json json;
    json["kind"] = vgpu::name_of(finding.kind);
    json["message"] = finding.message();
    json["count"] = finding.count;
    if (finding.kind != vgpu::FindingKind::Leak) add_place(json, finding.place, finding.block, finding.thread);
    if (finding.access_bytes != 0) {
        json["space"] = vgpu::name_of(finding.space);
        json["access"] = name_of(finding.access);
        json["access_bytes"] = finding.access_bytes;
        json["address"] = hex(finding.address);
    }
    if (finding.allocation != 0) {
        json["allocation"] = hex(finding.allocation);
        json["allocation_bytes"] = finding.allocation_bytes;
    }
    if (finding.other) {
        Json& other = json["other"];
        add_place(other, *finding.other, finding.other_block, finding.other_thread);
        other["access"] = name_of(finding.other_access);
    }
    if (!finding.register_name.empty()) json["register"] = finding.register_name;
    if (!finding.detail.empty()) json["detail"] = finding.detail;
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gradguard::harness
