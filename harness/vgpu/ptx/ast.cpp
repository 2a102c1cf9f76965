// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/ptx/ast.h"

#include <array>
#include <string_view>
#include <utility>

namespace gradguard::vgpu::ast {
namespace {

struct TypeName {
    std::string_view name;
    Type type;
};

constexpr TypeName kTypes[] = {
    {"pred", {TypeKind::Predicate, 0}}, {"b8", {TypeKind::Bits, 1}},      {"b16", {TypeKind::Bits, 2}},
    {"b32", {TypeKind::Bits, 4}},       {"b64", {TypeKind::Bits, 8}},     {"u8", {TypeKind::Unsigned, 1}},
    {"u16", {TypeKind::Unsigned, 2}},   {"u32", {TypeKind::Unsigned, 4}}, {"u64", {TypeKind::Unsigned, 8}},
    {"s8", {TypeKind::Signed, 1}},      {"s16", {TypeKind::Signed, 2}},   {"s32", {TypeKind::Signed, 4}},
    {"s64", {TypeKind::Signed, 8}},     {"f16", {TypeKind::Float, 2}},    {"bf16", {TypeKind::Float, 2}},
    {"f16x2", {TypeKind::Float, 4}},    {"bf16x2", {TypeKind::Float, 4}}, {"f32", {TypeKind::Float, 4}},
    {"f64", {TypeKind::Float, 8}},
};

struct SpecialName {
    std::string_view name;
    SpecialRegister value;
};

constexpr SpecialName kSpecials[] = {
    {"%tid.x", SpecialRegister::TidX},
    {"%tid.y", SpecialRegister::TidY},
    {"%tid.z", SpecialRegister::TidZ},
    {"%ntid.x", SpecialRegister::NtidX},
    {"%ntid.y", SpecialRegister::NtidY},
    {"%ntid.z", SpecialRegister::NtidZ},
    {"%ctaid.x", SpecialRegister::CtaidX},
    {"%ctaid.y", SpecialRegister::CtaidY},
    {"%ctaid.z", SpecialRegister::CtaidZ},
    {"%nctaid.x", SpecialRegister::NctaidX},
    {"%nctaid.y", SpecialRegister::NctaidY},
    {"%nctaid.z", SpecialRegister::NctaidZ},
    {"%laneid", SpecialRegister::LaneId},
    {"%warpid", SpecialRegister::WarpId},
    {"%nwarpid", SpecialRegister::NwarpId},
    {"%lanemask_eq", SpecialRegister::LanemaskEq},
    {"%lanemask_le", SpecialRegister::LanemaskLe},
    {"%lanemask_lt", SpecialRegister::LanemaskLt},
    {"%lanemask_ge", SpecialRegister::LanemaskGe},
    {"%lanemask_gt", SpecialRegister::LanemaskGt},
};

}  // namespace

std::optional<Type> parse_type(std::string_view name) {
    for (const TypeName& entry : kTypes) {
        if (entry.name == name) return entry.type;
    }
    return std::nullopt;
}

std::optional<SpecialRegister> parse_special_register(std::string_view name) {
    for (const SpecialName& entry : kSpecials) {
        if (entry.name == name) return entry.value;
    }
    return std::nullopt;
}

}  // namespace gradguard::vgpu::ast
