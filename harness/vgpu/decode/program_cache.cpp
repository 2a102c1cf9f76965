// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/decode/program_cache.h"

#include "harness/vgpu/random.h"

namespace gradguard::vgpu {
namespace {

/// What the decoder chooses at each place under this seed (decode::choose_fusion).
std::vector<std::uint64_t> choices_of(const decode::Program& program, std::uint64_t fusion_seed) {
    std::vector<std::uint64_t> choices;
    Random random(fusion_seed);
    for (const std::uint8_t ways : program.fusion_choices) choices.push_back(decode::choose_fusion(random, ways));
    return choices;
}

}  // namespace

const decode::Program& ProgramCache::get(const Module& module, const ast::Entry& entry,
                                         const decode::Options& options) {
    std::vector<Decoded>& known = entries_[{module.id(), &entry}];
    const bool seeded = options.fusion_seed != 0;
    for (const Decoded& one : known) {
        if (one.seeded != seeded) continue;
        if (!seeded || one.choices.empty() || one.choices == choices_of(*one.program, options.fusion_seed)) {
            return *one.program;
        }
    }
    Decoded fresh;
    fresh.seeded = seeded;
    fresh.program = decode::decode(module.syntax(), entry, options);
    if (seeded) fresh.choices = choices_of(*fresh.program, options.fusion_seed);
    known.push_back(std::move(fresh));
    return *known.back().program;
}

}  // namespace gradguard::vgpu
