// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>

#include "harness/generators/drawing.h"

namespace gradguard::harness {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr std::uint64_t kTwo32 = 1ULL << 32U;
using Shape = std::vector<std::uint64_t>;

/// A recipe with the entry that the rule is to be broken in.
struct Site {
    CaseRecipe& recipe;
    Random& random;
    std::size_t index = 0;
    EntryRecipe& entry() const { return recipe.entries[index]; }
    bool steps() const { return recipe.operation != Operation::kStatistics; }
};

float negative(Random& random) { return -draw_number(random, -149, 127); }

float not_finite_or_negative(Random& random) {
    switch (random.below(4)) {
        case 0:
            return kNaN;
        case 1:
            return kInfinity;
        case 2:
            return -kInfinity;
        default:
            return negative(random);
    }
}

float not_positive(Random& random) {
    return random.percent(30) ? random.percent(50) ? 0.0F : -0.0F : not_finite_or_negative(random);
}

float not_a_beta(Random& random) {
    if (random.percent(50)) return random.percent(50) ? 1.0F : draw_number(random, 0, 127);
    return not_finite_or_negative(random);
}

/// Gives every operand of the entry the shape, dense and at the start of its storage.
void reshape(const Site& site, const Shape& shape) {
    const auto give = [&](TensorRecipe& tensor) {
        tensor.shape = shape;
        tensor.strides.reset();
        tensor.byte_offset = 0;
        tensor.slack_bytes = 0;
    };
    EntryRecipe& entry = site.entry();
    give(entry.gradients);
    if (site.steps()) give(entry.parameters);
    if (!entry.state) return;
    give(entry.state->first_moment);
    give(entry.state->second_moment);
    if (entry.state->max_second_moment) give(*entry.state->max_second_moment);
}

std::uint64_t entry_count(const Site& site) { return count_of(site.entry().gradients); }

/// So that a broken layout is one: an empty tensor may lie anyhow.
void require_elements(const Site& site, std::uint64_t least) {
    if (entry_count(site) < least) reshape(site, {least + site.random.below(3)});
}

StateRecipe& require_state(const Site& site) {
    EntryRecipe& entry = site.entry();
    if (entry.state) return *entry.state;
    StateRecipe& state = entry.state.emplace();
    state.step = 1 + site.random.below(5);
    for (TensorRecipe* moment : {&state.first_moment, &state.second_moment}) {
        moment->shape = entry.parameters.shape;
        moment->values.fill = Fill::kOrdinary;
        moment->values.absolute = moment == &state.second_moment;
    }
    if (site.recipe.options.amsgrad) state.max_second_moment = state.second_moment;
    return state;
}

std::vector<TensorRecipe*> operands(const Site& site) {
    EntryRecipe& entry = site.entry();
    if (!site.steps()) return {&entry.gradients};
    std::vector<TensorRecipe*> all{&entry.parameters, &entry.gradients};
    if (!entry.state) return all;
    all.push_back(&entry.state->first_moment);
    all.push_back(&entry.state->second_moment);
    if (entry.state->max_second_moment) all.push_back(&*entry.state->max_second_moment);
    return all;
}

TensorRecipe& any_operand(const Site& site, std::size_t first = 0) {
    const std::vector<TensorRecipe*> all = operands(site);
    return *all[first + site.random.below(all.size() - first)];
}

void break_dtype(const Site& site) {
    require_state(site);
    TensorRecipe* tensor = nullptr;
    do {
        tensor = &any_operand(site);
    } while (tensor == &site.entry().gradients);
    tensor->dtype = site.random.percent(50) ? DType::kF16 : DType::kBF16;
}

void break_dimension(const Site& site) {
    const std::array<Shape, 4> shapes{Shape{kTwo32}, Shape{0, kTwo32}, Shape{kTwo32, 0},
                                      Shape{0, std::numeric_limits<std::uint64_t>::max()}};
    reshape(site, site.random.pick(shapes));
}

void break_count(const Site& site) {
    const std::uint64_t most = kTwo32 - 1;
    const std::array<Shape, 3> shapes{Shape{most, most, most}, Shape{most, most, 2, 0},
                                      Shape{1ULL << 31U, 1ULL << 31U, 4}};
    reshape(site, site.random.pick(shapes));
}

void break_bytes(const Site& site) {
    const std::array<Shape, 4> shapes{Shape{1ULL << 30U}, Shape{1ULL << 15U, 1ULL << 15U}, Shape{kTwo32 - 1},
                                      Shape{3, 1ULL << 30U}};
    reshape(site, site.random.pick(shapes));
}

void break_strides(const Site& site) {
    require_elements(site, 2);
    TensorRecipe& tensor = any_operand(site);
    std::vector<std::int64_t> strides(tensor.shape.size());
    std::int64_t dense = 1;
    std::size_t longest = 0;
    for (std::size_t i = strides.size(); i-- > 0;) {
        strides[i] = dense;
        dense *= static_cast<std::int64_t>(tensor.shape[i]);
        if (tensor.shape[i] > tensor.shape[longest]) longest = i;
    }
    constexpr std::array<std::int64_t, 4> kOther{0, -1, 2, std::numeric_limits<std::int64_t>::min()};
    std::int64_t other = site.random.pick(kOther);
    if (other == strides[longest]) ++other;
    strides[longest] = other;
    tensor.strides = strides;
}

void break_rank(const Site& site) {
    TensorRecipe& tensor = any_operand(site);
    std::vector<std::int64_t> strides(tensor.shape.size(), 1);
    if (strides.empty() || site.random.percent(50)) {
        strides.push_back(1);
    } else {
        strides.pop_back();
    }
    tensor.strides = strides;
}

void break_offset(const Site& site) {
    TensorRecipe& tensor = any_operand(site);
    tensor.byte_offset += 1 + site.random.below(element_bytes(tensor.dtype) - 1);
}

void break_storage(const Site& site) {
    TensorRecipe& tensor = any_operand(site);
    const std::uint64_t bytes = count_of(tensor) * element_bytes(tensor.dtype);
    if (bytes == 0 || site.random.percent(25)) {
        // The view starts beyond the storage, or so far out that offset + bytes wraps around.
        const std::uint64_t step = element_bytes(tensor.dtype);
        tensor.byte_offset = site.random.percent(50) ? step * (1 + site.random.below(1000)) : 0 - step;
        const std::uint64_t storage = site.random.below(std::min<std::uint64_t>(tensor.byte_offset, 64));
        tensor.slack_bytes = static_cast<std::int64_t>(storage - bytes - tensor.byte_offset);
        return;
    }
    tensor.slack_bytes = site.random.percent(50) ? -1 : -static_cast<std::int64_t>(1 + site.random.below(bytes));
}

void break_shape(const Site& site, TensorRecipe& tensor) {
    Shape shape = site.entry().parameters.shape;
    if (shape.empty()) {
        shape = {1};
    } else if (site.random.percent(30)) {
        shape.insert(shape.begin(), 1);  // As many elements: no broadcasting.
    } else {
        std::uint64_t& size = shape[site.random.below(shape.size())];
        size = size == 0 ? 1 : size > 100000 ? 0 : site.random.percent(50) ? size + 1 : size - 1;
        // A great dimension beside a zero that is gone would be a tensor of great size.
        for (std::uint64_t& other : shape) other = other > 100000 && &other != &size ? 1 : other;
    }
    tensor.strides.reset();
    tensor.byte_offset = 0;
    tensor.slack_bytes = 0;
    place(tensor, tensor.dtype, shape, site.random);
}

void break_queue(const Site& site) {
    // The group's first operand says which queue is the right one.
    TensorRecipe& tensor = any_operand(site, site.index == 0 ? 1 : 0);
    tensor.queue = 1 + static_cast<std::uint32_t>(site.random.below(2));
}

void break_maximum(const Site& site, bool amsgrad) {
    site.recipe.options.amsgrad = amsgrad;
    for (EntryRecipe& entry : site.recipe.entries) {
        if (!entry.state) continue;
        if (!amsgrad) {
            entry.state->max_second_moment.reset();
        } else if (!entry.state->max_second_moment) {
            entry.state->max_second_moment = entry.state->second_moment;
        }
    }
    StateRecipe& state = require_state(site);
    if (amsgrad) {
        state.max_second_moment.reset();
    } else {
        state.max_second_moment = state.second_moment;
    }
}

void break_step(const Site& site) {
    require_elements(site, 1);
    site.recipe.control.skip_update = false;
    require_state(site).step = std::numeric_limits<std::uint64_t>::max();
}

enum class Applies : std::uint8_t { kAlways, kSteps, kGuarded };

struct Rule {
    std::string_view name;
    Applies applies;
    void (*apply)(const Site&);
};

constexpr std::array<Rule, 24> kRules{{
    {"learning_rate", Applies::kSteps,
     [](const Site& s) { s.recipe.options.learning_rate = not_finite_or_negative(s.random); }},
    {"weight_decay", Applies::kSteps,
     [](const Site& s) { s.recipe.options.weight_decay = not_finite_or_negative(s.random); }},
    {"learning_rate * weight_decay", Applies::kSteps,
     [](const Site& s) {
         s.recipe.options.learning_rate = draw_number(s.random, 64, 127);
         s.recipe.options.weight_decay = draw_number(s.random, 65, 127);
     }},
    {"beta1", Applies::kSteps, [](const Site& s) { s.recipe.options.beta1 = not_a_beta(s.random); }},
    {"beta2", Applies::kSteps, [](const Site& s) { s.recipe.options.beta2 = not_a_beta(s.random); }},
    {"epsilon", Applies::kSteps, [](const Site& s) { s.recipe.options.epsilon = not_positive(s.random); }},
    {"gradient_scale", Applies::kAlways,
     [](const Site& s) { s.recipe.control.gradient_scale = not_positive(s.random); }},
    {"reciprocal of gradient_scale", Applies::kAlways,
     [](const Site& s) {
         s.recipe.control.gradient_scale = s.random.percent(50) ? 0x1p-128F : draw_number(s.random, -149, -129);
     }},
    {"max_norm", Applies::kGuarded, [](const Site& s) { s.recipe.guard.max_norm = not_finite_or_negative(s.random); }},
    {"guard_epsilon", Applies::kGuarded, [](const Site& s) { s.recipe.guard.epsilon = not_positive(s.random); }},
    {"dtype", Applies::kSteps, break_dtype},
    {"dimension", Applies::kAlways, break_dimension},
    {"element count", Applies::kAlways, break_count},
    {"4 * element count", Applies::kAlways, break_bytes},
    {"strides", Applies::kAlways, break_strides},
    {"rank of strides", Applies::kAlways, break_rank},
    {"byte offset", Applies::kAlways, break_offset},
    {"storage", Applies::kAlways, break_storage},
    {"shape of gradients", Applies::kSteps, [](const Site& s) { break_shape(s, s.entry().gradients); }},
    {"shape of a moment", Applies::kSteps,
     [](const Site& s) {
         require_state(s);
         break_shape(s, any_operand(s, 2));
     }},
    {"queue", Applies::kAlways, break_queue},
    {"step 0", Applies::kSteps, [](const Site& s) { require_state(s).step = 0; }},
    {"maximum", Applies::kSteps, [](const Site& s) { break_maximum(s, s.random.percent(50)); }},
    {"step overflow", Applies::kSteps, break_step},
}};

bool applies_to(const Rule& rule, Operation operation) {
    return rule.applies == Applies::kAlways || operation == Operation::kGuardedStep ||
           (rule.applies == Applies::kSteps && operation == Operation::kUnguardedStep);
}

/// A scan of one tensor has no other operand to differ from: a second entry joins it.
void require_second_entry(CaseRecipe& recipe) {
    if (recipe.operation != Operation::kStatistics || recipe.entries.size() > 1) return;
    recipe.entries.push_back(recipe.entries.front());
}

}  // namespace

std::vector<std::string_view> invalid_rules(Operation operation) {
    std::vector<std::string_view> names;
    for (const Rule& rule : kRules) {
        if (applies_to(rule, operation)) names.push_back(rule.name);
    }
    return names;
}

void break_rule(CaseRecipe& recipe, Random& random) {
    recipe.later.clear();
    if (recipe.entries.empty()) {
        EntryRecipe& entry = recipe.entries.emplace_back();
        entry.parameters.shape = entry.gradients.shape = {3};
    }
    const Rule* rule = nullptr;
    do {
        rule = &random.pick(kRules);
    } while (!applies_to(*rule, recipe.operation));
    recipe.broken = rule->name;
    const bool queue = rule->apply == &break_queue;
    if (queue) require_second_entry(recipe);
    Site site{recipe, random, random.below(recipe.entries.size())};
    if (queue && recipe.operation == Operation::kStatistics && site.index == 0) site.index = 1;
    rule->apply(site);
}

}  // namespace gradguard::harness
