# SPDX-License-Identifier: Apache-2.0
# The sources of the kernels as strings in the binary, so that NVRTC compiles them anywhere; gradguard_nvrtc_sources.
file(GLOB device_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/kernels/device/*)
set(GRADGUARD_DEVICE_SOURCES "")
foreach(file ${device_files} reference/contract/constants.h)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
    file(READ ${PROJECT_SOURCE_DIR}/${file} text)
    string(APPEND GRADGUARD_DEVICE_SOURCES "    {\"${file}\", R\"__source__(${text})__source__\"},\n")
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/device_sources.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/device_sources.cpp @ONLY)
set(gradguard_nvrtc_sources compile_cache.cpp nvrtc.cpp nvrtc_search.cpp nvrtc_source.cpp sha256.cpp
                            ${CMAKE_CURRENT_BINARY_DIR}/device_sources.cpp)
