# SPDX-License-Identifier: Apache-2.0
# gradguard_add_test(NAME name SOURCES ... LIBS ... LABELS ...): a GoogleTest executable, each test known to ctest.
# LABELS say what the tests need or how much they take: vgpu, cuda, nvcc, nightly, gigabytes.
include(GoogleTest)
function(gradguard_add_test)
    cmake_parse_arguments(arg "" "NAME" "SOURCES;LIBS;LABELS" ${ARGN})
    find_package(GTest REQUIRED)
    add_executable(${arg_NAME} ${arg_SOURCES})
    target_link_libraries(${arg_NAME} PRIVATE gradguard_options ${arg_LIBS} GTest::gtest GTest::gtest_main)
    target_compile_definitions(${arg_NAME} PRIVATE GRADGUARD_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                   GRADGUARD_BINARY_DIR="${PROJECT_BINARY_DIR}")
    gtest_discover_tests(${arg_NAME} DISCOVERY_TIMEOUT 60 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                         PROPERTIES LABELS "${arg_LABELS}")
endfunction()
