# SPDX-License-Identifier: Apache-2.0
"""tools/check_includes.py finds each kind of planted violation and passes the clean twin."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_includes  # noqa: E402

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"


def tree(folder, files):
    for name, text in files.items():
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if name.endswith(".txt") else LICENCE + text)


CLEAN = {
    "reference/contract/options.h": "#include <vector>\n",
    "reference/contract/constants.h": "",
    "reference/exact/real.h": '#include <boost/x.hpp>\n#include "reference/contract/options.h"\n',
    "kernels/device/params.h": '#include "reference/contract/constants.h"\n',
    "kernels/device/load.cuh": '#include "kernels/device/params.h"\n',
    "kernels/host/update.h": '#include "kernels/device/params.h"\n#include "reference/contract/options.h"\n',
    "harness/vgpu/machine.h": "#include <immintrin.h>\n",
    "harness/devices/virtual_device.h": '#include "harness/vgpu/machine.h"\n#include "kernels/host/update.h"\n',
    "tools/cli/main.cpp": '#include <CLI/CLI.hpp>\n#include "harness/devices/virtual_device.h"\n',
    "tests/host/update_test.cpp": '#include <gtest/gtest.h>\n#include "kernels/host/update.h"\n#include "tests/host/group.h"\n',
    "tests/host/group.h": "",
    "harness/vgpu/CMakeLists.txt": "gradguard_library(gradguard_vgpu SOURCES machine.cpp)\n",
    "harness/devices/CMakeLists.txt":
        "gradguard_library(gradguard_devices SOURCES a.cpp LINKS gradguard_host gradguard_vgpu)\n",
}


class CheckIncludes(unittest.TestCase):
    def violations(self, changes):
        with tempfile.TemporaryDirectory() as folder:
            tree(folder, CLEAN | changes)
            return check_includes.check(pathlib.Path(folder))[0]

    def expect(self, changes, *parts):
        found = self.violations(changes)
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_clean_tree_passes(self):
        self.assertEqual(self.violations({}), [])

    def test_library_may_not_see_the_oracle(self):
        self.expect({"kernels/host/update.h": '#include "reference/exact/real.h"\n'},
                    "kernels/host/update.h:2", "may not include reference/exact/real.h")

    def test_library_sees_only_the_argument_structs_of_device_code(self):
        self.expect({"kernels/host/update.h": '#include "kernels/device/load.cuh"\n'}, "kernels/device/load.cuh")

    def test_device_code_sees_only_the_constants_of_the_vocabulary(self):
        self.expect({"kernels/device/load.cuh": '#include "reference/contract/options.h"\n'}, "kernels/device/load.cuh:2")

    def test_reference_may_not_look_up(self):
        self.expect({"reference/exact/real.h": '#include "kernels/host/update.h"\n'}, "reference/exact/real.h:2")

    def test_virtual_gpu_depends_on_nothing_of_the_project(self):
        self.expect({"harness/vgpu/machine.h": '#include "reference/contract/options.h"\n'}, "harness/vgpu/machine.h:2")

    def test_boost_belongs_to_the_exact_oracle(self):
        self.expect({"reference/contract/options.h": "#include <boost/x.hpp>\n"}, "may not use <boost/x.hpp>")

    def test_a_test_may_not_include_another_areas_tests(self):
        self.expect({"tests/cli/a_test.cpp": '#include "tests/host/group.h"\n'}, "tests/cli/a_test.cpp:2")

    def test_paths_start_at_the_root(self):
        self.expect({"tests/host/update_test.cpp": '#include "group.h"\n'}, "no file group.h")

    def test_folder_without_a_row(self):
        self.expect({"harness/attic/old.h": ""}, "harness/attic/old.h:1", "no row")

    def test_missing_licence_line(self):
        with tempfile.TemporaryDirectory() as folder:
            tree(folder, CLEAN)
            (pathlib.Path(folder) / "reference/contract/options.h").write_text("#pragma once\n")
            found = check_includes.check(pathlib.Path(folder))[0]
        self.assertEqual(len(found), 1)
        self.assertIn("SPDX", found[0])

    def test_file_that_is_far_too_long(self):
        self.expect({"reference/contract/options.h": "\n" * 500}, "501 lines")

    def test_link_edge_that_is_not_an_arrow(self):
        self.expect({"harness/vgpu/CMakeLists.txt": "gradguard_library(gradguard_vgpu SOURCES a.cpp LINKS gradguard_host)\n"},
                    "harness/vgpu may not link to kernels/host")

    def test_include_without_a_link_edge(self):
        self.expect({"harness/devices/CMakeLists.txt": "gradguard_library(gradguard_devices SOURCES a.cpp)\n"},
                    "does not link to it")

    def test_table_with_a_cycle(self):
        found = check_includes.cycles({"a": {"b"}, "b": {"a"}})
        self.assertEqual(len(found), 2)

    def test_the_table_has_no_cycle(self):
        self.assertEqual(check_includes.cycles(check_includes.ARROWS), [])

    def test_empty_tree_does_not_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(check_includes.check(pathlib.Path(folder))[0])


if __name__ == "__main__":
    unittest.main()
