# SPDX-License-Identifier: Apache-2.0
"""An independent oracle for guarded AdamW steps, written from the numerical contract alone.

It shares no code with the C++ sources and needs NumPy only. `step.run_files` replays what
`gradguard step FILE...` does; the other modules hold one section of the contract each.
"""

from .float32 import require_kept_subnormals

require_kept_subnormals()
