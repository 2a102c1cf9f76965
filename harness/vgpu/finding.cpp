// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/finding.h"

#include <sstream>

#include "harness/vgpu/error.h"

namespace gradguard::vgpu {
namespace {

std::ostream& operator<<(std::ostream& out, const Dim3& d) {
    return out << '(' << d.x << ',' << d.y << ',' << d.z << ')';
}

const char* verb(AccessKind access) {
    switch (access) {
        case AccessKind::Load:
            return "read";
        case AccessKind::Store:
            return "write";
        case AccessKind::Atomic:
            return "atomic";
    }
    return "?";
}

bool is_about_memory(FindingKind kind) {
    return kind == FindingKind::OutOfBounds || kind == FindingKind::Misaligned || kind == FindingKind::UseAfterFree ||
           kind == FindingKind::NoSuchAllocation || kind == FindingKind::WriteToConstant ||
           kind == FindingKind::UninitializedRead || kind == FindingKind::Race || kind == FindingKind::WarpRace ||
           kind == FindingKind::WriteConflict || kind == FindingKind::SameValueWrite ||
           kind == FindingKind::WriteToInput;
}

void describe_access(std::ostream& out, const Finding& finding) {
    out << verb(finding.access) << " of " << finding.access_bytes << " bytes at " << name_of(finding.space) << " 0x"
        << std::hex << finding.address << std::dec;
    if (finding.allocation_bytes == 0 && finding.allocation == 0) return;
    if (finding.allocation_bytes == 0) return;
    if (finding.space == Space::Shared) {
        out << ", the block has " << finding.allocation_bytes << " bytes";
        return;
    }
    out << ", " << static_cast<std::int64_t>(finding.address - finding.allocation) << " bytes into an allocation of "
        << finding.allocation_bytes << " bytes";
}

void describe_place(std::ostream& out, const Place& place) {
    out << place.ptx_file << ":" << place.ptx_line << " '" << place.instruction << "'";
    if (place.source_line != 0) out << ", " << place.source_file << ":" << place.source_line;
    if (place.inlined_line != 0) out << " (inlined from " << place.inlined_file << ":" << place.inlined_line << ")";
}

}  // namespace

const char* name_of(FindingKind kind) {
    switch (kind) {
        case FindingKind::OutOfBounds:
            return "out of bounds";
        case FindingKind::Misaligned:
            return "misaligned";
        case FindingKind::UseAfterFree:
            return "use after free";
        case FindingKind::NoSuchAllocation:
            return "no such allocation";
        case FindingKind::WriteToConstant:
            return "write to constant memory";
        case FindingKind::DivergentBarrier:
            return "divergent barrier";
        case FindingKind::Deadlock:
            return "deadlock";
        case FindingKind::NoProgress:
            return "no progress";
        case FindingKind::UninitializedRead:
            return "uninitialized read";
        case FindingKind::Race:
            return "race";
        case FindingKind::WarpRace:
            return "race within a warp";
        case FindingKind::WriteConflict:
            return "conflicting writes";
        case FindingKind::SameValueWrite:
            return "unordered writes of one value";
        case FindingKind::WriteToInput:
            return "write to input";
        case FindingKind::Leak:
            return "leak";
        case FindingKind::UninitializedRegister:
            return "uninitialized register";
        case FindingKind::BarrierMismatch:
            return "barrier mismatch";
    }
    return "?";
}

const char* name_of(Space space) {
    switch (space) {
        case Space::Generic:
            return "generic";
        case Space::Global:
            return "global";
        case Space::Shared:
            return "shared";
        case Space::Local:
            return "local";
        case Space::Constant:
            return "constant";
        case Space::Param:
            return "param";
    }
    return "?";
}

std::string Finding::message() const {
    std::ostringstream out;
    if (kind == FindingKind::Leak) {
        out << name_of(kind) << ": allocation 0x" << std::hex << allocation << std::dec << " of " << allocation_bytes
            << " bytes was never freed";
        return out.str();
    }
    out << name_of(kind) << ": ";
    if (is_about_memory(kind)) {
        describe_access(out, *this);
        out << ", ";
    }
    out << "kernel " << place.kernel;
    if (place.ptx_line != 0) {
        out << ", ";
        describe_place(out, place);
    }
    out << ", block " << block << ", thread " << thread;
    if (other) {
        if (kind == FindingKind::UninitializedRead) {
            out << "; used: ";
        } else {
            out << "; the other: ";
            if (is_about_memory(kind)) out << verb(other_access) << ", ";
        }
        describe_place(out, *other);
        out << ", block " << other_block << ", thread " << other_thread;
    }
    if (!detail.empty()) out << ": " << detail;
    if (count > 1) out << " (" << count << " times)";
    return one_line(out.str());
}

}  // namespace gradguard::vgpu
