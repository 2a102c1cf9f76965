// SPDX-License-Identifier: Apache-2.0
// Programs for asynchronous copies, instructions about caches, elect, and parameters as memory.
#include "tests/conformance/programs.h"

namespace gradguard::conformance {

namespace {

constexpr const char* kCopyBuffers =
    ".global .align 16 .b8 source[12288];\n"
    ".shared .align 16 .b8 stage[4096];\n";

/// Each thread fills its 16 bytes of `source` with x, x + 1, x + 2, x + 3 and those of `stage` with nines. Then %rd1 is
/// the address of its source, %r4 of its stage, and x is in %r0.
constexpr const char* kFill =
    "    mad.lo.u32 %r0, %i, 11, 3;\n"
    "    add.u32 %r1, %r0, 1;\n    add.u32 %r2, %r0, 2;\n    add.u32 %r3, %r0, 3;\n"
    "    mov.u64 %rd0, source;\n    mul.wide.u32 %rd1, %i, 16;\n    add.s64 %rd1, %rd1, %rd0;\n"
    "    st.global.v4.u32 [%rd1], {%r0, %r1, %r2, %r3};\n"
    "    mov.u32 %r4, stage;\n    mad.lo.u32 %r4, %lane, 16, %r4;\n"
    "    mov.u32 %r5, 9;\n    st.shared.v4.u32 [%r4], {%r5, %r5, %r5, %r5};\n";

/// One word of all that arrived, so that each byte counts.
constexpr const char* kSum =
    "    ld.shared.v4.u32 {%r6, %r7, %r8, %r9}, [%r4];\n"
    "    mad.lo.u32 %r6, %r7, 3, %r6;\n    mad.lo.u32 %r6, %r8, 5, %r6;\n    mad.lo.u32 %r6, %r9, 7, %r6;\n"
    "    st.global.u32 [%out], %r6;\n    ret;\n";

/// What kSum makes of 16 bytes of which `copied` were written, the first `read` of these from the source.
std::uint32_t sum_of(std::uint32_t i, std::uint32_t copied, std::uint32_t read) {
    static constexpr std::uint32_t kWeights[] = {1, 3, 5, 7};
    std::uint32_t sum = 0;
    for (std::uint32_t word = 0; word < 4; ++word) {
        std::uint32_t value = 4 * word >= copied ? 9 : 0;
        for (std::uint32_t byte = 4 * word; byte < 4 * word + 4 && byte < copied && byte < read; ++byte)
            value |= ((i * 11 + 3 + word) >> (8 * (byte % 4)) & 0xFF) << (8 * (byte % 4));
        sum += value * kWeights[word];
    }
    return sum;
}

/// Copies of `bytes` bytes; half of the lanes are held back by a guard.
Program plain_copy(const std::string& name, const std::string& written, std::uint32_t bytes) {
    const std::string copy = written + " [%r4], [%rd1], " + std::to_string(bytes) + ";\n";
    return program_of(name, kCopyBuffers,
                      std::string(kFill) + "    and.b32 %r6, %i, 1;\n    setp.eq.u32 %p0, %r6, 0;\n    @%p0 " + copy +
                          "    cp.async.wait_all;\n" + kSum,
                      [bytes](std::uint32_t i) { return sum_of(i, i % 2 == 0 ? bytes : 0, bytes); });
}

/// The size to read differs from thread to thread; what is left is zero. Nothing is read of addresses that do not
/// exist.
Program filled_copy(const std::string& name, const std::string& written) {
    return program_of(
        name, kCopyBuffers,
        std::string(kFill) +
            "    rem.u32 %r6, %i, 17;\n    setp.eq.u32 %p0, %r6, 0;\n    selp.b64 %rd2, 16, %rd1, %p0;\n    " +
            written + " [%r4], [%rd2], 16, %r6;\n    cp.async.wait_all;\n" + kSum,
        [](std::uint32_t i) { return sum_of(i, 16, i % 17); });
}

Program ignoring_copy(const std::string& name, const std::string& written) {
    return program_of(name, kCopyBuffers,
                      std::string(kFill) + "    and.b32 %r6, %i, 3;\n    setp.eq.u32 %p0, %r6, 1;\n    " + written +
                          " [%r4], [%rd1], 16, %p0;\n    cp.async.wait_all;\n" + kSum,
                      [](std::uint32_t i) { return sum_of(i, 16, i % 4 == 1 ? 0 : 16); });
}

/// Four groups, one of them empty; after waiting for all but two of them the first word is there, then all.
Program groups(const std::string& name) {
    std::string body = kFill;
    for (const char* offset : {"0", "", "4", "8"}) {
        const std::string at = offset;
        if (!at.empty()) body += "    cp.async.ca.shared.global [%r4+" + at + "], [%rd1+" + at + "], 4;\n";
        body += "    cp.async.commit_group;\n";
    }
    body +=
        "    cp.async.wait_group 2;\n"
        "    ld.shared.u32 %r5, [%r4];\n"
        "    sub.u32 %r5, %r5, %r0;\n"  // 0: it has arrived
        "    cp.async.wait_group 0;\n"
        "    ld.shared.v4.u32 {%r6, %r7, %r8, %r9}, [%r4];\n"
        "    mad.lo.u32 %r6, %r7, 3, %r6;\n    mad.lo.u32 %r6, %r8, 5, %r6;\n    mad.lo.u32 %r6, %r9, 7, %r6;\n"
        "    mad.lo.u32 %r6, %r5, 1000, %r6;\n"
        "    st.global.u32 [%out], %r6;\n    ret;\n";
    return program_of(name, kCopyBuffers, body, [](std::uint32_t i) { return sum_of(i, 12, 12); });
}

/// A hint about the 128 bytes of `line`, or a loss of them: what lies elsewhere stays.
Program about_a_line(const std::string& name, const std::string& operands) {
    return program_of(name, ".global .align 128 .b8 line[128];\n",
                      "    mad.lo.u32 %r0, %i, 5, 1;\n    st.global.u32 [%out], %r0;\n    mov.u64 %rd0, line;\n"
                      "    setp.lt.u32 %p0, %lane, 40;\n    " +
                          name + operands + ";\n    @%p0 " + name + operands +
                          ";\n    ld.global.u32 %r1, [%out];\n    add.u32 %r1, %r1, %r0;\n"
                          "    st.global.u32 [%out], %r1;\n    ret;\n",
                      [](std::uint32_t i) { return (i * 5 + 1) * 2; });
}

/// A policy, and an access that has it as a hint.
Program with_policy(const std::string& name, const std::string& create, const std::string& use) {
    return program_of(name, "",
                      "    mad.lo.u32 %r0, %i, 5, 1;\n    st.global.u32 [%out], 40;\n    mov.b64 %rd9, 7;\n    " +
                          create + ";\n    " + use + ";\n    ret;\n",
                      [&](std::uint32_t i) {
                          const bool loads = use.starts_with("ld");
                          return loads ? 40 + i * 5 + 1 : use.starts_with("st") ? i * 5 + 1 : 40 + i * 5 + 1;
                      });
}

/// One lane of the warp leads, and all name the same; then one of the lanes that reach the second election.
Program election(const std::string& name) {
    const auto elect = [&](const std::string& members, const std::string& result) {
        return "    elect.sync %r0|%p0, " + members + ";\n    vote.sync.ballot.b32 %r1, %p0, " + members +
               ";\n    popc.b32 %r2, %r1;\n    bfind.u32 %r3, %r1;\n    setp.eq.u32 %p1, %r2, 1;\n"
               "    setp.eq.and.u32 %p2, %r3, %r0, %p1;\n    selp.b32 " +
               result + ", 1, 0, %p2;\n";
    };
    return program_of(name, "",
                      "    mov.u32 %r8, 0;\n" + elect("-1", "%r7") +
                          "    and.b32 %r4, %i, 2;\n    setp.eq.u32 %p3, %r4, 0;\n    @%p3 bra REST;\n" +
                          elect("0xcccccccc", "%r8") +
                          "REST:\n    mad.lo.u32 %r7, %r8, 2, %r7;\n    st.global.u32 [%out], %r7;\n    ret;\n",
                      [](std::uint32_t i) { return (i & 2) == 0 ? 1U : 3U; });
}

/// The parameter is read through its address.
Program parameter_address(const std::string& name) {
    const bool back = name.starts_with("cvta.to.");
    const std::string body =
        "    mov.b64 %rd0, out;\n" +
        (back ? "    cvta.param.u64 %rd1, %rd0;\n    " + name + " %rd2, %rd1;\n    ld.param.u64 %rd3, [%rd2];\n"
              : "    " + name + " %rd1, %rd0;\n    ld.u64 %rd3, [%rd1];\n") +
        "    add.s64 %rd3, %rd3, %off;\n    mad.lo.u32 %r0, %i, 3, 2;\n"
        "    st.global.u32 [%rd3], %r0;\n    ret;\n";
    return program_of(name, "", body, [](std::uint32_t i) { return i * 3 + 2; });
}

std::optional<Program> copy_program(const std::string& name) {
    const std::size_t colon = name.rfind(':');
    if (name == "cp.async.commit_group" || name == "cp.async.wait_group" || name == "cp.async.wait_all")
        return groups(name);
    if (colon == std::string::npos) return std::nullopt;
    const std::string written = name.substr(0, colon), form = name.substr(colon + 1);
    if (form == "zfill") return filled_copy(name, written);
    if (form == "ignore") return ignoring_copy(name, written);
    return plain_copy(name, written, static_cast<std::uint32_t>(std::stoul(form)));
}

}  // namespace

std::optional<Program> rare_program_for(const std::string& name) {
    if (name.starts_with("cp.async.")) return copy_program(name);
    if (name.starts_with("prefetch")) return about_a_line(name, " [%rd0]");
    if (name.starts_with("discard") || name.starts_with("applypriority")) return about_a_line(name, " [%rd0], 128");
    if (name.starts_with("cvta.") && name.find("param") != std::string::npos) return parameter_address(name);
    if (name == "elect.sync") return election(name);
    const std::string load =
        "ld.global.L2::cache_hint.u32 %r1, [%out], %rd0;\n    add.u32 %r1, %r1, %r0;\n"
        "    st.global.u32 [%out], %r1";
    if (name.starts_with("createpolicy.fractional")) return with_policy(name, name + " %rd0, 0.5", load);
    if (name.starts_with("createpolicy.range")) return with_policy(name, name + " %rd0, [%out], 128, 256", load);
    if (name.starts_with("createpolicy.cvt")) return with_policy(name, name + " %rd0, %rd9", load);
    const std::string policy = "createpolicy.fractional.L2::evict_first.b64 %rd0, 1.0";
    if (name == "ld.global.L2::cache_hint.u32") return with_policy(name, policy, load);
    if (name == "st.global.L2::cache_hint.u32") return with_policy(name, policy, name + " [%out], %r0, %rd0");
    if (name == "red.global.add.L2::cache_hint.u32") return with_policy(name, policy, name + " [%out], %r0, %rd0");
    return std::nullopt;
}

}  // namespace gradguard::conformance
