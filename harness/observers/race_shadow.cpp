// SPDX-License-Identifier: Apache-2.0
#include "harness/observers/race_shadow.h"

#include <algorithm>
#include <bit>
#include <new>

namespace gradguard::observers {
namespace {

bool overlap(const Run& a, const Run& b) { return a.begin < b.end && b.begin < a.end; }

/// The same thread has every byte that both cover.
bool same_threads(const Run& a, const Run& b) {
    if (a.block != b.block || a.lane_shift != b.lane_shift) return false;
    const int distance = static_cast<int>(b.begin) - static_cast<int>(a.begin);
    return (distance & ((1 << a.lane_shift) - 1)) == 0 && a.first_thread + (distance >> a.lane_shift) == b.first_thread;
}

bool same_warp(const Access& a, const Access& b) { return a.block == b.block && a.warp == b.warp; }

/// A weak access does not stand for a strong one, which has perhaps read what others wrote, nor a strong one for a weak
/// one, which conflicts with more. An atomic does not stand for a store: it hides nothing.
bool alike(const Access& a, const Access& b) { return ((a.flags ^ b.flags) & (kStrong | kAtomic)) == 0; }

/// Nothing of `earlier` can conflict with `now`, seen without a closer look.
bool is_over(const Access& earlier, const Access& now, const BlockOrder& me) {
    if (earlier.block != me.block) return false;
    return earlier.time <= me.barrier_time ||
           (earlier.warp == now.warp && earlier.lanes == now.lanes && (now.lanes & (now.lanes - 1)) == 0);
}

}  // namespace

RaceShadow::RaceShadow(std::uint64_t bytes) {
    static_assert(sizeof(Row) == 32);
    const std::uint64_t rows = bytes / kRowBytes + 2;
    row_memory_.reset(static_cast<std::byte*>(std::calloc(rows + 1, sizeof(Row))));
    more_.reset(static_cast<More*>(std::calloc(rows, sizeof(More))));
    if (!row_memory_ || !more_) throw std::bad_alloc();
    // No row in two cache lines.
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(row_memory_.get());
    rows_ = reinterpret_cast<Row*>(row_memory_.get() + (sizeof(Row) - address % sizeof(Row)) % sizeof(Row));
}

/// The row of a byte, made ready: what it holds is of this launch and not over.
std::uint64_t RaceShadow::row_at(std::uint64_t offset, const BlockOrder& me) {
    const std::uint64_t index = offset / kRowBytes;
    Row& row = rows_[index];
    if (row.stamp != stamp_) [[unlikely]] {
        row.stamp = stamp_;
        row.state = kRuns;
        row.count = 0;
        ++rows_watched_;
    } else if (block_private_ && row.last <= me.barrier_time) {
        row.state = kRuns;
        row.count = 0;
    }
    return index;
}

void RaceShadow::access_stretch(const BlockOrder& me, const Access& first, std::uint64_t offset, std::uint32_t bytes,
                                std::uint32_t lane_bytes, ConflictJudge& judge) {
    Run run;
    run.block = first.block;
    run.time = first.time;
    run.instruction = first.instruction;
    run.flags = first.flags;
    run.lane_shift = static_cast<std::uint8_t>(std::countr_zero(lane_bytes));
    std::uint32_t thread = first.warp * 32U + static_cast<std::uint32_t>(std::countr_zero(first.lanes));
    while (bytes != 0) {
        const auto begin = static_cast<std::uint32_t>(offset % kRowBytes);
        const std::uint32_t size = std::min(bytes, kRowBytes - begin);
        run.begin = static_cast<std::uint8_t>(begin);
        run.end = static_cast<std::uint8_t>(begin + size);
        run.first_thread = static_cast<std::uint16_t>(thread);
        const std::uint64_t row = row_at(offset, me);
        if (rows_[row].state != kRuns || (run.flags & kStrong) != 0 || !access_runs(row, run, me)) {
            access_cells(row, run, me, judge);
        }
        rows_[row].last = run.time;
        thread += size >> run.lane_shift;
        offset += size;
        bytes -= size;
    }
}

void RaceShadow::access_same(const BlockOrder& me, const Access& now, std::uint64_t offset, std::uint32_t bytes,
                             ConflictJudge& judge) {
    while (bytes != 0) {
        const auto begin = static_cast<std::uint32_t>(offset % kRowBytes);
        const std::uint32_t size = std::min(bytes, kRowBytes - begin);
        const std::uint64_t row = row_at(offset, me);
        std::vector<Cell>& cells = cells_of(row, ((begin | size) & 3) != 0);
        const std::uint32_t cell_bytes = rows_[row].state == kBytes ? 1 : 4;
        for (std::uint32_t byte = begin; byte < begin + size; byte += cell_bytes) {
            access_cell(cells[byte / cell_bytes], now, me, offset - begin + byte, judge);
        }
        rows_[row].last = now.time;
        offset += size;
        bytes -= size;
    }
}

bool RaceShadow::is_settled(const Run& earlier, const Run& now, const BlockOrder& me) const {
    return (earlier.block == me.block && earlier.time <= me.barrier_time) || same_threads(earlier, now);
}

bool RaceShadow::access_runs(std::uint64_t index, const Run& run, const BlockOrder& me) {
    Row& row = rows_[index];
    const bool writes = (run.flags & kWrites) != 0;
    bool recorded = false;
    for (std::uint32_t i = 0; i < row.count;) {
        Run& earlier = run_at(index, i);
        const bool earlier_writes = (earlier.flags & kWrites) != 0;
        const bool settled = is_settled(earlier, run, me);
        if ((writes || earlier_writes) && !settled && overlap(earlier, run)) return false;
        // What comes later and is at least as strict stands for it.
        const bool covered =
            settled && run.begin <= earlier.begin && earlier.end <= run.end && (writes || !earlier_writes);
        if (covered || (block_private_ && earlier.time <= me.barrier_time)) {
            if (i + 1 != row.count) earlier = run_at(index, row.count - 1U);
            --row.count;
            continue;
        }
        if (!recorded && earlier.time == run.time && writes == earlier_writes && earlier.begin <= run.end &&
            run.begin <= earlier.end && same_threads(earlier, run)) {
            if (run.begin < earlier.begin) {  // one longer run
                earlier.begin = run.begin;
                earlier.first_thread = run.first_thread;
            }
            earlier.end = std::max(earlier.end, run.end);
            recorded = true;
        }
        ++i;
    }
    if (recorded) return true;
    if (row.count == kMaxRuns) return false;
    run_at(index, row.count++) = run;
    return true;
}

std::vector<RaceShadow::Cell>& RaceShadow::make_cells(std::uint64_t index, bool by_bytes) {
    Row& row = rows_[index];
    bool narrow = by_bytes;
    for (std::uint32_t i = 0; i < row.count; ++i) {
        const Run& run = run_at(index, i);
        narrow |= run.lane_shift < 2 || ((run.begin | run.end) & 3) != 0;
    }
    std::uint32_t& detail = more_[index].detail;
    // The index may be one of an earlier launch: it is valid if that place belongs to this row.
    if (detail == 0 || detail > details_used_ || detail_rows_[detail - 1] != index) {
        if (details_used_ == details_.size()) {
            details_.emplace_back();
            detail_rows_.emplace_back();
        }
        details_[details_used_].clear();
        detail_rows_[details_used_] = index;
        detail = ++details_used_;
    }
    std::vector<Cell>& cells = details_[detail - 1];
    for (const Cell& cell : cells) {
        if (cell.list != 0) free_lists_.push_back(cell.list);
    }
    row.state = narrow ? kBytes : kWords;
    cells.assign(narrow ? kRowBytes : kRowBytes / 4, Cell{});
    for (std::uint32_t i = 0; i < row.count; ++i) spread(run_at(index, i), cells, narrow ? 1 : 4);
    return cells;
}

std::vector<RaceShadow::Cell>& RaceShadow::cells_of(std::uint64_t index, bool by_bytes) {
    Row& row = rows_[index];
    if (row.state == kRuns) return make_cells(index, by_bytes);
    std::vector<Cell>& cells = details_[more_[index].detail - 1];
    if (!by_bytes || row.state == kBytes) return cells;
    const std::vector<Cell> words = cells;
    cells.resize(kRowBytes);
    for (std::uint32_t byte = 0; byte < kRowBytes; ++byte) {
        cells[byte] = words[byte / 4];
        if (cells[byte].list == 0 || byte % 4 == 0) continue;
        const std::uint32_t copy = new_list();
        *lists_[copy - 1] = *lists_[cells[byte].list - 1];
        cells[byte].list = copy;
    }
    row.state = kBytes;
    return cells;
}

void RaceShadow::spread(const Run& run, std::vector<Cell>& cells, std::uint32_t cell_bytes) {
    for (std::uint32_t byte = run.begin; byte < run.end; byte += cell_bytes) {
        const std::uint32_t thread = run.thread_of(byte);
        const Access access{
            run.block, 1U << (thread % 32), run.time, run.instruction, static_cast<std::uint16_t>(thread / 32),
            run.flags};
        Cell& cell = cells[byte / cell_bytes];
        Access& place = (run.flags & kWrites) != 0 ? cell.write : cell.read;
        if (place.time != 0) remember(cell, place, nullptr);
        place = access;
    }
}

void RaceShadow::access_cells(std::uint64_t row, const Run& run, const BlockOrder& me, ConflictJudge& judge) {
    std::vector<Cell>& cells = cells_of(row, run.lane_shift < 2 || ((run.begin | run.end) & 3) != 0);
    const std::uint32_t cell_bytes = rows_[row].state == kBytes ? 1 : 4;
    Access now{run.block, 0, run.time, run.instruction, 0, run.flags};
    for (std::uint32_t byte = run.begin; byte < run.end; byte += cell_bytes) {
        const std::uint32_t thread = run.thread_of(byte);
        now.lanes = 1U << (thread % 32);
        now.warp = static_cast<std::uint16_t>(thread / 32);
        access_cell(cells[byte / cell_bytes], now, me, row * kRowBytes + byte, judge);
    }
}

void RaceShadow::access_cell(Cell& cell, const Access& now, const BlockOrder& me, std::uint64_t offset,
                             ConflictJudge& judge) {
    const bool writes = (now.flags & kWrites) != 0;
    History history{cell.write, cell.read, {}};
    if (cell.list != 0) history.others = {lists_[cell.list - 1]->accesses, lists_[cell.list - 1]->count};
    if (cell.write.time != 0 && !is_over(cell.write, now, me)) judge.judge(cell.write, now, offset, history);
    if (writes && cell.read.time != 0 && !is_over(cell.read, now, me)) judge.judge(cell.read, now, offset, history);
    for (const Access& earlier : history.others) {
        if ((writes || (earlier.flags & kWrites) != 0) && !is_over(earlier, now, me)) {
            judge.judge(earlier, now, offset, history);
        }
    }
    record(cell, now, me);
}

void RaceShadow::record(Cell& cell, const Access& now, const BlockOrder& me) {
    if ((now.flags & kWrites) != 0) {
        // Strong writes race with nobody who is strong, so they need not be ordered: keep the others too. And a weak
        // one before them, which others may still conflict with.
        const bool strong = (now.flags & kStrong) != 0;
        const bool over = alike(cell.write, now) ? is_over(cell.write, now, me)
                                                 : block_private_ && cell.write.time <= me.barrier_time;
        if (strong && cell.write.time != 0 && !over) remember(cell, cell.write, &me);
        if (!strong) {
            if (cell.list != 0) lists_[cell.list - 1]->count = 0;
            cell.read.time = 0;
        }
        cell.write = now;
        return;
    }
    Access& read = cell.read;
    const bool covered = (same_warp(read, now) && (read.lanes & ~now.lanes) == 0) ||
                         (read.block == me.block && read.time <= me.barrier_time);
    if (read.time == 0 || (covered && alike(now, read))) {
        read = now;
    } else if (same_warp(read, now) && read.time == now.time && read.flags == now.flags) {
        read.lanes |= now.lanes;
    } else {
        remember(cell, read, &me);
        read = now;
    }
}

std::uint32_t RaceShadow::new_list() {
    if (!free_lists_.empty()) {
        const std::uint32_t list = free_lists_.back();
        free_lists_.pop_back();
        lists_[list - 1]->count = lists_[list - 1]->next = 0;
        return list;
    }
    if (lists_used_ == lists_.size()) lists_.push_back(std::make_unique<List>());
    List& list = *lists_[lists_used_];
    list.count = list.next = 0;
    return ++lists_used_;
}

void RaceShadow::remember(Cell& cell, const Access& access, const BlockOrder* me) {
    if (cell.list == 0) cell.list = new_list();
    List& list = *lists_[cell.list - 1];
    for (std::uint32_t i = 0; i < list.count; ++i) {
        Access& old = list.accesses[i];
        const bool replaced = same_warp(old, access) && (old.lanes & ~access.lanes) == 0 &&
                              (old.flags & kWrites) <= (access.flags & kWrites);
        const bool over = me && old.block == me->block && access.block == me->block && old.time <= me->barrier_time;
        if ((replaced || over) && alike(access, old)) {
            old = access;
            return;
        }
    }
    if (list.count < kListCapacity) {
        list.accesses[list.count++] = access;
        return;
    }
    ++forgotten_;
    list.accesses[list.next] = access;
    list.next = (list.next + 1) % kListCapacity;
}

}  // namespace gradguard::observers
