// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

/// Control of the virtual driver (libgradguard_vdriver.so): plain C, for whoever loads it with dlopen. The library
/// exports the CUDA driver API under its own names besides; a program finds it as libcuda.so.1 in the folder
/// vdriver-lib.
///
/// Configuration: one JSON object, from gradguard_vdriver_configure() or, where that was not called, from the
/// environment variable GRADGUARD_VDRIVER when cuInit() is called. Every member may be left out:
///
///   "observers": "none"         who watches kernels: "all", "none" or names with commas between. Allocations that are
///                               alive at the end are findings only where "leaks" is named; "all" does not name it
///   "seed": 0                   picks what PTX and the driver leave open: schedules, poison, when queued work runs
///   "hold_back": true           false: queued work runs at once
///   "count": false              dynamic counts for each kernel, instructions by name among them
///   "allow_approximate": false  run approximate instructions (sqrt.approx, ...); else their modules are refused
///   "flush_subnormals": false   every FP32 instruction behaves as if it carried .ftz
///   "report": ""                a path; the report is written there when the process ends (%p: process id)
///   "driver_version": 13020     as cuDriverGetVersion tells it. Where it is given, PTX newer than such a driver's is
///                               refused (CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
///   "compute_capability": "8.0"
///   "limits": {"memory_bytes": 17179869184, "shared_bytes_per_block": 166912, "threads_per_block": 1024,
///              "block": [1024, 1024, 64], "grid": [2147483647, 65535, 65535], "instruction_budget": 4294967296}
///
/// Report: one JSON object:
///
///   "device"         always "virtual driver": nothing here ran on hardware
///   "configuration"  the above, complete
///   "calls"          driver calls made
///   "kernels"        [{"kernel", "ptx_file", "launches", "failed_launches", "blocks", "lane_instructions",
///                    "warp_instructions", "barriers",
///                    "approximate_instructions": {name: lane instructions executed; null when not counted},
///                    "flushing_instructions": the same of those with .ftz}],
///                    with "count" also "instructions": {name: lane instructions},
///                    "global_read" and "global_written": {"bytes", "sectors"}
///   "findings"       folded: [{"kind", "message", "count", "kernel", "ptx_file", "ptx_line", "instruction",
///                    "source_file", "source_line", "inlined_file", "inlined_line", "block", "thread", "space",
///                    "access", "access_bytes", "address", "allocation", "allocation_bytes",
///                    "other": {the place of the other party}, "register", "detail"}]; members that do not apply
///                    are left out, and source_file and source_line are null where the PTX does not tell them
///   "checked"        {observer: {what: how many}}
///   "live"           what the program has not freed: {"allocations": [{"address", "bytes", "kind"}], and numbers of
///                    "contexts", "modules", "streams", "events", "memory_pools"}
///   "not_supported"  {function: calls}: functions that this driver lacks
///   "refused"        [words]: modules and launches that were refused
///   "failures"       [words]: what stopped contexts, and what else went wrong
///
/// Time: cuEventElapsedTime tells virtual time, the same on every machine: 1 microsecond for each piece of queued work,
/// 1 ns for each warp instruction and for each 64 bytes copied or set.

#ifdef __cplusplus
extern "C" {
#endif

/// Before cuInit(), or when no context is alive. 0, or the CUresult: INVALID_VALUE (1) for what is no configuration
/// (the words go to standard error), NOT_PERMITTED (800) while a context is alive.
int gradguard_vdriver_configure(const char* json);
/// The report so far. Returns its length without the terminating zero; writes what fits, always terminated. `buffer`
/// may be null if `size` is 0.
size_t gradguard_vdriver_report(char* buffer, size_t size);
/// The nth driver call from now (0: the next one, of any thread) returns `result` and does nothing else. One such plan
/// at a time; CUDA_SUCCESS (0) takes it back.
void gradguard_vdriver_fail_call(uint64_t nth, int result);
/// Driver calls made so far.
uint64_t gradguard_vdriver_calls(void);
/// Forgets everything: contexts and what belongs to them, configuration, counts, findings, and that cuInit() was
/// called.
void gradguard_vdriver_reset(void);

#ifdef __cplusplus
}
#endif
