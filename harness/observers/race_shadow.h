// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "harness/observers/ordering.h"

namespace gradguard::observers {

/// How a location was accessed.
enum AccessFlags : std::uint8_t {
    kWrites = 1,
    kStrong = 2,    ///< Atomic, volatile, relaxed, acquire or release.
    kVolatile = 4,  ///< ld.volatile, st.volatile.
    kWide = 8,      ///< Strong for all blocks, not only for its own.
    kAtomic = 16,
};

/// Lanes of one warp that accessed a location at one time. time 0: nobody.
struct Access {
    std::uint32_t block = 0;
    std::uint32_t lanes = 0;
    Time time = 0;
    std::uint32_t instruction = 0;
    std::uint16_t warp = 0;
    std::uint8_t flags = 0;
};

/// Neighbouring lanes of one warp that accessed neighbouring bytes of a row: byte o by thread
/// first_thread + ((o - begin) >> lane_shift). time 0: nobody.
struct Run {
    std::uint32_t block = 0;
    Time time = 0;
    std::uint32_t instruction = 0;
    std::uint16_t first_thread = 0;
    std::uint8_t begin = 0;
    std::uint8_t end = 0;
    std::uint8_t lane_shift = 0;
    std::uint8_t flags = 0;

    std::uint32_t thread_of(std::uint32_t byte) const { return first_thread + ((byte - begin) >> lane_shift); }
};

/// What a location still knows of its accesses: the latest write and read (time 0: none), and others in no order.
struct History {
    const Access& latest_write;
    const Access& latest_read;
    std::span<const Access> others;
};

/// Hears of two accesses that may conflict: same bytes, at least one writes, and not ordered at a first glance.
class ConflictJudge {
  public:
    virtual ~ConflictJudge() = default;
    /// `offset` is that of the first conflicting byte in the watched memory.
    virtual void judge(const Access& earlier, const Access& now, std::uint64_t offset, const History& history) = 0;
};

/// Who accessed a piece of memory last, in rows of 128 bytes. As long as warps access a row in stretches, a row holds
/// runs, and a warp's access is one step; else it has a cell for each word, or for each byte when access sizes mix.
/// Forgets everything by counting up a number, never by clearing.
class RaceShadow {
  public:
    static constexpr std::uint32_t kRowBytes = 128;

    explicit RaceShadow(std::uint64_t bytes);
    /// Forgets all accesses.
    void renew() {
        ++stamp_;
        lists_used_ = 0;
        free_lists_.clear();
        details_used_ = 0;
    }
    /// What lies before the last barrier of a block is over, as only this block can access the memory.
    void set_block_private() { block_private_ = true; }

    /// Neighbouring lanes, neighbouring bytes from `offset` on. `first` is the first lane's access: its block, warp,
    /// time, instruction, flags, one lane. `lane_bytes` is a power of two and divides `offset`.
    void access_stretch(const BlockOrder& me, const Access& first, std::uint64_t offset, std::uint32_t bytes,
                        std::uint32_t lane_bytes, ConflictJudge& judge);
    /// The lanes of `now` all access the same bytes.
    void access_same(const BlockOrder& me, const Access& now, std::uint64_t offset, std::uint32_t bytes,
                     ConflictJudge& judge);

    std::uint64_t rows_watched() const { return rows_watched_; }
    /// Accesses that were forgotten because too many warps read one location. Their conflicts go unseen.
    std::uint64_t forgotten() const { return forgotten_; }

  private:
    static constexpr std::uint32_t kListCapacity = 30;

    struct Cell {
        Access write;
        Access read;
        std::uint32_t list = 0;  ///< Further accesses: lists_[list - 1].
    };
    struct List {
        std::uint32_t count = 0;
        std::uint32_t next = 0;  ///< Overwritten next when full.
        Access accesses[kListCapacity];
    };
    enum State : std::uint8_t { kRuns, kWords, kBytes };
    /// Half a cache line, enough for memory that one warp accesses.
    struct Row {
        std::uint32_t stamp;
        Time last;  ///< Time of the latest access.
        State state;
        std::uint8_t count;  ///< Runs, the others in More.
        Run first;
    };
    static constexpr std::uint32_t kMaxRuns = 4;
    struct More {
        std::uint32_t detail;  ///< Index + 1 in details_.
        Run runs[kMaxRuns - 1];
    };
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };

    std::uint64_t row_at(std::uint64_t offset, const BlockOrder& me);
    Run& run_at(std::uint64_t row, std::uint32_t i) { return i == 0 ? rows_[row].first : more_[row].runs[i - 1]; }
    /// False when runs cannot hold it, or when a closer look is needed to tell whether there is a conflict.
    bool access_runs(std::uint64_t row, const Run& run, const BlockOrder& me);
    bool is_settled(const Run& earlier, const Run& now, const BlockOrder& me) const;
    void access_cells(std::uint64_t row, const Run& run, const BlockOrder& me, ConflictJudge& judge);
    /// Cells of the row, of bytes if `by_bytes`, else of whatever it has.
    std::vector<Cell>& cells_of(std::uint64_t row, bool by_bytes);
    std::vector<Cell>& make_cells(std::uint64_t row, bool by_bytes);
    void spread(const Run& run, std::vector<Cell>& cells, std::uint32_t cell_bytes);
    void access_cell(Cell& cell, const Access& now, const BlockOrder& me, std::uint64_t offset, ConflictJudge& judge);
    void record(Cell& cell, const Access& now, const BlockOrder& me);
    /// `me`: whose barriers say what is over, if anybody's.
    void remember(Cell& cell, const Access& access, const BlockOrder* me);
    std::uint32_t new_list();

    // Row i covers bytes [i, i + 1) * kRowBytes. From calloc: costs nothing until it is touched.
    std::unique_ptr<std::byte[], Free> row_memory_;
    Row* rows_;
    std::unique_ptr<More[], Free> more_;
    std::uint32_t stamp_ = 1;
    bool block_private_ = false;
    std::vector<std::vector<Cell>> details_;
    std::vector<std::uint64_t> detail_rows_;  ///< Which row each belongs to.
    std::uint32_t details_used_ = 0;
    std::vector<std::unique_ptr<List>> lists_;
    std::uint32_t lists_used_ = 0;
    std::vector<std::uint32_t> free_lists_;
    std::uint64_t rows_watched_ = 0;
    std::uint64_t forgotten_ = 0;
};

}  // namespace gradguard::observers
