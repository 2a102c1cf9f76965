// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/instruction_list.h"

#include <algorithm>

#include "harness/vgpu/module.h"

namespace gradguard::conformance {

namespace {

void add_comparisons(std::vector<std::string>& names) {
    for (const char* combine : {"and", "or", "xor"}) {
        for (const char* form : {"lt", "ne", "ge"}) {
            for (const char* type : {"u16", "s32", "u32", "s64", "u64", "f32", "f64"}) {
                names.push_back(std::string("setp.") + form + "." + combine + "." + type);
            }
        }
        names.push_back(std::string("setp.neu.") + combine + ".f32");
        names.push_back(std::string("setp.gtu.") + combine + ".ftz.f32");
        names.push_back(std::string("setp.nan.") + combine + ".f64");
        names.push_back(std::string("setp.eq.") + combine + ".b64");
    }
}

void add_memory(std::vector<std::string>& names) {
    for (const char* type :
         {"b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"}) {
        const std::string text = type;
        const int bytes = std::stoi(text.substr(1)) / 8;
        for (const int elements : {1, 2, 4}) {
            if (bytes * elements > 16) continue;
            const std::string suffix = (elements == 1 ? "" : ".v" + std::to_string(elements)) + "." + text;
            for (const char* space : {"", ".global", ".shared", ".const", ".param", ".local"})
                names.push_back(std::string("ld") + space + suffix);
            for (const char* space : {"", ".global", ".shared", ".local"})
                names.push_back(std::string("st") + space + suffix);
        }
    }
    for (const char* name : {"ld.global.nc.f32",
                             "ld.global.nc.v4.b32",
                             "ld.global.nc.u8",
                             "ld.volatile.global.u32",
                             "ld.volatile.shared.f32",
                             "ld.relaxed.gpu.global.u32",
                             "ld.acquire.gpu.global.u32",
                             "ld.acquire.sys.global.u64",
                             "ld.weak.global.b32",
                             "ld.global.ca.b32",
                             "ld.global.cg.v2.b32",
                             "ld.global.cs.b64",
                             "ld.global.L1::no_allocate.v4.b32",
                             "ld.global.nc.L2::128B.v2.b64",
                             "st.volatile.shared.u32",
                             "st.relaxed.gpu.global.u32",
                             "st.release.gpu.global.u32",
                             "ld.shared.u8@32",
                             "ld.shared.s16@32",
                             "ld.shared.v2.f32@32",
                             "ld.shared.v2.b64@32",
                             "st.shared.u8@32",
                             "st.shared.v4.f32@32",
                             "st.shared.v2.b64@32",
                             "st.global.wt.b32",
                             "st.global.cs.v4.b32",
                             "st.global.cg.b64",
                             "st.weak.global.b32"}) {
        names.emplace_back(name);
    }
}

/// What the decoder makes of several rows.
void add_selections(std::vector<std::string>& names) {
    for (const char* sources : {"s32", "u32", "f32", "f64", "s16", "u64", "b32"}) {
        for (const char* result : {"u32", "s32", "f32"}) {
            names.push_back(std::string("set.eq.") + result + "." + sources);
            if (sources[0] != 'b') names.push_back(std::string("set.lt.and.") + result + "." + sources);
        }
    }
    names.emplace_back("set.gtu.ftz.f32.f32");
    names.emplace_back("set.nan.or.u32.f64");
    for (const char* type : {"b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"}) {
        names.push_back(std::string("slct.") + type + ".s32");
        names.push_back(std::string("slct.") + type + ".f32");
    }
    names.emplace_back("slct.ftz.b32.f32");
    for (const char* type : {"u32", "s32", "u64", "s64"}) {
        for (const char* half : {"lo", "hi"}) {
            names.push_back(std::string("mad.") + half + ".cc." + type);
            names.push_back(std::string("madc.") + half + "." + type);
            names.push_back(std::string("madc.") + half + ".cc." + type);
        }
    }
    for (const char* type : {"f16", "bf16", "f16x2", "bf16x2"}) {
        names.push_back(std::string("setp.lt.and.") + type);
        names.push_back(std::string("setp.neu.xor.") + type);
    }
    for (const char* scope : {"", ".acquire.gpu", ".acq_rel.sys", ".relaxed.cta"}) {
        names.push_back(std::string("atom") + scope + ".global.add.u32");
        names.push_back(std::string("atom") + scope + ".shared.cas.b64");
    }
    names.emplace_back("red.release.gpu.global.add.f32");
}

void add_control_flow(std::vector<std::string>& names) {
    for (const char* name : {"bra", "bra.uni", "ret", "ret.uni", "exit", "bar.sync", "bar.sync:count", "bar.cta.sync",
                             "barrier.sync", "barrier.cta.sync", "barrier.sync.aligned", "barrier.sync:count",
                             "barrier.cta.sync.aligned", "mov.u32:special", "mov.b32:special"}) {
        names.emplace_back(name);
    }
}

void add_copies_and_hints(std::vector<std::string>& names) {
    for (const char* name : {"cp.async.ca.shared.global:4",
                             "cp.async.ca.shared.global:8",
                             "cp.async.ca.shared.global:16",
                             "cp.async.cg.shared.global:16",
                             "cp.async.cg.shared.global.L2::128B:16",
                             "cp.async.ca.shared.global:zfill",
                             "cp.async.cg.shared.global:zfill",
                             "cp.async.ca.shared.global:ignore",
                             "cp.async.cg.shared.global:ignore",
                             "cp.async.wait_group",
                             "prefetch.L1",
                             "prefetch.L2",
                             "prefetch.global.L1",
                             "prefetch.global.L2",
                             "prefetch.global.L2::evict_last",
                             "prefetchu.L1",
                             "discard.L2",
                             "discard.global.L2",
                             "applypriority.L2::evict_normal",
                             "applypriority.global.L2::evict_normal",
                             "createpolicy.fractional.L2::evict_first.b64",
                             "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64",
                             "createpolicy.range.L2::evict_last.L2::evict_first.b64",
                             "createpolicy.cvt.L2.b64",
                             "ld.global.L2::cache_hint.u32",
                             "st.global.L2::cache_hint.u32",
                             "red.global.add.L2::cache_hint.u32",
                             "ldu.global.u32",
                             "ldu.global.v4.f32"}) {
        names.emplace_back(name);
    }
    // .sat says nothing that a conversion to an integer does not do anyway.
    for (const char* name : {"cvt.rzi.sat.s32.f32", "cvt.rni.sat.u8.f32", "cvt.rmi.ftz.sat.s16.f32",
                             "cvt.rpi.sat.u64.f64", "cvt.rzi.sat.s32.f16"}) {
        names.emplace_back(name);
    }
    for (const std::string sources : {"f16", "bf16"}) {
        for (const std::string& result : {sources, std::string("u16"), std::string("s32")}) {
            names.push_back("set.eq." + result + "." + sources);
            names.push_back("set.ltu.or." + result + "." + sources);
        }
    }
    for (const char* name : {"set.ge.f16x2.f16x2", "set.neu.and.f16x2.f16x2", "set.lt.bf16x2.bf16x2",
                             "set.gt.u32.f16x2", "set.eq.f16.f32", "set.lt.u16.f16"}) {
        names.emplace_back(name);
    }
}

}  // namespace

std::vector<std::string> composed_instructions() {
    std::vector<std::string> names;
    add_comparisons(names);
    add_memory(names);
    add_control_flow(names);
    add_selections(names);
    add_copies_and_hints(names);
    for (const char* name :
         {"mov.b32:pack2", "mov.b32:unpack2", "mov.b64:pack2", "mov.b64:unpack2", "mov.b64:pack4", "mov.b64:unpack4"}) {
        names.emplace_back(name);
    }
    const std::vector<std::string> table = vgpu::instruction_names();
    std::erase_if(names, [&](const std::string& name) { return std::binary_search(table.begin(), table.end(), name); });
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<std::string> instructions_under_test() {
    std::vector<std::string> names = vgpu::instruction_names();
    for (std::string& name : composed_instructions()) names.push_back(std::move(name));
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace gradguard::conformance
