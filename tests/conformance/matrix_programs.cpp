// SPDX-License-Identifier: Apache-2.0
// Programs for mma: small whole numbers, whose sums are exact in any order and rounding, so that each result is fixed.
// Where elements lie is written down as the PTX ISA does ("Matrix Fragments for mma.m16n8k4", "k8", "k16").
#include <array>
#include <string>

#include "tests/conformance/programs.h"

namespace gradguard::conformance {

namespace {

struct Element {
    unsigned row, column;
};

/// Element i of lane `lane` of A and B in .tf32, one in a register.
Element a_of_words(unsigned depth, unsigned lane, unsigned i) {
    const unsigned group = lane >> 2, thread = lane % 4;
    if (depth == 4) return {i == 0 ? group : group + 8, thread};
    return {i == 0 || i == 2 ? group : group + 8, i < 2 ? thread : thread + 4};
}
Element b_of_words(unsigned lane, unsigned i) { return {lane % 4 + 4 * i, lane >> 2}; }
/// In .f16 and .bf16, two in a register.
Element a_of_halves(unsigned depth, unsigned lane, unsigned i) {
    const unsigned group = lane >> 2, column = (lane % 4) * 2 + (i & 1);
    if (depth == 8) return {i < 2 ? group : group + 8, column};
    return {i < 2 || (i >= 4 && i < 6) ? group : group + 8, i < 4 ? column : column + 8};
}
Element b_of_halves(unsigned lane, unsigned i) { return {(lane % 4) * 2 + (i & 1) + (i < 2 ? 0 : 8), lane >> 2}; }
/// Of C and D, .f16 as well as .f32.
Element c_of(unsigned lane, unsigned i) { return {(lane >> 2) + (i < 2 ? 0 : 8), (lane % 4) * 2 + (i & 1)}; }

struct Shape {
    unsigned depth;         ///< k
    bool halves, half_sum;  ///< A and B have two elements in a register; so have C and D.
    unsigned a_elements, b_elements;
};

/// What thread `thread` of the grid has as element `index` of all of its elements, A's first, then B's, then C's.
constexpr int kModulus = 7, kLeast = -3;
int value_of(unsigned thread, unsigned index) {
    return static_cast<int>((thread * 5 + index * 3 + thread * index) % kModulus) + kLeast;
}
constexpr std::array<std::uint32_t, 4> kWeights = {1, 1009, 1000003, 37};

std::uint32_t want(const Shape& shape, unsigned thread) {
    const unsigned first = thread / 32 * 32, lane = thread % 32;
    std::array<std::array<int, 16>, 16> a{};
    std::array<std::array<int, 8>, 16> b{}, c{};
    for (unsigned l = 0; l < 32; ++l) {
        for (unsigned i = 0; i < shape.a_elements; ++i) {
            const Element at = shape.halves ? a_of_halves(shape.depth, l, i) : a_of_words(shape.depth, l, i);
            a[at.row][at.column] = value_of(first + l, i);
        }
        for (unsigned i = 0; i < shape.b_elements; ++i) {
            const Element at = shape.halves ? b_of_halves(l, i) : b_of_words(l, i);
            b[at.row][at.column] = value_of(first + l, shape.a_elements + i);
        }
        for (unsigned i = 0; i < 4; ++i) {
            const Element at = c_of(l, i);
            c[at.row][at.column] = value_of(first + l, shape.a_elements + shape.b_elements + i);
        }
    }
    std::uint32_t sum = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const Element at = c_of(lane, i);
        int d = c[at.row][at.column];
        for (unsigned k = 0; k < shape.depth; ++k) d += a[at.row][k] * b[k][at.column];
        sum += static_cast<std::uint32_t>(d) * kWeights[i];
    }
    return sum;
}

std::string number(unsigned n) { return std::to_string(n); }

/// Element `index` of this thread in %f`index`.
std::string make_element(unsigned index) {
    return "    mad.lo.u32 %r0, %i, 5, " + number(3 * index) + ";\n    mad.lo.u32 %r0, %i, " + number(index) +
           ", %r0;\n    rem.u32 %r0, %r0, 7;\n    sub.s32 %r0, %r0, 3;\n    cvt.rn.f32.s32 %f" + number(index) +
           ", %r0;\n";
}

/// Registers %m`first`... of elements `begin` to `end`, as text in braces, and what fills them.
std::string operand(std::string& body, const char* type, unsigned begin, unsigned end, unsigned& registers) {
    const bool pairs = type[0] != 't' && type[0] != 's';
    std::string text;
    for (unsigned i = begin; i < end; i += pairs ? 2 : 1) {
        const std::string target = "%m" + number(registers++);
        body += pairs ? "    cvt.rn." + std::string(type) + "x2.f32 " + target + ", %f" + number(i + 1) + ", %f" +
                            number(i) + ";\n"
                      : "    mov.b32 " + target + ", %f" + number(i) + ";\n";
        text += (text.empty() ? "{" : ", ") + target;
    }
    return text + "}";
}

}  // namespace

