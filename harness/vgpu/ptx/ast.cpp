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
    {"%smid", SpecialRegister::SmId},
    {"%nsmid", SpecialRegister::NsmId},
    {"%gridid", SpecialRegister::GridId},
    {"%dynamic_smem_size", SpecialRegister::DynamicSharedBytes},
    {"%total_smem_size", SpecialRegister::TotalSharedBytes},
    {"%aggr_smem_size", SpecialRegister::AllSharedBytes},
    {"%reserved_smem_offset_begin", SpecialRegister::ReservedShared},
    {"%reserved_smem_offset_0", SpecialRegister::ReservedShared},
    {"%reserved_smem_offset_1", SpecialRegister::ReservedShared},
    {"%clock", SpecialRegister::Clock},
    {"%clock_hi", SpecialRegister::ClockHigh},
    {"%clock64", SpecialRegister::Clock64},
    {"%globaltimer", SpecialRegister::GlobalTimer},
    {"%globaltimer_lo", SpecialRegister::GlobalTimerLow},
    {"%globaltimer_hi", SpecialRegister::GlobalTimerHigh},
    // Nothing is launched in clusters: each block is a cluster of its own.
    {"%clusterid.x", SpecialRegister::CtaidX},
    {"%clusterid.y", SpecialRegister::CtaidY},
    {"%clusterid.z", SpecialRegister::CtaidZ},
    {"%nclusterid.x", SpecialRegister::NctaidX},
    {"%nclusterid.y", SpecialRegister::NctaidY},
    {"%nclusterid.z", SpecialRegister::NctaidZ},
    {"%cluster_ctaid.x", SpecialRegister::ClusterRank},
    {"%cluster_ctaid.y", SpecialRegister::ClusterRank},
    {"%cluster_ctaid.z", SpecialRegister::ClusterRank},
    {"%cluster_nctaid.x", SpecialRegister::ClusterBlocks},
    {"%cluster_nctaid.y", SpecialRegister::ClusterBlocks},
    {"%cluster_nctaid.z", SpecialRegister::ClusterBlocks},
    {"%cluster_ctarank", SpecialRegister::ClusterRank},
    {"%cluster_nctarank", SpecialRegister::ClusterBlocks},
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