std::optional<Program> matrix_program_for(const std::string& name) {
    if (!name.starts_with("mma.sync.aligned.m16n8k")) return std::nullopt;
    const bool tf32 = name.find("tf32") != std::string::npos, bf16 = name.find("bf16") != std::string::npos;
    const bool half_sum = name.find("col.f16") != std::string::npos;
    Shape shape{};
    shape.depth = name.find("k16") != std::string::npos ? 16 : name.find("k8") != std::string::npos ? 8 : 4;
    shape.halves = !tf32;
    shape.half_sum = half_sum;
    shape.a_elements = shape.depth * 16 / 32;
    shape.b_elements = shape.depth * 8 / 32;
    const unsigned elements = shape.a_elements + shape.b_elements + 4, registers_needed = 16;
    std::string body = "    .reg .f32 %f<" + number(elements) + ">, %s<4>;\n    .reg .b32 %m<" +
                       number(registers_needed) + ">;\n    .reg .b16 %h<4>;\n";
    for (unsigned i = 0; i < elements; ++i) body += make_element(i);
    const char* const type = tf32 ? "tf32" : bf16 ? "bf16" : "f16";
    unsigned registers = 0;
    const unsigned b_begin = shape.a_elements, c_begin = b_begin + shape.b_elements;
    const std::string a = operand(body, type, 0, b_begin, registers);
    const std::string b = operand(body, type, b_begin, c_begin, registers);
    const std::string c = operand(body, half_sum ? "f16" : "single", c_begin, elements, registers);
    const std::string d = half_sum ? "{%m12, %m13}" : "{%s0, %s1, %s2, %s3}";
    std::string floats;  // C as .f32 registers
    for (unsigned i = 0; i < 4; ++i) floats += (i == 0 ? "{%f" : ", %f") + number(c_begin + i);
    body += "    " + name + " " + d + ", " + a + ", " + b + ", " + (half_sum ? c : floats + "}") + ";\n";
    if (half_sum) {
        body += "    mov.b32 {%h0, %h1}, %m12;\n    mov.b32 {%h2, %h3}, %m13;\n";
        for (unsigned i = 0; i < 4; ++i) body += "    cvt.f32.f16 %s" + number(i) + ", %h" + number(i) + ";\n";
    }
    body += "    mov.u32 %r1, 0;\n";
    for (unsigned i = 0; i < 4; ++i) {
        body += "    cvt.rni.s32.f32 %r0, %s" + number(i) + ";\n    mad.lo.u32 %r1, %r0, " + number(kWeights[i]) +
                ", %r1;\n";
    }
    return program_of(name, "", body + "    st.global.u32 [%out], %r1;\n    ret;\n",
                      [shape](std::uint32_t thread) { return want(shape, thread); });
}

}  // namespace gradguard::conformance
